//! The arguments of `tenure device`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tenure_board_linux::Durability;
use tenure_kernel::policy::{PolicyKind, UnknownPolicy};
use tenure_node::Owner;
use tenure_wire::{Label, LogLevel, Name, TopicPattern};

use crate::device::{deep_sleep, link};
use crate::home::parse_owner;
use crate::terminal::clock::parse_span;

/// Run a device.
///
/// Its flash, and so its keys, machines and what they stored, lives in a folder; the same folder is
/// the same device again. Ctrl-C ends it; killing it loses nothing that was acknowledged.
///
/// Example: tenure device --data attic --listen 127.0.0.1:7370 --hub 127.0.0.1:7369
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder that holds the device; made if it isn't there.
    #[arg(long, value_name = "DIR")]
    pub(super) data: PathBuf,
    /// Where to listen; by default as the last time, at first 127.0.0.1:7370.
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<String>,
    /// Serve the pages of the device's machines to browsers there, as in --pages 0.0.0.0:8080; see `tenure pages`.
    #[arg(long, value_name = "ADDR")]
    pub(super) pages: Option<SocketAddr>,
    /// Let clients of CoAP call the device's machines there, as far as their leases let anybody, as in --coap 0.0.0.0; by
    /// default at 127.0.0.1, and at port 5683.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    pub(super) coap: Option<String>,
    /// Let these clients observe the events of topics, as of door.front or room.*; by default of none.
    #[arg(long, value_name = "TOPICS", requires = "coap")]
    pub(super) coap_events: Vec<TopicPattern>,
    /// The directory to register with: HOST:PORT, or HOST:PORT#KEY to believe that hub alone. Given again, a further
    /// address of the same hub, which the device goes on with within ten seconds when it is silent at the one before; all
    /// addresses of a name count. As wss://HOST, the hub's pages, by which the device goes where UDP is blocked, also
    /// through a proxy (HTTPS_PROXY).
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB", value_delimiter = ',')]
    pub(super) hub: Vec<String>,
    /// A label by which rollouts select the device, as site=harbour; by default as the last time.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(super) labels: Vec<Label>,
    /// Let the hub show the device's log to its owner, or no more; by default as the last time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(super) log_to_hub: Option<bool>,
    /// The device's name; by default its folder's, when it is made.
    #[arg(long)]
    pub(super) name: Option<Name>,
    /// The owner's keys as `tenure key` prints them, if the owner is somebody else.
    #[arg(long, value_name = "SIGNING-KEY/MACHINE-KEY", value_parser = parse_owner)]
    pub(super) owner: Option<Owner>,
    /// The scheduling policy: round-robin, preemptive, weighted-fair or earliest-deadline; by default as the
    /// last time, at first round-robin.
    #[arg(long, value_parser = parse_policy)]
    pub(super) policy: Option<PolicyKind>,
    /// The memory of all machines together, in bytes; by default as the last time, at first 64 MiB.
    #[arg(long, value_name = "BYTES")]
    pub(super) memory_bytes: Option<usize>,
    /// Flash set aside for machines that don't fit into memory together, in bytes; of the 4 MiB for
    /// code, by default as the last time, and at first nothing.
    #[arg(long, value_name = "BYTES")]
    pub(super) swap_bytes: Option<u32>,
    /// How long one receipt is for, where a lease doesn't say: by default as the last time, at first 1d.
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub(super) receipts_every: Option<Duration>,
    /// The events that acknowledged writes survive.
    #[arg(long, value_enum, default_value_t = Survives::PowerLoss)]
    pub(super) survives: Survives,
    /// A file that describes simulated peripherals: thermometers, buttons, lamps, cameras.
    #[arg(long, value_name = "FILE")]
    pub(super) peripherals: Option<PathBuf>,
    /// Record all that reaches the device in this new file, for `tenure replay`. It holds the device's keys, as its
    /// flash does. Machines that ask for native speed run in the interpreter meanwhile.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Let machines send requests to servers outside, as far as their leases grant it, or no more; by default as the last
    /// time, at first so.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(super) reach: Option<bool>,
    /// Authorities that vouch for these servers, in PEM or DER; by default as the last time, at first the system's.
    #[arg(long, value_name = "FILE")]
    pub(super) reach_ca: Vec<PathBuf>,
    /// A file that says of single servers who vouches for them (`ca`, `pin`) and which certificate the device shows them
    /// (`certificate`, `key`); by default as the last time.
    #[arg(long, value_name = "FILE")]
    pub(super) reach_servers: Option<PathBuf>,
    /// Bridge topics to a broker of MQTT 5 and back, as the rules in this file say.
    #[arg(long, value_name = "FILE")]
    pub(super) bridge: Option<PathBuf>,
    #[command(flatten)]
    pub(super) sleep: deep_sleep::Sleeping,
    #[command(flatten)]
    pub(super) meshing: link::Meshing,
    /// Carry the mesh's datagrams, others' too, on a thread of their own, or no more; by default as the last
    /// time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(super) mesh_own_thread: Option<bool>,
    /// Take part in experiments with the owner's mesh (`tenure experiment`), or no more; by default as the
    /// last time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(super) experiments: Option<bool>,
    /// Announce the device on its network, and find others there, by multicast DNS; by default as the last
    /// time, and at first unless it listens for this computer alone.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(super) discover: Option<bool>,
    /// Compile machines that ask for native speed, or no more: the vm runs them then; by default as the last time, at first
    /// so. The compiler's time and memory are billed to nobody.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(super) native_speed: Option<bool>,
    /// Print of what machines log only lines that are at least so grave: fault, error, warning, info or debug. The
    /// device keeps all for `tenure log`.
    #[arg(long, value_name = "LEVEL", default_value_t = LogLevel::Debug)]
    pub(super) print_level: LogLevel,
}

/// The failures that acknowledged writes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Survives {
    /// The process being killed, and a loss of power: each write waits for the disk.
    PowerLoss,
    /// The process being killed: fast, for trying things out.
    Kill,
}

impl From<Survives> for Durability {
    fn from(survives: Survives) -> Self {
        match survives {
            Survives::PowerLoss => Self::PowerLoss,
            Survives::Kill => Self::ProcessKill,
        }
    }
}

fn parse_policy(text: &str) -> Result<PolicyKind, String> {
    text.parse().map_err(|error: UnknownPolicy| error.to_string())
}
