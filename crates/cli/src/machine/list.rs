//! `tenure list`, `tenure key` and `tenure log`: looking at devices and machines.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tenure_package::Package;
use tenure_wire::control::{Client as _, DeviceStatus, LogPage, LogQuery, MachineStatus};
use tenure_wire::directory::{ListFrom, Listing, function as directory};
use tenure_wire::live_log::Followed;
use tenure_wire::printable::{counted, printable};
use tenure_wire::{CodeKind, LogLevel, Name};

use crate::home::{Home, backup};
use crate::machine::lease;
use crate::make::pack::START_FUNCTION;
use crate::make::package::read_package;
use crate::make::symbols::{MachineSymbols, Symbols};
use crate::reach::client::{Client, Device};
use crate::reach::network::UNREADABLE;
use crate::reach::pages::gather;
use crate::reach::whom::{Where, machines};
use crate::terminal::clock::time;
use crate::terminal::output::{Output, has_reader, width_of};
use crate::terminal::stop::Stop;

/// How long the hub may take to answer.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);
/// How often `tenure log --follow` looks for new lines.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// List the machines on a device, or all that the hub knows.
///
/// Example: tenure list --device 127.0.0.1:7370
#[derive(clap::Args)]
pub struct ListArguments {
    /// List what the hub knows, device by device.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    packages: Packages,
    #[command(flatten)]
    place: Where,
}

/// The packages by which faults are explained.
#[derive(clap::Args)]
struct Packages {
    /// Say where in the source machines of this package failed, with the NAME.debug.wasm that
    /// `tenure build` left beside it; may be given several times.
    #[arg(long = "package", value_name = "PACKAGE")]
    paths: Vec<PathBuf>,
}

impl Packages {
    /// The symbols of those machines that were made from exactly these packages.
    fn symbols(&self, machines: &[MachineStatus]) -> anyhow::Result<MachineSymbols> {
        let mut symbols = MachineSymbols::default();
        for path in &self.paths {
            let bytes = read_package(path)?;
            let package = Package::parse(&bytes)?;
            let made = machines.iter().filter(|machine| machine.digest == package.digest());
            let mut none = true;
            for machine in made {
                symbols.insert(machine.name.clone(), Symbols::beside_or_told(path, &package)?);
                none = false;
            }
            anyhow::ensure!(
                !none,
                "the device has no machine of exactly this build of {}; `tenure list --json` shows \
                 their digests",
                path.display()
            );
        }
        Ok(symbols)
    }
}

/// Show keys: your own, a device's, or those of a machine on it.
///
/// Without a machine and without a device that answers, your own keys alone are shown.
///
/// Example: tenure key thermostat
#[derive(clap::Args)]
pub struct KeyArguments {
    /// A machine on the device.
    machine: Option<Name>,
    /// Show your own keys only.
    #[arg(long, conflicts_with = "machine")]
    own: bool,
    #[command(flatten)]
    place: Where,
}

/// Show what machines logged.
///
/// Example: tenure log thermostat --follow
#[derive(clap::Args)]
pub struct LogArguments {
    /// The machine; by default all.
    machine: Option<Name>,
    /// Go on until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
    /// Show only lines that are at least so grave: fault, error, warning, info or debug.
    #[arg(long, value_name = "LEVEL")]
    level: Option<LogLevel>,
    #[command(flatten)]
    packages: Packages,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure list`.
///
/// # Errors
/// Device or hub can't be reached.
pub fn list(arguments: &ListArguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    if arguments.all {
        return list_all(client, &arguments.place, output);
    }
    let device = arguments.place.connect(client)?;
    let machines = machines(client, &device)?;
    let symbols = arguments.packages.symbols(&machines)?;
    if output.is_json() {
        let list: Vec<Value> =
            machines.iter().map(|machine| machine_object(machine, &symbols)).collect();
        let status = &device.status;
        let object = json!({
            "device": status.name.as_str(),
            "trash_machines": status.trash_machines,
            "trash_bytes": status.trash_bytes,
            "policy": status.policy,
            "fuel_per_second": status.fuel_per_second,
            "heap": status.heap.map(|heap| json!({
                "used_bytes": heap.used_bytes,
                "peak_bytes": heap.peak_bytes,
                "total_bytes": heap.total_bytes,
                "board_bytes": heap.board_bytes,
                "answers_bytes": heap.answers_bytes,
            })),
            "machines": list,
        });
        output.line("", &object);
        return Ok(());
    }
    if machines.is_empty() {
        output.line(&format!("{} has no machines", device.status.name), &Value::Null);
        return Ok(());
    }
    let width = width_of(machines.iter().map(|machine| machine.name.as_str()));
    output.line(
        &format!(
            "{:<width$} {:<8} {:<9} {:>6} {:>9} {:>8}  functions",
            "machine", "version", "state", "tasks", "memory", "stored"
        ),
        &Value::Null,
    );
    for machine in &machines {
        output.line(&machine_line(machine, width, &symbols), &Value::Null);
    }
    for lease in machines.iter().filter_map(lease::line) {
        output.line(&lease, &Value::Null);
    }
    let status = &device.status;
    if status.trash_machines > 0 {
        let line = format!(
            "trash: {}, {} bytes of flash; see `tenure trash list`",
            counted(status.trash_machines, "machine"),
            status.trash_bytes
        );
        output.line(&line, &Value::Null);
    }
    let millions = status.fuel_per_second as f64 / 1e6;
    output.line(
        &format!(
            "scheduling: {}; {millions:.1} million units of fuel a second when it last ran",
            status.policy
        ),
        &Value::Null,
    );
    if let Some(heap) = status.heap {
        let [used, peak, total] =
            [heap.used_bytes, heap.peak_bytes, heap.total_bytes].map(|bytes| bytes / 1024);
        let line = format!("heap: {used} of {total} KiB used, at most {peak} so far");
        output.line(&line, &Value::Null);
    }
    Ok(())
}

/// Runs `tenure key`.
///
/// # Errors
/// The keys can't be had, or the device named can't be reached.
pub fn key(arguments: &KeyArguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    if arguments.own {
        return own_keys(client, &Home::from_environment()?, output);
    }
    let device = arguments.place.connect(client)?;
    let Some(name) = &arguments.machine else {
        return device_keys(&device, output);
    };
    let machines = machines(client, &device)?;
    let machine = machines
        .iter()
        .find(|machine| machine.name == *name)
        .with_context(|| format!("the device has no machine `{name}`; see `tenure list`"))?;
    output.line(
        &format!("id   {}\nkey  {}", machine.id, machine.key),
        &json!({ "machine": name.as_str(), "id": machine.id.to_string(), "key": machine.key.to_string() }),
    );
    Ok(())
}

/// Runs `tenure log`.
///
/// # Errors
/// The device can't be reached, or has no such machine.
pub fn log(arguments: &LogArguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    let stop = client.stop()?;
    let mut device = arguments.place.connect(client)?;
    let machines = machines(client, &device)?;
    let symbols = arguments.packages.symbols(&machines)?;
    if let Some(name) = &arguments.machine {
        let known = machines.iter().any(|machine| machine.name == *name);
        anyhow::ensure!(known, "the device has no machine `{name}`; see `tenure list`");
    }
    let mut followed = Followed::default();
    followed.is_restart(device.status.boots);
    loop {
        let page = match page_of(arguments, client, &device, &followed) {
            Ok(page) => page,
            Err(error) if !arguments.follow => return Err(error),
            Err(_) => {
                let Some(again) = reconnect(arguments, client, &stop, output)? else {
                    return Ok(());
                };
                followed.is_restart(again.status.boots);
                device = again;
                continue;
            }
        };
        if followed.is_restart(page.boot) {
            let object = json!({ "event": "restarted", "boots": page.boot });
            output.line(&format!("(the device has restarted; boot {})", page.boot), &object);
            continue;
        }
        for line in &page.lines {
            if followed.takes(line) {
                output.log(line, &symbols.trace_in(line));
            }
        }
        followed.go_on_from(page.next);
        if !page.more && !arguments.follow || stop.is_requested() || !has_reader() {
            return Ok(());
        }
        if !page.more {
            std::thread::sleep(FOLLOW_EVERY);
        }
    }
}

/// The next lines of a device, and the boot that numbered them. A device of before doesn't say its boot with its lines and
/// is asked for it.
fn page_of(
    arguments: &LogArguments,
    client: &mut Client,
    device: &Device,
    followed: &Followed,
) -> anyhow::Result<LogPage> {
    let (machine, level) = (arguments.machine.clone(), arguments.level);
    let query = LogQuery { machine, from: followed.next(), level };
    let page: LogPage = client.at(&device.route).log(query)?;
    if page.boot != 0 || !arguments.follow {
        return Ok(LogPage { boot: page.boot.max(device.status.boots), ..page });
    }
    let status: DeviceStatus = client.at(&device.route).status(())?;
    Ok(LogPage { boot: status.boots, ..page })
}

/// Waits until a device that went silent is there again; `None` if the user has had enough.
fn reconnect(
    arguments: &LogArguments,
    client: &mut Client,
    stop: &Stop,
    output: &Output,
) -> anyhow::Result<Option<Device>> {
    let object = json!({ "event": "silent" });
    output.line("(the device doesn't answer; its log goes on when it is back)", &object);
    loop {
        if stop.is_requested() || !has_reader() {
            return Ok(None);
        }
        match arguments.place.connect(client) {
            Ok(device) => {
                let boots = device.status.boots;
                let object = json!({ "event": "back", "boots": boots });
                output.line(&format!("(the device is back; boot {boots})"), &object);
                return Ok(Some(device));
            }
            Err(_) => std::thread::sleep(FOLLOW_EVERY),
        }
    }
}

fn list_all(client: &mut Client, place: &Where, output: &Output) -> anyhow::Result<()> {
    let route = place.hub_route(client)?;
    let listed = gather("the hub lists machines", |skip| {
        let parameter = postcard::to_allocvec(&ListFrom { skip })?;
        let answer = client
            .call(&route, directory::LIST, Some(parameter), HUB_TIMEOUT)
            .with_context(|| format!("the hub at {}", route.address))?;
        // A device has a function `list` too, whose answer begins alike and goes on.
        let page = match postcard::take_from_bytes::<Listing>(&answer.unwrap_or_default()) {
            Ok((page, [])) => page,
            _ => bail!(UNREADABLE),
        };
        let known = skip as usize + page.machines.len();
        Ok((page.machines, known < page.total as usize))
    })?;
    if output.is_json() {
        let machines: Vec<Value> = listed
            .iter()
            .map(|one| json!({ "machine": one.machine.as_str(), "device": one.device.as_str(), "key": one.key.to_string() }))
            .collect();
        output.line("", &json!({ "machines": machines }));
        return Ok(());
    }
    if listed.is_empty() {
        output.line("the hub knows no machines", &Value::Null);
    }
    for one in &listed {
        output.line(&format!("{}@{}  {}", one.machine, one.device, one.key), &Value::Null);
    }
    Ok(())
}

fn machine_line(machine: &MachineStatus, width: usize, symbols: &MachineSymbols) -> String {
    let fault = machine.last_fault.as_ref().map(|fault| {
        let place = symbols.place(&machine.name, fault);
        let place = place.map_or(String::new(), |place| format!(" in {place}"));
        format!("  (last fault: {fault}{place})")
    });
    format!(
        "{:<width$} {:<8} {:<9} {:>6} {:>9} {:>8}  {}{}{}",
        machine.name.as_str(),
        machine.version.to_string(),
        machine.state,
        machine.tasks_done,
        machine.memory_bytes,
        machine.stored_bytes,
        offered(machine).join(" "),
        serves(machine).map_or(String::new(), |serves| format!("  ({serves})")),
        fault.unwrap_or_default(),
    )
}

/// The function that a machine is in the middle of, and for how long, in words.
pub(crate) fn serves(machine: &MachineStatus) -> Option<String> {
    let function = machine.serves.as_deref()?;
    Some(format!("serves {} for {:.1} s", printable(function), machine.serves_ms as f64 / 1000.0))
}

/// The functions that others may call: all but the one that runs at the start.
fn offered(machine: &MachineStatus) -> Vec<&str> {
    machine.exports.iter().map(String::as_str).filter(|name| *name != START_FUNCTION).collect()
}

/// Those of [`offered`] that a shell takes as one plain word. The names are the tenant's choice, and what is
/// completed stands in the owner's line: `$(…)` would be run.
pub(crate) fn completable(machine: &MachineStatus) -> Vec<&str> {
    let is_plain = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
        name.bytes().all(plain)
    };
    offered(machine).into_iter().filter(|name| is_plain(name)).collect()
}

/// The engine that runs it.
fn engine_of(machine: &MachineStatus) -> &'static str {
    match (machine.at_native_speed, machine.code) {
        (_, CodeKind::Rv32 | CodeKind::Thumb) => "native",
        (true, CodeKind::WebAssembly) => "native-speed",
        (false, CodeKind::WebAssembly) => "vm",
    }
}

fn machine_object(machine: &MachineStatus, symbols: &MachineSymbols) -> Value {
    let fault = machine.last_fault.as_ref();
    let place = fault.and_then(|fault| symbols.place(&machine.name, fault));
    json!({
        "name": machine.name.as_str(),
        "id": machine.id.to_string(),
        "key": machine.key.to_string(),
        "package": machine.package.as_str(),
        "version": machine.version,
        "digest": machine.digest.to_string(),
        "tenant": machine.tenant.to_string(),
        "functions": offered(machine),
        "state": machine.state,
        "serves": machine.serves,
        "serves_ms": machine.serves_ms,
        "queue_length": machine.queue_length,
        "tasks_done": machine.tasks_done,
        "fuel_used": machine.fuel_used,
        "faults": machine.faults,
        "repute": machine.repute,
        "last_fault": machine.last_fault,
        "last_fault_place": place.map(|place| place.to_json()),
        "engine": engine_of(machine),
        "code": machine.code,
        "memory_bytes": machine.memory_bytes,
        "stored_bytes": machine.stored_bytes,
        "budget": machine.budget,
        "share": machine.share,
        "term": machine.term,
        "lease_unix_s": machine.lease_unix_s,
        "lease_number": machine.lease_number,
        "grace_left_s": machine.grace_left_s,
        "base_bytes": machine.base_bytes,
        "waited_max_us": machine.waited_max_us,
        "wait_bound_us": machine.wait_bound_us,
    })
}

fn own_keys(client: &Client, home: &Home, output: &Output) -> anyhow::Result<()> {
    let tenant = home.tenant_key()?.verifying_key();
    let owner = client.keys().owner();
    let (signing, machine) = (owner.verifying_key, owner.machine);
    let backed_up_unix_s = backup::made_at(home, &signing)?;
    let backup = backed_up_unix_s
        .map_or_else(|| backup::NONE_YET.to_owned(), |unix_s| format!("of {}", time(unix_s)));
    output.line(
        &format!("owner   {signing}/{machine}\ntenant  {tenant}\nbackup  {backup}"),
        &json!({
            "owner_signing_key": signing.to_string(),
            "owner_machine_key": machine.to_string(),
            "tenant_key": tenant.to_string(),
            "backed_up_unix_s": backed_up_unix_s,
        }),
    );
    Ok(())
}

fn device_keys(device: &Device, output: &Output) -> anyhow::Result<()> {
    let status = &device.status;
    output.line(
        &format!(
            "device   {}\nsigning  {}\nmachine  {}\nowner    {}",
            status.name, status.key, status.device_machine, status.owner
        ),
        &json!({
            "device": status.name.as_str(),
            "signing_key": status.key.to_string(),
            "machine_key": status.device_machine.to_string(),
            "owner": status.owner.to_string(),
        }),
    );
    Ok(())
}
