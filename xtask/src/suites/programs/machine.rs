//! Runs a program as a machine on a device of its own, on this computer or on an emulated board, and natively.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use tempfile::TempDir;
use tenure_testbed::free_ipv4_address;
use tenure_wire::console::LISTENS_ON;

use super::build::{Built, ended, said};
use super::table::{Output, Program};
use super::verdict::{Figures, OnBoard};
use crate::board::Board;
use crate::{process, tenure};

/// The file of its standard input, beside the project.
const INPUT: &str = "input";
/// The line that the log of a machine begins with.
const INSTALLED: &str = "installed";
/// How long a run may take. Some are for minutes, on a device that was compiled without optimisation.
const RUN_S_MAX: &str = "1800";
/// The board that programs are tried on.
const BOARD: Board = Board::QemuRiscv32;
/// Its memory for machines, in bytes, of which there is one here (`docs/hardware.md`).
const BOARD_BYTES: u32 = 176 << 10;
/// Of that the vm's own stack.
const BOARD_VM_STACK_BYTES: u32 = 16 << 10;
/// A program's stack in its memory, on the board.
pub(super) const BOARD_STACK_BYTES: u32 = 16 << 10;
/// Where images of machines lie in the board's flash, in bytes (`docs/hardware.md`).
const BOARD_IMAGE_BYTES: u64 = 1008 << 10;
/// What begins with more memory than the budget has is refused with these words.
const TOO_LITTLE_MEMORY: &str = "set memory_bytes in [budget]";

/// A line that `tenure device --json` prints.
#[derive(Deserialize)]
struct Line {
    event: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    level: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Inspected {
    code_bytes: u64,
    image_bytes: u64,
}

#[derive(Deserialize)]
struct Listing {
    machines: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    fuel_used: u64,
    memory_bytes: u64,
}

/// Runs the program natively, and gives what it printed.
///
/// # Errors
/// It fails.
pub(super) fn natively(program: &Program, built: &Built) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    for (name, file) in &built.files {
        let place = folder.path().join(name);
        fs::create_dir_all(place.parent().context("a file in no folder")?)?;
        fs::copy(file, &place).with_context(|| format!("can't copy {}", file.display()))?;
    }
    let mut command = Command::new(&built.native);
    // As in a machine, no variables are there.
    command.args(&program.arguments).current_dir(folder.path()).env_clear();
    // Not in the folder in which it finds its files.
    let input = tempfile::NamedTempFile::new()?;
    fs::write(input.path(), &program.input)?;
    ended(command.stdin(File::open(input.path())?))
}

/// Runs the program as a machine on this computer, and gives what it printed and what it took.
///
/// # Errors
/// It can't be packed, or its run fails.
pub(super) fn as_machine(
    tenure: &Path,
    program: &Program,
    built: &Built,
) -> Result<(Vec<u8>, Figures)> {
    let memory_bytes = program.memory_bytes;
    let budget = Budget { memory_bytes, stack_bytes: 512 << 10, stored_bytes: 2 << 20 };
    let bench = Bench::new(tenure, program, &built.wasm, &built.files, budget)?;
    bench.pack()?;
    let inspected = said(&mut bench.command(&["inspect", "--json", &bench.package()]))?;
    let inspected: Inspected = serde_json::from_slice(&inspected)?;
    let mut device = bench.device()?;
    bench.install(&device)?;
    let result = bench.call(&device)?;
    let listed = bench.listed(&device)?;
    let log = device.end()?;
    let output = match program.output {
        Output::Result => result,
        Output::Log => log.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().into(),
    };
    let figures = Figures {
        code_bytes: inspected.code_bytes,
        image_bytes: inspected.image_bytes,
        memory_bytes: listed.memory_bytes,
        fuel: listed.fuel_used,
        board: OnBoard::NotTried,
    };
    Ok((output, figures))
}

/// Whether an image of so many bytes is too large for the board, whatever memory its program takes.
pub(super) fn is_too_large_for_board(image_bytes: u64) -> bool {
    image_bytes > BOARD_IMAGE_BYTES
}

/// An emulated board's firmware, and who runs it.
pub(super) struct Firmware {
    image: PathBuf,
    /// This very command.
    xtask: PathBuf,
}

impl Firmware {
    /// Builds it.
    ///
    /// # Errors
    /// It can't be built.
    pub(super) fn build(root: &Path) -> Result<Self> {
        let xtask = std::env::current_exe().context("this command has no file")?;
        let mut build = Command::new(&xtask);
        build.args(["board", BOARD.name(), "--build-only"]).current_dir(root);
        let said = process::capture(&mut build)?;
        let image = said.lines().last().context("the board's build names no image")?.into();
        Ok(Self { image, xtask })
    }
}

/// Runs the program as a machine on the board, and gives what came of it and, if it was run to its end, what it printed.
///
/// # Errors
/// The board doesn't work.
pub(super) fn on_board(
    tenure: &Path,
    program: &Program,
    wasm: &Path,
    files: &BTreeMap<String, PathBuf>,
    firmware: &Firmware,
) -> Result<(OnBoard, Vec<u8>)> {
    let none = |outcome| Ok((outcome, Vec::new()));
    let budget = Budget {
        memory_bytes: BOARD_BYTES - BOARD_VM_STACK_BYTES,
        stack_bytes: BOARD_VM_STACK_BYTES,
        stored_bytes: 128 << 10,
    };
    let bench = Bench::new(tenure, program, wasm, files, budget)?;
    match bench.pack().map_err(|error| format!("{error:#}")) {
        Err(error) if error.contains(TOO_LITTLE_MEMORY) => return none(OnBoard::MoreMemory),
        Err(error) => return none(OnBoard::Fails(error)),
        Ok(()) => {}
    }
    let device = bench.board(firmware)?;
    if let Err(error) = bench.install(&device) {
        return none(OnBoard::Fails(format!("{error:#}")));
    }
    match bench.call(&device) {
        Err(error) => none(OnBoard::Fails(format!("{error:#}"))),
        Ok(result) => {
            let memory_bytes = bench.listed(&device)?.memory_bytes;
            Ok((OnBoard::Same { memory_bytes }, result))
        }
    }
}

/// What a machine gets, in bytes.
#[derive(Clone, Copy)]
struct Budget {
    memory_bytes: u32,
    /// The vm's own stack, of calls and of variables in registers.
    stack_bytes: u32,
    stored_bytes: u32,
}

/// A folder in which a program is packed and run.
struct Bench<'a> {
    folder: TempDir,
    tenure: &'a Path,
    program: &'a Program,
}

impl<'a> Bench<'a> {
    fn new(
        tenure: &'a Path,
        program: &'a Program,
        wasm: &Path,
        files: &BTreeMap<String, PathBuf>,
        budget: Budget,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let project = folder.path().join("project");
        fs::create_dir(&project)?;
        fs::copy(wasm, project.join("program.wasm")).context("can't copy the module")?;
        let description = description(program, files, budget).to_string();
        fs::write(project.join("tenure.toml"), description)?;
        fs::write(folder.path().join(INPUT), &program.input)?;
        Ok(Self { folder, tenure, program })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.tenure);
        tenure::alone_in(command.args(words), self.folder.path());
        command
    }

    fn package(&self) -> String {
        format!("project/{}.tenure", self.program.name)
    }

    fn pack(&self) -> Result<()> {
        said(&mut self.command(&["build", "project"])).map(drop)
    }

    fn install(&self, device: &Device) -> Result<()> {
        let words = ["install", &self.package(), "--grant", "all", "--device", &device.address];
        said(&mut self.command(&words)).map(drop)
    }

    /// Runs the program once, and gives what the call does.
    fn call(&self, device: &Device) -> Result<Vec<u8>> {
        let name = self.program.name.as_str();
        let mut call = self.command(&["call", name, "run", "--timeout", RUN_S_MAX]);
        call.args(["--device", &device.address]).stdin(Stdio::null());
        if !self.program.input.is_empty() {
            call.arg("-").stdin(File::open(self.folder.path().join(INPUT))?);
        }
        ended(&mut call)
    }

    /// What the device says of its only machine.
    fn listed(&self, device: &Device) -> Result<Listed> {
        let listing = said(&mut self.command(&["list", "--json", "--device", &device.address]))?;
        let Listing { machines } = serde_json::from_slice(&listing)?;
        let [machine] = <[Listed; 1]>::try_from(machines)
            .map_err(|_| anyhow!("the device lists other machines"))?;
        Ok(machine)
    }

    /// Starts a device on this computer, and waits until it listens.
    fn device(&self) -> Result<Device> {
        let words = ["device", "--data", "device", "--listen", "127.0.0.1:0", "--json"];
        let command = self.command(&[&words[..], &["--survives", "kill"]].concat());
        Device::start(command, |line| {
            let line: Line = serde_json::from_str(line).ok()?;
            (line.event == "listening").then_some(line.address)
        })
    }

    /// Starts a board that is this person's device, and waits until it listens.
    fn board(&self, firmware: &Firmware) -> Result<Device> {
        let keys = said(&mut self.command(&["key", "--own", "--json"]))?;
        let keys: Keys = serde_json::from_slice(&keys)?;
        let owner = format!("{}/{}", keys.owner_signing_key, keys.owner_machine_key);
        let address = free_ipv4_address();
        let mut command = Command::new(&firmware.xtask);
        command.args(["board", BOARD.name(), "--data", "device", "--owner", &owner]);
        command.args(["--listen", &address, "--firmware"]).arg(&firmware.image);
        tenure::alone_in(&mut command, self.folder.path());
        let device =
            Device::start(command, |line| line.contains(LISTENS_ON).then(|| address.clone()))?;
        said(&mut self.command(&["enrol", &address]))?;
        Ok(device)
    }
}

/// The project of the program, as tenure.toml has it.
fn description(
    program: &Program,
    files: &BTreeMap<String, PathBuf>,
    budget: Budget,
) -> toml::Table {
    let Budget { memory_bytes, stack_bytes, stored_bytes } = budget;
    let mut budget = toml::Table::new();
    for (name, amount) in [
        ("memory_bytes", memory_bytes),
        ("stack_bytes", stack_bytes),
        ("stored_bytes", stored_bytes),
        ("flash_bytes_per_day", 1_000_000_000),
        // None of them is bounded.
        ("task_fuel", 0),
        ("fuel_per_second", 0),
    ] {
        budget.insert(name.into(), i64::from(amount).into());
    }
    let mut wasi = toml::Table::new();
    wasi.insert("start".into(), false.into());
    wasi.insert("arguments".into(), program.arguments.clone().into());
    let output = match program.output {
        Output::Result => "result",
        Output::Log => "log",
    };
    wasi.insert("output".into(), output.into());
    if !program.input.is_empty() {
        wasi.insert("parameter".into(), "input".into());
    }
    let files = files.iter();
    let files: toml::Table = files
        .map(|(name, place)| (format!("/{name}"), place.to_string_lossy().into_owned().into()))
        .collect();
    wasi.insert("files".into(), files.into());
    let mut description = toml::Table::new();
    description.insert("name".into(), program.name.to_string().into());
    description.insert("version".into(), "1.0.0".into());
    description.insert("module".into(), "program.wasm".into());
    // So that the reason of a failure is told.
    description.insert("errors".into(), "owner".into());
    description.insert("budget".into(), budget.into());
    description.insert("wasi".into(), wasi.into());
    description
}

/// The keys of who runs a bench, as `tenure key` prints them.
#[derive(Deserialize)]
struct Keys {
    owner_signing_key: String,
    owner_machine_key: String,
}

/// A device that runs as long as this value lives.
struct Device {
    child: Child,
    address: String,
    /// Reads what it prints, and gives its machines' lines of the log.
    reader: Option<JoinHandle<Vec<String>>>,
}

impl Device {
    /// Starts a device, and waits for the line in which `address` finds where it listens.
    fn start(mut command: Command, address: impl Fn(&str) -> Option<String>) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("can't start a device")?;
        let output = child.stdout.take();
        // From here on it ends with the value.
        let mut device = Self { child, address: String::new(), reader: None };
        let mut lines = BufReader::new(output.context("the device has no output")?).lines();
        let listening = lines.by_ref().map_while(Result::ok).find_map(|line| address(&line));
        device.address = listening.context("the device ended before it listened")?;
        device.reader = Some(thread::spawn(move || log(lines)));
        Ok(device)
    }

    /// Ends it, and gives the lines that its machine logged as output.
    fn end(&mut self) -> Result<Vec<String>> {
        self.child.kill().context("can't end the device")?;
        self.child.wait().context("can't wait for the device")?;
        let reader = self.reader.take().context("it has ended before")?;
        reader.join().map_err(|_| anyhow!("the reader of a device's lines panicked"))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a machine wrote to its standard output, as a device's lines have it.
fn log(lines: impl Iterator<Item = io::Result<String>>) -> Vec<String> {
    let lines = lines.map_while(Result::ok);
    let lines = lines.filter_map(|line| serde_json::from_str::<Line>(&line).ok());
    let mut log: Vec<_> = lines
        .filter(|line| line.event == "log" && line.level == "info")
        .map(|line| line.message)
        .collect();
    if log.first().is_some_and(|first| first == INSTALLED) {
        log.remove(0);
    }
    log
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::program;
    use super::*;

    #[test]
    fn program_finds_its_files_and_input_in_its_project() {
        let program = program(
            "main = \"sum.rs\"\narguments = [\"a b\"]\ninput = \"1 2\"\nfiles = { \"list\" = \"data/list\" }",
        );
        let files = [("list".to_owned(), PathBuf::from("/sums/data/list"))].into();
        let budget = Budget { memory_bytes: 8 << 20, stack_bytes: 1 << 10, stored_bytes: 0 };
        let description = description(&program, &files, budget);
        assert_eq!(description["name"].as_str(), Some("sums"));
        assert_eq!(description["wasi"]["arguments"][0].as_str(), Some("a b"));
        assert_eq!(description["wasi"]["files"]["/list"].as_str(), Some("/sums/data/list"));
        assert_eq!(description["wasi"]["parameter"].as_str(), Some("input"));
        assert_eq!(description["wasi"]["output"].as_str(), Some("result"));
        assert_eq!(description["budget"]["memory_bytes"].as_integer(), Some(8_388_608));
    }

    #[test]
    fn output_in_the_log_is_the_lines_of_the_program_alone() {
        let lines = [
            r#"{"event":"mounted","values":0}"#,
            r#"{"event":"listening","address":"127.0.0.1:7"}"#,
            r#"{"event":"log","level":"info","message":"installed"}"#,
            r#"{"event":"log","level":"info","message":"installed"}"#,
            r#"{"event":"log","level":"error","message":"oh"}"#,
            r#"{"event":"log","level":"info","message":" 1  2 "}"#,
            "no JSON",
        ];
        let lines = lines.into_iter().map(|line| Ok(line.to_owned()));
        assert_eq!(log(lines), ["installed", " 1  2 "]);
    }
}
