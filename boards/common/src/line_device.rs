//! The main loop of a device on serial lines alone: what comes over them, one poll of the node, what leaves.
//!
//! A line carries frames of the mesh, datagrams of an owner's computer, and lines of text for people, all between
//! zeros as [`tenure_mesh::SerialLine`] has it. The mesh's seal tells its frames from the rest.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;

use tenure_hal::{
    Clock, DATAGRAM_BYTES_MAX, Entropy, Flash, Instant, Link, LinkError, Power, Retained,
};
use tenure_kernel::Breadcrumb;
use tenure_mesh::{Carrier, Port, Reach, SerialLine};
use tenure_node::{Bedtime, Config, Door, FirmwareParts, HeapUse, Input, Node, Wake};
use tenure_wire::Address;

use crate::device::{StartError, moment, show};
use crate::layout::Parts;
use crate::settings::LineSettings;

#[cfg(test)]
mod tests;

/// The longest frame, as the mesh's.
const FRAME_BYTES_MAX: usize = DATAGRAM_BYTES_MAX;
/// The most frames that wait for a line.
const FRAMES_WAITING_MAX: usize = 4;
/// The most frames that are taken from each line before machines have their turn again.
const FRAMES_PER_TURN: usize = 8;
/// The most neighbours in the mesh of which it is remembered at which line they are.
const NEIGHBOURS_MAX: usize = 8;

/// The parts that a board hands to its main loop.
pub struct LineBoard<F, P, C, E, W, S> {
    /// The board's name in the headers of its images, its watchdog's period, and the address that the
    /// image in each slot is linked for.
    pub model: (&'static str, Duration, [u32; 2]),
    /// The flash, divided.
    pub flash: Parts<F>,
    /// The lines, by number.
    pub lines: Vec<P>,
    /// How many of the lines, from the first on, lead to other devices: those are greeted.
    pub greeted: usize,
    /// The clock.
    pub clock: C,
    /// The source of randomness.
    pub entropy: E,
    /// Where lines for people go.
    pub console: W,
    /// Reset controller, watchdog and deep sleep.
    pub power: S,
    /// The memory that `power` calls retained, for the kernel to write to.
    pub retained: Box<dyn Retained>,
    /// Asks how much of the heap is used.
    pub heap: fn() -> HeapUse,
}

/// The lines as one link, on which a neighbour's address is the number of its line.
struct Lines<P>(Vec<SerialLine<P>>);

impl<P: Port> Link for Lines<P> {
    type Address = u8;

    fn datagram_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }

    fn send(&mut self, to: &u8, frame: &[u8]) -> Result<(), LinkError> {
        let line = self.0.get_mut(usize::from(*to)).ok_or(LinkError::Unreachable)?;
        line.send(&(), frame)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, u8)>, LinkError> {
        for (number, line) in (0..).zip(&mut self.0) {
            if let Some((length, ())) = line.receive(into)? {
                return Ok(Some((length, number)));
            }
        }
        Ok(None)
    }
}

/// A node on a board with serial lines.
pub struct LineDevice<F, P: Port, C, E, W, S> {
    node: Node<tenure_hal::Partition<F>>,
    lines: Carrier<Lines<P>>,
    clock: C,
    entropy: E,
    console: W,
    power: S,
    /// The longest that the loop stands still: the watchdog is to be fed.
    nap_max: Duration,
    frame: Vec<u8>,
}

impl<F, P, C, E, W, S> LineDevice<F, P, C, E, W, S>
where
    F: Flash,
    P: Port,
    C: Clock,
    E: Entropy,
    W: Write,
    S: Power,
{
    /// Reads the settings and boots the node; `limits` turns the settings' configuration into the board's.
    ///
    /// # Errors
    /// As [`StartError`] says.
    // Inlined, its temporaries would lie on the stack for good.
    #[inline(never)]
    pub fn start(
        board: LineBoard<F, P, C, E, W, S>,
        limits: impl FnOnce(&mut Config),
    ) -> Result<Self, StartError> {
        let LineBoard { model, mut flash, lines, clock, mut entropy, mut power, .. } = board;
        let (name, period, linked_for) = model;
        let settings = LineSettings::read(&mut flash.settings)?;
        let mut config = Config::new(settings.name, settings.owner);
        config.heap = Some(board.heap);
        config.sleep = settings.sleep;
        config.reset_cause = power.reset_cause();
        if config.reset_cause.keeps_retained_memory() {
            config.breadcrumb = Breadcrumb::from_bytes(power.retained());
        }
        limits(&mut config);
        let mut now = moment(&clock, &mut entropy);
        let mut node = Node::boot(config, flash.node, &mut now).map_err(StartError::Boot)?;
        node.use_retained(board.retained);
        node.take(&mut now, Input::Knock);
        node.use_firmware(FirmwareParts {
            board: name,
            trial: period,
            linked_for: Some(linked_for),
            log: flash.boot_log,
            slots: flash.slots,
            maker: settings.maker,
        })
        .map_err(StartError::Loader)?;
        let greeted = (0..lines.len().min(board.greeted) as u8).collect();
        let line = |port| SerialLine::new(port, FRAME_BYTES_MAX, FRAMES_WAITING_MAX);
        let lines = Lines(lines.into_iter().map(line).collect());
        let mut device = Self {
            node,
            lines: Carrier::new(lines, Reach::ByEach(greeted), NEIGHBOURS_MAX),
            clock,
            entropy,
            console: board.console,
            power,
            nap_max: period / 4,
            frame: vec![0; FRAME_BYTES_MAX],
        };
        device.announce();
        Ok(device)
    }

    /// The node, to be given peripherals.
    pub fn node(&mut self) -> &mut Node<tenure_hal::Partition<F>> {
        &mut self.node
    }

    /// The time since boot.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// One turn: takes in what has arrived, polls the node once, and sends and shows what it returns. Returns
    /// how long the board may sleep unless something arrives.
    pub fn turn(&mut self) -> Duration {
        // A firmware on trial has one period of the watchdog to show that it is well.
        if !self.node.is_on_trial() {
            self.power.feed_watchdog();
        }
        for _ in 0..FRAMES_PER_TURN {
            // A line never breaks for good: the next turn asks it again.
            let Ok(Some((length, line))) = self.lines.link_mut().receive(&mut self.frame) else {
                break;
            };
            self.take(length, line);
        }
        let wake = self.node.poll(&mut moment(&self.clock, &mut self.entropy));
        self.transmit();
        while let Some(notice) = self.node.notice() {
            show(&mut self.console, &notice);
        }
        let now = self.clock.now();
        if self.node.wants_restart() {
            self.node.take(&mut moment(&self.clock, &mut self.entropy), Input::Checkpoint);
            // A console that takes nothing has nobody who reads it.
            let _ = writeln!(self.console, "starting the new firmware");
            self.power.reset();
        }
        if let Some(bedtime) = self.node.bedtime() {
            self.sleep(bedtime);
        }
        if self.lines.link().0.iter().any(SerialLine::is_sending) {
            return Duration::ZERO;
        }
        match wake {
            Wake::Now => Duration::ZERO,
            Wake::At(at) => at.since(now).min(self.nap_max),
            Wake::Never => self.nap_max,
        }
    }

    /// Takes a frame of the mesh, as its seal shows, or else a datagram of the computer at the line.
    fn take(&mut self, length: usize, line: u8) {
        let frame = &self.frame[..length];
        let mut moment = moment(&self.clock, &mut self.entropy);
        let taken = self.node.receive_frame(&mut moment, frame, None);
        if self.lines.note(moment.now, frame, line, taken).is_err() {
            self.node.receive(&mut moment, Address::Line(line), frame);
        }
    }

    /// Sends all that the node has to send.
    fn transmit(&mut self) {
        while let Some((to, datagram)) = self.node.transmit() {
            if let Address::Line(line) = to {
                // The session sends again what finds no room.
                let _ = self.lines.link_mut().send(&line, &datagram);
            }
        }
        while let Some((to, frame)) = self.node.transmit_frame() {
            // As above.
            let _ = self.lines.send(to, &frame);
        }
    }

    /// Turns the device off until its time. A device that can't fall asleep stays awake and says why.
    fn sleep(&mut self, Bedtime { until }: Bedtime) {
        let asleep = self.node.fall_asleep(&mut moment(&self.clock, &mut self.entropy));
        // As in `turn`.
        let _ = match (&asleep, until) {
            (Err(error), _) => writeln!(self.console, "can't sleep: {error}"),
            (Ok(()), Some(until)) => {
                writeln!(self.console, "asleep until {} ms", until.as_millis())
            }
            (Ok(()), None) => writeln!(self.console, "asleep until it is woken"),
        };
        if asleep.is_ok() {
            self.transmit();
            self.power.deep_sleep(until);
        }
    }

    fn announce(&mut self) {
        let (name, key) = (self.node.name(), self.node.device_machine());
        // As in `turn`.
        let _ = match self.node.slept().map(|slept| slept.as_millis()) {
            Some(slept) => writeln!(self.console, "awake after {slept} ms"),
            None => writeln!(self.console, "started by {}", self.power.reset_cause()),
        };
        let _ = writeln!(self.console, "device {name} listens on its lines, key {key}");
        if !self.node.is_enrolled() {
            let _ = writeln!(
                self.console,
                "not enrolled; its owner types: tenure serial TTY --listen ADDR, then tenure enrol ADDR"
            );
        }
    }
}
