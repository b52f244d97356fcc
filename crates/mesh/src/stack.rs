//! The stack: one node's protocols, and how an event moves between them, the host and the network.

use alloc::vec::Vec;
use core::any::Any;
use core::time::Duration;

use tenure_hal::Instant;

use crate::air::{Account, Traffic};
use crate::context::{Action, Commands, Context, ReplyRoute};
use crate::counters::Counters;
use crate::dispatcher::{Dispatcher, Rejected, SendError};
use crate::event::{Destination, Envelope, Event, Notification, ProtocolNumber, Request, encode};
use crate::executor::{Executor, Prepared, Step, is_for_another};
use crate::frame::split_record;
use crate::host::{HostEvent, Restarted, Undelivered};
use crate::interception::{Covers, Interception, Passage, Verdict, Way, way_of};
use crate::plain::{PlainFrames, is_plain};
use crate::protocol::{Description, Protocol};
use crate::queue::{ByteQueue, PriorityQueues, QueueLimits, Queues};
use crate::satellite::{Outbox, Parcel, SatelliteNumber};
use crate::timers::{TimerList, Timers};
use crate::{Framer, NodeId, Unsealed};

#[cfg(test)]
mod tests;

/// How often, for one handler, what interceptors want done may make others want something.
const ROUNDS_MAX: usize = 16;

/// The limits of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackConfig {
    /// How much may wait for handlers.
    pub queues: QueueLimits,
    /// The most timers that wait.
    pub timers_max: usize,
    /// The most events that one [`Stack::poll`] handles.
    pub events_per_poll: usize,
    /// How much may wait for the host, in bytes.
    pub host_bytes_max: usize,
    /// The seed of the protocols' chance.
    pub seed: u64,
}

impl Default for StackConfig {
    fn default() -> Self {
        Self {
            queues: QueueLimits::default(),
            timers_max: 128,
            events_per_poll: 64,
            host_bytes_max: 32 * 1024,
            seed: 0,
        }
    }
}

/// One node's protocols, with what dispatches, queues and reminds.
///
/// The dispatcher `D`, the queues `Q` and the timers `T` can be others than the usual ones.
pub struct Stack<D = Framer<Unsealed>, Q = PriorityQueues, T = TimerList> {
    executor: Executor<Q, T>,
    dispatcher: D,
    interceptions: Vec<Interception>,
    satellites: Vec<Outbox>,
    remote: Vec<Remote>,
    host_inbox: ByteQueue,
    host_hears: Vec<u16>,
    plain: PlainFrames,
    events_per_poll: usize,
    incarnations: u16,
    counters: Counters,
    /// An intercepted message, while it is looked at.
    passing: Vec<u8>,
}

/// A protocol that runs in a satellite.
#[derive(Clone, Copy, Debug)]
struct Remote {
    description: &'static Description,
    satellite: SatelliteNumber,
}

/// No such protocol runs in the stack's own executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHere;

/// A protocol isn't started, since another one that runs has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberTaken {
    /// The number that frames carry.
    pub number: ProtocolNumber,
    /// The name of the protocol that has it.
    pub by: &'static str,
    /// The name of the one that isn't started.
    pub wanted_by: &'static str,
}

impl core::fmt::Display for NumberTaken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { number, by, wanted_by } = self;
        write!(f, "the protocol number {} of \"{wanted_by}\" is taken by \"{by}\"", number.0)
    }
}

impl core::error::Error for NumberTaken {}

impl<D: Dispatcher, Q: Queues, T: Timers> Stack<D, Q, T> {
    /// A stack without protocols.
    pub fn new(config: StackConfig, dispatcher: D) -> Self {
        let executor = Executor::new(
            dispatcher.node(),
            dispatcher.message_bytes_max(),
            config.queues,
            config.timers_max,
            config.seed,
        );
        Self {
            executor,
            dispatcher,
            interceptions: Vec::new(),
            satellites: Vec::new(),
            remote: Vec::new(),
            host_inbox: ByteQueue::new(config.host_bytes_max),
            host_hears: Vec::new(),
            plain: PlainFrames::default(),
            events_per_poll: config.events_per_poll.max(1),
            incarnations: 0,
            counters: Counters::default(),
            passing: Vec::new(),
        }
    }

    /// The node that this is the stack of.
    pub fn node(&self) -> NodeId {
        self.executor.surroundings.node
    }

    /// The counts so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Messages sent, and refused for want of air, of each kind of each protocol.
    pub fn accounts(&self) -> &[Account] {
        self.dispatcher.accounts()
    }

    /// The dispatcher.
    pub fn dispatcher(&self) -> &D {
        &self.dispatcher
    }

    /// The dispatcher, to be told something that only it knows.
    pub fn dispatcher_mut(&mut self) -> &mut D {
        &mut self.dispatcher
    }

    /// The protocols that run, in the order in which they started.
    pub fn protocols(&self) -> impl Iterator<Item = &'static Description> {
        let here = self.executor.slots.iter().map(|slot| slot.description);
        here.chain(self.remote.iter().map(|remote| remote.description))
    }

    /// The protocol of the type `P`, if it runs in the stack's own executor.
    pub fn protocol<P: Protocol>(&self) -> Option<&P> {
        self.executor.slots.iter().find_map(|slot| {
            let protocol: &dyn Any = &*slot.protocol;
            protocol.downcast_ref()
        })
    }

    /// The protocol with this number, whatever its type, if it runs in the stack's own executor.
    pub fn protocol_any(&self, number: ProtocolNumber) -> Option<&dyn Any> {
        let slot = self.executor.slots.iter().find(|slot| slot.description.number == number)?;
        Some(&*slot.protocol)
    }

    /// Starts a protocol whose number is free: see [`Self::start`] to replace one.
    ///
    /// # Errors
    /// [`NumberTaken`] if one that runs here or in a satellite has its number; that one runs on.
    pub fn register<P: Protocol>(&mut self, now: Instant, protocol: P) -> Result<(), NumberTaken> {
        let Description { number, name: wanted_by, .. } = *P::DESCRIPTION;
        let taken = self.protocols().find(|known| known.number == number).map(|known| known.name);
        let taken = taken.or((number == ProtocolNumber::HOST).then_some("the host"));
        if let Some(by) = taken {
            return Err(NumberTaken { number, by, wanted_by });
        }
        self.start(now, protocol);
        Ok(())
    }

    /// Starts a protocol. One of the same number is stopped first; what waits for that number is
    /// handled by the new one.
    pub fn start<P: Protocol>(&mut self, now: Instant, protocol: P) {
        self.start_prepared(now, Prepared::new(protocol));
    }

    /// Starts a protocol whose type the caller doesn't know, as [`Self::start`] does.
    pub fn start_prepared(&mut self, now: Instant, prepared: Prepared) {
        let number = prepared.description.number;
        if self.executor.slot(number).is_some() {
            self.executor.stop(now, number);
            self.apply(now);
        }
        self.incarnations = self.incarnations.wrapping_add(1);
        self.executor.start(now, self.incarnations, prepared);
        self.apply(now);
    }

    /// Stops a protocol, and says whether it ran. What it wanted done is still done; what waits for
    /// it is dropped when its turn comes, and requests to it are answered by nobody.
    pub fn stop(&mut self, now: Instant, number: ProtocolNumber) -> bool {
        let stopped = self.executor.stop(now, number);
        self.interceptions.retain(|interception| interception.by != number);
        self.apply(now);
        stopped
    }

    /// Runs `act` with the protocol of the type `P`, as if it were one of its handlers.
    pub fn act<P: Protocol, R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut P, &mut Context<'_, P>) -> R,
    ) -> Option<R> {
        let outcome =
            self.executor.with(now, P::DESCRIPTION.number, |protocol, surroundings| {
                let protocol: &mut dyn Any = protocol;
                let protocol = protocol.downcast_mut::<P>()?;
                Some(act(protocol, &mut Context::new(surroundings)))
            })?;
        self.apply(now);
        outcome
    }

    /// Lets the protocol `by` stand before `before`, or before all others, on the ways that
    /// `covers` says. Of several, the one that was put there first is nearest to the protocol.
    ///
    /// # Errors
    /// [`NotHere`] if `by` doesn't run in the stack's own executor, or can't intercept.
    pub fn intercept(
        &mut self,
        by: ProtocolNumber,
        before: Option<ProtocolNumber>,
        covers: Covers,
    ) -> Result<(), NotHere> {
        let slot = self.executor.slot(by).ok_or(NotHere)?;
        if !slot.description.intercepts {
            return Err(NotHere);
        }
        self.interceptions.push(Interception { by, before, covers });
        Ok(())
    }

    /// Ends what `by` intercepts.
    pub fn end_interception(&mut self, by: ProtocolNumber) {
        self.interceptions.retain(|interception| interception.by != by);
    }

    /// Asks in the name of the host; the answer comes by [`Self::host_event`].
    pub fn request<R: Request>(&mut self, request: &R, body: &[u8]) {
        let mut bytes = Vec::new();
        encode(request, &mut bytes);
        let head_bytes = bytes.len() as u16;
        bytes.extend_from_slice(body);
        let route = ReplyRoute { to: ProtocolNumber::HOST, incarnation: 0, number: R::NUMBER };
        self.ask(route, head_bytes, &bytes);
    }

    /// Tells every protocol that wants to hear it, in the name of the host.
    pub fn tell<N: Notification>(&mut self, notification: &N, body: &[u8]) {
        let mut bytes = Vec::new();
        encode(notification, &mut bytes);
        bytes.extend_from_slice(body);
        self.spread(N::NUMBER, &bytes);
    }

    /// Tells the protocol `to` alone: one that started late, say, what others were told before.
    pub fn tell_one<N: Notification>(&mut self, to: ProtocolNumber, notification: &N, body: &[u8]) {
        let mut bytes = Vec::new();
        encode(notification, &mut bytes);
        bytes.extend_from_slice(body);
        let event = Event::Notification { number: N::NUMBER };
        let taken = self.executor.queues.push(Envelope { to, event }, &bytes, &[]);
        self.counters.notifications_lost += u64::from(!taken);
    }

    /// Lets the host have every `N` that is told from now on, by [`Self::host_event`].
    pub fn subscribe<N: Notification>(&mut self) {
        if !self.host_hears.contains(&N::NUMBER) {
            self.host_hears.push(N::NUMBER);
        }
    }

    /// The next event for the host.
    pub fn host_event(&mut self) -> Option<HostEvent> {
        let (envelope, bytes) = self.host_inbox.front()?;
        let event = HostEvent { event: envelope.event, bytes: bytes.to_vec() };
        self.host_inbox.pop();
        Some(event)
    }

    /// Takes a frame that came, with the strength of its signal where the link knows it; gives the
    /// neighbour that sent it.
    ///
    /// # Errors
    /// Why the frame isn't taken; nothing changed but a counter.
    pub fn receive(
        &mut self,
        now: Instant,
        frame: &[u8],
        signal_dbm: Option<i8>,
    ) -> Result<NodeId, Rejected> {
        if is_plain(frame) && self.plain.is_open() {
            let taken = self.plain.receive(frame);
            let rejected = if taken { Rejected::Plain } else { Rejected::Malformed };
            self.counters.rejected(rejected);
            return Err(rejected);
        }
        let Self { executor, dispatcher, counters, .. } = self;
        let received =
            dispatcher.receive(now, frame).inspect_err(|error| counters.rejected(*error))?;
        counters.frames_taken += 1;
        let (from, addressed, restarted) = (received.from, received.addressed, received.restarted);
        let mut rest = received.records;
        while let Ok((record, more)) = split_record(rest) {
            rest = more;
            let event = Event::Message { from, addressed, signal_dbm, passed: 0 };
            let envelope = Envelope { to: record.protocol, event };
            let taken = executor.queues.push(envelope, record.message, &[]);
            counters.messages_lost += u64::from(!taken);
        }
        if restarted {
            // It is handled before the messages, as every notification is.
            self.tell(&Restarted { neighbour: from }, &[]);
        }
        Ok(from)
    }

    /// Keeps plain frames for the host from now on: see [`Self::plain_frame`].
    pub fn hear_plain_frames(&mut self) {
        self.plain.open();
    }

    /// The content of the next plain frame, which anybody may have sent: no protocol has seen it.
    pub fn plain_frame(&mut self) -> Option<Vec<u8>> {
        self.plain.take()
    }

    /// Sends a plain frame to everybody in reach, who can all read it, and can't know who sent it.
    ///
    /// # Errors
    /// [`SendError`] if `body` is empty or longer than [`crate::PLAIN_BYTES_MAX`], or too many wait.
    pub fn send_plain(&mut self, body: &[u8]) -> Result<(), SendError> {
        self.plain.send(body)
    }

    /// Takes word from a link that a frame for `neighbour` wasn't acknowledged.
    pub fn undelivered(&mut self, neighbour: NodeId) {
        self.tell(&Undelivered { neighbour }, &[]);
    }

    /// Handles what is due and what waits, up to a limit; gives when it wants to run again.
    pub fn poll(&mut self, now: Instant) -> Option<Instant> {
        for _ in 0..self.events_per_poll {
            if !self.step(now) {
                break;
            }
        }
        self.poll_at(now)
    }

    /// When [`Self::poll`] or [`Self::transmit`] has something to do: `now` if at once.
    pub fn poll_at(&self, now: Instant) -> Option<Instant> {
        if !self.executor.queues.is_empty() || self.plain.wants_to_send() {
            return Some(now);
        }
        let timer = self.executor.timers.next_at();
        timer.into_iter().chain(self.dispatcher.transmit_at()).min().map(|at| at.max(now))
    }

    /// Writes the next frame that is due into `frame`, and says whom it is for.
    pub fn transmit(&mut self, now: Instant, frame: &mut Vec<u8>) -> Option<Destination> {
        let to = self.dispatcher.transmit(now, frame);
        let to = to.or_else(|| self.plain.transmit(frame).then_some(Destination::All))?;
        self.counters.frames_sent += 1;
        self.counters.bytes_sent += frame.len() as u64;
        Some(to)
    }

    /// Takes in an executor of their own for some protocols: see [`crate::Satellite`].
    pub fn attach(&mut self, protocols: &[&'static Description]) -> SatelliteNumber {
        let satellite = SatelliteNumber(self.satellites.len());
        self.satellites.push(Outbox::default());
        self.remote.extend(protocols.iter().map(|description| Remote { description, satellite }));
        satellite
    }

    /// Lets go of a satellite's protocols. Its number isn't used again.
    pub fn detach(&mut self, satellite: SatelliteNumber) {
        self.remote.retain(|remote| remote.satellite != satellite);
        if let Some(outbox) = self.satellites.get_mut(satellite.0) {
            *outbox = Outbox::default();
        }
    }

    /// The next event for a satellite.
    pub fn parcel_for(&mut self, satellite: SatelliteNumber) -> Option<Parcel> {
        self.satellites.get_mut(satellite.0)?.pop()
    }

    /// Takes what a satellite's protocol wants done.
    pub fn accept(&mut self, now: Instant, parcel: Parcel) {
        if let Some((by, incarnation, action)) = parcel.command() {
            self.carry_out(now, by, incarnation, action, &parcel.bytes);
            self.apply(now);
        }
    }

    /// Handles one event; `false` if there is none.
    fn step(&mut self, now: Instant) -> bool {
        if self.executor.run_timer(now) {
            self.apply(now);
            return true;
        }
        let Some((envelope, _)) = self.executor.queues.next() else { return false };
        if !self.interceptions.is_empty() {
            return self.step_past_interceptors(now, envelope);
        }
        self.hand_over(now, envelope);
        true
    }

    /// Gives the first event that waits to whom it is for.
    fn hand_over(&mut self, now: Instant, envelope: Envelope) {
        if self.executor.slot(envelope.to).is_some() {
            match self.executor.run_next(now) {
                Step::Ran => {}
                Step::Malformed => self.counters.malformed_events += 1,
                Step::Nobody => self.counters.unclaimed += 1,
            }
            self.apply(now);
            return;
        }
        if let Some((_, bytes)) = self.executor.queues.next() {
            let bytes = bytes.to_vec();
            self.executor.queues.pop();
            self.hand_out(envelope, &bytes);
        }
    }

    /// Gives an event to the host or to a satellite.
    fn hand_out(&mut self, envelope: Envelope, bytes: &[u8]) {
        let remote = self.remote.iter().find(|remote| remote.description.number == envelope.to);
        if envelope.to == ProtocolNumber::HOST {
            if !self.host_inbox.push(envelope, bytes, &[]) {
                self.count_lost(envelope.event);
            }
        } else if let Some(remote) = remote {
            let parcel = Parcel::event(envelope, bytes);
            if !self.satellites[remote.satellite.0].push(parcel) {
                self.count_lost(envelope.event);
            }
        } else {
            self.counters.unclaimed += 1;
            if let Event::Request { number, asker, incarnation, head_bytes } = envelope.event {
                self.decline(ReplyRoute { to: asker, incarnation, number }, head_bytes, bytes);
            }
        }
    }

    /// As [`Self::hand_over`], where there are interceptors.
    fn step_past_interceptors(&mut self, now: Instant, envelope: Envelope) -> bool {
        let (way, covers) = way_of(envelope);
        let passed = match envelope.event {
            Event::Message { passed, .. } => passed,
            _ => 0,
        };
        if !self.interceptions.iter().any(|it| it.applies(envelope.to, covers)) {
            self.hand_over(now, envelope);
            return true;
        }
        let Some((_, bytes)) = self.executor.queues.next() else { return false };
        let mut message = core::mem::take(&mut self.passing);
        message.clear();
        message.extend_from_slice(bytes);
        self.executor.queues.pop();
        let passage = Passage { protocol: envelope.to, way, passed };
        self.go_on(now, passage, &mut message);
        self.passing = message;
        self.apply(now);
        true
    }

    /// Takes what passes through the interceptors that are left, and to where it was going.
    fn go_on(&mut self, now: Instant, passage: Passage, message: &mut Vec<u8>) {
        let Passage { protocol, way, passed } = passage;
        let covers = match way {
            Way::Within { .. } => Covers::Node,
            Way::In { .. } | Way::Out { .. } => Covers::Network,
        };
        for at in usize::from(passed)..self.interceptions.len() {
            // Incoming messages visit interceptors in the reverse of the outgoing order.
            let index = match way {
                Way::In { .. } => self.interceptions.len() - 1 - at,
                _ => at,
            };
            let interception = self.interceptions[index];
            if !interception.applies(protocol, covers) {
                continue;
            }
            let passage = Passage { protocol, way, passed: at as u8 + 1 };
            let verdict = self.executor.with(now, interception.by, |by, surroundings| {
                by.intercept(&passage, message, surroundings)
            });
            if verdict == Some(Verdict::Stop) {
                self.counters.stopped += 1;
                return;
            }
        }
        match way {
            Way::Out { to, patience_us } => {
                let patience = Duration::from_micros(patience_us.into());
                self.send(now, protocol, to, patience, message);
            }
            Way::In { envelope } | Way::Within { envelope } => {
                let slot = self.executor.slot(protocol);
                if slot.is_some_and(|slot| is_for_another(&envelope, slot.incarnation)) {
                    self.counters.unclaimed += 1;
                    return;
                }
                let ran = self.executor.with(now, protocol, |protocol, surroundings| {
                    protocol.run(&envelope, message, surroundings)
                });
                match ran {
                    Some(Ok(())) => {}
                    Some(Err(_)) => self.counters.malformed_events += 1,
                    None => self.hand_out(envelope, message),
                }
            }
        }
    }

    /// Does what handlers wanted done.
    fn apply(&mut self, now: Instant) {
        let mut spare = Commands::default();
        for _ in 0..ROUNDS_MAX {
            let commands = &mut self.executor.surroundings.commands;
            self.counters.orders_lost += commands.take_lost();
            if commands.entries.is_empty() {
                return commands.reuse(spare);
            }
            core::mem::swap(&mut spare, commands);
            for command in &spare.entries {
                let bytes = spare.bytes(&command.action);
                self.carry_out(now, command.by, command.incarnation, &command.action, bytes);
            }
            spare.clear();
        }
        self.counters.circular += self.executor.surroundings.commands.entries.len() as u64;
        self.executor.surroundings.commands.clear();
    }

    fn carry_out(
        &mut self,
        now: Instant,
        by: ProtocolNumber,
        incarnation: u16,
        action: &Action,
        bytes: &[u8],
    ) {
        match *action {
            Action::Send { to, patience, .. } if self.interceptions.is_empty() => {
                self.send(now, by, to, patience, bytes);
            }
            Action::Send { to, patience, .. } => {
                let patience_us = u32::try_from(patience.as_micros()).unwrap_or(u32::MAX);
                let way = Way::Out { to, patience_us };
                self.go_on(now, Passage { protocol: by, way, passed: 0 }, &mut bytes.to_vec());
            }
            Action::Resume { passage, .. } => self.go_on(now, passage, &mut bytes.to_vec()),
            Action::Request { number, head_bytes, .. } => {
                self.ask(ReplyRoute { to: by, incarnation, number }, head_bytes, bytes);
            }
            Action::Reply { route, request_bytes, .. } => {
                self.answer(route, request_bytes, true, bytes);
            }
            Action::Notify { number, .. } => self.spread(number, bytes),
            Action::SetTimer { .. } | Action::CancelTimer { .. } => {
                let taken = self.executor.attend_to_timer(action);
                self.counters.timers_lost += u64::from(taken == Some(false));
            }
        }
    }

    /// Gives the dispatcher a message, if there is air for it.
    fn send(
        &mut self,
        now: Instant,
        by: ProtocolNumber,
        to: Destination,
        patience: Duration,
        message: &[u8],
    ) {
        let kind = message.first().copied().unwrap_or_default();
        let description = self.protocols().find(|known| known.number == by);
        let traffic = match description.is_some_and(|known| known.carries.contains(&kind)) {
            true => Traffic::Payload,
            false => Traffic::Control,
        };
        if !self.dispatcher.admit(now, by, to, traffic, message) {
            self.counters.over_budget += 1;
            return;
        }
        let sent = self.dispatcher.send(now, by, to, patience, message);
        self.counters.sends_refused += u64::from(sent.is_err());
    }

    /// Queues a request for whoever serves it: of several protocols, the one that started last.
    fn ask(&mut self, route: ReplyRoute, head_bytes: u16, request: &[u8]) {
        let ReplyRoute { to: asker, incarnation, number } = route;
        let serves = |description: &&Description| description.serves.contains(&number);
        let here = self.executor.slots.iter().rev().map(|slot| slot.description).find(serves);
        let server =
            here.or_else(|| self.remote.iter().rev().map(|remote| remote.description).find(serves));
        let Some(server) = server else {
            self.counters.unserved += 1;
            return self.decline(route, head_bytes, request);
        };
        let event = Event::Request { number, asker, incarnation, head_bytes };
        if !self.executor.queues.push(Envelope { to: server.number, event }, request, &[]) {
            self.counters.requests_lost += 1;
            self.decline(route, head_bytes, request);
        }
    }

    /// Lets whoever asked know that there is no answer.
    fn decline(&mut self, route: ReplyRoute, head_bytes: u16, request: &[u8]) {
        let head = request.get(..head_bytes.into()).unwrap_or(request);
        self.answer(route, head_bytes, false, head);
    }

    /// Queues an answer, of which the first `request_bytes` are the request's head.
    fn answer(&mut self, route: ReplyRoute, request_bytes: u16, answered: bool, bytes: &[u8]) {
        let ReplyRoute { to, incarnation, number } = route;
        let event = Event::Reply { number, incarnation, request_bytes, answered };
        let taken = self.executor.queues.push(Envelope { to, event }, bytes, &[]);
        self.counters.requests_lost += u64::from(!taken);
    }

    /// Queues a notification for everybody who wants it.
    fn spread(&mut self, number: u16, bytes: &[u8]) {
        let Self { executor, remote, counters, host_hears, host_inbox, .. } = self;
        let event = Event::Notification { number };
        let here = executor.slots.iter().map(|slot| slot.description);
        for description in here.chain(remote.iter().map(|remote| remote.description)) {
            if description.hears.contains(&number) {
                let envelope = Envelope { to: description.number, event };
                let taken = executor.queues.push(envelope, bytes, &[]);
                counters.notifications_lost += u64::from(!taken);
            }
        }
        if host_hears.contains(&number) {
            let taken = host_inbox.push(Envelope { to: ProtocolNumber::HOST, event }, bytes, &[]);
            counters.notifications_lost += u64::from(!taken);
        }
    }

    fn count_lost(&mut self, event: Event) {
        *match event {
            Event::Notification { .. } => &mut self.counters.notifications_lost,
            Event::Message { .. } => &mut self.counters.messages_lost,
            Event::Request { .. } | Event::Reply { .. } => &mut self.counters.requests_lost,
            Event::Timer { .. } => &mut self.counters.timers_lost,
        } += 1;
    }
}
