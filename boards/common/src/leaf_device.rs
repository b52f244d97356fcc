//! The main loop of a board that is a leaf: what comes over its lines, one poll, what leaves.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;

use tenure_hal::{Clock, Entropy, Flash, Instant, Link, LinkError};
use tenure_mesh::{Carrier, Port, Reach, SerialLine};
use tenure_node::{HeapUse, Leaf, LeafConfig, LeafNotice, Moment, Service, Wake};
use tenure_wire::Name;

use crate::StartError;
use crate::settings::LeafSettings;

#[cfg(test)]
mod tests;

/// The longest frame, as the mesh's.
const FRAME_BYTES_MAX: usize = 1232;
/// The most frames that wait for the mesh's line, and for the service line.
const FRAMES_WAITING_MAX: [usize; 2] = [2, 1];
/// The most neighbours in the mesh of which it is remembered at which line they are.
const NEIGHBOURS_MAX: usize = 4;
/// How much of the heap must be free for another arrival to be taken: what becomes of one was seen to take 3 KiB. So
/// the heap is shared by all that is limited by itself, and isn't used up though the sum of the limits is more.
const ROOM_BYTES: usize = 4 * 1024;
/// How much of that must be free in one piece, for the longest thing that is made of an arrival: a frame and its seals. Free
/// memory between pieces that are used may be many short ones.
const PIECE_BYTES: usize = 1536;
const _: () = assert!(FRAME_BYTES_MAX < PIECE_BYTES && PIECE_BYTES < ROOM_BYTES);
/// For how long there may be no room.
const STARVED_MAX: Duration = Duration::from_secs(60);
/// How often the loop comes round at least: the watchdog is to be fed.
const NAP_MAX: Duration = Duration::from_secs(1);

/// The parts that a board hands to a leaf's main loop.
pub struct LeafBoard<F, P, C, E, W> {
    /// The flash for the settings.
    pub settings: F,
    /// The flash for the store.
    pub store: F,
    /// The line to the next device of the mesh.
    pub mesh: P,
    /// The line at which its owner sits, or another device of the mesh.
    pub service: P,
    /// The clock.
    pub clock: C,
    /// The source of randomness.
    pub entropy: E,
    /// Where lines for people go.
    pub console: W,
    /// Asks how much of the heap is used.
    pub heap: fn() -> HeapUse,
    /// Asks whether the heap has so many bytes free in one piece.
    pub has_piece: fn(usize) -> bool,
}

/// The chip's two lines.
struct Lines<P> {
    mesh: SerialLine<P>,
    service: SerialLine<P>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Mesh,
    Service,
}

/// Both lines as a link of the mesh. What comes over the service line may be for others than the mesh, so
/// that only the other is asked for frames here.
impl<P: Port> Link for Lines<P> {
    type Address = Line;

    fn datagram_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }

    fn send(&mut self, to: &Line, frame: &[u8]) -> Result<(), LinkError> {
        match to {
            Line::Mesh => self.mesh.send(&(), frame),
            Line::Service => self.service.send(&(), frame),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, Line)>, LinkError> {
        Ok(self.mesh.receive(into)?.map(|(length, ())| (length, Line::Mesh)))
    }
}

/// A leaf on a board.
pub struct LeafDevice<F, P: Port, C, E, W> {
    leaf: Leaf<F>,
    mesh: Carrier<Lines<P>>,
    clock: C,
    entropy: E,
    console: W,
    heap: fn() -> HeapUse,
    has_piece: fn(usize) -> bool,
    /// Since when there is no room for arrivals, if there is none.
    starved_since: Option<Instant>,
    datagram: Vec<u8>,
}

impl<F: Flash, P: Port, C: Clock, E: Entropy, W: Write> LeafDevice<F, P, C, E, W> {
    /// Reads the settings and starts the leaf.
    ///
    /// # Errors
    /// As [`StartError`] says.
    // Inlined, its temporaries would lie on the stack for good.
    #[inline(never)]
    pub fn start(board: LeafBoard<F, P, C, E, W>) -> Result<Self, StartError> {
        let LeafBoard {
            mut settings,
            store,
            mesh,
            service,
            clock,
            mut entropy,
            console,
            heap,
            has_piece,
        } = board;
        let LeafSettings { name, owner } = LeafSettings::read(&mut settings)?;
        let config = LeafConfig { name, owner, heap: Some(heap) };
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let leaf = Leaf::boot(config, store, &mut moment).map_err(StartError::Boot)?;
        let line = |port, frames| SerialLine::new(port, FRAME_BYTES_MAX, frames);
        let [to_mesh, to_owner] = FRAMES_WAITING_MAX;
        let lines = Lines { mesh: line(mesh, to_mesh), service: line(service, to_owner) };
        Ok(Self {
            leaf,
            // At the service line there is a device of the mesh once one was heard.
            mesh: Carrier::new(lines, Reach::ByEach(vec![Line::Mesh]), NEIGHBOURS_MAX),
            clock,
            entropy,
            console,
            heap,
            has_piece,
            starved_since: None,
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
    #[inline(never)]
    pub fn turn(&mut self) -> Duration {
        // The leaf has its turn after each arrival: what becomes of one takes the room that it was let in for.
        self.take_from_mesh();
        self.leaf.poll(&mut moment(&self.clock, &mut self.entropy));
        self.take_from_service();
        let wake = self.leaf.poll(&mut moment(&self.clock, &mut self.entropy));
        let now = self.clock.now();
        self.look_at_heap(now);
        if let Some(stack) = self.leaf.mesh() {
            // As above.
            let _ = self.mesh.transmit(|frame| stack.transmit(now, frame));
        }
        while let Some(datagram) = self.leaf.transmit() {
            // A datagram that isn't sent is one that is lost: it will be sent again.
            let _ = self.mesh.link_mut().send(&Line::Service, &datagram);
        }
        while let Some(notice) = self.leaf.notice() {
            // As in `announce`.
            let _ = match notice {
                LeafNotice::Enrolled => writeln!(self.console, "enrolled"),
                LeafNotice::Joined => writeln!(self.console, "in its owner's mesh"),
            };
        }
        let Lines { mesh, service } = self.mesh.link();
        if mesh.is_sending() || service.is_sending() {
            return Duration::ZERO;
        }
        match wake {
            Wake::Now => Duration::ZERO,
            Wake::At(at) => at.since(self.clock.now()).min(NAP_MAX),
            Wake::Never => NAP_MAX,
        }
    }

    fn look_at_heap(&mut self, now: Instant) {
        if self.has_room() {
            self.starved_since = None;
        } else if self.starved_since.is_none() {
            self.starved_since = Some(now);
            let HeapUse { used_bytes, total_bytes, .. } = (self.heap)();
            // As in `announce`.
            let _ = writeln!(
                self.console,
                "no room for what arrives: {used_bytes} of {total_bytes} bytes are used"
            );
        }
    }

    /// Whether it has had no room for arrivals for so long that it had better start anew, which loses
    /// nothing that it keeps: then the board doesn't feed its watchdog.
    pub fn is_starved(&self) -> bool {
        self.starved_since.is_some_and(|since| self.clock.now().since(since) >= STARVED_MAX)
    }

    /// Takes a frame from the mesh's line, if one has come.
    fn take_from_mesh(&mut self) {
        let (now, has_room) = (self.clock.now(), self.has_room());
        if let Some(stack) = self.leaf.mesh().filter(|_| has_room) {
            // A line never breaks for good: what it can't do now it is asked again.
            let _ = self
                .mesh
                .receive(now, 1, |frame, signal_dbm| stack.receive(now, frame, signal_dbm));
        }
    }

    /// Takes what came over the service line, if something has: a frame of the mesh, as its seal shows, or else a datagram of
    /// whoever sits there.
    fn take_from_service(&mut self) {
        if !self.has_room() {
            return;
        }
        let line = &mut self.mesh.link_mut().service;
        let Ok(Some((length, ()))) = line.receive(&mut self.datagram) else { return };
        let (now, bytes) = (self.clock.now(), &self.datagram[..length]);
        let is_frame = self.leaf.mesh().is_some_and(|stack| {
            let taken = stack.receive(now, bytes, None);
            self.mesh.note(now, bytes, Line::Service, taken).is_ok()
        });
        if !is_frame {
            self.leaf.receive(&mut moment(&self.clock, &mut self.entropy), bytes);
        }
    }

    /// Whether the heap has room for what becomes of an arrival. What there is none for stays in its line's queue,
    /// and what finds no room there is lost, as on any line.
    fn has_room(&self) -> bool {
        let HeapUse { used_bytes, total_bytes, .. } = (self.heap)();
        total_bytes.saturating_sub(used_bytes) >= ROOM_BYTES && (self.has_piece)(PIECE_BYTES)
    }
}

fn moment<'a>(clock: &impl Clock, entropy: &'a mut dyn Entropy) -> Moment<'a> {
    Moment { now: clock.now(), unix_time: clock.unix_time(), entropy }
}
