//! `mesh`: devices that have nothing but raw frames, each in a network namespace of its own.
//!
//! Every device is the real `tenure device`, whose only way to the others is an Ethernet interface
//! into a medium in user space that loses and delays frames and carries them no further than the
//! topology says. What is measured is when each knows a way to each, what the air carries and the
//! processes take while nobody asks anything, and how many of machines' calls by name are answered.
//! `--peer` runs somebody else's routing daemons in the same namespaces on the same medium.

mod daemons;
mod medium;
mod namespaces;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tenure_testbed::patience;
use tenure_wire::console::IN_MESH;

use crate::demo;
use crate::process;
use crate::report::Verdict;
use crate::setup::{self, Need};
use crate::tenure::{self, Profile};
use daemons::{Daemon, Footprint, Peer};
use medium::{Medium, Weather};
use namespaces::Namespace;

/// Run devices in network namespaces that reach each other by raw frames alone, and measure.
#[derive(clap::Args)]
#[command(
    after_help = "Needs root.\n\nExamples:\n  cargo xtask mesh --nodes 6\n  cargo xtask mesh --nodes 24 --topology grid --loss 10 --retries 7\n  cargo xtask mesh --nodes 6 --peer babeld"
)]
pub(crate) struct Arguments {
    /// How many devices.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u8).range(2..=64))]
    nodes: u8,
    /// The links: which node hears which.
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
    /// How long it is measured what nodes take that nobody asks anything, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10)]
    idle: u64,
    /// How long calls are made and counted after that, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Which frames are lost.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run somebody else's routing daemons instead of devices, on the same medium; a question is a UDP
    /// datagram there and back then, sent once.
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// Run an unoptimised build of the devices, which is built sooner.
    #[arg(long, conflicts_with = "peer")]
    debug: bool,
    /// Print one line of JSON at the end, and progress to standard error.
    #[arg(long)]
    json: bool,
}

/// The links: which node hears which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Topology {
    /// Each hears the one before and the one behind.
    Line,
    /// Rows and columns, as square as may be; each hears up to four.
    Grid,
    /// Everybody hears everybody.
    All,
}

/// How long one device may take to call all others; what it didn't reach by then counts as unanswered.
const SURVEY_S: &str = "120";

impl Arguments {
    fn profile(&self) -> Profile {
        if self.debug { Profile::Debug } else { Profile::Release }
    }
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    namespaces::check_allowed()?;
    let tenure = if arguments.peer.is_some() {
        setup::ensure(&[Need::Routers])?;
        // No node is a device.
        PathBuf::new()
    } else {
        setup::ensure(&[Need::Wasm, Need::Clang])?;
        tenure::built(root, arguments.profile())?
    };
    let report = Mesh::set_up(arguments, &tenure, root)?.measure(arguments)?;
    if arguments.json {
        println!("{}", report.to_json(arguments));
    } else {
        print!("{report}");
    }
    Ok(())
}

/// Nodes in their namespaces, and the medium between them.
struct Mesh {
    tenure: PathBuf,
    // Dropped in this order: processes end before their namespaces go.
    nodes: Nodes,
    medium: Medium,
    namespaces: Vec<Namespace>,
    folder: tempfile::TempDir,
}

/// The programs in the namespaces.
enum Nodes {
    Devices(Vec<Device>),
    Daemons(Vec<Daemon>),
}

/// A device in its namespace.
struct Device {
    name: String,
    address: String,
    player: demo::Player,
}

impl Mesh {
    /// Starts all nodes in silence: the medium carries nothing yet.
    fn set_up(arguments: &Arguments, tenure: &Path, root: &Path) -> Result<Self> {
        let count = usize::from(arguments.nodes);
        eprintln!("setting up {count} nodes");
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
            tenure: tenure.to_owned(),
            nodes: Nodes::Devices(Vec::new()),
            medium,
            namespaces,
            folder: tempfile::tempdir().context("cannot make a folder for the nodes")?,
        };
        mesh.nodes = match arguments.peer {
            None => Nodes::Devices(mesh.start_devices(root)?),
            Some(peer) => {
                let namespaces = mesh.namespaces.iter().enumerate();
                let daemons =
                    namespaces.map(|(number, namespace)| Daemon::start(peer, number, namespace));
                Nodes::Daemons(daemons.collect::<Result<_>>()?)
            }
        };
        Ok(mesh)
    }

    /// Starts all devices with their machines.
    fn start_devices(&self, root: &Path) -> Result<Vec<Device>> {
        for project in ["examples/thermostat", "crates/cli/tests/devices/probe"] {
            let mut command = self.command(None, &["build"]);
            process::capture(
                command.arg(root.join(project)).arg("--output").arg(self.package(project)),
            )?;
        }
        (0..self.namespaces.len()).map(|node| self.start_device(node)).collect()
    }

    fn start_device(&self, node: usize) -> Result<Device> {
        let name = device_name(node);
        let mut command = self.command(Some(node), &["device", "--listen", "127.0.0.1:0"]);
        command.args(["--survives", "kill", "--mesh-interface", namespaces::INTERFACE, "--data"]);
        command.arg(self.folder.path().join(&name));
        let mut player = demo::Player::start_silent(&mut command, &name)?;
        let address = player.address()?;
        player.wait_for(IN_MESH)?;
        for project in ["thermostat", "probe"] {
            let mut command = self.command(Some(node), &["install", "--grant", "all"]);
            command.arg(self.package(project)).args(["--device", &address]);
            process::capture(&mut command)?;
        }
        Ok(Device { name, address, player })
    }

    /// Lets the medium carry frames, and measures.
    fn measure(mut self, arguments: &Arguments) -> Result<Measured> {
        let begun = Instant::now();
        self.medium.open();
        let converged = self.converge(begun)?;
        let called = match &self.nodes {
            Nodes::Devices(devices) => Some(self.call_all(devices, begun)?),
            Nodes::Daemons(_) => None,
        };
        let idle = self.idle(Duration::from_secs(arguments.idle));
        let (air_before, began) = (self.medium.air_bytes(), Instant::now());
        let (mut asked, mut answered) = (0, 0);
        let count = self.namespaces.len();
        let mut turn = 0;
        while began.elapsed() < Duration::from_secs(arguments.seconds) {
            // Every pair in turn, far ones as often as near ones.
            let (more_asked, more_answered) = self.ask(turn, count);
            asked += more_asked;
            answered += more_answered;
            turn += 1;
        }
        let air_bytes = self.medium.air_bytes() - air_before;
        match &mut self.nodes {
            Nodes::Devices(devices) => {
                for device in devices {
                    ensure!(device.player.is_running(), "{} has ended", device.name);
                }
            }
            Nodes::Daemons(daemons) => daemons.iter_mut().try_for_each(Daemon::check)?,
        }
        let bytes_per_second = air_bytes as f64 / began.elapsed().as_secs_f64() / count as f64;
        Ok(Measured { converged, called, idle, asked, answered, bytes_per_second })
    }

    /// Waits until each node knows a way to each.
    fn converge(&self, begun: Instant) -> Result<Duration> {
        let others = self.namespaces.len() - 1;
        let mut missing: Vec<usize> = (0..self.namespaces.len()).collect();
        loop {
            // Ways that were all there stay, or are looked at again with the others.
            missing.retain(|node| self.ways(*node) < others);
            if missing.is_empty() {
                return Ok(begun.elapsed());
            }
            let left = missing.len();
            ensure!(begun.elapsed() < patience(), "{left} nodes never knew all ways");
        }
    }

    /// How many nodes one knows ways to.
    fn ways(&self, node: usize) -> usize {
        match &self.nodes {
            Nodes::Daemons(daemons) => {
                daemons[node].ways(&self.namespaces[node], self.namespaces.len())
            }
            Nodes::Devices(devices) => {
                let mut command = self.command(Some(node), &["mesh", "--json"]);
                let status = process::quiet_capture(command.arg(&devices[node].address));
                let status: Option<serde_json::Value> =
                    status.and_then(|text| serde_json::from_str(&text).ok());
                let ways = status.and_then(|status| Some(status.get("ways")?.as_array()?.len()));
                ways.unwrap_or(0)
            }
        }
    }

    /// Lets the machines of all devices call those of all others, until each was answered once; gives
    /// when that was.
    fn call_all(&self, devices: &[Device], begun: Instant) -> Result<Duration> {
        let others = devices.len() - 1;
        let mut missing: Vec<usize> = (0..devices.len()).collect();
        loop {
            let surveys = missing.iter().map(|from| self.survey(devices, *from));
            // All at the same time, each from within its device.
            let surveys: Vec<_> =
                surveys.map(|survey| thread::spawn(move || answers(survey))).collect();
            let answers = surveys.into_iter().map(|survey| survey.join().unwrap_or(0));
            let answers: Vec<usize> = answers.collect();
            let mut each = answers.iter();
            missing.retain(|_| each.next().is_none_or(|answered| *answered < others));
            eprintln!("{} devices have called all others", devices.len() - missing.len());
            if missing.is_empty() {
                return Ok(begun.elapsed());
            }
            ensure!(begun.elapsed() < patience(), "{} devices never did", missing.len());
        }
    }

    /// The use of nodes while nobody asks anything.
    fn idle(&self, span: Duration) -> Idle {
        let count = self.namespaces.len() as f64;
        let ids: Vec<u32> = match &self.nodes {
            Nodes::Devices(devices) => devices.iter().map(|device| device.player.id()).collect(),
            Nodes::Daemons(daemons) => daemons.iter().map(Daemon::id).collect(),
        };
        let footprints = || ids.iter().filter_map(|id| Footprint::of(*id));
        let busy = || footprints().map(|footprint| footprint.busy).sum::<Duration>();
        let (air_before, busy_before, began) = (self.medium.air_bytes(), busy(), Instant::now());
        thread::sleep(span);
        let seconds = began.elapsed().as_secs_f64();
        let air_bytes = self.medium.air_bytes() - air_before;
        let memory: u64 = footprints().map(|footprint| footprint.memory_bytes).sum();
        Idle {
            bytes_per_second: air_bytes as f64 / seconds / count,
            processor_share: (busy() - busy_before).as_secs_f64() / seconds / count,
            memory_bytes: memory as f64 / count,
        }
    }

    /// Asks questions one after the other, and says how many were asked and answered: those of one device
    /// to all others, or of one daemon to one.
    fn ask(&self, turn: usize, count: usize) -> (usize, usize) {
        match &self.nodes {
            Nodes::Devices(devices) => (count - 1, answers(self.survey(devices, turn % count))),
            Nodes::Daemons(daemons) => {
                let from = turn % count;
                let to = (from + 1 + turn / count % (count - 1)) % count;
                (1, usize::from(daemons[from].asks(&daemons[to], turn as u64)))
            }
        }
    }

    /// The command that has the machine `probe` on one device call the thermostats on all others by name,
    /// and print a letter for each: a `y` for an answer.
    fn survey(&self, devices: &[Device], from: usize) -> Command {
        let others = (1..devices.len()).map(|by| (from + by) % devices.len());
        let targets = others.map(|to| format!(" thermostat@{}", device_name(to)));
        let mut command = self.command(Some(from), &["call", "probe", "survey"]);
        command.arg(format!("read{}", targets.collect::<String>()));
        command.args(["--timeout", SURVEY_S, "--device", &devices[from].address]);
        command
    }

    /// A command `tenure` with keys of its own, in a device's namespace if one is given.
    fn command(&self, node: Option<usize>, words: &[&str]) -> Command {
        let mut command = match node {
            Some(node) => self.namespaces[node].command(&self.tenure),
            None => Command::new(&self.tenure),
        };
        tenure::alone_in(command.args(words), self.folder.path());
        command
    }

    /// Where a project's package is.
    fn package(&self, project: &str) -> PathBuf {
        let name = project.rsplit('/').next().unwrap_or(project);
        self.folder.path().join(format!("{name}.tenure"))
    }
}

/// How many calls of a survey were answered.
fn answers(mut survey: Command) -> usize {
    let letters = process::quiet_capture(&mut survey).unwrap_or_default();
    letters.chars().filter(|letter| *letter == 'y').count()
}

fn device_name(node: usize) -> String {
    format!("node{node}")
}

/// The measurements.
struct Measured {
    /// When each knew a way to each.
    converged: Duration,
    /// When machines had called each other, of devices.
    called: Option<Duration>,
    idle: Idle,
    asked: usize,
    answered: usize,
    bytes_per_second: f64,
}

/// The use of a node while nobody asks anything, on average.
struct Idle {
    bytes_per_second: f64,
    /// Of one processor.
    processor_share: f64,
    memory_bytes: f64,
}

impl Measured {
    fn to_json(&self, arguments: &Arguments) -> serde_json::Value {
        json!({
            "nodes": arguments.nodes,
            "peer": arguments.peer.map(|peer| format!("{peer:?}").to_lowercase()),
            "loss_percent": arguments.loss,
            "converged_s": self.converged.as_secs_f64(),
            "called_s": self.called.map(|called| called.as_secs_f64()),
            "idle_bytes_per_second_a_node": self.idle.bytes_per_second,
            "idle_processor_share": self.idle.processor_share,
            "memory_bytes": self.idle.memory_bytes,
            "asked": self.asked,
            "answered": self.answered,
            "bytes_per_second_a_node": self.bytes_per_second,
        })
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "each knew a way to each after  {:.1} s", self.converged.as_secs_f64())?;
        if let Some(called) = self.called {
            writeln!(f, "… and had called it by name    {:.1} s", called.as_secs_f64())?;
        }
        let Idle { bytes_per_second, processor_share, memory_bytes } = self.idle;
        writeln!(f, "idle, a node: in the air       {bytes_per_second:.0} bytes/s")?;
        writeln!(f, "… processor, one core          {:.3} %", processor_share * 100.0)?;
        writeln!(f, "… memory of the process's own  {:.0} KB", memory_bytes / 1024.0)?;
        writeln!(f, "questions answered             {} of {}", self.answered, self.asked)?;
        writeln!(f, "in the air meanwhile, a node   {:.0} bytes/s", self.bytes_per_second)
    }
}

/// Runs six devices of the command `tenure` in a line, as a test: all must reach all, and every call be answered.
pub(crate) fn test(tenure: &Path, root: &Path) -> Result<Verdict> {
    if let Err(reason) = namespaces::check_allowed() {
        return Ok(Verdict::Skipped(format!("{reason:#}")));
    }
    let arguments = Arguments {
        nodes: 6,
        topology: Topology::Line,
        loss: 0,
        retries: 0,
        delay: 0,
        idle: 1,
        seconds: 3,
        seed: 1,
        peer: None,
        debug: true,
        json: false,
    };
    let measured = Mesh::set_up(&arguments, tenure, root)?.measure(&arguments)?;
    print!("{measured}");
    if measured.answered < measured.asked {
        bail!("{} of {} calls failed", measured.asked - measured.answered, measured.asked);
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
