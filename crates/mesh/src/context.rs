//! The means of a handler: it says what is to be done, and the framework does it afterwards.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;
use core::time::Duration;

use tenure_hal::Instant;

use crate::event::{Destination, Message, Notification, ProtocolNumber, Request, Timer, write};
use crate::interception::Passage;
use crate::links::{Asks, Sends, Sets, Tells};
use crate::room::{self, Growing};
use crate::timers::Pending;
use crate::{NodeId, Random};

/// The room that is left for orders of timers: a protocol whose timer is lost may never run again.
const ENTRIES_FOR_TIMERS: usize = 2;
/// How much memory for the bytes of orders is kept where there are none.
const KEPT_BYTES_MAX: usize = 1024;

/// A handler's view of its node, for the protocol `P`, and its orders to it.
pub struct Context<'a, P> {
    pub(crate) surroundings: &'a mut Surroundings,
    protocol: PhantomData<fn() -> P>,
}

/// The part that all handlers of an executor share.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) now: Instant,
    pub(crate) node: NodeId,
    pub(crate) random: Random,
    pub(crate) payload_bytes_max: usize,
    pub(crate) commands: Commands,
    /// Where a timer's value is encoded; it has room for the longest.
    pub(crate) timer_value: Growing,
    /// Whose handler runs, and in which of its lives.
    pub(crate) running: (ProtocolNumber, u16),
}

/// How a message is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: Destination,
    /// How long it may wait for others to share a frame with.
    pub patience: Duration,
    /// The bytes behind its typed head.
    pub body: &'a [u8],
}

impl<'a, P> Context<'a, P> {
    pub(crate) fn new(surroundings: &'a mut Surroundings) -> Self {
        Self { surroundings, protocol: PhantomData }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.surroundings.now
    }

    /// The node that the protocol runs on.
    pub fn node(&self) -> NodeId {
        self.surroundings.node
    }

    /// The longest message that a frame carries, head and body, in bytes.
    pub fn payload_bytes_max(&self) -> usize {
        self.surroundings.payload_bytes_max
    }

    /// The node's randomness. It is for choosing, not for keys.
    pub fn random(&mut self) -> &mut Random {
        &mut self.surroundings.random
    }

    /// Sends `message` to every neighbour in reach.
    pub fn broadcast<M: Message>(&mut self, message: &M)
    where
        P: Sends<M>,
    {
        self.transmit(message, Outgoing { to: Destination::All, ..Outgoing::default() });
    }

    /// Sends `message` to the neighbour `to`.
    pub fn send<M: Message>(&mut self, to: NodeId, message: &M)
    where
        P: Sends<M>,
    {
        self.transmit(message, Outgoing { to: Destination::One(to), ..Outgoing::default() });
    }

    /// Sends `message` as `outgoing` says.
    pub fn transmit<M: Message>(&mut self, message: &M, outgoing: Outgoing<'_>)
    where
        P: Sends<M>,
    {
        let bytes = self.surroundings.commands.write(|bytes| {
            bytes.append(&[M::KIND]);
            write(message, bytes);
            bytes.append(outgoing.body);
        });
        self.command(Action::Send { to: outgoing.to, patience: outgoing.patience, bytes });
    }

    /// Lets `timer` go off once, `after` from now.
    pub fn after<T: Timer>(&mut self, after: Duration, timer: &T)
    where
        P: Sets<T>,
    {
        self.set_timer(timer, after, None);
    }

    /// Lets `timer` go off once, `span` from now or up to a quarter sooner or later, so that nodes don't
    /// fall into step.
    pub fn after_about<T: Timer>(&mut self, span: Duration, timer: &T)
    where
        P: Sets<T>,
    {
        let after = self.random().around(span);
        self.after(after, timer);
    }

    /// Lets `timer` go off every `period` from now on.
    pub fn every<T: Timer>(&mut self, period: Duration, timer: &T)
    where
        P: Sets<T>,
    {
        let period = period.max(Duration::from_micros(1));
        self.set_timer(timer, period, Some(period));
    }

    /// Forgets `timer`.
    pub fn cancel<T: Timer>(&mut self, timer: &T)
    where
        P: Sets<T>,
    {
        self.encode(timer);
        self.surroundings.cancel_timer(T::KIND);
    }

    /// Asks whichever protocol serves `request`; the answer comes to [`crate::Awaits`].
    pub fn ask<R: Request>(&mut self, request: &R, body: &[u8])
    where
        P: Asks<R>,
    {
        let head = self.surroundings.commands.write(|bytes| write(request, bytes));
        let rest = self.surroundings.commands.write(|bytes| bytes.append(body));
        let (head_bytes, bytes) = ((head.end - head.start) as u16, head.start..rest.end);
        self.command(Action::Request { number: R::NUMBER, head_bytes, bytes });
    }

    /// Answers a request that was kept: see [`crate::Question::keep`].
    pub fn answer<R: Request>(&mut self, asker: &Asker<R>, reply: &R::Reply) {
        self.answer_bytes(asker.route, &asker.request, |bytes| write(reply, bytes));
    }

    pub(crate) fn answer_bytes(
        &mut self,
        route: ReplyRoute,
        request: &[u8],
        reply: impl FnOnce(&mut Growing),
    ) {
        let request_bytes = request.len() as u16;
        let bytes = self.surroundings.commands.write(|bytes| {
            bytes.append(request);
            reply(bytes);
        });
        self.command(Action::Reply { route, request_bytes, bytes });
    }

    /// Tells every protocol of the node that wants to hear it.
    pub fn tell<N: Notification>(&mut self, notification: &N, body: &[u8])
    where
        P: Tells<N>,
    {
        let bytes = self.surroundings.commands.write(|bytes| {
            write(notification, bytes);
            bytes.append(body);
        });
        self.command(Action::Notify { number: N::NUMBER, bytes });
    }

    /// Lets go on what an interceptor took before: from where it was taken, with `message` now.
    pub fn resume(&mut self, passage: Passage, message: &[u8]) {
        let bytes = self.surroundings.commands.write(|bytes| bytes.append(message));
        self.command(Action::Resume { passage, bytes });
    }

    fn set_timer<T: Timer>(&mut self, timer: &T, after: Duration, period: Option<Duration>) {
        self.encode(timer);
        self.surroundings.set_timer(T::KIND, after, period);
    }

    fn encode<T: Timer>(&mut self, timer: &T) {
        let value = &mut self.surroundings.timer_value;
        value.truncate(0);
        write(timer, value);
    }

    fn command(&mut self, action: Action) {
        self.surroundings.command(action);
    }
}

impl Surroundings {
    /// Orders a timer whose value was encoded.
    #[inline(never)]
    fn set_timer(&mut self, kind: u8, after: Duration, period: Option<Duration>) {
        let at = self.now + after;
        match self.pending(kind) {
            Some(timer) => self.command(Action::SetTimer { timer, at, period }),
            None => self.commands.lost += 1,
        }
    }

    /// Orders that a timer is forgotten whose value was encoded.
    #[inline(never)]
    fn cancel_timer(&mut self, kind: u8) {
        if let Some(timer) = self.pending(kind) {
            self.command(Action::CancelTimer { timer });
        }
    }

    /// A timer whose value was encoded; `None` if that is longer than a timer's value may be.
    fn pending(&self, kind: u8) -> Option<Pending> {
        let pending = Pending::new(self.running.0, kind, &self.timer_value.bytes);
        debug_assert!(pending.is_some(), "a timer's value is short");
        pending
    }

    fn command(&mut self, action: Action) {
        let (by, incarnation) = self.running;
        self.commands.add(Command { by, incarnation, action });
    }
}

impl Default for Outgoing<'_> {
    /// To everybody in reach, at once, without a body.
    fn default() -> Self {
        Self { to: Destination::All, patience: Duration::ZERO, body: &[] }
    }
}

/// The asker of something that is to be answered later.
#[derive(Debug)]
pub struct Asker<R> {
    pub(crate) route: ReplyRoute,
    pub(crate) request: Vec<u8>,
    pub(crate) answers: PhantomData<fn() -> R>,
}

/// The way of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyRoute {
    pub(crate) to: ProtocolNumber,
    pub(crate) incarnation: u16,
    pub(crate) number: u16,
}

/// The orders of handlers, in the order in which they were given. The memory is used again; an order for which the heap
/// has none is lost, as a message on the air is.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    pub(crate) entries: Vec<Command>,
    bytes: Growing,
    /// How many were lost.
    lost: u64,
}

/// One thing to be done.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) by: ProtocolNumber,
    pub(crate) incarnation: u16,
    pub(crate) action: Action,
}

/// An order; the ranges are of [`Commands::bytes`]. A timer's value stands in its order, so that it takes no more memory.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Send { to: Destination, patience: Duration, bytes: Range<u32> },
    SetTimer { timer: Pending, at: Instant, period: Option<Duration> },
    CancelTimer { timer: Pending },
    Request { number: u16, head_bytes: u16, bytes: Range<u32> },
    Reply { route: ReplyRoute, request_bytes: u16, bytes: Range<u32> },
    Notify { number: u16, bytes: Range<u32> },
    Resume { passage: Passage, bytes: Range<u32> },
}

impl Action {
    /// Where its bytes stand; `None` for a timer's order.
    pub(crate) fn range(&self) -> Option<&Range<u32>> {
        match self {
            Self::Send { bytes, .. }
            | Self::Request { bytes, .. }
            | Self::Reply { bytes, .. }
            | Self::Notify { bytes, .. }
            | Self::Resume { bytes, .. } => Some(bytes),
            Self::SetTimer { .. } | Self::CancelTimer { .. } => None,
        }
    }
}

impl Commands {
    /// Runs `fill`, and gives the range of what it appended.
    fn write(&mut self, fill: impl FnOnce(&mut Growing)) -> Range<u32> {
        let start = self.bytes.bytes.len() as u32;
        fill(&mut self.bytes);
        start..self.bytes.bytes.len() as u32
    }

    /// Adds an order whose bytes were written, if the heap has had room for them and has some for it.
    #[inline(never)]
    fn add(&mut self, command: Command) {
        let range = command.action.range();
        let kept = if range.is_some() { ENTRIES_FOR_TIMERS } else { 0 };
        if room::has_place(&mut self.entries, kept) && !self.bytes.is_cut {
            self.entries.push(command);
            return;
        }
        if let Some(range) = range {
            self.bytes.truncate(range.start as usize);
        }
        self.lost += 1;
    }

    /// How many orders were lost since this was last asked.
    pub(crate) fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }

    /// The bytes of an order; none of a timer's.
    pub(crate) fn bytes(&self, action: &Action) -> &[u8] {
        let range = action.range().map(|range| range.start as usize..range.end as usize);
        range.and_then(|range| self.bytes.bytes.get(range)).unwrap_or_default()
    }

    /// Takes the memory of `others`, which are done, if it is more.
    pub(crate) fn reuse(&mut self, mut others: Self) {
        if others.entries.capacity() > self.entries.capacity() {
            others.clear();
            *self = others;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.truncate(0);
        self.bytes.bytes.shrink_to(KEPT_BYTES_MAX);
    }
}
