//! A scenario as its file says it: who is where, what they run, what they send, what fails, and what
//! must come of it.
//!
//! Nodes are counted from 0. Everything that a file leaves out has a default, and a field that
//! nothing knows is an error.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::motion::{Motion, MotionPlan, WrongLine};
use super::wall_map::WallMap;
use crate::peripherals::PeripheralPlan;
use crate::radio::{Bursts, RadioPlan, Wall};

/// The most nodes of a scenario.
pub const NODES_MAX: usize = 20_000;
/// The most of them that can be whole devices.
pub const DEVICES_MAX: usize = 500;
/// How long after a member stopped lying what it said may be believed, in seconds.
const LIES_LAST_S: f64 = 20.0;
/// The longest scenario, in simulated seconds.
pub const SECONDS_MAX: f64 = 1_000_000.0;

/// A run to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The scenario's name.
    pub name: String,
    /// The scenario's purpose, for a reader.
    #[serde(default)]
    pub about: String,
    /// From which everything is drawn that is left to chance.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long it runs, in simulated seconds.
    pub seconds: f64,
    /// The number of nodes and their places.
    pub topology: Topology,
    /// Properties of the nodes' radios.
    #[serde(default)]
    pub radio: RadioPlan,
    /// How they move; by default not at all.
    #[serde(default)]
    pub movement: Option<Movement>,
    /// A file that says where nodes are at which time. They follow it, whatever `topology` and `movement` say.
    #[serde(default)]
    pub motion: Option<MotionPlan>,
    /// Walls, through which stations hear each other worse.
    #[serde(default, rename = "wall")]
    pub walls: Vec<Wall>,
    /// A file with more of them.
    #[serde(default)]
    pub wall_map: Option<WallMap>,
    /// What stands in the files that the scenario names.
    #[serde(skip)]
    pub files: Files,
    /// The protocols of the nodes.
    #[serde(default)]
    pub protocols: Protocols,
    /// Further protocols of the nodes, which the registry of the program knows by name.
    #[serde(default, rename = "protocol")]
    pub plug_ins: Vec<PlugInPlan>,
    /// Links whose loss is set, whatever the distance, possibly from some time on: a trace.
    #[serde(default, rename = "link")]
    pub links: Vec<LinkPlan>,
    /// Datagrams that nodes send each other.
    #[serde(default, rename = "traffic")]
    pub traffic: Vec<Traffic>,
    /// Makes the nodes whole devices, with kernel, vm, store and sessions, under the owner's key; by
    /// default they run bare protocols.
    #[serde(default)]
    pub devices: Option<Devices>,
    /// Calls of the devices' machines.
    #[serde(default, rename = "call")]
    pub calls: Vec<CallPlan>,
    /// Which devices sleep by turns.
    #[serde(default, rename = "sleep")]
    pub sleeps: Vec<DutyCycle>,
    /// An attacker without the network's key, who records frames and sends them again.
    #[serde(default)]
    pub replayer: Option<Replayer>,
    /// Peripherals of the devices; takes `devices`.
    #[serde(default, rename = "peripheral")]
    pub peripherals: Vec<PeripheralPlan>,
    /// Members that turn bad; of bare protocols, with Babel as their router.
    #[serde(default, rename = "liar")]
    pub liars: Vec<LiarPlan>,
    /// Faults, with their times.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
    /// Expectations that the run must meet.
    #[serde(default, rename = "expect")]
    pub expectations: Vec<Expectation>,
    /// By how much clocks run fast or slow at most, in millionths.
    #[serde(default)]
    pub clock_drift_ppm: u32,
    /// Nodes are switched on within this many milliseconds.
    #[serde(default)]
    pub boot_within_ms: u64,
}

/// What stands in the files that a scenario names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    /// The trace of motion.
    pub motion: Motion,
    /// The map of walls.
    pub walls: Vec<Wall>,
}

/// The number of nodes and their places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "lowercase", deny_unknown_fields)]
pub enum Topology {
    /// One beside the other.
    Line {
        /// How many.
        nodes: usize,
        /// Their distance; by default a neighbour is in range and the one after it isn't.
        spacing_m: Option<f32>,
    },
    /// In rows and columns.
    Grid {
        /// How many columns.
        columns: usize,
        /// How many rows.
        rows: usize,
        /// Their distance; by default the four around a node are in range, and the diagonals aren't.
        spacing_m: Option<f32>,
    },
    /// Anywhere on a square, drawn anew until each reaches each.
    Random {
        /// How many.
        nodes: usize,
        /// The side of the square; by default each node has `neighbours` others in range.
        side_m: Option<f32>,
        /// How many others a node has in range on average.
        #[serde(default = "eight")]
        neighbours: f32,
        /// Draws no second time if they are not all connected.
        #[serde(default)]
        may_be_parted: bool,
    },
    /// Where the file says.
    Places {
        /// East and north, in metres.
        places: Vec<[f32; 2]>,
    },
    /// Where the file of `motion` has them at the start.
    Motion {
        /// How many.
        nodes: usize,
    },
}

/// Movement by the random waypoint model: to a random place at a random speed, a rest, and on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Movement {
    /// Slowest and fastest, in metres a second.
    pub speed_m_s: [f32; 2],
    /// Shortest and longest rest, in seconds.
    #[serde(default)]
    pub rest_s: [f32; 2],
    /// Nodes that move; by default all.
    #[serde(default)]
    pub nodes: Vec<u32>,
}

/// The protocols of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protocols {
    /// The routing protocol.
    pub router: Router,
    /// To how many nodes ways are looked for, the first so many; by default to all. Gateways, as it
    /// were.
    pub destinations: Option<u32>,
    /// How each hop repairs what its link lost; by default the radio does if it repeats, and the
    /// next hop's acknowledgements do otherwise.
    pub hop_repair: Option<HopRepair>,
    /// An aggregate over all nodes, if any: node `n` has the value `n + 1`.
    pub aggregation: Option<Aggregation>,
    /// How what is for everybody gets to everybody.
    pub broadcast: Option<Broadcasting>,
    /// The share of the air for the control traffic of all in reach, in thousandths; by default that of devices.
    pub control_permille: Option<u16>,
}

impl Default for Protocols {
    fn default() -> Self {
        Self {
            router: Router::Babel,
            destinations: None,
            hop_repair: None,
            aggregation: None,
            broadcast: None,
            control_permille: None,
        }
    }
}

/// A protocol that nodes run beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlugInPlan {
    /// The protocol's name.
    pub name: String,
    /// Nodes that run it; by default all.
    #[serde(default)]
    pub nodes: Vec<u32>,
    /// From when on, in seconds.
    #[serde(default)]
    pub at_s: f64,
    /// The time between its rounds, in milliseconds.
    #[serde(default = "a_second")]
    pub interval_ms: u32,
    /// The own value of each node; by default node `n` has the value `n + 1`.
    #[serde(default)]
    pub value: Option<f64>,
    /// The protocol's own settings, in a form that it chooses.
    #[serde(default)]
    pub settings: String,
}

/// A routing protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Router {
    /// Distance vectors without loops (RFC 8966).
    Babel,
    /// Originator messages (B.A.T.M.A.N. IV).
    Batman,
    /// On demand (RFC 3561).
    Aodv,
}

/// How a hop repairs what its link lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HopRepair {
    /// The next hop acknowledges.
    Acknowledged,
    /// The radio repeats what isn't answered.
    Link,
    /// Not at all.
    Off,
}

/// A sum over all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// A tree that mends itself.
    Gap,
    /// Halves that are pushed on.
    PushSum,
    /// Flows that are kept antisymmetric.
    FlowUpdating,
    /// Push-Sum's correction for loss and leaving.
    LimoSense,
}

/// A way to reach everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broadcasting {
    /// Everybody passes everything on.
    Flooding,
    /// A node that has heard it often enough doesn't pass it on.
    Counter,
    /// A node that has heard it from near doesn't pass it on.
    Distance,
    /// Everybody gives it to a few.
    Gossip,
    /// A node that reaches no new neighbour doesn't pass it on.
    Coverage,
    /// By coverage, and what was lost is repaired.
    Reliable,
    /// From member to member, along a tree of those that HyParView keeps.
    Plumtree,
}

/// A link whose loss doesn't come from the distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// One end.
    pub from: u32,
    /// The other.
    pub to: u32,
    /// The share of lost frames; 1 cuts the link.
    pub loss: f32,
    /// The share of lost frames that are for one node; by default the same. With 1, the link carries
    /// what is for everybody, and nothing else.
    #[serde(default)]
    pub unicast_loss: Option<f32>,
    /// Times in which the link is worse.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// Only in this direction.
    #[serde(default)]
    pub one_way: bool,
    /// From when on, in seconds.
    #[serde(default)]
    pub at_s: f64,
}

/// Datagrams between nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The sender; by default each in turn, at random.
    #[serde(default)]
    pub from: Option<u32>,
    /// The receiver; by default any node, at random.
    #[serde(default)]
    pub to: Option<u32>,
    /// For everybody instead: it takes `protocols.broadcast`.
    #[serde(default)]
    pub broadcast: bool,
    /// How often, in milliseconds.
    pub every_ms: u64,
    /// How long.
    #[serde(default = "payload")]
    pub bytes: usize,
    /// From when on, in seconds.
    #[serde(default)]
    pub from_s: f64,
    /// Until when, in seconds; by default, a little before the end.
    #[serde(default)]
    pub until_s: Option<f64>,
}

/// Whole devices: each has a machine `counter`, which stores what it counts, a machine that must
/// never starve, and those that [`CallPlan`] puts on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Devices {
    /// The share of crashes that tear a flash operation; the others come between two.
    pub torn: f32,
    /// How long a slice of a machine takes, in milliseconds.
    pub slice_ms: u64,
    /// Those that don't know what time it is.
    pub without_clock: Vec<u32>,
    /// Those that remember the records of twelve devices, as small boards do.
    pub small: Vec<u32>,
}

impl Default for Devices {
    fn default() -> Self {
        Self { torn: 0.5, slice_ms: 2, without_clock: Vec::new(), small: Vec::new() }
    }
}

/// A machine that calls a counter by name, again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallPlan {
    /// On which device it is; by default each has one.
    #[serde(default)]
    pub from: Option<u32>,
    /// On which device the counter is; by default half the number of devices further on.
    #[serde(default)]
    pub to: Option<u32>,
    /// Each call is to the counter on another device, all in turn; then `to` isn't used.
    #[serde(default)]
    pub each: bool,
    /// How long it rests before each call, in milliseconds.
    #[serde(default = "a_second")]
    pub pause_ms: u32,
    /// When it stops waiting, in milliseconds.
    #[serde(default = "ten_seconds")]
    pub deadline_ms: u32,
    /// It puts calls into the kernel's queue, with so many further attempts, instead of waiting.
    #[serde(default)]
    pub retries: Option<u32>,
}

/// Devices that run and sleep deeply by turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DutyCycle {
    /// Which.
    pub nodes: Vec<u32>,
    /// How long they run, in milliseconds.
    pub run_ms: u64,
    /// How long they sleep, in milliseconds.
    pub sleep_ms: u64,
}

/// An attacker who records what is on the air and sends it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replayer {
    /// Where, in metres east and north.
    pub at: [f32; 2],
    /// How often a frame is sent again, in milliseconds.
    pub every_ms: u64,
    /// How many frames are kept, of which each time any is chosen.
    #[serde(default = "thousand")]
    pub frames: usize,
}

/// A member that lies for a while, and passes on nothing meanwhile; before and after it is honest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiarPlan {
    /// Which node.
    pub node: u32,
    /// The lie that it tells.
    pub lie: Lie,
    /// From when on, in seconds.
    pub from_s: f64,
    /// Until when, in seconds.
    pub until_s: f64,
    /// How often it lies, in milliseconds.
    #[serde(default = "three_hundred")]
    pub every_ms: u64,
}

/// The lie of a member that turns bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// Nothing that is false: it acknowledges datagrams, and drops them.
    Hole,
    /// Nothing that is false, but that it has no room for any datagram.
    Busy,
    /// That it is next to everybody.
    Ways,
    /// The same, with sequence numbers ahead of theirs.
    Numbers,
    /// The same, with the highest sequence numbers there are.
    LastNumbers,
    /// In everybody's name: I have begun my last possible life.
    Lives,
    /// In everybody's name, in the life that they are in: I have told more lines than I can.
    Versions,
}

/// Something that fails, or is whole again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When, in seconds.
    pub at_s: f64,
    /// The change.
    #[serde(flatten)]
    pub what: What,
}

/// A fault of nodes or links, or its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// These nodes lose their power.
    Crash(Vec<u32>),
    /// These nodes are switched on again.
    Restart(Vec<u32>),
    /// This link is cut.
    Cut([u32; 2]),
    /// A link in the middle of the way from the first to the second is cut.
    CutWay([u32; 2]),
    /// This link is as it was.
    Mend([u32; 2]),
    /// These nodes hear only each other, the rest too.
    Part(Vec<u32>),
    /// All hear all again.
    Unite(bool),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[u32]| {
            let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
            nodes.join(", ")
        };
        match self {
            Self::Crash(nodes) => write!(f, "power lost: {}", list(nodes)),
            Self::Restart(nodes) => write!(f, "switched on again: {}", list(nodes)),
            Self::Cut([one, other]) => write!(f, "link from {one} to {other} cut"),
            Self::CutWay([from, to]) => write!(f, "way from {from} to {to} cut in its middle"),
            Self::Mend([one, other]) => write!(f, "link from {one} to {other} mended"),
            Self::Part(nodes) => write!(f, "parted from the others: {}", list(nodes)),
            Self::Unite(_) => f.write_str("united again"),
        }
    }
}

/// Something that must come of it; what is not met fails the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Expectation {
    /// Every node has a way to every other one, at the latest after this many seconds.
    ConvergedWithinS(f64),
    /// At least this share of what was sent arrived.
    DeliveryAtLeast(f64),
    /// At least this share of what was sent in the last 30 seconds arrived.
    DeliveryInTheEndAtLeast(f64),
    /// Nodes put at most so many bytes a second on the air that carry no payload, on average.
    ControlBytesPerSecondAtMost(f64),
    /// After each fault, datagrams of every pair that was served before arrive again within so many seconds.
    RecoveredWithinS(f64),
    /// The average that each node knows at the end is right within this.
    AggregateWithin(f64),
    /// At least this share of broadcasts reached everybody.
    BroadcastsCompleteAtLeast(f64),
    /// A broadcast took at most so many transmissions.
    TransmissionsPerBroadcastAtMost(f64),
    /// Datagrams are over at most so many hops.
    HopsAtMost(u32),
    /// A machine heard of a peripheral.
    Heard(Hearing),
    /// A figure of a protocol in `[[protocol]]`, at the end, on each node that is on and runs it.
    Figure(Figured),
}

/// A figure that a protocol must have come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figured {
    /// The protocol's name.
    pub protocol: String,
    /// The figure's name.
    pub name: String,
    /// The least that it may be on any node.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// The most that it may be.
    #[serde(default)]
    pub at_most: Option<f64>,
}

/// Events of a topic that a machine must have received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hearing {
    /// On which device.
    pub node: u32,
    /// The topic: `device.door`.
    pub topic: String,
    /// How many events at least.
    pub at_least: u64,
    /// And at most.
    #[serde(default)]
    pub at_most: Option<u64>,
    /// The payload of the last event.
    #[serde(default)]
    pub last: Option<String>,
    /// Between which numbers all of them were.
    #[serde(default)]
    pub within: Option<[f64; 2]>,
}

fn one() -> u64 {
    1
}

fn eight() -> f32 {
    8.0
}

fn payload() -> usize {
    64
}

fn three_hundred() -> u64 {
    300
}

fn a_second() -> u32 {
    1_000
}

fn ten_seconds() -> u32 {
    10_000
}

fn thousand() -> usize {
    1_000
}

/// Why a scenario can't be run. The file's author is to blame.
#[derive(Clone, Debug, PartialEq)]
pub enum ScenarioError {
    /// Not TOML, or not a scenario; in words, with line and column.
    Syntax(String),
    /// Too many nodes, or none.
    Nodes(usize),
    /// Longer than [`SECONDS_MAX`], or no time at all.
    Seconds(f64),
    /// A node that is not there.
    NoSuchNode(u32),
    /// A share that isn't between 0 and 1.
    Share(f32),
    /// A number that must be positive, by its name.
    NotPositive(&'static str),
    /// Something is to be broadcast, and no protocol is there that does.
    NoBroadcast,
    /// A liar about Babel's ways runs beside another router.
    NoBabel,
    /// No draw of the topology was connected: too few nodes for its size.
    Parted,
    /// Something takes whole devices, and nodes run bare protocols.
    NoDevices(&'static str),
    /// Something takes bare protocols, and nodes are whole devices.
    WholeDevices(&'static str),
    /// More devices than can be simulated.
    Devices(usize),
    /// A protocol that the program doesn't know; in words, with those that it knows.
    UnknownProtocol(String),
    /// A figure is expected of a protocol that no `[[protocol]]` names.
    NotRun(String),
    /// A protocol is named twice.
    NamedTwice(String),
    /// The settings of a protocol mean nothing to it; in words.
    Settings(String),
    /// Something is wrong in a file that the scenario names.
    File {
        /// The file.
        file: String,
        /// The line, from 1 on, if it is about one.
        line: Option<usize>,
        /// What is wrong, in words.
        what: String,
    },
    /// Nodes are to be where a file has them, and none is named.
    NoMotion,
    /// A wall that makes a signal stronger, or ends nowhere.
    Wall,
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax(message) => f.write_str(message),
            Self::Nodes(count) => write!(f, "{count} nodes; 1 to {NODES_MAX} can be simulated"),
            Self::Seconds(seconds) => write!(f, "{seconds} s is no time that can be simulated"),
            Self::NoSuchNode(node) => write!(f, "there is no node {node}; they count from 0"),
            Self::Share(share) => write!(f, "{share} is no share; it must be between 0 and 1"),
            Self::NotPositive(name) => write!(f, "{name} must be more than 0"),
            Self::NoBroadcast => {
                f.write_str("to broadcast, name a protocol: `protocols.broadcast`")
            }
            Self::NoBabel => f.write_str("`liar` takes `protocols.router = \"babel\"`"),
            Self::Parted => f.write_str(
                "the nodes are too few for the square: not once did each reach each; \
                 make `side_m` smaller, or set `may_be_parted`",
            ),
            Self::NoDevices(what) => {
                write!(f, "`{what}` takes whole devices: add a table `[devices]`")
            }
            Self::WholeDevices(what) => {
                write!(f, "`{what}` is for bare protocols; devices make calls: `[[call]]`")
            }
            Self::Devices(count) => {
                write!(f, "{count} devices; {DEVICES_MAX} can be simulated, or bare protocols")
            }
            Self::UnknownProtocol(message) | Self::Settings(message) => f.write_str(message),
            Self::NotRun(name) => {
                write!(f, "a figure of `{name}` takes `[[protocol]]` with this name")
            }
            Self::NamedTwice(name) => write!(f, "`[[protocol]]` names `{name}` twice"),
            Self::File { file, line: Some(line), what } => write!(f, "{file}:{line}: {what}"),
            Self::File { file, line: None, what } => write!(f, "{file}: {what}"),
            Self::NoMotion => {
                f.write_str("`topology.shape = \"motion\"` takes a file: add a table `[motion]`")
            }
            Self::Wall => f.write_str("a wall has two ends, and weakens by 0 dB or more"),
        }
    }
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    /// The error of a line of the file of that name.
    fn in_file(file: &str, WrongLine { line, what }: WrongLine) -> Self {
        Self::File { file: file.to_string(), line: Some(line), what }
    }
}

impl Scenario {
    /// Whether any node moves.
    pub(super) fn moves(&self) -> bool {
        self.movement.is_some() || self.motion.is_some()
    }

    /// The scenario that `text` describes, which names no other file.
    ///
    /// # Errors
    /// The scenario's first mistake.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, |_| Err("only the scenario's own text is here".to_string()))
    }

    /// The scenario that `text` describes, whose other files are in `folder`.
    ///
    /// # Errors
    /// The scenario's first mistake, or one of its files can't be read.
    pub fn parse_in(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        Self::parse_with(text, |file| {
            std::fs::read_to_string(folder.join(file)).map_err(|error| error.to_string())
        })
    }

    /// The scenario that `text` describes. `read` returns what stands in a file that it names, or why it can't.
    ///
    /// # Errors
    /// The scenario's first mistake, or one of its files can't be read.
    pub fn parse_with(
        text: &str,
        mut read: impl FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, ScenarioError> {
        let mut scenario: Self =
            toml::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string()))?;
        let mut read = |file: &str| {
            let (file, line) = (file.to_string(), None);
            read(&file).map_err(|what| ScenarioError::File { file, line, what })
        };
        if let Some(MotionPlan { file, format }) = &scenario.motion {
            let motion = Motion::parse(&read(file)?, *format);
            scenario.files.motion = motion.map_err(|wrong| ScenarioError::in_file(file, wrong))?;
        }
        if let Some(WallMap { file }) = &scenario.wall_map {
            let walls = WallMap::parse(&read(file)?);
            scenario.files.walls = walls.map_err(|wrong| ScenarioError::in_file(file, wrong))?;
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// The scenario as a file says it.
    pub fn to_toml(&self) -> String {
        // Numbers, words and lists have a form in TOML.
        toml::to_string(self).unwrap_or_default()
    }

    /// Checks what the types can't say.
    ///
    /// # Errors
    /// The scenario's first mistake.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let nodes = self.topology.nodes();
        if nodes == 0 || nodes > NODES_MAX {
            return Err(ScenarioError::Nodes(nodes));
        }
        if !(self.seconds > 0.0 && self.seconds <= SECONDS_MAX) {
            return Err(ScenarioError::Seconds(self.seconds));
        }
        for (name, value) in
            [("range_m", self.radio.range_m), ("bit_rate", self.radio.bit_rate as f32)]
        {
            if value.is_nan() || value <= 0.0 {
                return Err(ScenarioError::NotPositive(name));
            }
        }
        let lies_every = self.liars.iter().map(|liar| liar.every_ms);
        if self.traffic.iter().map(|it| it.every_ms).chain(lies_every).any(|every_ms| every_ms == 0)
        {
            return Err(ScenarioError::NotPositive("every_ms"));
        }
        let turns = self.links.iter().filter_map(|link| link.bursts);
        for (name, value) in turns.flat_map(|it| [("bad_ms", it.bad_ms), ("good_ms", it.good_ms)]) {
            if value.is_nan() || value <= 0.0 {
                return Err(ScenarioError::NotPositive(name));
            }
        }
        if self.protocols.broadcast.is_none() && self.traffic.iter().any(|it| it.broadcast) {
            return Err(ScenarioError::NoBroadcast);
        }
        if !self.liars.is_empty() && self.protocols.router != Router::Babel {
            return Err(ScenarioError::NoBabel);
        }
        self.check_devices(nodes)?;
        let shares = self.links.iter().flat_map(|link| {
            let bursts = link.bursts.map(|bursts| bursts.loss);
            [Some(link.loss), link.unicast_loss, bursts].into_iter().flatten()
        });
        let torn = self.devices.iter().map(|devices| devices.torn);
        let mut shares = shares.chain([self.radio.loss.near, self.radio.loss.far]).chain(torn);
        if let Some(share) = shares.find(|share| !(0.0..=1.0).contains(share)) {
            return Err(ScenarioError::Share(share));
        }
        self.check_plug_ins()?;
        self.check_walls()?;
        self.check_motion(nodes)?;
        match self.named_nodes().into_iter().find(|node| *node as usize >= nodes) {
            Some(node) => Err(ScenarioError::NoSuchNode(node)),
            None => Ok(()),
        }
    }

    fn check_walls(&self) -> Result<(), ScenarioError> {
        let is_right = |wall: &Wall| {
            let [[x1, y1], [x2, y2]] = [wall.from, wall.to];
            wall.db >= 0.0 && [x1, y1, x2, y2, wall.db].into_iter().all(f32::is_finite)
        };
        if self.walls.iter().all(is_right) { Ok(()) } else { Err(ScenarioError::Wall) }
    }

    /// Checks that a trace is about nodes that are there, and has those that stand where it says.
    fn check_motion(&self, nodes: usize) -> Result<(), ScenarioError> {
        let is_needed = matches!(self.topology, Topology::Motion { .. });
        let Some(MotionPlan { file, .. }) = &self.motion else {
            return if is_needed { Err(ScenarioError::NoMotion) } else { Ok(()) };
        };
        let wrong = |line, what| Err(ScenarioError::File { file: file.clone(), line, what });
        if let Some((line, node)) = self.files.motion.beyond(nodes) {
            return wrong(Some(line), ScenarioError::NoSuchNode(node).to_string());
        }
        let mut all = 0..nodes as u32;
        match all.find(|node| is_needed && self.files.motion.spot(*node, 0.0).is_none()) {
            Some(node) => wrong(None, format!("it doesn't say where node {node} is")),
            None => Ok(()),
        }
    }

    /// All walls of the scenario, and of its map.
    pub(super) fn all_walls(&self) -> Vec<Wall> {
        self.walls.iter().chain(&self.files.walls).copied().collect()
    }

    /// Checks that figures are expected of protocols that run, each once.
    fn check_plug_ins(&self) -> Result<(), ScenarioError> {
        for (index, plan) in self.plug_ins.iter().enumerate() {
            if plan.interval_ms == 0 {
                return Err(ScenarioError::NotPositive("interval_ms"));
            }
            if self.plug_ins[..index].iter().any(|before| before.name == plan.name) {
                return Err(ScenarioError::NamedTwice(plan.name.clone()));
            }
        }
        let figures = self.expectations.iter().filter_map(|expectation| match expectation {
            Expectation::Figure(figured) => Some(&figured.protocol),
            _ => None,
        });
        let is_run = |name: &&String| self.plug_ins.iter().any(|plan| plan.name == **name);
        match figures.into_iter().find(|name| !is_run(name)) {
            Some(name) => Err(ScenarioError::NotRun(name.clone())),
            None => Ok(()),
        }
    }

    /// Checks that what takes devices has them, and what takes bare protocols as well.
    fn check_devices(&self, nodes: usize) -> Result<(), ScenarioError> {
        let first = |wrong: &[(bool, &'static str)]| {
            wrong.iter().find(|(is_there, _)| *is_there).map(|(_, what)| *what)
        };
        let Some(devices) = &self.devices else {
            let wrong = first(&[
                (!self.calls.is_empty(), "call"),
                (!self.sleeps.is_empty(), "sleep"),
                (!self.peripherals.is_empty(), "peripheral"),
                (self.replayer.is_some(), "replayer"),
            ]);
            return wrong.map_or(Ok(()), |what| Err(ScenarioError::NoDevices(what)));
        };
        if nodes > DEVICES_MAX {
            return Err(ScenarioError::Devices(nodes));
        }
        let positive = [
            ("slice_ms", devices.slice_ms),
            ("every_ms", self.replayer.as_ref().map_or(1, |replayer| replayer.every_ms)),
            ("run_ms", self.sleeps.iter().map(|sleep| sleep.run_ms).min().unwrap_or(1)),
            ("sleep_ms", self.sleeps.iter().map(|sleep| sleep.sleep_ms).min().unwrap_or(1)),
        ];
        if let Some((name, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(ScenarioError::NotPositive(name));
        }
        let wrong = first(&[
            (!self.traffic.is_empty(), "traffic"),
            (!self.liars.is_empty(), "liar"),
            (self.protocols != Protocols::default(), "protocols"),
            (!self.plug_ins.is_empty(), "protocol"),
        ]);
        wrong.map_or(Ok(()), |what| Err(ScenarioError::WholeDevices(what)))
    }

    /// How hops repair what links lose.
    pub fn hop_repair(&self) -> HopRepair {
        let by_radio =
            if self.radio.unicast_retries > 0 { HopRepair::Link } else { HopRepair::Acknowledged };
        self.protocols.hop_repair.unwrap_or(by_radio)
    }

    /// When it is over, in microseconds.
    pub fn end_us(&self) -> u64 {
        micros(self.seconds)
    }

    fn named_nodes(&self) -> Vec<u32> {
        let mut named: Vec<u32> = Vec::new();
        named.extend(self.links.iter().flat_map(|link| [link.from, link.to]));
        named.extend(self.traffic.iter().flat_map(|traffic| [traffic.from, traffic.to]).flatten());
        named.extend(self.devices.iter().flat_map(|devices| devices.without_clock.iter().copied()));
        named.extend(self.devices.iter().flat_map(|devices| devices.small.iter().copied()));
        named.extend(self.calls.iter().flat_map(|call| [call.from, call.to]).flatten());
        named.extend(self.peripherals.iter().map(|one| one.node));
        named.extend(self.plug_ins.iter().flat_map(|plan| plan.nodes.iter().copied()));
        named.extend(self.liars.iter().map(|liar| liar.node));
        named.extend(self.sleeps.iter().flat_map(|sleep| sleep.nodes.iter().copied()));
        named.extend(self.movement.iter().flat_map(|movement| movement.nodes.iter().copied()));
        for fault in &self.faults {
            match &fault.what {
                What::Crash(nodes) | What::Restart(nodes) | What::Part(nodes) => {
                    named.extend(nodes)
                }
                What::Cut(ends) | What::CutWay(ends) | What::Mend(ends) => named.extend(ends),
                What::Unite(_) => {}
            }
        }
        named
    }
}

impl LiarPlan {
    /// Whether ways over `node` lead nowhere at a time, because it lies, somebody does in its name, or neighbours
    /// believe what was said.
    pub(super) fn misleads(&self, node: u32, now_us: u64) -> bool {
        let until_us = micros(self.until_s + LIES_LAST_S);
        let is_meant = self.node == node || matches!(self.lie, Lie::Lives | Lie::Versions);
        is_meant && (micros(self.from_s)..until_us).contains(&now_us)
    }
}

impl Router {
    /// Whether it promises that next hops never form a loop.
    pub fn is_loop_free(self) -> bool {
        self != Self::Aodv
    }
}

impl Topology {
    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        match self {
            Self::Line { nodes, .. } | Self::Random { nodes, .. } | Self::Motion { nodes } => {
                *nodes
            }
            Self::Grid { columns, rows, .. } => columns.saturating_mul(*rows),
            Self::Places { places } => places.len(),
        }
    }
}

/// A time of a scenario in microseconds.
pub(crate) fn micros(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e6) as u64
}
