//! An executor of their own for some of a node's protocols: on Linux a thread, elsewhere another
//! task that is polled when there is time.
//!
//! Everything passes the stack: events go to the satellite as [`Parcel`]s, and what its protocols
//! want done comes back as parcels. Only timers stay in the satellite.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tenure_hal::Instant;

use crate::NodeId;
use crate::context::Action;
use crate::event::{Envelope, Event, ProtocolNumber};
use crate::executor::{Executor, Prepared};
use crate::protocol::{Description, Protocol};
use crate::queue::{PriorityQueues, Queues};
use crate::stack::StackConfig;
use crate::timers::{TimerList, Timers};

/// The most parcels that wait for a satellite.
const PARCELS_MAX: usize = 256;

/// Which of a stack's satellites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SatelliteNumber(pub(crate) usize);

/// The messages between a stack and a satellite.
#[derive(Clone, Debug)]
pub struct Parcel {
    content: Content,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Content {
    Event(Envelope),
    Command { by: ProtocolNumber, incarnation: u16, action: Action },
}

impl Parcel {
    pub(crate) fn event(envelope: Envelope, bytes: &[u8]) -> Self {
        Self { content: Content::Event(envelope), bytes: bytes.to_vec() }
    }

    pub(crate) fn command(&self) -> Option<(ProtocolNumber, u16, &Action)> {
        match &self.content {
            Content::Command { by, incarnation, action } => Some((*by, *incarnation, action)),
            Content::Event(_) => None,
        }
    }
}

/// Parcels that wait for a satellite.
#[derive(Debug, Default)]
pub(crate) struct Outbox(VecDeque<Parcel>);

impl Outbox {
    pub(crate) fn push(&mut self, parcel: Parcel) -> bool {
        let room = self.0.len() < PARCELS_MAX;
        if room {
            self.0.push_back(parcel);
        }
        room
    }

    pub(crate) fn pop(&mut self) -> Option<Parcel> {
        self.0.pop_front()
    }
}

/// An executor beside the stack's own, for protocols whose handlers take long.
pub struct Satellite<Q = PriorityQueues, T = TimerList> {
    executor: Executor<Q, T>,
    wanted: VecDeque<Parcel>,
    incarnations: u16,
    events_per_poll: usize,
    lost: u64,
}

impl<Q: Queues, T: Timers> Satellite<Q, T> {
    /// A satellite of `node`'s stack, whose frames carry messages of `message_bytes_max`.
    pub fn new(config: StackConfig, node: NodeId, message_bytes_max: usize) -> Self {
        let (queues, timers_max) = (config.queues, config.timers_max);
        Self {
            executor: Executor::new(node, message_bytes_max, queues, timers_max, config.seed),
            wanted: VecDeque::new(),
            incarnations: 0,
            events_per_poll: config.events_per_poll.max(1),
            lost: 0,
        }
    }

    /// Starts a protocol; the stack must be told of it by [`crate::Stack::attach`].
    pub fn start<P: Protocol>(&mut self, now: Instant, protocol: P) {
        self.incarnations = self.incarnations.wrapping_add(1);
        self.executor.start(now, self.incarnations, Prepared::new(protocol));
        self.gather();
    }

    /// Stops a protocol, and says whether it ran.
    pub fn stop(&mut self, now: Instant, number: ProtocolNumber) -> bool {
        let stopped = self.executor.stop(now, number);
        self.gather();
        stopped
    }

    /// The protocols that run here, for [`crate::Stack::attach`].
    pub fn protocols(&self) -> Vec<&'static Description> {
        self.executor.slots.iter().map(|slot| slot.description).collect()
    }

    /// How many events and timers didn't fit their queues, and how many orders the heap had no room for.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes an event from the stack.
    pub fn accept(&mut self, parcel: &Parcel) {
        if let Content::Event(envelope) = parcel.content {
            self.lost += u64::from(!self.executor.queues.push(envelope, &parcel.bytes, &[]));
        }
    }

    /// Handles what is due and what waits, up to a limit; gives when it wants to run again.
    pub fn poll(&mut self, now: Instant) -> Option<Instant> {
        for _ in 0..self.events_per_poll {
            if !self.executor.run_timer(now) {
                let Some((envelope, _)) = self.executor.queues.next() else { break };
                debug_assert!(!matches!(envelope.event, Event::Timer { .. }));
                self.executor.run_next(now);
            }
            self.gather();
        }
        if self.executor.queues.is_empty() { self.executor.timers.next_at() } else { Some(now) }
    }

    /// The next parcel for the stack.
    pub fn parcel(&mut self) -> Option<Parcel> {
        self.wanted.pop_front()
    }

    /// Sets timers, and packs everything else that handlers wanted done.
    fn gather(&mut self) {
        let mut commands = core::mem::take(&mut self.executor.surroundings.commands);
        self.lost += commands.take_lost();
        for command in &commands.entries {
            let bytes = commands.bytes(&command.action);
            match self.executor.attend_to_timer(&command.action) {
                Some(taken) => self.lost += u64::from(!taken),
                None if self.wanted.len() >= PARCELS_MAX => self.lost += 1,
                None => self.wanted.push_back(Parcel {
                    content: Content::Command {
                        by: command.by,
                        incarnation: command.incarnation,
                        action: command.action.clone(),
                    },
                    bytes: bytes.to_vec(),
                }),
            }
        }
        commands.clear();
        self.executor.surroundings.commands = commands;
    }
}
