//! One device's end of all its sessions: turns datagrams into events and calls into datagrams.
//!
//! `opening` holds the handshakes, `deferring` what of them may wait, `calling` the calls that go out, `called` those
//! that come in.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use litemap::LiteMap;

use tenure_crypto::{StaticSecret, machine_id};
use tenure_hal::{Entropy, Instant};
use tenure_wire::datagram::{Data, Datagram, Epoch, Probe, Refusal, RefusalReason, SessionIndex};
use tenure_wire::frame::{CallBody, CallNumber, Finished, Frame, Message, ReplyBody};
use tenure_wire::{MachineId, PublicKey};

use crate::callers::Callers;
use crate::calls::{Call, Peer, Stage};
use crate::gate::Gate;
use crate::noise::Acquaintance;
use crate::question::{QUESTIONS_MAX, Question};
use crate::rest::{Rest, RestingCall, RestingPeer};
use crate::session::{Pair, Session};
use crate::sessions::Sessions;
use crate::{
    CallError, CallHandle, Config, EndpointError, Event, Fullness, IdentifyHandle,
    IncomingCallHandle, NoResult, OutgoingCall, PeerAddress, TooManyMachines,
};

mod called;
mod calling;
mod deferring;
pub(crate) mod opening;

pub use deferring::HandshakeRequest;

/// One device's (or tool's, or hub's) end of all its sessions. `A` is the transport's address of a
/// peer.
///
/// Its owner hands in each datagram that arrives. After each call the owner calls [`Self::transmit`]
/// and [`Self::event`] until both return `None`. The time that is handed in must go on while
/// the device sleeps: a caller whose clock stood still would think that its peers remember more
/// than they do.
pub struct Endpoint<A> {
    config: Config,
    machines: Vec<Machine>,
    identity: Option<PublicKey>,
    incarnation: u64,
    next_handle: u64,
    /// Higher than the number of any call that was made.
    next_number: u64,
    gate: Gate,
    sessions: Sessions<A>,
    /// How often a session ended, or wasn't opened, for want of room.
    sessions_full: u64,
    callers: Callers,
    /// How often a caller was forgotten, or put off, for want of room.
    callers_full: u64,
    peers: Vec<Peer<A>>,
    calls: Vec<Call<A>>,
    questions: Vec<Question<A>>,
    outbox: Outbox<A>,
    events: VecDeque<Event<A>>,
}

/// Whose a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It belongs to a session or a handshake of this endpoint, or asks it for something.
    Own,
    /// It belongs to a session or a handshake of another.
    Another,
    /// Only who asked can tell: it is for all who may have.
    Either,
}

/// A machine that this endpoint speaks for.
struct Machine {
    id: MachineId,
    key: PublicKey,
    secret: StaticSecret,
    /// The key that the owner's initiations to the machine prove, once that was needed: a key agreement, which
    /// nobody makes this end compute twice. `None` inside if the owner's key agrees with none.
    owner_acquaintance: Option<Option<Box<Acquaintance>>>,
}

/// Datagrams that wait to be sent.
struct Outbox<A> {
    queue: VecDeque<Queued<A>>,
    length_max: usize,
    /// How many were lost because as many waited.
    lost: u64,
    /// The bytes that were queued in the name of each machine since it was added.
    sent_bytes: LiteMap<MachineId, u64>,
}

/// A datagram that waits to be sent.
struct Queued<A> {
    to: A,
    bytes: Vec<u8>,
    is_owners: bool,
}

impl<A> Outbox<A> {
    /// Queues a datagram; one too many is lost, as it might be on its way. One for the owner takes the
    /// place of the last that is for somebody else.
    fn push(&mut self, to: A, bytes: Vec<u8>, is_owners: bool) {
        if self.queue.len() >= self.length_max {
            self.lost += 1;
            let last = self.queue.iter().rposition(|queued| !queued.is_owners);
            match last.filter(|_| is_owners) {
                Some(position) => self.queue.remove(position),
                None => return,
            };
        }
        self.queue.push_back(Queued { to, bytes, is_owners });
    }

    /// Queues an answer to somebody unknown: such answers fill half of the queue at most.
    fn push_unasked(&mut self, to: A, bytes: Vec<u8>) {
        if self.queue.len() < self.length_max.div_ceil(2) {
            self.push(to, bytes, false);
        }
    }

    /// Whether one more datagram would be lost.
    fn is_full(&self) -> bool {
        self.queue.len() >= self.length_max
    }

    /// Queues a datagram in the name of `machine`, which it counts for.
    fn push_for(&mut self, machine: &MachineId, to: A, bytes: Vec<u8>, is_owners: bool) {
        if let Some(sent) = self.sent_bytes.get_mut(machine) {
            *sent = sent.saturating_add(bytes.len() as u64);
        }
        self.push(to, bytes, is_owners);
    }
}

impl<A: PeerAddress> Endpoint<A> {
    /// An endpoint that speaks for no machine yet. It remembers no call from before `now`, and
    /// tells its peers so.
    ///
    /// # Errors
    /// [`EndpointError`] if the limits don't fit one another or there is no randomness.
    pub fn new(
        config: Config,
        now: Instant,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, EndpointError> {
        config.check().map_err(EndpointError::Config)?;
        let mut config = config;
        config.favoured.sort_unstable();
        config.favoured.dedup();
        let mut gate = Gate::new(&config, now, entropy).map_err(EndpointError::Entropy)?;
        Ok(Self {
            machines: Vec::new(),
            identity: None,
            incarnation: gate.draw_incarnation(),
            next_handle: 1,
            next_number: 1,
            gate,
            sessions: Sessions::new(),
            sessions_full: 0,
            callers: Callers::new(now),
            callers_full: 0,
            peers: Vec::new(),
            calls: Vec::new(),
            questions: Vec::new(),
            outbox: Outbox {
                queue: VecDeque::new(),
                length_max: config.queued_datagrams_max,
                lost: 0,
                sent_bytes: LiteMap::new(),
            },
            events: VecDeque::new(),
            config,
        })
    }

    /// The state to keep through a deep sleep of this endpoint, to be restored by [`Endpoint::wake`] once at
    /// most. Calls that aren't `wanted` are dropped, and with them the state of their peer: all
    /// calls of a pair or none are wanted.
    pub fn rest(&self, wanted: impl Fn(CallHandle) -> bool) -> Rest<A> {
        let wanted = |call: &&Call<A>| wanted(call.handle);
        let is_called =
            |peer: &&Peer<A>| self.calls.iter().filter(wanted).any(|call| call.pair == peer.pair);
        Rest {
            incarnation: self.incarnation,
            next_handle: self.next_handle,
            next_number: self.next_number,
            peers: self.peers.iter().filter(is_called).map(RestingPeer::of).collect(),
            calls: self.calls.iter().filter(wanted).map(RestingCall::of).collect(),
            callers: self.callers.rest(),
        }
    }

    /// The calls that came in and are still to be answered by [`Endpoint::reply`].
    pub fn incoming(&self) -> impl Iterator<Item = IncomingCallHandle> {
        self.callers.all_running().into_iter().map(|(handle, _)| handle)
    }

    /// Bytes of memory that records of received calls take, answers above all.
    pub fn answers_bytes(&self) -> usize {
        self.callers.heap_bytes()
    }

    /// Forgets calls that ended: a deliberate mistake, by which they run again if their callers repeat
    /// them.
    #[cfg(forgetful)]
    pub fn forget_ended_calls(&mut self) {
        self.callers.forget_ended();
    }

    /// Tells those whose calls run here that this end sleeps now, and until when. It is sent once, by
    /// the datagrams that are to be transmitted next; who doesn't hear of it finds nobody for a while.
    pub fn announce_sleep(&mut self, wakes_in: Duration) {
        let wakes_in_ms = u32::try_from(wakes_in.as_millis()).unwrap_or(u32::MAX);
        for (handle, session) in self.callers.all_running() {
            self.send(session, Frame::Asleep { number: handle.number, wakes_in_ms });
        }
    }

    /// An endpoint that goes on where another came to rest. Time must have gone on meanwhile; the
    /// machines that it spoke for are to be added before it is polled.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn wake(
        config: Config,
        now: Instant,
        entropy: &mut dyn Entropy,
        rest: Rest<A>,
    ) -> Result<Self, EndpointError> {
        let mut endpoint = Self::new(config, now, entropy)?;
        endpoint.incarnation = rest.incarnation;
        endpoint.next_handle = rest.next_handle;
        endpoint.next_number = rest.next_number;
        endpoint.peers = rest.peers.into_iter().map(|peer| peer.wake(now)).collect();
        endpoint.calls =
            rest.calls.into_iter().map(|call| call.wake(now, &endpoint.config)).collect();
        endpoint.callers = Callers::wake(now, rest.callers);
        Ok(endpoint)
    }

    /// Speaks for one more machine from now on.
    ///
    /// # Errors
    /// [`TooManyMachines`] beyond [`Config::machines_max`].
    pub fn add_machine(&mut self, secret: StaticSecret) -> Result<MachineId, TooManyMachines> {
        let key = secret.public_key();
        self.add_machine_of(secret, key)
    }

    /// As [`Self::add_machine`], of a secret whose public key was computed before.
    ///
    /// # Errors
    /// [`TooManyMachines`] beyond [`Config::machines_max`].
    pub fn add_machine_of(
        &mut self,
        secret: StaticSecret,
        key: PublicKey,
    ) -> Result<MachineId, TooManyMachines> {
        debug_assert_eq!(secret.public_key(), key, "the key is the secret's");
        let id = machine_id(&key);
        if self.machine(&id).is_some() {
            return Ok(id);
        }
        if self.machines.len() >= self.config.machines_max {
            return Err(TooManyMachines);
        }
        self.machines.reserve_exact(1);
        self.machines.push(Machine { id, key, secret, owner_acquaintance: None });
        self.outbox.sent_bytes.insert(id, 0);
        Ok(id)
    }

    /// Speaks no longer for `machine`: its sessions end, its own calls fail, and replies to calls
    /// that it is still executing are dropped.
    pub fn remove_machine(&mut self, now: Instant, machine: &MachineId) {
        if let Some(position) = self.machines.iter().position(|known| known.id == *machine) {
            let gone = self.machines.swap_remove(position);
            self.identity.take_if(|key| *key == gone.key);
            self.outbox.sent_bytes.remove(machine);
        }
        for forgotten in self.callers.forget_machine(|pair| pair.local == *machine) {
            self.after_forgetting(now, forgotten);
        }
        while let Some(call) = self.calls.iter().find(|call| call.pair.local == *machine) {
            let failure =
                if call.is_unsent() { NoResult::Unreachable } else { NoResult::OutcomeUnknown };
            self.finish(now, call.handle, Err(failure));
        }
        self.peers.retain(|peer| peer.pair.local != *machine);
        let of_machine = self.sessions.iter().filter(|session| session.pair.local == *machine);
        let of_machine: Vec<SessionIndex> = of_machine.map(|session| session.index).collect();
        of_machine.into_iter().for_each(|index| self.sessions.remove(index));
    }

    /// Names the machine whose key this device tells to anybody who asks: its own.
    pub fn identify_as(&mut self, machine: &MachineId) {
        self.identity = self.machine(machine).map(|machine| machine.key);
    }

    /// Keeps room for another owner's calls from now on, and none for the former's.
    pub fn change_owner(&mut self, owner: PublicKey) {
        self.config.owner = Some(owner);
        self.machines.iter_mut().for_each(|machine| machine.owner_acquaintance = None);
    }

    /// Prefers a peer to strangers from now on, or no longer ([`Config::favoured`]).
    pub fn favour(&mut self, peer: &PublicKey, is_favoured: bool) {
        let favoured = &mut self.config.favoured;
        match (favoured.binary_search(peer), is_favoured) {
            (Err(position), true) => favoured.insert(position, *peer),
            (Ok(position), false) => drop(favoured.remove(position)),
            (Ok(_), true) | (Err(_), false) => {}
        }
    }

    /// How full the tables are that peers fill.
    pub fn fullness(&self) -> [Fullness; 4] {
        let Self { config, sessions, callers, gate, outbox, .. } = self;
        let (initiations, epochs_cut) = gate.remembered();
        [
            Fullness {
                table: "sessions",
                used: sessions.len(),
                most: config.sessions_max,
                times_full: self.sessions_full,
            },
            Fullness {
                table: "callers",
                used: callers.len(),
                most: config.callers_max,
                times_full: self.callers_full,
            },
            Fullness {
                table: "initiations",
                used: initiations,
                most: config.accepted_initiations_max,
                times_full: epochs_cut,
            },
            Fullness {
                table: "datagrams",
                used: outbox.queue.len(),
                most: outbox.length_max,
                times_full: outbox.lost,
            },
        ]
    }

    /// The current epoch. It changes now and then: compare before publishing.
    pub fn epoch(&self) -> Epoch {
        self.gate.epoch()
    }

    /// The epoch to publish now: one that is accepted for as long as [`Config::epoch_lifetime`] from
    /// now, unless the memory for accepted initiations is full before.
    pub fn epoch_to_publish(&mut self, now: Instant) -> Epoch {
        self.gate.end_epochs(now);
        self.gate.epoch()
    }

    /// Calls a function of the machine that holds `peer`, in the name of the machine `from`.
    ///
    /// `route` is where the peer is believed to be, `epoch_hint` its epoch as published.
    ///
    /// # Errors
    /// [`CallError`] if the call can't be made; there is no event then.
    #[expect(clippy::too_many_arguments, reason = "who, whom, where and what are four things")]
    pub fn call(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        from: &MachineId,
        peer: &PublicKey,
        route: A,
        epoch_hint: Option<Epoch>,
        call: OutgoingCall,
    ) -> Result<CallHandle, CallError> {
        if self.machine(from).is_none() {
            return Err(CallError::UnknownMachine);
        }
        let parameter = call.parameter.as_deref();
        if parameter.map_or(0, <[u8]>::len) > self.config.parameter_bytes_max {
            return Err(CallError::TooLong);
        }
        let remaining_ms = call.deadline.since(now).as_millis();
        let body = CallBody {
            remaining_ms: u32::try_from(remaining_ms).unwrap_or(u32::MAX),
            function: &call.function,
            parameter,
        };
        let body = body.to_bytes().map_err(|_| CallError::Function)?;
        let pair = Pair { local: *from, peer: *peer };
        let bytes: usize = self.calls.iter().map(|call| call.body.len()).sum();
        let bytes_max = self.config.calls_bytes_max.saturating_sub(self.config.body_bytes_max());
        if bytes + body.len() > bytes_max {
            return Err(CallError::Busy);
        }
        if self.calls.len() >= self.config.calls_max || !self.know_peer(now, pair, epoch_hint) {
            return Err(CallError::Busy);
        }
        let handle = CallHandle(self.draw_handle());
        let Some(peer) = self.peer(&pair) else { return Err(CallError::Busy) };
        let number = peer.next_number;
        peer.next_number = CallNumber(number.0 + 1);
        self.next_number = self.next_number.max(number.0 + 1);
        let fragment_bytes = self.config.fragment_bytes();
        // The first sending is none of the further attempts.
        let limits = (call.deadline, call.attempts.max(1) - 1);
        let call = Call::new(now, handle, number, pair, route, body, fragment_bytes, limits);
        self.calls.push(call);
        self.advance(now, entropy, &pair);
        Ok(handle)
    }

    /// Gives up on a call: there is no event for it. It may have been executed, or yet be.
    pub fn cancel(&mut self, now: Instant, handle: CallHandle) {
        self.withdraw(now, handle);
    }

    /// Answers a call that came in. An answer to a call that is no longer known is dropped.
    pub fn reply(
        &mut self,
        now: Instant,
        handle: IncomingCallHandle,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        let result = match &result {
            Ok(Some(value)) if value.len() > self.config.parameter_bytes_max => {
                Err(NoResult::TooLong)
            }
            Ok(value) => Ok(value.as_deref()),
            Err(declined) => Err(*declined),
        };
        self.finish_incoming(now, handle, ReplyBody(result).to_bytes());
    }

    /// Answers a call that came in by a failure for `reason`, on which the machine says `words`, of which
    /// the caller gets [`WORDS_BYTES_MAX`](tenure_wire::limits::WORDS_BYTES_MAX) at most.
    pub fn reply_failed(
        &mut self,
        now: Instant,
        handle: IncomingCallHandle,
        reason: NoResult,
        words: &[u8],
    ) {
        self.finish_incoming(now, handle, ReplyBody::failure(reason, words));
    }

    /// Asks whoever is at `route` for its key and epoch, again and again until `deadline`.
    ///
    /// # Errors
    /// [`CallError::Busy`] if too many such questions are under way.
    pub fn identify(
        &mut self,
        now: Instant,
        route: A,
        deadline: Instant,
    ) -> Result<IdentifyHandle, CallError> {
        if self.questions.len() >= QUESTIONS_MAX {
            return Err(CallError::Busy);
        }
        let handle = IdentifyHandle(self.draw_handle());
        let nonce = self.gate.draw_nonce();
        let mut question = Question::new(handle, nonce, route, deadline);
        let datagram = question.ask(&self.config, now);
        self.outbox.push(question.route().clone(), datagram, false);
        self.questions.push(question);
        Ok(handle)
    }

    /// Takes in a datagram that came from `from`. Whatever is in it, the worst that happens is that
    /// nothing does.
    pub fn receive(&mut self, now: Instant, entropy: &mut dyn Entropy, from: A, datagram: &[u8]) {
        let Ok(parsed) = Datagram::parse(datagram) else { return };
        match parsed {
            Datagram::Initiation(initiation) => {
                self.on_initiation(now, entropy, from, datagram.len(), &initiation);
            }
            Datagram::Response(response) => self.on_response(now, from, &response),
            Datagram::Data(data) => self.on_data(now, entropy, from, datagram.len(), &data),
            Datagram::Probe(Probe { nonce }) => self.challenge(now, from, nonce),
            Datagram::Challenge(challenge) => self.on_challenge(now, entropy, &challenge),
            Datagram::Refusal(refusal) => self.on_refusal(now, entropy, &refusal),
            Datagram::Deferral(deferral) => self.on_deferral(now, &deferral),
        }
    }

    /// Whose a datagram is, for somebody who carries datagrams of another endpoint too.
    pub fn whose(&self, datagram: &[u8]) -> Whose {
        let is_here = |index: SessionIndex| self.sessions.get(index).is_some();
        let is_own = match Datagram::parse(datagram) {
            Ok(Datagram::Response(response)) => self.awaits_response(response.receiver),
            Ok(Datagram::Data(data)) => is_here(data.receiver),
            Ok(Datagram::Challenge(_) | Datagram::Refusal(_) | Datagram::Deferral(_)) => {
                return Whose::Either;
            }
            Ok(Datagram::Initiation(_) | Datagram::Probe(_)) | Err(_) => true,
        };
        if is_own { Whose::Own } else { Whose::Another }
    }

    fn on_data(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        from: A,
        length: usize,
        data: &Data<'_>,
    ) {
        let config = &self.config;
        let session = self.sessions.get_mut(data.receiver);
        let Some(session) = session.filter(|session| !session.is_over(config, now)) else {
            if self.gate.may_refuse(now) {
                let refusal = Refusal { reason: RefusalReason::NoSuchSession, echo: data.echo() };
                self.outbox.push_unasked(from, refusal.to_bytes().to_vec());
            }
            return;
        };
        let Ok((bytes, newest)) = session.open(data) else { return };
        let moved = session.heard(now, &from, length, newest);
        let pair = session.pair;
        let newly_confirmed = !core::mem::replace(&mut session.confirmed, true);
        if moved {
            self.saw(&pair, from);
        }
        if newly_confirmed {
            self.on_confirmed(now, entropy, data.receiver);
        }
        let Ok(message) = Message::parse(&bytes) else { return };
        self.on_message(now, entropy, data.receiver, &message);
    }

    /// Takes in what an authenticated peer says.
    fn on_message(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        session: SessionIndex,
        message: &Message<'_>,
    ) {
        let Some(known) = self.session(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        if let Some(caller) = self.callers.find(&pair, incarnation) {
            caller.note_finished(&message.finished);
        }
        match message.frame {
            Frame::Acknowledge => {}
            Frame::Call { number, fragment } => {
                self.on_call(now, session, &message.finished, number, &fragment);
            }
            Frame::Query { number } => self.on_query(now, session, number),
            Frame::Want { number, burst, fragments } => {
                self.on_want(now, session, number, burst, &fragments);
            }
            Frame::Prove { number, cookie } => {
                self.send(session, Frame::Proof { number, cookie });
                self.on_later(now, &pair, number);
            }
            Frame::Proof { cookie, .. } => self.on_proof(now, session, &cookie),
            Frame::Later { number } => self.on_later(now, &pair, number),
            Frame::Running { number } => self.on_running(now, &pair, number),
            Frame::Asleep { number, wakes_in_ms } => {
                self.on_asleep(now, &pair, number, Duration::from_millis(wakes_in_ms.into()));
            }
            Frame::Missing { number, fragments } => {
                self.on_missing(now, &pair, number, &fragments);
            }
            Frame::Reply { number, held_us, fragment } => {
                self.on_reply(now, entropy, &pair, number, held_us, &fragment);
            }
        }
    }

    /// Does what time has come for: sends again, gives up, forgets.
    pub fn poll(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        self.poll_questions(now);
        self.poll_sessions(now, entropy);
        self.poll_calls(now, entropy);
        self.poll_handshakes(now, entropy);
        self.poll_acknowledgements(now);
        self.callers.expire_assemblies(&self.config, now);
    }

    /// When to call [`Self::poll`] next, if nothing else happens before.
    pub fn poll_at(&self) -> Option<Instant> {
        let calls = self.calls.iter().flat_map(|call| {
            let again = match call.stage {
                Stage::Sent { .. } => true,
                Stage::Waiting => !self.is_opening(&call.pair),
                Stage::Riding => false,
            };
            [Some(call.deadline), again.then_some(call.next_at)]
        });
        let peers = self.peers.iter().flat_map(|peer| {
            [peer.acknowledge_at, peer.handshake.as_ref().map(|handshake| handshake.next_at)]
        });
        let questions = self.questions.iter().map(Question::next_at);
        calls
            .chain(peers)
            .flatten()
            .chain(self.sessions.next_over(&self.config))
            .chain(questions)
            .chain(self.callers.next_expiry(&self.config))
            .min()
    }

    /// The next datagram to send, and where to.
    pub fn transmit(&mut self) -> Option<(A, Vec<u8>)> {
        self.outbox.queue.pop_front().map(|queued| (queued.to, queued.bytes))
    }

    /// The bytes that were sent in the name of `machine` in its sessions and to open them, since
    /// the last call of this.
    pub fn take_sent_bytes(&mut self, machine: &MachineId) -> u64 {
        self.outbox.sent_bytes.get_mut(machine).map_or(0, core::mem::take)
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event<A>> {
        self.events.pop_front()
    }

    fn machine(&self, id: &MachineId) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.id == *id)
    }

    fn session(&self, index: SessionIndex) -> Option<&Session<A>> {
        self.sessions.get(index)
    }

    fn peer(&mut self, pair: &Pair) -> Option<&mut Peer<A>> {
        self.peers.iter_mut().find(|peer| peer.pair == *pair)
    }

    fn is_opening(&self, pair: &Pair) -> bool {
        self.peers.iter().any(|peer| peer.pair == *pair && peer.handshake.is_some())
    }

    /// Which calls of this pair are over.
    fn finished(&self, pair: &Pair) -> Finished {
        self.peers
            .iter()
            .find(|peer| peer.pair == *pair)
            .map_or(Finished::below(CallNumber(self.next_number)), |peer| peer.finished)
    }

    fn draw_handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle
    }

    /// Sends a frame over a session, to where the peer was last heard.
    fn send(&mut self, session: SessionIndex, frame: Frame<'_>) -> Delivery {
        let Some(pair) = self.session(session).map(|session| session.pair) else {
            return Delivery::Withheld;
        };
        let message = Message { finished: self.finished(&pair), frame };
        let delivery =
            seal(&self.config, &mut self.sessions, &mut self.outbox, session, None, &message);
        if delivery == Delivery::Sent {
            self.acknowledged(&pair);
        }
        delivery
    }

    /// Takes note that the peer was just told which calls of this end's are over.
    fn acknowledged(&mut self, pair: &Pair) {
        if let Some(peer) = self.peer(pair) {
            peer.acknowledge_at = None;
        }
    }

    /// Reports where a peer is; while nobody takes the reports, only some are kept.
    fn saw(&mut self, pair: &Pair, from: A) {
        if self.events.len() < self.config.sessions_max {
            self.events.push_back(Event::PeerSeen { machine: pair.local, peer: pair.peer, from });
        }
    }

    fn poll_questions(&mut self, now: Instant) {
        for question in &mut self.questions {
            if question.next_at() <= now && !question.is_over(now) {
                let datagram = question.ask(&self.config, now);
                self.outbox.push(question.route().clone(), datagram, false);
            }
        }
        for question in self.questions.extract_if(.., |question| question.is_over(now)) {
            self.events.push_back(Event::Identified { handle: question.handle(), identity: None });
        }
    }
}

/// Whether a datagram went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    Sent,
    /// The session is gone or used up, or the peer must first show that it receives at its address.
    Withheld,
}

/// Seals a message and queues it, to `route` if one is named, else to where the peer was last
/// heard.
fn seal<A: PeerAddress>(
    config: &Config,
    sessions: &mut Sessions<A>,
    outbox: &mut Outbox<A>,
    index: SessionIndex,
    route: Option<&A>,
    message: &Message<'_>,
) -> Delivery {
    let Some(session) = sessions.get_mut(index) else { return Delivery::Withheld };
    let Some(datagram) = session.seal(config, message) else { return Delivery::Withheld };
    let to = match route {
        Some(route) => route.clone(),
        None if session.may_send(datagram.len()) => session.route.clone(),
        None => return Delivery::Withheld,
    };
    let Pair { local, peer } = session.pair;
    if session.is_used_up(config) {
        sessions.note_used_up(index);
    }
    outbox.push_for(&local, to, datagram, config.is_owner(&peer));
    Delivery::Sent
}

#[cfg(test)]
mod tests;
