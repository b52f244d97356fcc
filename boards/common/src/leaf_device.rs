//! The main loop of a board that is a leaf: what comes over its lines, one poll, what leaves.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;

use tenure_hal::{Clock, Entropy, Flash, Link as _};
use tenure_mesh::{Carrier, Port, Reach, SerialLine};
use tenure_node::{HeapUse, Leaf, LeafConfig, LeafNotice, Moment, Service, Wake};
use tenure_wire::Name;

use crate::StartError;
use crate::settings::LeafSettings;

/// The longest frame, as the mesh's.
const FRAME_BYTES_MAX: usize = 1232;
/// The most frames that wait for a line.
const FRAMES_WAITING_MAX: usize = 2;
/// The most frames that are taken in before the leaf has its turn again.
const FRAMES_PER_TURN: usize = 4;
/// How often the loop comes round at least: the watchdog is to be fed.
const NAP_MAX: Duration = Duration::from_secs(1);

/// What a board hands to a leaf's main loop.
pub struct LeafBoard<F, P, C, E, W> {
    /// The flash for the settings.
    pub settings: F,
    /// The flash for the store.
    pub store: F,
    /// The line to the next device of the mesh.
    pub mesh: P,
    /// The line at which its owner sits.
    pub service: P,
    /// The clock.
    pub clock: C,
    /// The source of randomness.
    pub entropy: E,
    /// Where lines for people go.
    pub console: W,
    /// Asks how much of the heap is used.
    pub heap: fn() -> HeapUse,
}

/// A leaf on a board.
pub struct LeafDevice<F, P: Port, C, E, W> {
    leaf: Leaf<F>,
    mesh: Carrier<SerialLine<P>>,
    service: SerialLine<P>,
    clock: C,
    entropy: E,
    console: W,
    datagram: Vec<u8>,
}

impl<F: Flash, P: Port, C: Clock, E: Entropy, W: Write> LeafDevice<F, P, C, E, W> {
    /// Reads the settings and starts the leaf.
    ///
    /// # Errors
    /// As [`StartError`] says.
    pub fn start(board: LeafBoard<F, P, C, E, W>) -> Result<Self, StartError> {
        let LeafBoard { mut settings, store, mesh, service, clock, mut entropy, console, heap } =
            board;
        let LeafSettings { name, owner } = LeafSettings::read(&mut settings)?;
        let config = LeafConfig { name, owner, heap: Some(heap) };
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let leaf = Leaf::boot(config, store, &mut moment).map_err(StartError::Boot)?;
        let line = |port| SerialLine::new(port, FRAME_BYTES_MAX, FRAMES_WAITING_MAX);
        Ok(Self {
            leaf,
            // There is one at the other end, whoever may be behind it.
            mesh: Carrier::new(line(mesh), Reach::ByOne(()), 1),
            service: line(service),
            clock,
            entropy,
            console,
            datagram: vec![0; FRAME_BYTES_MAX],
        })
    }

    /// Offers a service, as [`Leaf::offer`].
    ///
    /// # Errors
    /// [`StartError::Service`].
    pub fn offer(
        &mut self,
        number: u8,
        name: &'static str,
        service: Box<dyn Service>,
    ) -> Result<(), StartError> {
        let named: Name = name.parse().map_err(|_| StartError::Service(name))?;
        self.leaf.offer(number, named, service).map_err(|_| StartError::Service(name))
    }

    /// Says on the console who it is.
    pub fn announce(&mut self) {
        let (name, key) = (self.leaf.name(), self.leaf.device_machine());
        // A console that takes nothing has nobody who reads it.
        let _ = writeln!(self.console, "leaf {name} listens on its lines, key {key}");
        if !self.leaf.is_enrolled() {
            let _ = writeln!(
                self.console,
                "not enrolled; its owner types: tenure serial TTY --listen ADDR, then tenure enrol ADDR"
            );
        }
    }

    /// One turn: takes in what has come, polls the leaf once, sends and shows what it gives; says how
    /// long the board may sleep unless something comes.
    pub fn turn(&mut self) -> Duration {
        let now = self.clock.now();
        if let Some(stack) = self.leaf.mesh() {
            // A line never breaks for good: what it can't do now it is asked again.
            let _ = self.mesh.receive(now, stack, FRAMES_PER_TURN);
        }
        for _ in 0..FRAMES_PER_TURN {
            let Ok(Some((length, ()))) = self.service.receive(&mut self.datagram) else { break };
            let mut moment = moment(&self.clock, &mut self.entropy);
            self.leaf.receive(&mut moment, &self.datagram[..length]);
        }
        let wake = self.leaf.poll(&mut moment(&self.clock, &mut self.entropy));
        let now = self.clock.now();
        if let Some(stack) = self.leaf.mesh() {
            // As above.
            let _ = self.mesh.transmit(now, stack);
        }
        while let Some(datagram) = self.leaf.transmit() {
            // A datagram that isn't sent is one that is lost: it will be sent again.
            let _ = self.service.send(&(), &datagram);
        }
        while let Some(notice) = self.leaf.notice() {
            // As in `announce`.
            let _ = match notice {
                LeafNotice::Enrolled => writeln!(self.console, "enrolled"),
                LeafNotice::Joined => writeln!(self.console, "in its owner's mesh"),
            };
        }
        if self.service.is_sending() || self.mesh.link().is_sending() {
            return Duration::ZERO;
        }
        match wake {
            Wake::Now => Duration::ZERO,
            Wake::At(at) => at.since(self.clock.now()).min(NAP_MAX),
            Wake::Never => NAP_MAX,
        }
    }
}

fn moment<'a>(clock: &impl Clock, entropy: &'a mut dyn Entropy) -> Moment<'a> {
    Moment { now: clock.now(), unix_time: clock.unix_time(), entropy }
}
