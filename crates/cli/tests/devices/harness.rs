//! Users, and the processes that they start.
//!
//! Nothing here sleeps: a test waits for a line that a process prints, or for its end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use tenure_hal::simulated::Random;
pub(crate) use tenure_testbed::{any_address, free_address, free_ipv4_address};
use tenure_testbed::{patience, wait_until};

use crate::guests::package;

/// A user with keys, and a folder in which their devices' folders stand.
pub(crate) struct User {
    folder: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TENURE_HOME", self.home())
            .env_remove("TENURE_HUB")
            .env_remove("TENURE_DEVICE")
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command that must go well; gives what it prints.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = finish(self.command(arguments));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tenure {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`Self::ok`], of a command that may find its device asleep, or not at all yet: it is given again until
    /// it goes well.
    #[track_caller]
    pub(crate) fn ok_once_there(&self, arguments: &[&str]) -> String {
        wait_until(|| {
            let output = finish(self.command(arguments));
            let error = String::from_utf8_lossy(&output.stderr);
            match output.status.success() {
                true => Ok(String::from_utf8(output.stdout).unwrap()),
                false => Err(format!("tenure {arguments:?}: {error}")),
            }
        })
    }

    /// As [`Self::ok`] with `--json`, which must give one object.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Runs a command that must fail as commands do; gives what it complains of.
    pub(crate) fn error(&self, arguments: &[&str]) -> String {
        let output = finish(self.command(arguments));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.is_empty(), "an error goes to standard error, not beside: {printed}");
        complaint(output, arguments)
    }

    /// As [`Self::error`], of a command that may have told of its work first.
    pub(crate) fn error_after(&self, arguments: &[&str]) -> String {
        complaint(finish(self.command(arguments)), arguments)
    }

    pub(crate) fn hub(&self) -> Process {
        self.hub_at(any_address())
    }

    pub(crate) fn hub_at(&self, listen: &str) -> Process {
        Process::start(
            self.command(&["hub", "--data", "hub", "--open", "--listen", listen, "--json"]),
        )
    }

    /// A hub of the owner's own, which keeps packages and people too.
    pub(crate) fn own_hub(&self, listen: &str) -> Command {
        self.command(&["hub", "--data", "hub", "--owner", "own", "--listen", listen, "--json"])
    }

    /// Starts the device `name`, and waits until the hub lists it if there is one.
    pub(crate) fn device(&self, name: &str, hub: Option<&Process>) -> Process {
        self.device_at(name, any_address(), hub.map(|hub| hub.address.as_str()))
    }

    pub(crate) fn device_at(&self, name: &str, listen: &str, hub: Option<&str>) -> Process {
        let mut command = self.command(&["device", "--data", name, "--listen", listen, "--json"]);
        command.args(["--survives", "kill"]);
        hub.map(|hub| command.args(["--hub", hub]));
        let mut device = Process::start(command);
        if hub.is_some() {
            device.wait_for_event("registered");
        }
        device
    }

    pub(crate) fn install(&self, device: &Process, packages: &[&str]) {
        for name in packages {
            self.ok(&["install", &package(name), "--grant", "all", "--device", &device.address]);
        }
    }

    /// Calls a machine, on a device or by way of the hub; gives its result.
    pub(crate) fn call(&self, place: (&str, &Process), call: &[&str]) -> String {
        let (by, process) = place;
        let result = self.json(&[&["call", by, &process.address], call].concat());
        result["result"].as_str().unwrap_or_else(|| panic!("{call:?}: {result}")).to_string()
    }

    /// Calls a machine on `device` again and again, while ways and records are on their way, until its
    /// result is the one expected.
    #[track_caller]
    pub(crate) fn call_until(&self, device: &Process, call: &[&str], expected: &str) {
        let arguments = [&["call", "--json", "--device", &device.address], call].concat();
        wait_until(|| {
            let output = finish(self.command(&arguments));
            let answer = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
            let error = String::from_utf8_lossy(&output.stderr);
            match answer["result"] == expected {
                true => Ok(()),
                false => Err(format!("{call:?} gives {answer}{error}, not {expected}")),
            }
        });
    }

    pub(crate) fn call_error(&self, place: (&str, &Process), call: &[&str]) -> String {
        let (by, process) = place;
        self.error(&[&["call", by, &process.address], call].concat())
    }
}

pub(crate) fn complaint(output: Output, arguments: &[&str]) -> String {
    assert_eq!(output.status.code(), Some(1), "tenure {arguments:?} must fail");
    let error = String::from_utf8(output.stderr).unwrap();
    let mut error = error.as_str();
    // A command may tell first what it waits for, as on a busy computer, or what is to be known of its outcome.
    let is_beside = |text: &str| text.starts_with("waiting: ") || text.starts_with("note: ");
    while let Some((_, rest)) = error.split_once('\n').filter(|_| is_beside(error)) {
        error = rest;
    }
    let error = error.strip_prefix("error: ").unwrap_or_else(|| panic!("{error}"));
    error.trim_end().to_string()
}

/// To call a machine of this device.
pub(crate) fn on(device: &Process) -> (&'static str, &Process) {
    ("--device", device)
}

/// To call a machine of any device that this hub knows.
pub(crate) fn by(hub: &Process) -> (&'static str, &Process) {
    ("--hub", hub)
}

/// A hub or a device that runs until it is told to end; killed when dropped.
pub(crate) struct Process {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
    lines: Receiver<String>,
    /// Lines that nobody waited for yet.
    unclaimed: Vec<Value>,
    complaints: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts a process that announces with a line of JSON where it listens.
    pub(crate) fn start(command: Command) -> Self {
        let mut process = Self::spawn(command);
        let announcement = process.wait_for_event("listening");
        process.address = announcement["address"].as_str().unwrap().to_string();
        process
    }

    /// Starts a process that prints lines of JSON.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut stderr = child.stderr.take().unwrap();
        let complaints = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Self {
            child,
            address: String::new(),
            lines,
            unclaimed: Vec::new(),
            complaints: Some(complaints),
        }
    }

    pub(crate) fn socket_address(&self) -> SocketAddr {
        self.address.parse().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that `wanted` accepts; each line is given once. Those before it stay.
    pub(crate) fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(position) = self.unclaimed.iter().position(&wanted) {
            return self.unclaimed.remove(position);
        }
        let deadline = Instant::now() + patience();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    // A board's console has words for people.
                    let value: Value = serde_json::from_str(&line)
                        .unwrap_or_else(|_| serde_json::json!({ "words": line }));
                    if wanted(&value) {
                        return value;
                    }
                    self.unclaimed.push(value);
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("waited in vain for {what}; there was {:#?}", self.unclaimed)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let complaints = self.complaints.take().map(|thread| thread.join().unwrap());
                    panic!("ended before {what}: {}", complaints.unwrap_or_default())
                }
            }
        }
    }

    /// The lines that came while another was waited for.
    pub(crate) fn seen(&self) -> &[Value] {
        &self.unclaimed
    }

    /// Waits until a board's console shows a line that contains `text`; gives the line.
    pub(crate) fn wait_for_words(&mut self, text: &str) -> String {
        self.wait_for_any(&[text])
    }

    /// As above, of any of these texts.
    pub(crate) fn wait_for_any(&mut self, texts: &[&str]) -> String {
        let line = self.wait_for(&texts.join(" or "), |line| {
            let words = line["words"].as_str();
            words.is_some_and(|words| texts.iter().any(|text| words.contains(text)))
        });
        line["words"].as_str().unwrap().to_string()
    }

    pub(crate) fn wait_for_event(&mut self, event: &str) -> Value {
        self.wait_for(event, |line| line["event"] == event)
    }

    /// Waits until a machine logs a line that contains `text`; gives the line.
    pub(crate) fn wait_for_log(&mut self, machine: &str, text: &str) -> String {
        let line = self.wait_for(&format!("`{text}` from {machine}"), |line| {
            line["machine"] == machine
                && line["message"].as_str().unwrap_or_default().contains(text)
        });
        line["message"].as_str().unwrap().to_string()
    }

    /// Waits until this hub lists `device` with so many machines.
    pub(crate) fn wait_until_listed(&mut self, device: &str, machines: usize) {
        self.wait_for(&format!("{device} with {machines} machines"), |line| {
            line["event"] == "listed" && line["device"] == device && line["machines"] == machines
        });
    }

    /// Kills it, as a loss of power would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(mut self) -> ExitStatus {
        signal("INT", self.id());
        self.wait_for_event("stopped");
        self.wait()
    }

    /// The same; returns whatever it wrote to standard error.
    pub(crate) fn interrupt_and_read(mut self) -> String {
        signal("INT", self.id());
        self.wait_for_event("stopped");
        self.complaints.take().map(|thread| thread.join().unwrap()).unwrap_or_default()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// Firmware never stops by a mistake of its own: that it starts anew afterwards must not hide it.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let shown = self.unclaimed.iter().filter_map(|line| line["words"].as_str());
        let lines: Vec<String> = shown.map(String::from).chain(self.lines.try_iter()).collect();
        let is_end = |line: &String| FIRMWARE_ENDS.iter().any(|end| line.starts_with(end));
        if let Some(position) = lines.iter().position(is_end).filter(|_| !std::thread::panicking())
        {
            panic!("{}", lines[position..].join("\n"));
        }
    }
}

/// How boards begin the line that tells of a mistake of the firmware itself.
const FIRMWARE_ENDS: [&str; 2] = ["firmware stopped", "firmware faulted"];

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(sent.unwrap().success());
}

/// Runs a command to its end, which must come.
pub(crate) fn finish(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let (sender, ended) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(patience()) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal("KILL", id);
            panic!("{command:?} doesn't end")
        }
    }
}

/// Draws for the moments that chance decides.
pub(crate) struct Chance(Random);

impl Chance {
    /// Seeded with `TENURE_TEST_SEED`, or anew; the seed is printed, to repeat what failed.
    pub(crate) fn new() -> Self {
        let seed = std::env::var("TENURE_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
        println!("TENURE_TEST_SEED={seed}");
        Self(Random::new(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }
}
