//! `tenure inspect`: what a package is, and what code a device would make of it.

use std::mem::size_of;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::{Value, json};
use tenure_kernel::NativeBinary;
use tenure_package::{CodeKind, Package, ValueKind};
use tenure_vm::{FunctionIndex, Image, Instance, InstanceConfig, Limits, ValueType, disassemble};
use tenure_wire::capability::GrantUse;
use tenure_wire::control::{Client as _, GrantQuery, GrantReport, MachineStatus};
use tenure_wire::{Audience, Budget, Name};

use crate::home::Home;
use crate::machine::grant;
use crate::make::package::read_package;
use crate::make::refusal::Refusal;
use crate::make::symbols::{self, Site, Symbols, debug_path};
use crate::reach::client::Client;
use crate::reach::whom::{self, Where};
use crate::terminal::output::{Output, hex};
use tenure_wire::printable::{counted, printable};

/// Show what a package is, and with --installed what its machine was granted and has used of that.
///
/// Function names and source lines come from NAME.debug.wasm, which `tenure build` leaves beside
/// the package.
///
/// Example: tenure inspect thermostat.tenure --at 12:0x3a
#[derive(clap::Args)]
pub struct Arguments {
    /// The package.
    package: PathBuf,
    /// Show the code that a device runs, instruction by instruction.
    #[arg(long)]
    code: bool,
    /// Show function and source line of a place in the code, as a fault in `tenure log` names it.
    #[arg(long, value_name = "FUNCTION:OFFSET", conflicts_with = "code")]
    at: Option<Site>,
    /// Show what the package's machine on the device may do, and how often it has done it.
    #[arg(long, conflicts_with_all = ["code", "at"])]
    installed: bool,
    /// The machine's name on the device, if not its package's.
    #[arg(long = "as", value_name = "NAME", requires = "installed")]
    name: Option<Name>,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure inspect`.
///
/// # Errors
/// The package can't be read, isn't one that its tenant signed, or holds what no device runs.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let bytes = read_package(&arguments.package)?;
    let package = Package::parse(&bytes)?;
    let host = tenure_kernel::host_functions();
    let mut image = Vec::new();
    let Some(wasm) = package.code(CodeKind::WebAssembly) else {
        return run_native(arguments, &package, output);
    };
    tenure_vm::translate(wasm, &host, &Limits::ample(), &mut image)
        .map_err(|error| Refusal::of(wasm, &symbols::names(wasm), error))
        .context("devices don't run this package's code")?;
    let image_bytes = image.len();
    let image = Image::parse(&image).context("the image of its code")?;
    if let Some(site) = arguments.at {
        return show_place(arguments, &package, &image, site, output);
    }
    let footprint = Footprint::of(&image, image_bytes, &package.manifest().budget)?;
    if !arguments.code {
        return show_summary(arguments, &package, &footprint, output);
    }
    let symbols = Symbols::beside(&arguments.package, &package)?;
    let functions: Vec<Function> =
        (0..image.functions()).map(|index| Function::of(&image, &symbols, index)).collect();
    if output.is_json() {
        let mut object = object(&package, &footprint);
        object["functions"] = functions.iter().map(Function::to_json).collect();
        output.line("", &object);
        return Ok(());
    }
    functions.iter().for_each(|function| output.line(function.text().trim_end(), &Value::Null));
    Ok(())
}

/// Shows a package that carries native code alone.
fn run_native(arguments: &Arguments, package: &Package<'_>, output: &Output) -> anyhow::Result<()> {
    let kind = package.manifest().code.first().copied().context("the package carries no code")?;
    anyhow::ensure!(
        !arguments.code && arguments.at.is_none(),
        "the package carries no wasm; llvm-objdump and llvm-addr2line read {}, which `tenure build` \
         leaves beside it",
        arguments.package.with_extension(format!("{kind}.elf")).display()
    );
    let code = package.code(kind).unwrap_or_default();
    let binary = NativeBinary::parse(code).context("devices don't run this package's code")?;
    let budget = package.manifest().budget.memory_bytes;
    let footprint = Footprint {
        image_bytes: code.len(),
        declared: Some((binary.memory_bytes().into(), budget.into())),
        fixed: 0,
        committed: Some(budget as usize),
    };
    show_summary(arguments, package, &footprint, output)
}

fn show_summary(
    arguments: &Arguments,
    package: &Package<'_>,
    footprint: &Footprint,
    output: &Output,
) -> anyhow::Result<()> {
    let (mut text, mut object) = (summary(package, footprint), object(package, footprint));
    if arguments.installed {
        let (machine, report) = report(arguments, package.manifest().name.clone())?;
        let is_this = machine.digest == package.digest();
        let which = if is_this { "this build" } else { "another build than this file" };
        text += &format!("\n  {:<11} {}, {which}", "installed", machine.version);
        text += &granted(&report);
        object["installed"] = json!({
            "version": machine.version.to_string(),
            "digest": machine.digest.to_string(),
            "is_this": is_this,
        });
        object["granted"] = report.uses.iter().map(use_object).collect();
        object["denied"] = json!(report.denied);
    }
    output.line(text.trim_end(), &object);
    Ok(())
}

fn show_place(
    arguments: &Arguments,
    package: &Package<'_>,
    image: &Image<'_>,
    site: Site,
    output: &Output,
) -> anyhow::Result<()> {
    let code = image.code(FunctionIndex(site.function));
    let code = code.with_context(|| {
        format!("the package has functions 0 to {}", image.functions().saturating_sub(1))
    })?;
    anyhow::ensure!(
        (site.offset as usize) < code.len(),
        "the code of function {} is {} bytes long",
        site.function,
        code.len()
    );
    let place = Symbols::beside(&arguments.package, package)?.place(site);
    let debug = debug_path(&arguments.package);
    anyhow::ensure!(
        place.is_known(),
        "nothing is known of that function; build the package, so that {} is there",
        debug.display()
    );
    output.line(&place.to_string(), &place.to_json());
    Ok(())
}

/// The memory of a roomy device for all of its machines.
pub(crate) const ROOMY_BYTES: usize = 64 * 1024 * 1024;

/// The memory that a machine takes of a device.
struct Footprint {
    /// Code flash.
    image_bytes: usize,
    /// Linear memory that its code starts with, and that it may grow to, in bytes.
    declared: Option<(u64, u64)>,
    /// Bytes that are kept of a machine beside its linear memory.
    fixed: usize,
    /// The linear memory that is committed at the start, in bytes; unknown if it is more than a machine gets here.
    committed: Option<usize>,
}

impl Footprint {
    /// By starting one here, within the memory of a roomy device: the package is a stranger's, and says what it likes.
    fn of(image: &Image<'_>, image_bytes: usize, budget: &Budget) -> anyhow::Result<Self> {
        let (stack, memory) = (budget.stack_bytes as usize, budget.memory_bytes as usize);
        let config = InstanceConfig {
            stack_bytes: stack.min(ROOMY_BYTES),
            memory_bytes_max: memory.min(ROOMY_BYTES),
        };
        let committed = match Instance::new_lazy(image, &config) {
            Ok(instance) => Some(instance.memory().len()),
            Err(_) if stack > ROOMY_BYTES || memory > ROOMY_BYTES => None,
            Err(error) => {
                let why = "a machine of this package doesn't start within its budget";
                return Err(error).context(why);
            }
        };
        let fixed = size_of::<Instance>() + stack;
        Ok(Self { image_bytes, declared: image.memory_bytes(), fixed, committed })
    }
}

/// The rights of the package's machine on the device, and its use of them.
/// The machine on the device, and the use of its grants.
fn report(arguments: &Arguments, package: Name) -> anyhow::Result<(MachineStatus, GrantReport)> {
    let machine = arguments.name.clone().unwrap_or(package);
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let report = client.at(&device.route).grants(GrantQuery { machine: machine.clone() })?;
    let mut machines = whom::machines(&mut client, &device)?.into_iter();
    let installed = machines.find(|known| known.name == machine);
    Ok((installed.with_context(|| format!("{machine} isn't there any more"))?, report))
}

fn granted(report: &GrantReport) -> String {
    let mut text = String::new();
    for GrantUse { right, to, used } in &report.uses {
        text += &format!(
            "\n  {:<11} {} {to}, used {}",
            "granted",
            right.list(),
            counted(*used, "time")
        );
    }
    text + &format!("\n  {:<11} {} what isn't granted", "denied", counted(report.denied, "time"))
}

fn use_object(granted: &GrantUse) -> Value {
    json!({ "list": granted.right.list(), "to": granted.to, "used": granted.used })
}

fn summary(package: &Package<'_>, footprint: &Footprint) -> String {
    let manifest = package.manifest();
    let mut text = format!("{} {}", manifest.name, manifest.version);
    if !manifest.description.is_empty() {
        text += &format!(": {}", printable(&manifest.description));
    }
    let mut row = |name: &str, value: &str| text += &format!("\n  {name:<11} {value}");
    row("tenant", &package.tenant().to_string());
    row("digest", &package.digest().to_string());
    row("offers", &list(&manifest.exports));
    let budget = &manifest.budget;
    let task_fuel = match budget.task_fuel {
        0 => "no limit of fuel a task".to_owned(),
        fuel => format!("{fuel} fuel a task"),
    };
    row(
        "budget",
        &format!(
            "{} bytes of memory, {} of stack, {} stored, {} tasks waiting, {task_fuel}",
            budget.memory_bytes, budget.stack_bytes, budget.stored_bytes, budget.queue_length
        ),
    );
    let fuel = match budget.fuel_per_second {
        0 => "fuel without limit".to_owned(),
        fuel => format!("{fuel} fuel"),
    };
    row(
        "rates",
        &format!(
            "{fuel} and {} messages of {} bytes together a second, {} bytes to flash a day",
            budget.messages_per_second, budget.message_bytes_per_second, budget.flash_bytes_per_day
        ),
    );
    for (kind, names) in grant::lists(&manifest.capabilities) {
        row(kind, &list(&names));
    }
    if manifest.errors == Audience::Callers {
        row("errors", "their text is told to callers");
    }
    let timers = manifest.timers.iter();
    let timers: Vec<_> = timers.map(|timer| format!("{} {}", timer.function, timer.when)).collect();
    if !timers.is_empty() {
        row("timers", &timers.join(", "));
    }
    let kinds: Vec<_> = manifest.code.iter().map(|kind| kind.as_str()).collect();
    row(
        "code",
        &format!(
            "{} bytes ({}), {} as image",
            package.code_bytes(),
            kinds.join(" and "),
            footprint.image_bytes
        ),
    );
    row(
        "memory",
        &match footprint.declared {
            Some((start, limit)) => format!("{start} bytes at the start, at most {limit}"),
            None => "none".to_owned(),
        },
    );
    row(
        "RAM",
        &match footprint.committed {
            Some(committed) => format!(
                "{} bytes a machine at the start, of which {committed} are memory; at most {}",
                footprint.fixed + committed,
                footprint.fixed + budget.memory_bytes as usize
            ),
            None => format!(
                "more than {ROOMY_BYTES} bytes a machine at the start: a device has that for all of its machines, unless its \
                 owner gives more"
            ),
        },
    );
    for entry in package.tree().entries() {
        let value = match entry.kind {
            ValueKind::Text => format!("\"{}\"", printable(&String::from_utf8_lossy(entry.value))),
            ValueKind::Bytes => format!("0x{}", hex(entry.value)),
        };
        row("tree", &format!("{} = {value}", printable(entry.path)));
    }
    text
}

fn object(package: &Package<'_>, footprint: &Footprint) -> Value {
    let manifest = package.manifest();
    let budget = &manifest.budget;
    let tree: serde_json::Map<String, Value> = package
        .tree()
        .entries()
        .map(|entry| {
            let value = match entry.kind {
                ValueKind::Text => json!({ "text": String::from_utf8_lossy(entry.value) }),
                ValueKind::Bytes => json!({ "hex": hex(entry.value) }),
            };
            (entry.path.to_owned(), value)
        })
        .collect();
    let timers = manifest
        .timers
        .iter()
        .map(|timer| json!({ "function": timer.function, "when": timer.when.to_string() }));
    json!({
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "tenant": package.tenant().to_string(),
        "digest": package.digest().to_string(),
        "exports": manifest.exports,
        "budget": budget,
        "capabilities": grant::object(&manifest.capabilities),
        "tree": tree,
        "errors": manifest.errors,
        "log": manifest.log,
        "timers": timers.collect::<Vec<_>>(),
        "code": manifest.code,
        "code_bytes": package.code_bytes(),
        "image_bytes": footprint.image_bytes,
        "memory_bytes_min": footprint.declared.map(|(start, _)| start),
        "memory_bytes_max": footprint.declared.map(|(_, limit)| limit),
        "ram_bytes_start": footprint.committed.map(|committed| footprint.fixed + committed),
        "ram_bytes_max": footprint.fixed + budget.memory_bytes as usize,
    })
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { printable(&names.join(" ")) }
}

/// A function of an image.
struct Function {
    index: u32,
    name: Option<String>,
    signature: String,
    /// Offset and text of each instruction.
    code: Vec<(usize, String)>,
}

impl Function {
    fn of(image: &Image<'_>, symbols: &Symbols, index: u32) -> Self {
        let signature = image.signature(FunctionIndex(index));
        let bytes = image.code(FunctionIndex(index)).unwrap_or_default();
        let (mut code, mut at) = (Vec::new(), 0);
        while let Some((text, length)) = disassemble(bytes, at) {
            code.push((at, text));
            at += length;
        }
        Self {
            index,
            name: symbols.name(index).map(str::to_owned),
            signature: signature.map_or(String::new(), |signature| {
                format!("({}) -> ({})", types(signature.params()), types(signature.results()))
            }),
            code,
        }
    }

    fn text(&self) -> String {
        let name = self.name.as_deref().map(printable).unwrap_or_default();
        let mut text = format!("\nfunction {} {name} {}\n", self.index, self.signature);
        for (offset, instruction) in &self.code {
            text += &format!("  {offset:#06x}  {instruction}\n");
        }
        text
    }

    fn to_json(&self) -> Value {
        let code: Vec<Value> = self
            .code
            .iter()
            .map(|(offset, text)| json!({ "offset": offset, "instruction": text }))
            .collect();
        json!({
            "index": self.index,
            "name": self.name,
            "signature": self.signature,
            "code": code,
        })
    }
}

fn types(types: impl Iterator<Item = ValueType>) -> String {
    let names: Vec<&str> = types
        .map(|value_type| match value_type {
            ValueType::I32 => "i32",
            ValueType::I64 => "i64",
            ValueType::F32 => "f32",
            ValueType::F64 => "f64",
            ValueType::FuncRef => "funcref",
            ValueType::ExternRef => "externref",
        })
        .collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use tenure_kernel::host_functions;

    use super::*;

    #[test]
    fn package_that_asks_for_more_than_a_device_has_is_inspected_within_its_memory() {
        // B-5: a memory of 4 GiB, data at whose end makes all of it be committed; and a stack of as much.
        let wasm = wat::parse_str(
            "(module (memory 65535) (data (i32.const -131072) \"x\") (func (export \"run\")))",
        );
        let mut image = Vec::new();
        tenure_vm::translate(&wasm.unwrap(), &host_functions(), &Limits::ample(), &mut image)
            .unwrap();
        let image = Image::parse(&image).unwrap();
        let least = Budget::default();
        for budget in [
            Budget { memory_bytes: u32::MAX, ..least },
            Budget { memory_bytes: u32::MAX, stack_bytes: u32::MAX, ..least },
        ] {
            let footprint = Footprint::of(&image, 0, &budget).unwrap();
            assert_eq!(footprint.committed, None);
        }
        let refused = Footprint::of(&image, 0, &least).map(|_| ());
        assert!(refused.unwrap_err().to_string().contains("within its budget"));
        let small = wat::parse_str("(module (memory 1) (func (export \"run\")))").unwrap();
        let mut image = Vec::new();
        tenure_vm::translate(&small, &host_functions(), &Limits::ample(), &mut image).unwrap();
        let image = Image::parse(&image).unwrap();
        let roomy = Budget { memory_bytes: u32::MAX, ..least };
        assert!(Footprint::of(&image, 0, &roomy).unwrap().committed.is_some());
    }
}
