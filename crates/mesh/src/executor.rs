//! The executor of handlers: protocols, their queues and their timers.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use tenure_hal::Instant;

use crate::context::{Action, Commands, Context, Surroundings};
use crate::event::{Envelope, Event, ProtocolNumber};
use crate::interception::{Passage, Verdict};
use crate::protocol::{Description, Malformed, Protocol, dispatch};
use crate::queue::{QueueLimits, Queues};
use crate::room::Growing;
use crate::timers::{TIMER_BYTES_MAX, Timers};
use crate::{NodeId, Random};

/// A protocol of any type, as an executor holds it.
pub(crate) trait AnyProtocol: Send + Any {
    fn start(&mut self, surroundings: &mut Surroundings);
    fn stop(&mut self, surroundings: &mut Surroundings);
    fn run(
        &mut self,
        envelope: &Envelope,
        bytes: &[u8],
        surroundings: &mut Surroundings,
    ) -> Result<(), Malformed>;
    fn intercept(
        &mut self,
        passage: &Passage,
        message: &mut Vec<u8>,
        surroundings: &mut Surroundings,
    ) -> Verdict;
}

impl<P: Protocol> AnyProtocol for P {
    fn start(&mut self, surroundings: &mut Surroundings) {
        Protocol::start(self, &mut Context::new(surroundings));
    }

    fn stop(&mut self, surroundings: &mut Surroundings) {
        Protocol::stop(self, &mut Context::new(surroundings));
    }

    fn run(
        &mut self,
        envelope: &Envelope,
        bytes: &[u8],
        surroundings: &mut Surroundings,
    ) -> Result<(), Malformed> {
        dispatch(self, envelope, bytes, &mut Context::new(surroundings))
    }

    fn intercept(
        &mut self,
        passage: &Passage,
        message: &mut Vec<u8>,
        surroundings: &mut Surroundings,
    ) -> Verdict {
        match P::INTERCEPTOR {
            Some(interceptor) => {
                interceptor(self, passage, message, &mut Context::new(surroundings))
            }
            None => Verdict::Pass,
        }
    }
}

/// A protocol of some type, made and not started yet: see [`crate::Stack::start_prepared`].
pub struct Prepared {
    pub(crate) description: &'static Description,
    protocol: Box<dyn AnyProtocol>,
}

impl Prepared {
    /// Prepares a protocol for a stack of any kind.
    pub fn new<P: Protocol>(protocol: P) -> Self {
        Self { description: P::DESCRIPTION, protocol: Box::new(protocol) }
    }

    /// The protocol's number, name and interface.
    pub fn description(&self) -> &'static Description {
        self.description
    }
}

pub(crate) struct Slot {
    pub(crate) description: &'static Description,
    pub(crate) incarnation: u16,
    pub(crate) protocol: Box<dyn AnyProtocol>,
}

/// Protocols that take turns, with their queues and timers.
pub(crate) struct Executor<Q, T> {
    pub(crate) slots: Vec<Slot>,
    pub(crate) queues: Q,
    pub(crate) timers: T,
    pub(crate) surroundings: Surroundings,
}

/// The outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A handler ran.
    Ran,
    /// The event's bytes weren't what its protocol declares.
    Malformed,
    /// Its protocol isn't here.
    Nobody,
}

impl<Q: Queues, T: Timers> Executor<Q, T> {
    pub(crate) fn new(
        node: NodeId,
        payload_bytes_max: usize,
        limits: QueueLimits,
        timers_max: usize,
        seed: u64,
    ) -> Self {
        Self {
            slots: Vec::new(),
            queues: Q::new(limits),
            timers: T::new(timers_max),
            surroundings: Surroundings {
                now: Instant::BOOT,
                node,
                random: Random::new(seed),
                payload_bytes_max,
                commands: Commands::default(),
                timer_value: Growing::with_room(TIMER_BYTES_MAX),
                running: (ProtocolNumber::HOST, 0),
            },
        }
    }

    pub(crate) fn slot(&mut self, number: ProtocolNumber) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.description.number == number)
    }

    /// Puts a protocol in its place and starts it; what has its number is dropped without a word.
    pub(crate) fn start(&mut self, now: Instant, incarnation: u16, prepared: Prepared) {
        let Prepared { description, protocol } = prepared;
        self.slots.retain(|slot| slot.description.number != description.number);
        self.slots.push(Slot { description, incarnation, protocol });
        self.with(now, description.number, |protocol, surroundings| protocol.start(surroundings));
    }

    /// Lets a protocol say goodbye, and drops it with its timers.
    pub(crate) fn stop(&mut self, now: Instant, number: ProtocolNumber) -> bool {
        let stopped =
            self.with(now, number, |protocol, surroundings| protocol.stop(surroundings)).is_some();
        self.timers.forget(number);
        self.slots.retain(|slot| slot.description.number != number);
        stopped
    }

    /// Runs `act` with a protocol; what it wants done stands in the commands.
    pub(crate) fn with<R>(
        &mut self,
        now: Instant,
        number: ProtocolNumber,
        act: impl FnOnce(&mut dyn AnyProtocol, &mut Surroundings) -> R,
    ) -> Option<R> {
        let Self { slots, surroundings, .. } = self;
        let slot = slots.iter_mut().find(|slot| slot.description.number == number)?;
        surroundings.now = now;
        surroundings.running = (number, slot.incarnation);
        Some(act(&mut *slot.protocol, surroundings))
    }

    /// Runs the timer that is due, if any.
    pub(crate) fn run_timer(&mut self, now: Instant) -> bool {
        let Some(timer) = self.timers.due(now) else { return false };
        let envelope = Envelope { to: timer.protocol, event: Event::Timer { kind: timer.kind } };
        self.with(now, timer.protocol, |protocol, surroundings| {
            let ran = protocol.run(&envelope, timer.value(), surroundings);
            debug_assert!(ran.is_ok(), "a timer that was set has a handler");
        });
        true
    }

    /// Runs the handler of the first event that waits, which is this one, and drops the event.
    pub(crate) fn run_next(&mut self, now: Instant) -> Step {
        let Self { slots, queues, surroundings, .. } = self;
        let Some((envelope, bytes)) = queues.next() else { return Step::Nobody };
        let slot = slots.iter_mut().find(|slot| slot.description.number == envelope.to);
        let step = match slot {
            None => Step::Nobody,
            Some(slot) if is_for_another(&envelope, slot.incarnation) => Step::Nobody,
            Some(slot) => {
                surroundings.now = now;
                surroundings.running = (envelope.to, slot.incarnation);
                match slot.protocol.run(&envelope, bytes, surroundings) {
                    Ok(()) => Step::Ran,
                    Err(Malformed) => Step::Malformed,
                }
            }
        };
        queues.pop();
        step
    }

    /// Sets or cancels a timer; `false` if there is no room. `None` if `action` is another.
    pub(crate) fn attend_to_timer(&mut self, action: &Action) -> Option<bool> {
        match action {
            Action::SetTimer { timer, at, period } => Some(self.timers.set(*timer, *at, *period)),
            Action::CancelTimer { timer } => {
                self.timers.cancel(timer);
                Some(true)
            }
            _ => None,
        }
    }
}

/// Whether an answer is for an earlier life of its protocol.
pub(crate) fn is_for_another(envelope: &Envelope, incarnation: u16) -> bool {
    matches!(envelope.event, Event::Reply { incarnation: asked, .. } if asked != incarnation)
}
