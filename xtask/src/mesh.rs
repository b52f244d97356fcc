//! `mesh`: devices that have nothing but raw frames, each in a network namespace of its own.
//!
//! Every device is the real `tenure device`, whose only way to the others is an Ethernet interface
//! into a medium in user space that loses and delays frames and carries them no further than the
//! topology says. What is measured is what a machine sees: when it reaches every other by name, and
//! how many of its calls are answered.

mod medium;
mod namespaces;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::report::Verdict;
use crate::setup::{self, Need};
use crate::{demo, process};
use medium::{Medium, Weather};
use namespaces::Namespace;

/// Run devices in network namespaces that reach each other by raw frames alone, and measure.
#[derive(clap::Args)]
#[command(
    after_help = "Needs root.\n\nExamples:\n  cargo xtask mesh --nodes 6\n  cargo xtask mesh --nodes 24 --topology grid --loss 10 --retries 7"
)]
pub(crate) struct Arguments {
    /// How many devices.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u8).range(2..=64))]
    nodes: u8,
    /// Who hears whom.
    #[arg(long, value_enum, default_value_t = Topology::Line)]
    topology: Topology,
    /// How many percent of the frames each link loses.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=90))]
    loss: u8,
    /// How often the medium repeats a lost frame that is for one receiver; 802.11 does so 7 times.
    #[arg(long, default_value_t = 0)]
    retries: u32,
    /// How long a frame is in the air, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay: u64,
    /// How long calls are made and counted once all reach all, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Which frames are lost.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one line of JSON at the end, and progress to standard error.
    #[arg(long)]
    json: bool,
}

/// Who hears whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Topology {
    /// Each hears the one before and the one behind.
    Line,
    /// Rows and columns, as square as may be; each hears up to four.
    Grid,
    /// Everybody hears everybody.
    All,
}

/// How long it may take until every device reaches every other.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    namespaces::check_allowed()?;
    setup::ensure(&[Need::Wasm, Need::Clang])?;
    process::run(process::cargo(root).args(["build", "--quiet", "--package", "tenure-cli"]))?;
    let mesh = Mesh::set_up(arguments, root)?;
    let report = mesh.measure(arguments)?;
    if arguments.json {
        println!("{}", report.to_json(arguments));
    } else {
        print!("{report}");
    }
    Ok(())
}

/// Devices in their namespaces, and the medium between them.
struct Mesh {
    tenure: PathBuf,
    // Dropped in this order: processes end before their namespaces go.
    devices: Vec<Device>,
    medium: Medium,
    namespaces: Vec<Namespace>,
    folder: tempfile::TempDir,
}

/// A device in its namespace.
struct Device {
    name: String,
    address: String,
    player: demo::Player,
}

impl Mesh {
    /// Starts all devices with their machines, in silence: the medium carries nothing yet.
    fn set_up(arguments: &Arguments, root: &Path) -> Result<Self> {
        let count = usize::from(arguments.nodes);
        eprintln!("setting up {count} devices");
        let namespaces: Vec<_> = (0..count).map(Namespace::new).collect::<Result<_>>()?;
        let weather = Weather {
            loss_percent: arguments.loss,
            retries: arguments.retries,
            delay: Duration::from_millis(arguments.delay),
            seed: arguments.seed,
        };
        let ports = namespaces.iter().map(Namespace::port).collect::<Result<_>>()?;
        let neighbours = (0..count).map(|node| arguments.topology.neighbours(node, count));
        let medium = Medium::start(ports, neighbours.collect(), weather)?;
        let mut mesh = Self {
            tenure: demo::tenure(root)?,
            devices: Vec::new(),
            medium,
            namespaces,
            folder: tempfile::tempdir().context("cannot make a folder for the devices")?,
        };
        for project in ["apps/thermostat", "crates/cli/tests/devices/probe"] {
            let mut command = mesh.command(None, &["build"]);
            process::capture(
                command.arg(root.join(project)).arg("--output").arg(mesh.package(project)),
            )?;
        }
        for node in 0..count {
            let device = mesh.start_device(node)?;
            mesh.devices.push(device);
            for project in ["thermostat", "probe"] {
                let package = mesh.package(project);
                let mut command = mesh.command(Some(node), &["install", "--grant", "all"]);
                command.arg(package).args(["--device", &mesh.devices[node].address]);
                process::capture(&mut command)?;
            }
        }
        Ok(mesh)
    }

    fn start_device(&self, node: usize) -> Result<Device> {
        let name = device_name(node);
        let mut command = self.command(Some(node), &["device", "--listen", "127.0.0.1:0"]);
        command.args(["--survives", "kill", "--mesh-interface", namespaces::INTERFACE, "--data"]);
        command.arg(self.folder.path().join(&name));
        let mut player = demo::Player::start_silent(&mut command, &name)?;
        let address = player.address()?;
        player.wait_for("in the mesh as")?;
        Ok(Device { name, address, player })
    }

    /// Lets the medium carry frames, and measures.
    fn measure(mut self, arguments: &Arguments) -> Result<Measured> {
        let count = self.devices.len();
        let begun = Instant::now();
        self.medium.open();
        let mut missing: Vec<_> = (0..count)
            .flat_map(|from| (0..count).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .collect();
        let pairs = missing.len();
        while !missing.is_empty() {
            missing.retain(|(from, to)| !self.reaches(*from, *to));
            eprintln!("{} of {pairs} pairs reach each other", pairs - missing.len());
            ensure!(begun.elapsed() < PATIENCE, "{} pairs never reached each other", missing.len());
        }
        let converged = begun.elapsed();
        let (air_before, began) = (self.medium.air_bytes(), Instant::now());
        let (mut calls, mut answered) = (0, 0);
        while began.elapsed() < Duration::from_secs(arguments.seconds) {
            // Every pair in turn, far ones as often as near ones.
            let from = calls % count;
            let to = (from + 1 + calls / count % (count - 1)) % count;
            answered += usize::from(self.reaches(from, to));
            calls += 1;
        }
        let air_bytes = self.medium.air_bytes() - air_before;
        for device in &mut self.devices {
            ensure!(device.player.is_running(), "{} has ended", device.name);
        }
        Ok(Measured {
            converged,
            calls,
            answered,
            bytes_per_second: air_bytes as f64 / began.elapsed().as_secs_f64() / count as f64,
        })
    }

    /// Whether the machine `probe` on one device is answered by the thermostat on another, which it
    /// calls by name.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut command = self.command(Some(from), &["call", "probe", "call"]);
        command.arg(format!("thermostat@{} read", device_name(to)));
        command.args(["--device", &self.devices[from].address]);
        process::quiet_capture(&mut command).is_some_and(|answer| answer.trim() == "21.0")
    }

    /// A command `tenure` with keys of its own, in a device's namespace if one is given.
    fn command(&self, node: Option<usize>, words: &[&str]) -> Command {
        let mut command = match node {
            Some(node) => self.namespaces[node].command(&self.tenure),
            None => Command::new(&self.tenure),
        };
        command.args(words).current_dir(self.folder.path());
        command.env("TENURE_HOME", self.folder.path().join("home"));
        command.env_remove("TENURE_HUB").env_remove("TENURE_DEVICE");
        command
    }

    /// Where a project's package is.
    fn package(&self, project: &str) -> PathBuf {
        let name = project.rsplit('/').next().unwrap_or(project);
        self.folder.path().join(format!("{name}.tenure"))
    }
}

fn device_name(node: usize) -> String {
    format!("node{node}")
}

/// What was measured.
struct Measured {
    converged: Duration,
    calls: usize,
    answered: usize,
    bytes_per_second: f64,
}

impl Measured {
    fn to_json(&self, arguments: &Arguments) -> serde_json::Value {
        json!({
            "nodes": arguments.nodes,
            "loss_percent": arguments.loss,
            "converged_s": self.converged.as_secs_f64(),
            "calls": self.calls,
            "answered": self.answered,
            "bytes_per_second_a_node": self.bytes_per_second,
        })
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "all reached all after  {:.1} s", self.converged.as_secs_f64())?;
        writeln!(f, "calls answered         {} of {}", self.answered, self.calls)?;
        writeln!(f, "in the air, a node     {:.0} bytes/s, calls included", self.bytes_per_second)
    }
}

/// Runs six devices in a line, as a test: all must reach all, and every call be answered.
pub(crate) fn test(root: &Path) -> Result<Verdict> {
    if let Err(reason) = namespaces::check_allowed() {
        return Ok(Verdict::Skipped(format!("{reason:#}")));
    }
    let arguments = Arguments {
        nodes: 6,
        topology: Topology::Line,
        loss: 0,
        retries: 0,
        delay: 0,
        seconds: 3,
        seed: 1,
        json: false,
    };
    let measured = Mesh::set_up(&arguments, root)?.measure(&arguments)?;
    print!("{measured}");
    if measured.answered < measured.calls {
        bail!("{} of {} calls failed", measured.calls - measured.answered, measured.calls);
    }
    Ok(Verdict::Passed)
}

impl Topology {
    fn neighbours(self, node: usize, count: usize) -> Vec<usize> {
        let columns = (1..).find(|columns| columns * columns >= count).unwrap_or(1);
        (0..count)
            .filter(|other| {
                let (one, two) = (node.min(*other), node.max(*other));
                match self {
                    _ if one == two => false,
                    Self::All => true,
                    Self::Line => two == one + 1,
                    Self::Grid => two == one + columns || (two == one + 1 && two % columns != 0),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Topology;

    #[test]
    fn a_grid_has_rows_and_columns() {
        let neighbours = |node| Topology::Grid.neighbours(node, 6);
        assert_eq!(neighbours(0), [1, 3]);
        assert_eq!(neighbours(2), [1, 5]);
        assert_eq!(neighbours(4), [1, 3, 5]);
    }

    #[test]
    fn a_line_has_two_ends() {
        let neighbours = |node| Topology::Line.neighbours(node, 3);
        assert_eq!((neighbours(0), neighbours(1), neighbours(2)), (vec![1], vec![0, 2], vec![1]));
    }
}
