//! The memory and the processor's time of a device process that has nothing to do, by situation.
//!
//! `cargo bench -p tenure-cli --bench device -- [--json]`; with `--no-default-features` of one that can't compile machines
//! to native code. Each device is a process of its own, and all are measured over the same minute, after they have come to
//! rest. Memory is what `/proc/PID/smaps_rollup` says: anonymous pages are the process's own; pages of files are those of its
//! program, its libraries and its flash that it has touched, which the system shares, and drops when it needs room. A wake-up
//! is a thread's voluntary context switch. `TENURE` names another build of the command to be measured.

mod echo;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tenure_cli::home::Home;
use tenure_wire::console::{IN_MESH, LISTENS_ON};

/// How long devices come to rest before they are measured, and how long they are.
const REST: Duration = Duration::from_secs(30);
const SPAN: Duration = Duration::from_secs(60);
const MACHINES: usize = 4;
const ANY_ADDRESS: &str = "127.0.0.1:0";

fn main() -> Result<()> {
    let json = std::env::args().any(|argument| argument == "--json");
    let folder = tempfile::tempdir()?;
    let owner = Owner { folder: folder.path() };
    let alone = owner.device("alone", &[])?;
    let busy = owner.device("machines", &[])?;
    let first = owner.device("first", &["--mesh", ANY_ADDRESS])?;
    let peer = first.in_mesh_at.clone().context("the first device says no address in the mesh")?;
    let joins = ["--mesh", ANY_ADDRESS, "--mesh-peer", &peer];
    let second = owner.device("second", &joins)?;
    let _third = owner.device("third", &joins)?;
    for device in [&busy, &second] {
        owner.install(device)?;
    }
    let situations = [
        ("alone", &alone),
        ("four machines", &busy),
        ("in a mesh of three", &first),
        ("in a mesh of three, four machines", &second),
    ];
    std::thread::sleep(REST);
    let before = situations.map(|(_, device)| Use::of(device.id()));
    std::thread::sleep(SPAN);
    for ((situation, device), before) in situations.into_iter().zip(before) {
        let (before, after) = (before?, Use::of(device.id())?);
        let seconds = SPAN.as_secs_f64();
        let share = (after.busy_ns - before.busy_ns) as f64 / 1e9 / seconds;
        for (metric, unit, value) in [
            ("memory, anonymous", "MB", after.anonymous_kb as f64 * 1.024e-3),
            ("memory, of files", "MB", after.of_files_kb() as f64 * 1.024e-3),
            ("memory, all", "MB", after.resident_kb as f64 * 1.024e-3),
            ("wake-ups", "1/s", (after.wakes - before.wakes) as f64 / seconds),
            ("one processor's share", "%", share * 100.0),
        ] {
            report(json, situation, metric, unit, value);
        }
    }
    Ok(())
}

fn report(json: bool, situation: &str, metric: &str, unit: &str, value: f64) {
    let subject = if cfg!(feature = "native-speed") { "tenure" } else { "without native speed" };
    if json {
        println!(
            "{{\"bench\":\"device/{situation}\",\"target\":\"host\",\"subject\":\"{subject}\",\
             \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.4}}}"
        );
    } else {
        println!("{situation:<34} {metric:<24} {value:>10.4} {unit}");
    }
}

/// A person with keys and devices in a folder.
struct Owner<'a> {
    folder: &'a Path,
}

/// A device's process, which ends with this.
struct Device {
    child: Child,
    address: String,
    in_mesh_at: Option<String>,
}

impl Owner<'_> {
    fn tenure(&self, arguments: &[&str]) -> Command {
        let built = || OsString::from(env!("CARGO_BIN_EXE_tenure"));
        let mut command = Command::new(std::env::var_os("TENURE").unwrap_or_else(built));
        command.args(arguments).current_dir(self.folder);
        command.env("TENURE_HOME", self.folder.join("home"));
        command.env_remove("TENURE_HUB").env_remove("TENURE_DEVICE");
        command
    }

    fn device(&self, name: &str, how: &[&str]) -> Result<Device> {
        let mut command = self.tenure(&["device", "--data", name, "--listen", ANY_ADDRESS]);
        let mut child = command.args(how).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut device = Device { child, address: String::new(), in_mesh_at: None };
        if how.contains(&"--mesh") {
            let (_, at) = said(&mut lines, IN_MESH)?;
            device.in_mesh_at = Some(at);
        }
        (device.address, _) = said(&mut lines, LISTENS_ON)?;
        // The rest of its output has to be read by somebody.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(device)
    }

    /// Puts machines on a device, and calls each once.
    fn install(&self, device: &Device) -> Result<()> {
        for number in 0..MACHINES {
            let name = format!("echo-{number}");
            let file = format!("{name}.tenure");
            let package = echo::package(&name, &Home::at(self.folder.join("home")))?;
            fs::write(self.folder.join(&file), package)?;
            let at = ["--device", &device.address];
            self.ok(&[&["install", &file, "--grant", "all"], &at[..]].concat())?;
            self.ok(&[&["call", &name, "echo", "here"], &at[..]].concat())?;
        }
        Ok(())
    }

    fn ok(&self, arguments: &[&str]) -> Result<()> {
        let output = self.tenure(arguments).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

/// The word that follows `words` in a line of a device's, and the last word of that line.
fn said(lines: &mut Lines<BufReader<ChildStdout>>, words: &str) -> Result<(String, String)> {
    for line in lines {
        let line = line?;
        if let Some((_, rest)) = line.split_once(words) {
            let mut rest = rest.split_whitespace();
            let first = rest.next().unwrap_or_default().trim_end_matches(',').to_string();
            return Ok((first, rest.next_back().unwrap_or_default().to_string()));
        }
    }
    bail!("the device didn't say `{words}`")
}

impl Device {
    fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The use of a process so far.
struct Use {
    resident_kb: u64,
    anonymous_kb: u64,
    wakes: u64,
    busy_ns: u64,
}

impl Use {
    /// Of the process `id` (proc_pid_smaps(5), proc_pid_status(5); the first number of `schedstat` is the time on a
    /// processor).
    fn of(id: u32) -> Result<Self> {
        let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
        let mut sum = Self {
            resident_kb: number_after(&rollup, "Rss:")?,
            anonymous_kb: number_after(&rollup, "Anonymous:")?,
            wakes: 0,
            busy_ns: 0,
        };
        for task in fs::read_dir(format!("/proc/{id}/task"))? {
            let task = task?.path();
            let status = fs::read_to_string(task.join("status"))?;
            sum.wakes += number_after(&status, "voluntary_ctxt_switches:")?;
            let schedule = fs::read_to_string(task.join("schedstat"))?;
            sum.busy_ns += number_after(&schedule, "")?;
        }
        Ok(sum)
    }

    fn of_files_kb(&self) -> u64 {
        self.resident_kb - self.anonymous_kb
    }
}

/// The number in the line that begins with `words`.
fn number_after(text: &str, words: &str) -> Result<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words));
    let number = rest.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no {words}"))
}
