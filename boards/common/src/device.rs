//! The main loop of a board: what arrives, one poll of the node, what leaves.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::time::Duration;

use smoltcp::phy;
use tenure_boot::LogError;
use tenure_hal::ethernet::MacAddress;
use tenure_hal::{
    Clock, DATAGRAM_BYTES_MAX, Entropy, EntropyError, Flash, FlashError, Instant, Link as _, Power,
    Retained,
};
use tenure_kernel::Breadcrumb;
use tenure_mesh::{Carrier, Reach};
use tenure_node::{
    Bedtime, BootError, Config, Door, FirmwareParts, HeapUse, Input, Moment, Node, Notice, Wake,
};
use tenure_wire::Address;
use tenure_wire::console::{IN_MESH, LISTED, LISTENS_ON};
use tenure_wire::printable::printable;

use crate::layout::Parts;
use crate::settings::{Settings, SettingsError};
use crate::tap::{FrameLink, TappedCard, tap};
use crate::udp_link::UdpLink;

/// The most datagrams that are taken in before machines have their turn again.
const DATAGRAMS_PER_TURN: usize = 16;

/// The most frames of the mesh.
const FRAMES_PER_TURN: usize = 8;
/// The most neighbours in the mesh whose addresses are remembered.
const NEIGHBOURS_MAX: usize = 16;

/// The parts that a board hands to its main loop.
pub struct Board<F, D, C, E, W, P> {
    /// The board's name, as it stands in the headers of its images, and its watchdog's period.
    pub model: (&'static str, Duration),
    /// The flash, divided.
    pub flash: Parts<F>,
    /// The network card, and its hardware address.
    pub card: (D, [u8; 6]),
    /// The clock.
    pub clock: C,
    /// The source of randomness.
    pub entropy: E,
    /// Where lines for people go.
    pub console: W,
    /// Reset controller, watchdog and deep sleep.
    pub power: P,
    /// The memory that `power` calls retained, for the kernel to write to.
    pub retained: Box<dyn Retained>,
    /// Asks how much of the heap is used.
    pub heap: fn() -> HeapUse,
}

/// A node on a board.
pub struct Device<F, D: phy::Device, C, E, W, P> {
    node: Node<tenure_hal::Partition<F>>,
    link: UdpLink<TappedCard<D>>,
    mesh: Carrier<FrameLink>,
    clock: C,
    entropy: E,
    console: W,
    power: P,
    /// The longest that the loop stands still: the watchdog is to be fed.
    nap_max: Duration,
    datagram: Vec<u8>,
}

impl<F, D, C, E, W, P> Device<F, D, C, E, W, P>
where
    F: Flash,
    D: phy::Device,
    C: Clock,
    E: Entropy,
    W: Write,
    P: Power,
{
    /// Reads the settings and boots the node; `limits` turns the settings' configuration into the
    /// board's, as [`small_class`] does.
    ///
    /// # Errors
    /// As [`StartError`] says.
    // Inlined, its temporaries would lie on the stack for good.
    #[inline(never)]
    pub fn start(
        board: Board<F, D, C, E, W, P>,
        limits: impl FnOnce(&mut Config),
    ) -> Result<Self, StartError> {
        let Board { mut flash, card: (card, hardware), clock, mut entropy, console, .. } = board;
        let (mut power, retained, model) = (board.power, board.retained, board.model);
        let settings = Settings::read(&mut flash.settings)?;
        let mut config = Config::new(settings.name.clone(), settings.owner);
        config.hub = settings.hub.clone();
        config.heap = Some(board.heap);
        config.sleep = settings.sleep;
        config.reset_cause = power.reset_cause();
        if config.reset_cause.keeps_retained_memory() {
            config.breadcrumb = Breadcrumb::from_bytes(power.retained());
        }
        limits(&mut config);
        let mut seed = [0; 8];
        entropy.fill(&mut seed).map_err(StartError::Entropy)?;
        let address = MacAddress(hardware);
        let (card, frames) = tap(card, address);
        let mesh = Carrier::new(frames, Reach::ByOne(MacAddress::BROADCAST), NEIGHBOURS_MAX);
        let link = UdpLink::new(
            card,
            hardware,
            settings.address,
            settings.gateway,
            settings.port,
            u64::from_le_bytes(seed),
        );
        let datagram = vec![0; DATAGRAM_BYTES_MAX];
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let mut node = Node::boot(config, flash.node, &mut moment).map_err(StartError::Boot)?;
        node.use_retained(retained);
        node.take(&mut moment, Input::Knock);
        // A board that is started by its chip's own loader has none of ours, nor slots.
        if flash.slots[0].geometry().sector_count > 0 {
            node.use_firmware(FirmwareParts {
                board: model.0,
                trial: model.1,
                linked_for: None,
                log: flash.boot_log,
                slots: flash.slots,
                maker: settings.maker,
            })
            .map_err(StartError::Loader)?;
        }
        let nap_max = model.1 / 4;
        let mut device =
            Self { node, link, mesh, clock, entropy, console, power, nap_max, datagram };
        device.announce(&settings);
        Ok(device)
    }

    /// One turn: takes in what has arrived, polls the node once, sends and shows what it gives; says
    /// how long the board may sleep unless something arrives.
    pub fn turn(&mut self) -> Duration {
        // A firmware on trial has one period of the watchdog to show that it is well.
        if !self.node.is_on_trial() {
            self.power.feed_watchdog();
        }
        self.link.poll(self.clock.now());
        for _ in 0..DATAGRAMS_PER_TURN {
            // A card never breaks for good: what it can't do now it is asked again.
            let Ok(Some((length, from))) = self.link.receive(&mut self.datagram) else { break };
            let mut moment = moment(&self.clock, &mut self.entropy);
            self.node.receive(&mut moment, from.into(), &self.datagram[..length]);
        }
        let mut now = moment(&self.clock, &mut self.entropy);
        // As above: the link is two queues.
        let _ = self.mesh.receive(now.now, FRAMES_PER_TURN, |frame, signal_dbm| {
            self.node.receive_frame(&mut now, frame, signal_dbm)
        });
        let wake = self.node.poll(&mut moment(&self.clock, &mut self.entropy));
        self.transmit();
        while let Some(notice) = self.node.notice() {
            show(&mut self.console, &notice);
        }
        let now = self.clock.now();
        if self.node.wants_restart() {
            self.node.take(&mut moment(&self.clock, &mut self.entropy), Input::Checkpoint);
            // As in `announce`.
            let _ = writeln!(self.console, "starting the new firmware");
            self.power.reset();
        }
        if let Some(bedtime) = self.node.bedtime() {
            self.sleep(bedtime);
        }
        let delay = self.link.poll_delay(now);
        let node = match wake {
            Wake::Now => Duration::ZERO,
            Wake::At(at) => at.since(now),
            Wake::Never => self.nap_max,
        };
        node.min(delay.unwrap_or(self.nap_max)).min(self.nap_max)
    }

    /// Turns for good. After each turn `idle` sleeps as long as it is told, or until an interrupt, and
    /// gives the card its due.
    pub fn run(mut self, mut idle: impl FnMut(Duration, &mut D)) -> ! {
        loop {
            let nap = self.turn();
            idle(nap, self.link.device().card());
        }
    }

    /// The node.
    pub fn node(&mut self) -> &mut Node<tenure_hal::Partition<F>> {
        &mut self.node
    }

    /// The time since boot.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Sends all that the node has to send.
    fn transmit(&mut self) {
        while let Some((to, datagram)) = self.node.transmit() {
            if let Address::Udp(to) = to {
                // A datagram that isn't sent is one that is lost: it will be sent again.
                if self.link.send(&to, &datagram).is_err() {
                    self.link.poll(self.clock.now());
                    let _ = self.link.send(&to, &datagram);
                }
            }
        }
        while let Some((to, frame)) = self.node.transmit_frame() {
            // As above.
            let _ = self.mesh.send(to, &frame);
        }
        self.link.poll_with_frames(self.clock.now());
    }

    /// Turns the device off until its time; one that can't fall asleep stays awake and says why.
    fn sleep(&mut self, Bedtime { until }: Bedtime) {
        if until.is_none() && !self.power.wakes_by_event() {
            return;
        }
        let asleep = self.node.fall_asleep(&mut moment(&self.clock, &mut self.entropy));
        let span = until.map(|until| until.since(self.clock.now()).as_millis());
        // As in `announce`.
        let _ = match (&asleep, span) {
            (Err(error), _) => writeln!(self.console, "can't sleep: {error}"),
            (Ok(()), Some(span)) => {
                writeln!(self.console, "asleep for {}.{:03} s", span / 1000, span % 1000)
            }
            (Ok(()), None) => writeln!(self.console, "asleep until it is woken"),
        };
        if asleep.is_ok() {
            self.transmit();
            self.power.deep_sleep(until);
        }
    }

    fn announce(&mut self, settings: &Settings) {
        let (address, port) = (settings.address.0, settings.port);
        let (name, key) = (self.node.name(), self.node.device_machine());
        // A console that takes nothing has nobody who reads it.
        let _ = match self.node.slept().map(|slept| slept.as_millis()) {
            Some(slept) => {
                writeln!(self.console, "awake after {}.{:03} s", slept / 1000, slept % 1000)
            }
            None => writeln!(self.console, "started by {}", self.power.reset_cause()),
        };
        let _ = writeln!(self.console, "device {name} {LISTENS_ON} {address}:{port}, key {key}");
        if !self.node.is_enrolled() {
            let _ = writeln!(self.console, "not enrolled; its owner types: tenure enrol HOST:PORT");
        }
    }
}

pub(crate) fn moment<'a>(clock: &impl Clock, entropy: &'a mut dyn Entropy) -> Moment<'a> {
    Moment { now: clock.now(), unix_time: clock.unix_time(), entropy }
}

pub(crate) fn show(console: &mut impl Write, notice: &Notice) {
    // As above.
    let _ = match notice {
        Notice::Log(line) => {
            let message = printable(&line.message);
            writeln!(console, "[{}] {}: {message}", line.machine, printable(&line.level))
        }
        Notice::Registered => writeln!(console, "{LISTED}"),
        Notice::Refused { refusal, .. } => {
            writeln!(console, "the hub refuses to list this device: {refusal}")
        }
        Notice::FirmwareConfirmed { number } => {
            writeln!(console, "firmware {number} is well, and stays")
        }
        Notice::Mandated { machine, version } => {
            writeln!(console, "{machine} has {version} now, by a rollout")
        }
        Notice::StepRefused { machine, reason } => {
            writeln!(console, "the hub's step for {machine} isn't taken: {reason}")
        }
        Notice::InMesh { node } => writeln!(console, "{IN_MESH} {node}"),
        Notice::HubSilent => writeln!(console, "the hub doesn't answer; trying on"),
        Notice::HubKeyDiffers { key } => writeln!(
            console,
            "the hub's address shows the key {key}, which isn't the hub's that this device knows; if \
             it is right, type: tenure trust-hub {key}"
        ),
    };
}

/// The limits of a device with 400 KB of RAM: for the memory and stacks of all machines, and what a
/// network of small devices needs for sessions and calls.
pub fn small_class(config: &mut Config) {
    config.kernel.memory_bytes_max = 176 * 1024;
    config.kernel.parameter_bytes_max = 32 * 1024;
    config.kernel.effects_max = 32;
    config.log_lines_max = 48;
    config.peers_max = 24;
    config.records_max = 12;
}

/// Why a device doesn't start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The machine lacks this; the emulator's argument for it stands in brackets.
    Absent(&'static str),
    /// The settings are missing or wrong.
    Settings(SettingsError),
    /// The flash can't be read.
    Flash(FlashError),
    /// The loader's log can't be read.
    Loader(LogError),
    /// There is no randomness.
    Entropy(EntropyError),
    /// The node doesn't boot.
    Boot(BootError),
    /// A leaf's service of that name can't be offered: its name or number is taken or none, or there
    /// are too many.
    Service(&'static str),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(what) => write!(f, "there is no {what}"),
            Self::Settings(error) => error.fmt(f),
            Self::Flash(error) => error.fmt(f),
            Self::Loader(error) => error.fmt(f),
            Self::Entropy(error) => error.fmt(f),
            Self::Boot(error) => error.fmt(f),
            Self::Service(name) => write!(f, "the service `{name}` can't be offered"),
        }
    }
}

impl core::error::Error for StartError {}

impl From<FlashError> for StartError {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}
