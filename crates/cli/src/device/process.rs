//! `tenure device`: a device as a process.

mod bridging;
mod coap;
mod dates;
mod hub_names;
mod noted;
mod outside;
mod pages;
mod predecessor;
mod reaching;
mod servers;
mod settings;
mod visited;

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use serde_json::json;
use tenure_board_linux::{
    Durability, FileFlash, LinuxClock, LinuxEntropy, SECTOR_BYTES, UdpLink, Watchdog, wait_any,
};
use tenure_bridge::Published;
use tenure_hal::{Clock as _, Instant, Link as _, Peripheral};
use tenure_kernel::policy::{PolicyKind, UnknownPolicy};
use tenure_node::{
    Bedtime, BootError, Config, Door as _, Input, Moment, Node, Notice, Owner, Parts, SleepPolicy,
    Wake,
};
use tenure_protocols::plug_in::Registry;
use tenure_replay::{Recorded, Tape};
use tenure_wire::LogLevel;
use tenure_wire::console::{IN_MESH, LISTED, LISTENS_ON};
use tenure_wire::control::{Client as _, Enrol};
use tenure_wire::directory::Enrolment;
use tenure_wire::printable::counted;
use tenure_wire::{Address, Label, Name, TopicPattern};

use crate::device::deep_sleep;
use crate::device::link;
use crate::home::known::Known;
use crate::home::{Home, keep_memory_private, parse_owner};
use crate::machine::inspect::ROOMY_BYTES;
use crate::make::pack::STORE_BYTES;
use crate::make::symbols::MachineSymbols;
use crate::reach::client::OwnerKeys;
use crate::reach::discovery::{self, Discovery};
use crate::reach::network::{DATAGRAMS_PER_TURN, DEVICE_PORT, address_of};
use crate::terminal::clock::parse_span;
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;
use bridging::Bridging;
use coap::DeviceCoap;
use dates::SharedDate;
use hub_names::{HubNames, NamedHub};
use outside::{Outside, Ways};
use pages::DevicePages;
use reaching::Reaching;
use settings::{Settings, Start, settings};

/// The file that says whose device a data folder is, and what it is called.
const SETTINGS: &str = "device.toml";
/// The file that is the device's flash.
const FLASH: &str = "flash.bin";
/// How the flash is split: 2 MiB for the store, 4 MiB for images, 2 MiB for an arriving package.
const STORE_SECTORS: u32 = STORE_BYTES / SECTOR_BYTES;
const CODE_SECTORS: u32 = 1024;
const STAGING_SECTORS: u32 = 512;
/// Where a device listens if nobody says.
const LISTEN: &str = "127.0.0.1:7370";
/// The word by which a device starts this program as the compiler of a machine at native speed.
#[cfg(feature = "native-speed")]
pub(crate) const COMPILE: &str = "compile-for-a-device";
/// The trace that the watchdog leaves when it bites, and how long the loop may stand still.
const WATCHDOG: &str = "watchdog.bin";
const WATCHDOG_PERIOD: Duration = Duration::from_secs(60);
/// The most datagrams that are thrown away at once: more than a socket holds.
const THROWN_AWAY_MAX: usize = 65_536;
/// The longest that the loop sleeps: the watchdog is fed within its period, and a wait doesn't count the time in which the
/// system is suspended, as the device's clock does.
const NAP: Duration = Duration::from_secs(10);
/// How much longer than it meant to wait, or worked, the loop may take to come round until it is known that the process
/// stood still. Callers whom a datagram that came meanwhile matters to send it again.
const STOOD_STILL: Duration = Duration::from_secs(5);
/// The same while others may announce themselves, which wakes nobody.
const NAP_IN_DISCOVERY: Duration = Duration::from_secs(2);

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
    data: PathBuf,
    /// Where to listen; by default as the last time, at first 127.0.0.1:7370.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Serve the pages of the device's machines to browsers there, as in --pages 0.0.0.0:8080; see `tenure pages`.
    #[arg(long, value_name = "ADDR")]
    pages: Option<SocketAddr>,
    /// Let clients of CoAP call the device's machines there, as far as their leases let anybody, as in --coap 0.0.0.0; by
    /// default at 127.0.0.1, and at port 5683.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    coap: Option<String>,
    /// Let these clients observe the events of topics, as of door.front or room.*; by default of none.
    #[arg(long, value_name = "TOPICS", requires = "coap")]
    coap_events: Vec<TopicPattern>,
    /// The directory to register with: HOST:PORT, or HOST:PORT#KEY to believe that hub alone. Given again, a further
    /// address of the same hub, which the device goes on with within ten seconds when it is silent at the one before; all
    /// addresses of a name count.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB", value_delimiter = ',')]
    hub: Vec<String>,
    /// A label by which rollouts select the device, as site=harbour; by default as the last time.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,
    /// Let the hub show the device's log to its owner, or no more; by default as the last time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    log_to_hub: Option<bool>,
    /// The device's name; by default its folder's, when it is made.
    #[arg(long)]
    name: Option<Name>,
    /// The owner's keys as `tenure key` prints them, if the owner is somebody else.
    #[arg(long, value_name = "SIGNING-KEY/MACHINE-KEY", value_parser = parse_owner)]
    owner: Option<Owner>,
    /// The scheduling policy: round-robin, preemptive, weighted-fair or earliest-deadline; by default as the
    /// last time, at first round-robin.
    #[arg(long, value_parser = parse_policy)]
    policy: Option<PolicyKind>,
    /// The memory of all machines together, in bytes; by default as the last time, at first 64 MiB.
    #[arg(long, value_name = "BYTES")]
    memory_bytes: Option<usize>,
    /// Flash set aside for machines that don't fit into memory together, in bytes; of the 4 MiB for
    /// code, by default as the last time, and at first nothing.
    #[arg(long, value_name = "BYTES")]
    swap_bytes: Option<u32>,
    /// How long one receipt is for, where a lease doesn't say: by default as the last time, at first 1d.
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    receipts_every: Option<Duration>,
    /// The events that acknowledged writes survive.
    #[arg(long, value_enum, default_value_t = Survives::PowerLoss)]
    survives: Survives,
    /// A file that describes simulated peripherals: thermometers, buttons, lamps, cameras.
    #[arg(long, value_name = "FILE")]
    peripherals: Option<PathBuf>,
    /// Record all that reaches the device in this new file, for `tenure replay`. It holds the device's keys, as its
    /// flash does. Machines that ask for native speed run in the interpreter meanwhile.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Let machines send requests to servers outside, as far as their leases grant it, or no more; by default as the last
    /// time, at first so.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    reach: Option<bool>,
    /// Authorities that vouch for these servers, in PEM or DER; by default as the last time, at first the system's.
    #[arg(long, value_name = "FILE")]
    reach_ca: Vec<PathBuf>,
    /// A file that says of single servers who vouches for them (`ca`, `pin`) and which certificate the device shows them
    /// (`certificate`, `key`); by default as the last time.
    #[arg(long, value_name = "FILE")]
    reach_servers: Option<PathBuf>,
    /// Bridge topics to a broker of MQTT 5 and back, as the rules in this file say.
    #[arg(long, value_name = "FILE")]
    bridge: Option<PathBuf>,
    #[command(flatten)]
    sleep: deep_sleep::Sleeping,
    #[command(flatten)]
    meshing: link::Meshing,
    /// Carry the mesh's datagrams, others' too, on a thread of their own, or no more; by default as the last
    /// time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    mesh_own_thread: Option<bool>,
    /// Take part in experiments with the owner's mesh (`tenure experiment`), or no more; by default as the
    /// last time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    experiments: Option<bool>,
    /// Announce the device on its network, and find others there, by multicast DNS; by default as the last
    /// time, and at first unless it listens for this computer alone.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    discover: Option<bool>,
    /// Compile machines that ask for native speed, or no more: the vm runs them then; by default as the last time, at first
    /// so. The compiler's time and memory are billed to nobody.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    native_speed: Option<bool>,
    /// Print of what machines log only lines that are at least so grave: fault, error, warning, info or debug. The
    /// device keeps all for `tenure log`.
    #[arg(long, value_name = "LEVEL", default_value_t = LogLevel::Debug)]
    print_level: LogLevel,
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

/// Runs `tenure device` until it is told to stop.
///
/// # Errors
/// The folder isn't a device's, the address is taken, or the flash fails.
pub fn run(arguments: &Arguments, registry: Registry, output: &Output) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    keep_memory_private();
    let home = Home::from_environment()?;
    let (settings, is_new) = settings(&arguments.data, arguments, &home)?;
    let listen = address_of(settings.listen.as_deref().unwrap_or(LISTEN), DEVICE_PORT)?;
    let named_hub = NamedHub::of(&arguments.hub, listen)?;
    let bridge = arguments.bridge.as_deref();
    let bridge = bridge.map(|path| bridging::load(path, &settings.name)).transpose()?;
    let bridged = bridge.as_ref().map(|bridge| bridge.rules.patterns()).unwrap_or_default();
    let bridged = coap::heard(&bridged, &arguments.coap_events)?;
    let coap = arguments.coap.as_deref();
    let coap = coap.map(|text| address_of(text, tenure_coap::PORT)).transpose()?;
    let hub_names = HubNames::start(named_hub, output)?;
    let (hub, hub_also_at) = hub_names.found();
    let mut start =
        Start { settings, sleep: arguments.sleep, hub, hub_also_at, bite: None, bridged };
    start.config(registry)?;
    let Settings { reach_authorities, reach_servers, .. } = &start.settings;
    let date = SharedDate::default();
    let reaching =
        Reaching::new(reach_authorities.clone(), reach_servers.as_deref(), date.dates())?;
    // A port that is in use leaves no folder behind. A device that was there waits for the one before it first.
    let free = is_new.then(|| UdpLink::bind(listen)).transpose()?;
    if is_new {
        settings::make(&arguments.data, &start.settings)?;
    }
    let mut parts = {
        let open = || open_flash(&arguments.data, arguments.survives.into());
        predecessor::wait_for(&arguments.data, open, &stop, output)?
    };
    // From here on no other process has the folder in use: what stands in it is this one's.
    settings::keep(&arguments.data, &start.settings)?;
    start.bite = Watchdog::take_bite(&arguments.data.join(WATCHDOG))?;
    let config = start.config(registry)?;
    let tape =
        arguments.record.as_deref().map(|path| start.record(path, &mut parts)).transpose()?;
    let Start { settings, .. } = start;
    // A device that was here before runs its machines also while its network isn't up yet.
    let (link, is_there) =
        free.map_or_else(|| UdpLink::bind_or_await(listen), |link| Ok((link, true)))?;
    if !is_there {
        output.line(
            &format!("no network interface has the address {} yet; the device runs, and listens there once one has", listen.ip()),
            &json!({ "event": "address-missing", "address": listen.to_string() }),
        );
    }
    let native_speed = settings.native_speed.unwrap_or(true);
    let data = &arguments.data;
    let started = Running::start(config.clone(), parts, link, &home, data, tape, native_speed);
    let mut device = started.map_err(|error| {
        let path = arguments.data.join(FLASH);
        match error.downcast_ref() {
            Some(BootError::Mount(_)) => anyhow!(
                "{}: {error}; put back a copy of it, or move it away to begin a new device",
                path.display()
            ),
            _ => error.context(path.display().to_string()),
        }
    })?;
    noted::note(&mut device, &home);
    if let Some(mut link) = settings.mesh.open()? {
        link.use_thread(settings.mesh_own_thread);
        device.enter_mesh(link, &home, output)?;
    }
    device.judge_by(date.clone());
    device.hub_names = Some(hub_names);
    device.reaching = Some(reaching);
    let start = |bridge| Bridging::start(bridge, date.dates(), &arguments.data);
    device.bridging = bridge.map(start).transpose()?;
    if let Some(path) = &arguments.peripherals {
        device.attach(crate::device::peripherals::load(path)?)?;
    }
    if settings.discover.unwrap_or_else(|| discovery::is_usual_at(device.address())) {
        device.discover(output);
    }
    device.print_level = arguments.print_level;
    device.announce_mount(output);
    device.announce(output);
    if let Some(listen) = arguments.pages {
        device.serve_pages(listen, output)?;
    }
    if let Some(listen) = coap {
        device.serve_coap(listen, arguments.coap_events.clone(), output)?;
    }
    let watchdog = Watchdog::set(&arguments.data.join(WATCHDOG), WATCHDOG_PERIOD);
    device.node().use_retained(Box::new(watchdog.retained()));
    while !stop.is_requested() {
        watchdog.feed();
        let wake = device.turn(output)?;
        match device.bedtime() {
            Some(bedtime) => device = device.sleep(bedtime, &config, (&stop, &watchdog), output)?,
            None => device.rest(wake, &stop)?,
        }
    }
    device.with_moment(|node, moment| node.take(moment, Input::Checkpoint));
    device.finish(output);
    output.line("stopped", &json!({ "event": "stopped" }));
    Ok(())
}

/// The kernel's limits on a computer with room to spare.
pub fn roomy_kernel() -> tenure_kernel::Config {
    tenure_kernel::Config {
        machines_max: 32,
        memory_bytes_max: ROOMY_BYTES,
        parameter_bytes_max: 8 * 1024 * 1024,
        slice_fuel: 200_000,
        fuel_per_second: 300_000_000,
        effects_max: 1024,
        log_bytes_per_second: 16 * 1024,
        ..tenure_kernel::Config::default()
    }
}

/// A node with its link, clock and randomness: what a board's main loop turns.
pub struct Running {
    node: Recorded<FileFlash>,
    link: UdpLink,
    clock: LinuxClock,
    entropy: LinuxEntropy,
    symbols: MachineSymbols,
    /// The least grave lines of logs that are printed.
    print_level: LogLevel,
    datagram: Vec<u8>,
    mesh: Option<link::MeshLink>,
    discovery: Option<Discovery>,
    /// The look-ups of its hub's names, if it has a hub.
    hub_names: Option<HubNames>,
    /// The way to servers outside, if machines have one.
    reaching: Option<Reaching>,
    /// The way to a broker, if topics are bridged.
    bridging: Option<Bridging>,
    pages: Option<DevicePages>,
    coap: Option<DeviceCoap>,
    /// The state of these ways, as the node knows it.
    outside: Outside,
    /// The date by which certificates are judged there.
    date: SharedDate,
    /// Where the device keeps its files.
    folder: PathBuf,
    /// Whether it compiles machines that ask for it.
    native_speed: bool,
    /// By when the loop means to come round, and what the process had worked when it said so.
    pace: Cell<Pace>,
    /// The first machine that has failed, and the first that has logged an error.
    failed: Option<Name>,
    complained: Option<Name>,
}

/// By when the loop means to come round again, and for how long the processor had worked for it when it said so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pace {
    due: Instant,
    worked: Duration,
}

impl Pace {
    /// Whether whoever comes round now, having worked that long in all, stood still since.
    fn stood_still(self, now: Instant, worked: Duration) -> bool {
        // The first turn was due at no time.
        self != Self::default()
            && now.since(self.due) > STOOD_STILL + worked.saturating_sub(self.worked)
    }
}

/// Lends a node the compiler for machines that ask for native speed. A run that is recorded is one of the interpreter.
#[cfg_attr(not(feature = "native-speed"), expect(unused_variables))]
fn lend_engine(node: &mut Recorded<FileFlash>, native_speed: bool) {
    #[cfg(feature = "native-speed")]
    if native_speed && node.tape().is_none() {
        // The file by whatever name it has by now.
        let engine = tenure_board_linux::NativeSpeed::new(|| {
            let mut compiler = std::process::Command::new("/proc/self/exe");
            compiler.arg(COMPILE);
            compiler
        });
        node.lend().use_engine(Box::new(engine));
    }
}

impl Running {
    /// Boots a node that keeps its files in `folder`, and enrols it if the owner's key is in `home` and
    /// it isn't yet. Its run is recorded if there is a `tape`; it compiles machines that ask for `native_speed` if that is so.
    ///
    /// # Errors
    /// The node's.
    pub fn start(
        config: Config,
        parts: Parts<FileFlash>,
        link: UdpLink,
        home: &Home,
        folder: &Path,
        tape: Option<Tape>,
        native_speed: bool,
    ) -> anyhow::Result<Self> {
        let (clock, mut entropy) = (LinuxClock::start(), LinuxEntropy);
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let name = config.name.clone();
        let mut node = Recorded::boot(config, parts, &mut moment, tape)?;
        if !node.node().is_enrolled() {
            let keys = OwnerKeys::of(home)?;
            if keys.owner() == node.node().owner() {
                enrol(&mut node, &mut moment, &keys, home, name)?;
            }
        }
        lend_engine(&mut node, native_speed);
        let symbols = MachineSymbols::default();
        let datagram = vec![0; 65_536];
        let folder = folder.to_owned();
        let (mesh, discovery, hub_names) = (None, None, None);
        let (reaching, bridging) = (None, None);
        let (pages, coap) = (None, None);
        let (outside, date) = (Outside::default(), SharedDate::default());
        let (failed, complained) = (None, None);
        let pace = Cell::default();
        Ok(Self {
            node,
            link,
            clock,
            entropy,
            symbols,
            print_level: LogLevel::Debug,
            datagram,
            mesh,
            discovery,
            hub_names,
            reaching,
            bridging,
            pages,
            coap,
            outside,
            date,
            folder,
            native_speed,
            pace,
            failed,
            complained,
        })
    }

    /// The node itself.
    pub fn node(&mut self) -> &mut Node<FileFlash> {
        self.node.lend()
    }

    /// Keeps the date by which certificates are judged in `date` from now on.
    fn judge_by(&mut self, date: SharedDate) {
        self.date = date;
        let date = self.date.clone();
        self.with_moment(|node, moment| date.note(node.node(), moment));
    }

    /// Takes a link into the mesh into use, and joins the owner's mesh if the owner's keys are in
    /// `home` and the device hasn't joined one.
    fn enter_mesh(
        &mut self,
        link: link::MeshLink,
        home: &Home,
        output: &Output,
    ) -> anyhow::Result<()> {
        let keys = OwnerKeys::of(home)?;
        if self.node.node().mesh_stack().is_none() && self.node.node().owner() == keys.owner() {
            self.with_moment(|node, moment| link::join(node, moment, home, &keys.signing_key))?;
        }
        let joined = self.node.node().mesh_stack().map(|stack| stack.node().to_string());
        if joined.is_none() {
            self.with_moment(|node, moment| node.take(moment, Input::Knock));
        }
        let address = link.address();
        let text = match &joined {
            Some(node) => format!("{IN_MESH} {node}, at {address}"),
            None => format!(
                "at {address} asks to be let into the mesh: where its owner's keys are, \
                 `tenure invite` does that, over UDP or via a member that hears this device"
            ),
        };
        let object = json!({ "event": "mesh", "node": joined, "address": address });
        output.line(&text, &object);
        self.mesh = Some(link);
        Ok(())
    }

    /// Announces the device on its network, and listens for others there.
    fn discover(&mut self, output: &Output) {
        let key = self.node.node().device_machine();
        match Discovery::start(&key, self.link.address()) {
            Ok(discovery) => self.discovery = Some(discovery),
            Err(error) => {
                let object = json!({ "event": "no-discovery", "reason": format!("{error:#}") });
                output.line(&format!("{error:#}; it is found by its address alone"), &object);
            }
        }
    }

    /// Serves the pages of its machines to browsers.
    fn serve_pages(&mut self, listen: SocketAddr, output: &Output) -> anyhow::Result<()> {
        let device = (self.node.node().name(), self.link.address());
        let pages = DevicePages::serve(listen, &self.folder, device, output)?;
        pages.update(self.node.node());
        self.pages = Some(pages);
        Ok(())
    }

    /// Serves its machines, and the events of these topics, to clients of CoAP.
    fn serve_coap(
        &mut self,
        listen: SocketAddr,
        events: Vec<TopicPattern>,
        output: &Output,
    ) -> anyhow::Result<()> {
        let device = (self.node.node().name(), self.link.address());
        let mut coap = DeviceCoap::serve(listen, events, &self.folder, device, output)?;
        coap.update(self.node.node());
        self.coap = Some(coap);
        Ok(())
    }

    /// Whether it is time to sleep.
    fn bedtime(&mut self) -> Option<Bedtime> {
        self.node.bedtime()
    }

    /// Turns the device off until its time, or until a datagram comes where it listens for that. A
    /// device that can't fall asleep stays awake and says why.
    fn sleep(
        mut self,
        Bedtime { until }: Bedtime,
        config: &Config,
        (stop, watchdog): (&Stop, &Watchdog),
        output: &Output,
    ) -> anyhow::Result<Self> {
        if let Err(error) = self.with_moment(|node, moment| node.fall_asleep(moment)) {
            let object = json!({ "event": "sleepless", "reason": error.to_string() });
            output.line(&format!("can't sleep: {error}"), &object);
            return Ok(self);
        }
        self.transmit()?;
        deep_sleep::announce_sleep(until.map(|until| until.since(self.clock.now())), output);
        let Self {
            mut node,
            link,
            clock,
            mut entropy,
            symbols,
            print_level,
            datagram,
            mesh,
            mut discovery,
            hub_names,
            reaching,
            bridging,
            pages,
            coap,
            outside: _,
            date,
            folder,
            native_speed,
            pace: _,
            failed,
            complained,
        } = self;
        let peripherals = node.lend().detach_all();
        let (parts, tape) = node.into_parts();
        let hears = matches!(config.sleep, SleepPolicy::WhenIdle { .. });
        deep_sleep::wait(until, hears, (&link, &clock), stop, || watchdog.feed())?;
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let mut node = Recorded::boot(config.clone(), parts, &mut moment, tape)?;
        lend_engine(&mut node, native_speed);
        deep_sleep::announce_wake(node.node().slept(), output);
        let mesh = mesh.map(link::MeshLink::awake);
        if let Some(discovery) = &mut discovery {
            discovery.repeat();
        }
        let mut awake = Self {
            node,
            link,
            clock,
            entropy,
            symbols,
            print_level,
            datagram,
            mesh,
            discovery,
            hub_names,
            reaching,
            bridging,
            pages,
            coap,
            // The node is another, and was told nothing.
            outside: Outside::default(),
            date,
            folder,
            native_speed,
            pace: Cell::default(),
            failed,
            complained,
        };
        awake.attach_again(peripherals)?;
        if let Some(found) = awake.hub_names.as_ref().and_then(HubNames::told) {
            awake.with_moment(|node, moment| node.take(moment, found));
        }
        Ok(awake)
    }

    /// Takes peripherals into use.
    ///
    /// # Errors
    /// One of them has a name that is none, or that another has, or they are too many.
    pub fn attach(&mut self, peripherals: Vec<Box<dyn Peripheral + Send>>) -> anyhow::Result<()> {
        let watched = peripherals.into_iter().map(|peripheral| match self.node.tape() {
            Some(tape) => tape.watch(peripheral),
            None => peripheral,
        });
        let watched = watched.collect();
        self.attach_again(watched)
    }

    fn attach_again(&mut self, peripherals: Vec<Box<dyn Peripheral + Send>>) -> anyhow::Result<()> {
        for peripheral in peripherals {
            let name = peripheral.name().to_string();
            self.node
                .attach(self.clock.now(), peripheral)
                .with_context(|| format!("peripheral `{name}`"))?;
        }
        Ok(())
    }

    /// The symbols that faults of its machines are explained by.
    pub fn symbols(&mut self) -> &mut MachineSymbols {
        &mut self.symbols
    }

    /// The first machine that has failed since the start.
    pub fn failed(&self) -> Option<&Name> {
        self.failed.as_ref()
    }

    /// The first machine that has logged an error since the start.
    pub fn complained(&self) -> Option<&Name> {
        self.complained.as_ref()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.link.address()
    }

    /// The time since it started.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Does something with the node at this moment.
    pub fn with_moment<T>(
        &mut self,
        act: impl FnOnce(&mut Recorded<FileFlash>, &mut Moment<'_>) -> T,
    ) -> T {
        let mut moment = Moment {
            now: self.clock.now(),
            unix_time: self.clock.unix_time(),
            entropy: &mut self.entropy,
        };
        act(&mut self.node, &mut moment)
    }

    /// One turn of the loop: what has arrived, one poll, what is to be sent and shown. Gives until when
    /// the node has nothing to do.
    ///
    /// # Errors
    /// The link is broken.
    pub fn turn(&mut self, output: &Output) -> anyhow::Result<Wake> {
        let (now, worked) = (self.clock.now(), tenure_board_linux::worked());
        if self.pace.get().stood_still(now, worked) {
            self.throw_away(output)?;
        }
        self.pace.set(Pace { due: now, worked });
        // First, as the owner may ask for it after a long wait.
        self.tell_outside();
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some((length, from)) = self.link.receive(&mut self.datagram)? else { break };
            let datagram = std::mem::take(&mut self.datagram);
            self.with_moment(|node, moment| node.receive(moment, from.into(), &datagram[..length]));
            self.datagram = datagram;
        }
        let mut moment = Moment {
            now: self.clock.now(),
            unix_time: self.clock.unix_time(),
            entropy: &mut self.entropy,
        };
        if let Some(mesh) = &mut self.mesh {
            mesh.receive(&mut moment, &mut self.node)?;
            mesh.tell_plugged(output);
        }
        if let Some(reaching) = &mut self.reaching {
            reaching.receive(&mut moment, &mut self.node);
        }
        if let Some(bridging) = &mut self.bridging {
            bridging.receive(&mut moment, &mut self.node);
        }
        self.date.note(self.node.node(), &moment);
        while let Some(address) = self.discovery.as_mut().and_then(|it| it.heard(output)) {
            self.with_moment(|node, moment| node.take(moment, Input::Neighbour(address.into())));
        }
        let (now, is_listed) = (self.clock.now(), self.node.node().is_listed());
        let found = self.hub_names.as_mut().and_then(|names| names.turn(now, is_listed, output));
        if let Some(found) = found {
            self.with_moment(|node, moment| node.take(moment, found));
        }
        let mut wake = self.with_moment(|node, moment| node.poll(moment));
        // Before it is answered that a machine was installed: who is told so may visit it at once.
        if let Some(pages) = &self.pages {
            pages.update(self.node.node());
        }
        if let Some(coap) = &mut self.coap {
            coap.update(self.node.node());
        }
        if let Some(mesh) = &mut self.mesh
            && mesh.exchange(self.clock, &mut self.entropy, &mut self.node)?
        {
            wake = Wake::Now;
        }
        self.transmit()?;
        if let Some(reaching) = &mut self.reaching {
            reaching.transmit(self.clock.now(), &mut self.node);
        }
        self.carry_events();
        while let Some(notice) = self.node.notice() {
            if let Notice::Log(line) = &notice {
                let level = line.level.parse().unwrap_or(LogLevel::Fault);
                if level > self.print_level {
                    continue;
                }
                match line.level.as_str() {
                    "fault" => _ = self.failed.get_or_insert_with(|| line.machine.clone()),
                    "error" => _ = self.complained.get_or_insert_with(|| line.machine.clone()),
                    _ => {}
                }
            }
            show(&notice, &self.symbols, output);
        }
        if let Some(tape) = self.node.tape() {
            tell_of_failure(tape, output);
        }
        Ok(wake)
    }

    /// Throws away what lies in the socket of a device that stood still: calls in there whose callers were told long ago that
    /// nobody can be reached. What still counts is sent again.
    fn throw_away(&mut self, output: &Output) -> anyhow::Result<()> {
        let mut thrown = 0_usize;
        while thrown < THROWN_AWAY_MAX && self.link.receive(&mut self.datagram)?.is_some() {
            thrown += 1;
        }
        output.line(
            &format!("the device stood still for a while; {thrown} datagrams that came meanwhile are thrown away"),
            &json!({ "event": "stood-still", "datagrams": thrown }),
        );
        Ok(())
    }

    /// Tells the node the state of its ways outside.
    fn tell_outside(&mut self) {
        let mut moment = Moment {
            now: self.clock.now(),
            unix_time: self.clock.unix_time(),
            entropy: &mut self.entropy,
        };
        let (bridging, reaching) = (self.bridging.as_ref(), self.reaching.as_ref());
        let ways = || Ways::of(bridging, reaching, self.coap.as_ref());
        self.outside.tell(&mut moment, &mut self.node, ways);
    }

    /// Hands over what machines and peripherals have published to those who carry it further.
    fn carry_events(&mut self) {
        if self.coap.is_none() && self.bridging.is_none() {
            return;
        }
        while let Some((topic, payload, publisher)) = self.node.event() {
            if let Some(coap) = &self.coap {
                coap.event(&topic, &payload);
            }
            if let Some(bridging) = &self.bridging {
                bridging.publish(Published { topic, payload, publisher });
            }
        }
    }

    /// Waits until there is more to do or `stop` is requested, but not for longer than a nap.
    ///
    /// # Errors
    /// The link is broken.
    pub fn rest(&self, wake: Wake, stop: &Stop) -> anyhow::Result<()> {
        let nap = if self.discovery.is_some() { NAP_IN_DISCOVERY } else { NAP };
        self.rest_at_most(wake, stop, nap)
    }

    /// As [`Self::rest`], for `longest` at most.
    ///
    /// # Errors
    /// The link is broken.
    pub fn rest_at_most(&self, wake: Wake, stop: &Stop, longest: Duration) -> anyhow::Result<()> {
        if let Some(tape) = self.node.tape().filter(|_| wake != Wake::Now) {
            tape.flush();
        }
        let span = match wake {
            Wake::Now => return Ok(()),
            Wake::At(at) => at.since(self.clock.now()).min(longest),
            Wake::Never => longest,
        };
        self.pace.set(Pace { due: self.clock.now() + span, worked: tenure_board_linux::worked() });
        let mut sockets: Vec<&dyn AsFd> = vec![stop, &self.link];
        sockets.extend(self.hub_names.as_ref().map(|names| names as &dyn AsFd));
        sockets.extend(self.reaching.as_ref().map(|reaching| reaching as &dyn AsFd));
        sockets.extend(self.bridging.as_ref().map(|bridging| bridging as &dyn AsFd));
        match &self.mesh {
            Some(mesh) => mesh.wait(&sockets, span)?,
            None => drop(wait_any(&sockets, span)?),
        }
        Ok(())
    }

    /// Ends the device, and its record if there is one.
    fn finish(self, output: &Output) {
        let tape = self.node.tape().cloned();
        self.node.finish();
        if let Some(discovery) = self.discovery {
            discovery.end();
        }
        if let Some(tape) = tape {
            tell_of_failure(&tape, output);
        }
    }

    /// Sends all that the node has to send.
    fn transmit(&mut self) -> anyhow::Result<()> {
        if let Some(mesh) = &mut self.mesh {
            mesh.transmit(&mut self.node)?;
        }
        while let Some((to, datagram)) = self.node.transmit() {
            // A datagram that isn't sent is one that is lost: it will be sent again.
            if let Address::Udp(to) = to {
                let _ = self.link.send(&to, &datagram);
            }
        }
        Ok(())
    }

    /// Says what was found in flash, at length only if something there is damaged.
    fn announce_mount(&self, output: &Output) {
        let report = self.node.node().mount_report();
        let object = json!({
            "event": "mounted",
            "values": report.keys,
            "damaged_records": report.damaged_records,
            "damaged_headers": report.damaged_headers,
            "changes_lost": report.changes_lost,
            "batch_broken_off": report.batch_broken_off,
        });
        let damaged = report.damaged_records + report.damaged_headers;
        if damaged > 0 || output.is_json() {
            let values = report.keys;
            output.line(
                &format!(
                    "flash: {} intact; passed over {} (a write that was broken off before it was acknowledged, or \
                     rotten bits)",
                    counted(values, "value"),
                    counted(damaged, "damaged place")
                ),
                &object,
            );
        }
        if report.changes_lost > 0 && !output.is_json() {
            let lost = report.changes_lost;
            output.line(
                &format!("flash: acknowledged changes that can't be read any more: {lost}"),
                &serde_json::Value::Null,
            );
        }
    }

    fn announce(&self, output: &Output) {
        let address = self.link.address().to_string();
        let (name, key) = (self.node.node().name(), self.node.node().device_machine());
        output.line(
            &format!("device {name} {LISTENS_ON} {address}, key {key}"),
            &json!({ "event": "listening", "device": name.as_str(), "address": address, "key": key.to_string() }),
        );
    }
}

/// Says once that a record is given up.
fn tell_of_failure(tape: &Tape, output: &Output) {
    if let Some(why) = tape.failure() {
        output.line(
            &format!("the record is given up, and the device runs on: {why}"),
            &json!({ "event": "record-failed", "reason": why }),
        );
    }
}

/// The configuration of a device as its record has it.
///
/// # Errors
/// The record is of a device that this build can't be.
pub fn recorded_config(settings: &[u8], registry: Registry) -> anyhow::Result<Config> {
    serde_json::from_slice::<Start>(settings)?.config(registry)
}

/// Shows what a node has to say.
pub fn show(notice: &Notice, symbols: &MachineSymbols, output: &Output) {
    match notice {
        Notice::Log(line) => output.log(line, &symbols.trace_in(line)),
        Notice::Registered => {
            output.line(LISTED, &json!({ "event": "registered" }))
        }
        Notice::Refused(refusal) => output.line(
            &format!("the hub refuses to list this device: {refusal}"),
            &json!({ "event": "refused", "reason": refusal.to_string() }),
        ),
        Notice::FirmwareConfirmed { number } => output.line(
            &format!("firmware {number} is well, and stays"),
            &json!({ "event": "firmware-confirmed", "number": number }),
        ),
        Notice::Mandated { machine, version } => output.line(
            &format!("{machine} has {version} now, by a rollout"),
            &json!({ "event": "mandated", "machine": machine.as_str(), "version": version }),
        ),
        Notice::StepRefused { machine, reason } => output.line(
            &format!("the hub's step for {machine} isn't taken: {reason}"),
            &json!({ "event": "step-refused", "machine": machine.as_str(), "reason": reason }),
        ),
        Notice::InMesh { node } => output.line(
            &format!("{IN_MESH} {node}: a member passed the owner's invitation on"),
            &json!({ "event": "mesh-joined", "node": node.to_string() }),
        ),
        Notice::HubSilent => output.line(
            "the hub doesn't answer; trying on",
            &json!({ "event": "hub-silent" }),
        ),
        Notice::HubKeyDiffers { key } => output.line(
            &format!(
                "the hub's address shows the key {key}, which isn't the hub's that this device knows; \
                 if it is right, type: tenure trust-hub {key}"
            ),
            &json!({ "event": "hub-key-differs", "key": key.to_string() }),
        ),
    }
}

/// Opens the flash of a device, or makes it, and splits it in three.
///
/// # Errors
/// It is in use by another process, damaged, or can't be made.
pub fn open_flash(folder: &Path, durability: Durability) -> anyhow::Result<Parts<FileFlash>> {
    let bytes = (STORE_SECTORS + CODE_SECTORS + STAGING_SECTORS) * SECTOR_BYTES;
    let flash = FileFlash::open_or_create(&folder.join(FLASH), bytes, durability)?;
    let [store, code, staging] = flash.split([STORE_SECTORS, CODE_SECTORS, STAGING_SECTORS])?;
    Ok(Parts { store, code, staging })
}

fn enrol(
    node: &mut Recorded<FileFlash>,
    moment: &mut Moment<'_>,
    keys: &OwnerKeys,
    home: &Home,
    device: Name,
) -> anyhow::Result<()> {
    // A device that is made anew comes after the one that it replaces.
    let number = home.next_number(Known::of(home)?.enrolment(&device));
    let enrolment = Enrolment { device, device_key: node.node().device_key(), number };
    let signature = tenure_directory::enrol(&keys.signing_key, &enrolment);
    Ok(node.as_owner(moment).enrol(Enrol { enrolment, signature })?)
}

fn parse_policy(text: &str) -> Result<PolicyKind, String> {
    text.parse().map_err(|error: UnknownPolicy| error.to_string())
}

#[cfg(test)]
mod tests;
