//! `tenure device`: a device as a process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::{Deserialize, Serialize};
use tenure_board_linux::{
    Durability, FileFlash, LinuxClock, LinuxEntropy, SECTOR_BYTES, UdpLink, Watchdog,
};
use tenure_hal::{Clock as _, Instant, Link as _, Peripheral, ResetCause};
use tenure_kernel::Breadcrumb;
use tenure_kernel::policy::{PolicyKind, UnknownPolicy};
use tenure_node::{
    Bedtime, BootError, Config, Door as _, Hub, Input, Moment, Node, Notice, Owner, Parts,
    SleepPolicy, Wake,
};
use tenure_wire::control::{Client as _, Enrol};
use tenure_wire::directory::Enrolment;
use tenure_wire::{Address, Label, LabelError, Name, PublicKey, VerifyingKey};

use crate::client::OwnerKeys;
use crate::clock::now_in_milliseconds;
use crate::deep_sleep;
use crate::home::Home;
use crate::lease::parse_span;
use crate::mesh;
use crate::network::{DATAGRAMS_PER_TURN, DEVICE_PORT, HUB_PORT, address_of, split_key};
use crate::output::Output;
use crate::stop::Stop;
use crate::symbols::MachineSymbols;

/// The file that says whose device a data folder is, and what it is called.
const SETTINGS: &str = "device.toml";
/// The file that is the device's flash.
const FLASH: &str = "flash.bin";
/// How the flash is split: 2 MiB for the store, 4 MiB for images, 2 MiB for an arriving package.
const STORE_SECTORS: u32 = 512;
/// The store of a device, in bytes: the largest of all boards.
pub const STORE_BYTES: u64 = STORE_SECTORS as u64 * SECTOR_BYTES as u64;
const CODE_SECTORS: u32 = 1024;
const STAGING_SECTORS: u32 = 512;
/// What the watchdog leaves when it bites, and how long the loop may stand still.
const WATCHDOG: &str = "watchdog.bin";
const WATCHDOG_PERIOD: Duration = Duration::from_secs(60);
/// The longest that the loop sleeps. Ctrl-C ends the wait at once, but for one that comes between a look
/// at it and the wait.
const NAP: Duration = Duration::from_secs(2);

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
    /// Where to listen.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7370")]
    listen: String,
    /// The directory to register with: HOST:PORT, or HOST:PORT#KEY to believe that hub alone.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
    /// A label by which rollouts select the device, as site=harbour; by default as the last time.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,
    /// What the device is called; by default as its folder, when it is made.
    #[arg(long)]
    name: Option<Name>,
    /// The owner's keys as `tenure key` prints them, if the owner is somebody else.
    #[arg(long, value_name = "SIGNING-KEY/MACHINE-KEY", value_parser = parse_owner)]
    owner: Option<Owner>,
    /// Who runs next: round-robin, preemptive, weighted-fair or earliest-deadline; by default as the
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
    /// What acknowledged writes survive.
    #[arg(long, value_enum, default_value_t = Survives::PowerLoss)]
    survives: Survives,
    /// A file that describes simulated peripherals: thermometers, buttons, lamps, cameras.
    #[arg(long, value_name = "FILE")]
    peripherals: Option<PathBuf>,
    #[command(flatten)]
    sleep: deep_sleep::Sleeping,
    #[command(flatten)]
    meshing: mesh::Meshing,
    /// Carry the mesh's datagrams, others' too, on a thread of their own, or no more; by default as the last
    /// time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    mesh_own_thread: Option<bool>,
    /// Take part in experiments with the owner's mesh (`tenure experiment`), or no more; by default as the
    /// last time, at first not.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    experiments: Option<bool>,
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

/// What a data folder remembers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    name: String,
    owner_signing_key: String,
    owner_machine_key: String,
    #[serde(default = "default_policy")]
    policy: String,
    #[serde(default)]
    memory_bytes: Option<usize>,
    #[serde(default)]
    swap_bytes: Option<u32>,
    #[serde(default)]
    receipts_every_s: Option<u64>,
    #[serde(default)]
    experiments: bool,
    #[serde(default)]
    mesh_own_thread: bool,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default, skip_serializing_if = "mesh::Meshing::is_empty")]
    mesh: mesh::Meshing,
}

fn default_policy() -> String {
    PolicyKind::default().to_string()
}

/// Runs `tenure device` until it is told to stop.
///
/// # Errors
/// The folder isn't a device's, the address is taken, or the flash fails.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let home = Home::from_environment()?;
    let settings = settings(&arguments.data, arguments, &home)?;
    let mut config = Config::new(settings.name.parse()?, owner_in(&settings)?);
    config.kernel = roomy_kernel();
    config.kernel.policy = settings.policy.parse()?;
    config.kernel.swap_bytes_max = settings.swap_bytes.unwrap_or(0);
    if let Some(bytes) = settings.memory_bytes {
        config.kernel.memory_bytes_max = bytes;
    }
    if let Some(seconds) = settings.receipts_every_s {
        config.receipt_period = Duration::from_secs(seconds);
    }
    config.rpc = tenure_rpc::Config::large();
    config.experiments = settings.experiments;
    let labels = settings.labels.iter().map(|label| label.parse());
    config.labels = labels.collect::<Result<_, LabelError>>().context("the device's labels")?;
    config.log_lines_max = 4096;
    config.sleep = arguments.sleep.policy();
    config.hub = arguments.hub.as_deref().map(hub_of).transpose()?;
    if let Some(retained) = Watchdog::take_bite(&arguments.data.join(WATCHDOG))? {
        config.reset_cause = ResetCause::Watchdog;
        config.breadcrumb = Breadcrumb::from_bytes(&retained);
    }
    let listen = address_of(&arguments.listen, DEVICE_PORT)?;
    let parts = open_flash(&arguments.data, arguments.survives.into())?;
    let link = UdpLink::bind(listen)?;
    let started = Running::start(config.clone(), parts, link, &home, &arguments.data);
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
    if let Some(mut link) = settings.mesh.open()? {
        link.use_thread(settings.mesh_own_thread);
        device.enter_mesh(link, &home, output)?;
    }
    if let Some(path) = &arguments.peripherals {
        device.attach(crate::peripherals::load(path)?)?;
    }
    device.announce_mount(output);
    device.announce(output);
    let watchdog = Watchdog::set(&arguments.data.join(WATCHDOG), WATCHDOG_PERIOD);
    device.node().use_retained(Box::new(watchdog.retained()));
    while !stop.is_requested() {
        watchdog.feed();
        let wake = device.turn(output)?;
        match device.bedtime() {
            Some(bedtime) => device = device.sleep(bedtime, &config, &stop, output)?,
            None => device.rest(wake)?,
        }
    }
    device.with_moment(|node, moment| node.take(moment, Input::Checkpoint));
    output.line("stopped", &serde_json::json!({ "event": "stopped" }));
    Ok(())
}

/// The hub that `text` names.
fn hub_of(text: &str) -> anyhow::Result<Hub> {
    let (address, key) = split_key(text)?;
    Ok(Hub { address: address_of(address, HUB_PORT)?.into(), key })
}

/// The kernel's limits on a computer with room to spare.
pub fn roomy_kernel() -> tenure_kernel::Config {
    tenure_kernel::Config {
        machines_max: 32,
        memory_bytes_max: 64 * 1024 * 1024,
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
    node: Node<FileFlash>,
    link: UdpLink,
    clock: LinuxClock,
    entropy: LinuxEntropy,
    symbols: MachineSymbols,
    datagram: Vec<u8>,
    mesh: Option<mesh::MeshLink>,
    /// Where the device keeps its files.
    folder: PathBuf,
    /// The first machine that has failed, and the first that has logged an error.
    failed: Option<Name>,
    complained: Option<Name>,
}

/// Lends a node the compiler for machines that ask for native speed, if the system has one.
#[cfg_attr(not(feature = "native-speed"), expect(unused_variables))]
fn lend_engine(node: &mut Node<FileFlash>, folder: &Path) {
    #[cfg(feature = "native-speed")]
    if let Some(engine) = tenure_board_linux::NativeSpeed::new(Some(folder)) {
        node.use_engine(Box::new(engine));
    }
}

impl Running {
    /// Boots a node that keeps its files in `folder`, and enrols it if the owner's key is in `home` and
    /// it isn't yet.
    ///
    /// # Errors
    /// The node's.
    pub fn start(
        config: Config,
        parts: Parts<FileFlash>,
        link: UdpLink,
        home: &Home,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let (clock, mut entropy) = (LinuxClock::start(), LinuxEntropy);
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let name = config.name.clone();
        let mut node = Node::boot(config, parts, &mut moment)?;
        if !node.is_enrolled() {
            let keys = OwnerKeys::of(home)?;
            if keys.owner() == node.owner() {
                enrol(&mut node, &mut moment, &keys, name)?;
            }
        }
        lend_engine(&mut node, folder);
        let symbols = MachineSymbols::default();
        let datagram = vec![0; 65_536];
        let folder = folder.to_owned();
        let (mesh, failed, complained) = (None, None, None);
        Ok(Self { node, link, clock, entropy, symbols, datagram, mesh, folder, failed, complained })
    }

    /// The node itself.
    pub fn node(&mut self) -> &mut Node<FileFlash> {
        &mut self.node
    }

    /// Takes a link into the mesh into use, and joins the owner's mesh if the owner's keys are in
    /// `home` and the device hasn't joined one.
    fn enter_mesh(
        &mut self,
        link: mesh::MeshLink,
        home: &Home,
        output: &Output,
    ) -> anyhow::Result<()> {
        let keys = OwnerKeys::of(home)?;
        if self.node.mesh_stack().is_none() && self.node.owner() == keys.owner() {
            self.with_moment(|node, moment| mesh::join(node, moment, home, &keys.signing_key))?;
        }
        let joined = self.node.mesh_stack().map(|stack| stack.node().to_string());
        if joined.is_none() {
            self.with_moment(|node, moment| node.take(moment, Input::Knock));
        }
        let address = link.address();
        let text = match &joined {
            Some(node) => format!("in the mesh as {node}, at {address}"),
            None => format!(
                "at {address} asks to be let into the mesh: where its owner's keys are, \
                 `tenure invite` does that, over UDP or via a member that hears this device"
            ),
        };
        let object = serde_json::json!({ "event": "mesh", "node": joined, "address": address });
        output.line(&text, &object);
        self.mesh = Some(link);
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
        stop: &Stop,
        output: &Output,
    ) -> anyhow::Result<Self> {
        if let Err(error) = self.with_moment(|node, moment| node.fall_asleep(moment)) {
            let object = serde_json::json!({ "event": "sleepless", "reason": error.to_string() });
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
            datagram,
            mesh,
            folder,
            failed,
            complained,
        } = self;
        let peripherals = node.detach_all();
        let parts = node.into_parts();
        let hears = matches!(config.sleep, SleepPolicy::WhenIdle { .. });
        deep_sleep::wait(until, hears, (&link, &clock), stop)?;
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let mut node = Node::boot(config.clone(), parts, &mut moment)?;
        lend_engine(&mut node, &folder);
        deep_sleep::announce_wake(node.slept(), output);
        let mesh = mesh.map(mesh::MeshLink::awake);
        let mut awake = Self {
            node,
            link,
            clock,
            entropy,
            symbols,
            datagram,
            mesh,
            folder,
            failed,
            complained,
        };
        awake.attach(peripherals)?;
        Ok(awake)
    }

    /// Takes peripherals into use.
    ///
    /// # Errors
    /// One of them has a name that is none, or that another has, or they are too many.
    pub fn attach(&mut self, peripherals: Vec<Box<dyn Peripheral + Send>>) -> anyhow::Result<()> {
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
        act: impl FnOnce(&mut Node<FileFlash>, &mut Moment<'_>) -> T,
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
        }
        let mut wake = self.with_moment(|node, moment| node.poll(moment));
        if let Some(mesh) = &mut self.mesh
            && mesh.exchange(self.clock, &mut self.entropy, &mut self.node)?
        {
            wake = Wake::Now;
        }
        self.transmit()?;
        while let Some(notice) = self.node.notice() {
            if let Notice::Log(line) = &notice {
                match line.level.as_str() {
                    "fault" => _ = self.failed.get_or_insert_with(|| line.machine.clone()),
                    "error" => _ = self.complained.get_or_insert_with(|| line.machine.clone()),
                    _ => {}
                }
            }
            show(&notice, &self.symbols, output);
        }
        Ok(wake)
    }

    /// Waits until there is more to do, but not for longer than a nap.
    ///
    /// # Errors
    /// The link is broken.
    pub fn rest(&self, wake: Wake) -> anyhow::Result<()> {
        self.rest_at_most(wake, NAP)
    }

    /// As [`Self::rest`], for `longest` at most.
    ///
    /// # Errors
    /// The link is broken.
    pub fn rest_at_most(&self, wake: Wake, longest: Duration) -> anyhow::Result<()> {
        let span = match wake {
            Wake::Now => return Ok(()),
            Wake::At(at) => at.since(self.clock.now()).min(longest),
            Wake::Never => longest,
        };
        match &self.mesh {
            Some(mesh) => mesh.wait(&self.link, span)?,
            None => drop(self.link.wait(span)?),
        }
        Ok(())
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
        let report = self.node.mount_report();
        let object = serde_json::json!({
            "event": "mounted",
            "values": report.keys,
            "damaged_records": report.damaged_records,
            "damaged_headers": report.damaged_headers,
            "batch_broken_off": report.batch_broken_off,
        });
        let damaged = report.damaged_records + report.damaged_headers;
        if damaged > 0 || output.is_json() {
            let values = report.keys;
            output.line(
                &format!(
                    "flash: {values} values are intact; {damaged} damaged places were passed over \
                     (a write that was broken off before it was acknowledged, or rotten bits)"
                ),
                &object,
            );
        }
    }

    fn announce(&self, output: &Output) {
        let address = self.link.address().to_string();
        let (name, key) = (self.node.name(), self.node.device_machine());
        output.line(
            &format!("device {name} listens on {address}, key {key}"),
            &serde_json::json!({ "event": "listening", "device": name.as_str(), "address": address, "key": key.to_string() }),
        );
    }
}

/// Shows what a node has to say.
pub fn show(notice: &Notice, symbols: &MachineSymbols, output: &Output) {
    match notice {
        Notice::Log(line) => output.log(line, &symbols.trace_in(line)),
        Notice::Registered => {
            output.line("the hub lists this device", &serde_json::json!({ "event": "registered" }))
        }
        Notice::Refused(refusal) => output.line(
            &format!("the hub refuses to list this device: {refusal}"),
            &serde_json::json!({ "event": "refused", "reason": refusal.to_string() }),
        ),
        Notice::FirmwareConfirmed { number } => output.line(
            &format!("firmware {number} is well, and stays"),
            &serde_json::json!({ "event": "firmware-confirmed", "number": number }),
        ),
        Notice::Mandated { machine, version } => output.line(
            &format!("{machine} has {version} now, by a rollout"),
            &serde_json::json!({ "event": "mandated", "machine": machine.as_str(), "version": version }),
        ),
        Notice::StepRefused { machine, reason } => output.line(
            &format!("the hub's step for {machine} isn't taken: {reason}"),
            &serde_json::json!({ "event": "step-refused", "machine": machine.as_str(), "reason": reason }),
        ),
        Notice::InMesh { node } => output.line(
            &format!("in the mesh as {node}: a member passed the owner's invitation on"),
            &serde_json::json!({ "event": "mesh-joined", "node": node.to_string() }),
        ),
        Notice::HubSilent => output.line(
            "the hub doesn't answer; trying on",
            &serde_json::json!({ "event": "hub-silent" }),
        ),
        Notice::HubKeyDiffers { key } => output.line(
            &format!(
                "the hub's address shows the key {key}, which isn't the hub's that this device knows; \
                 if it is right, type: tenure trust-hub {key}"
            ),
            &serde_json::json!({ "event": "hub-key-differs", "key": key.to_string() }),
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
    node: &mut Node<FileFlash>,
    moment: &mut Moment<'_>,
    keys: &OwnerKeys,
    device: Name,
) -> anyhow::Result<()> {
    // By the millisecond, so that a device that is made anew at once comes after the one it replaces.
    let number = now_in_milliseconds();
    let enrolment = Enrolment { device, device_key: node.device_key(), number };
    let signature = tenure_directory::enrol(&keys.signing_key, &enrolment);
    Ok(node.as_owner(moment).enrol(Enrol { enrolment, signature })?)
}

/// The settings of the folder, made or changed as the arguments say.
fn settings(folder: &Path, arguments: &Arguments, home: &Home) -> anyhow::Result<Settings> {
    let path = folder.join(SETTINGS);
    let known = read_settings(folder, &path)?;
    let name = match (&arguments.name, &known) {
        (Some(name), _) => name.to_string(),
        (None, Some(known)) => known.name.clone(),
        (None, None) => name_of_folder(folder)?.to_string(),
    };
    let owner = match (arguments.owner, &known) {
        (Some(owner), Some(known)) if owner_in(known)? != owner => bail!(
            "the device in {} belongs to another owner; leave --owner out, or name another folder",
            folder.display()
        ),
        (Some(owner), _) => owner,
        (None, Some(known)) => owner_in(known)?,
        (None, None) => OwnerKeys::of(home)?.owner(),
    };
    let settings = Settings {
        name,
        owner_signing_key: owner.verifying_key.to_string(),
        owner_machine_key: owner.machine.to_string(),
        policy: match (arguments.policy, &known) {
            (Some(policy), _) => policy.to_string(),
            (None, Some(known)) => known.policy.clone(),
            (None, None) => default_policy(),
        },
        mesh: match &known {
            Some(known) if arguments.meshing.is_empty() => known.mesh.clone(),
            _ => arguments.meshing.clone(),
        },
        experiments: arguments
            .experiments
            .unwrap_or_else(|| known.as_ref().is_some_and(|known| known.experiments)),
        mesh_own_thread: arguments
            .mesh_own_thread
            .unwrap_or_else(|| known.as_ref().is_some_and(|known| known.mesh_own_thread)),
        labels: match &known {
            Some(known) if arguments.labels.is_empty() => known.labels.clone(),
            _ => arguments.labels.iter().map(Label::to_string).collect(),
        },
        memory_bytes: arguments.memory_bytes.or(known.as_ref().and_then(|one| one.memory_bytes)),
        swap_bytes: arguments.swap_bytes.or(known.as_ref().and_then(|one| one.swap_bytes)),
        receipts_every_s: arguments
            .receipts_every
            .map(|span| span.as_secs())
            .or(known.as_ref().and_then(|one| one.receipts_every_s)),
    };
    let text = toml::to_string(&settings)?;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("can't make the folder {}", folder.display()))?;
    if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(settings)
}

/// The settings in the folder, if it is a device's; an error if it holds something else.
fn read_settings(folder: &Path, path: &Path) -> anyhow::Result<Option<Settings>> {
    match std::fs::read_to_string(path) {
        Ok(text) => checked_settings(&text)
            .map(Some)
            .with_context(|| format!("{} can't be used; mend it", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let holds_something =
                std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
            if holds_something {
                bail!(
                    "{} holds other files and is no device's; name a new or empty folder",
                    folder.display()
                );
            }
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// The settings in `text`, if each is what it should be.
fn checked_settings(text: &str) -> anyhow::Result<Settings> {
    let settings: Settings = toml::from_str(text)?;
    let Settings { name, policy, .. } = &settings;
    name.parse::<Name>().with_context(|| format!("name = `{name}`"))?;
    policy.parse::<PolicyKind>().with_context(|| format!("policy = `{policy}`"))?;
    owner_in(&settings).context("the owner's keys")?;
    Ok(settings)
}

fn name_of_folder(folder: &Path) -> anyhow::Result<Name> {
    let last = folder.file_name().map(|name| name.to_string_lossy().to_lowercase());
    last.and_then(|name| name.parse().ok()).with_context(|| {
        format!("`{}` is no name for a device; give one with --name", folder.display())
    })
}

fn owner_in(settings: &Settings) -> anyhow::Result<Owner> {
    let text = format!("{}/{}", settings.owner_signing_key, settings.owner_machine_key);
    parse_owner(&text).map_err(anyhow::Error::msg)
}

fn parse_policy(text: &str) -> Result<PolicyKind, String> {
    text.parse().map_err(|error: UnknownPolicy| error.to_string())
}

/// An owner's keys, as `tenure key --own` prints them.
///
/// # Errors
/// The text is no two keys with a slash between them.
pub fn parse_owner(text: &str) -> Result<Owner, String> {
    let (signing, machine) =
        text.split_once('/').ok_or("write both keys with a slash between them")?;
    let verifying_key: VerifyingKey =
        signing.parse().map_err(|error| format!("the signing key: {error}"))?;
    let machine: PublicKey =
        machine.parse().map_err(|error| format!("the machine key: {error}"))?;
    Ok(Owner { verifying_key, machine })
}
