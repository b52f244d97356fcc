//! One device's end of all its sessions: turns datagrams into events and calls into datagrams.
//!
//! Each part owns its state, and is lent what it needs for one use: `station` is what calls of either direction
//! stand on (`machines`, `peers`, sessions, `outbox`), `calling` holds the calls that go out, with the handshakes that
//! they need in `opening`, `called` those that come in. `accepting` makes sessions of handshakes, `deferring` tells what
//! of them may wait, `ending` which session goes. What takes several of them stands in the endpoint itself.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_crypto::StaticSecret;
use tenure_hal::{Entropy, Instant};
use tenure_wire::datagram::{
    Challenge, Cookie, Data, Datagram, Epoch, Probe, RefusalReason, SessionIndex,
};
use tenure_wire::frame::{CallNumber, Finished, Fragment, Frame, Message, ReplyBody};
use tenure_wire::{MachineId, PublicKey};

use self::called::{Incoming, Room};
use self::calling::Outgoing;
use self::station::{Means, Station};
use crate::callers::Callers;
use crate::calls::{Call, Peer};
use crate::question::Question;
use crate::rest::{Rest, RestingCall, RestingPeer};
use crate::session::Pair;
use crate::{
    CallError, CallHandle, Config, EndpointError, Event, Fullness, IdentifyHandle, Identity,
    IncomingCallHandle, NoResult, OutgoingCall, PeerAddress, TooManyMachines,
};

mod accepting;
mod called;
mod calling;
mod deferring;
mod ending;
mod machines;
pub(crate) mod opening;
mod outbox;
mod peers;
mod station;

pub use deferring::HandshakeRequest;

/// One device's (or tool's, or hub's) end of all its sessions. `A` is the transport's address of a
/// peer.
///
/// Its owner hands in each datagram that arrives. After each call the owner calls [`Self::transmit`]
/// and [`Self::event`] until both return `None`. The time that is handed in must go on while
/// the device sleeps: a caller whose clock stood still would think that its peers remember more
/// than they do.
pub struct Endpoint<A> {
    station: Station<A>,
    outgoing: Outgoing<A>,
    incoming: Incoming,
    questions: Vec<Question<A>>,
    next_handle: u64,
    /// How often a session ended, or wasn't opened, for want of room.
    sessions_full: u64,
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
        Ok(Self {
            station: Station::new(config, now, entropy)?,
            outgoing: Outgoing::new(),
            incoming: Incoming::new(Callers::new(now)),
            questions: Vec::new(),
            next_handle: 1,
            sessions_full: 0,
        })
    }

    /// The state to keep through a deep sleep of this endpoint, to be restored by [`Endpoint::wake`] once at
    /// most. Calls that aren't `wanted` are dropped, and with them the state of their peer: all
    /// calls of a pair or none are wanted.
    pub fn rest(&self, wanted: impl Fn(CallHandle) -> bool) -> Rest<A> {
        let wanted = |call: &&Call<A>| wanted(call.handle);
        let is_called = |peer: &&Peer<A>| {
            self.outgoing.calls.iter().filter(wanted).any(|call| call.pair == peer.pair)
        };
        Rest {
            incarnation: self.station.incarnation,
            next_handle: self.next_handle,
            next_number: self.station.peers.next_number,
            peers: self.station.peers.list.iter().filter(is_called).map(RestingPeer::of).collect(),
            calls: self.outgoing.calls.iter().filter(wanted).map(RestingCall::of).collect(),
            callers: self.incoming.callers.rest(),
        }
    }

    /// The calls that came in and are still to be answered by [`Endpoint::reply`].
    pub fn incoming(&self) -> impl Iterator<Item = IncomingCallHandle> {
        self.incoming.callers.all_running().into_iter().map(|(handle, _)| handle)
    }

    /// Bytes of memory that records of received calls take, answers above all.
    pub fn answers_bytes(&self) -> usize {
        self.incoming.callers.heap_bytes()
    }

    /// Forgets calls that ended: a deliberate mistake, by which they run again if their callers repeat
    /// them.
    #[cfg(forgetful)]
    pub fn forget_ended_calls(&mut self) {
        self.incoming.callers.forget_ended();
    }

    /// Tells those whose calls run here that this end sleeps now, and until when. It is sent once, by
    /// the datagrams that are to be transmitted next; who doesn't hear of it finds nobody for a while.
    pub fn announce_sleep(&mut self, wakes_in: Duration) {
        let wakes_in_ms = u32::try_from(wakes_in.as_millis()).unwrap_or(u32::MAX);
        for (handle, session) in self.incoming.callers.all_running() {
            self.station.send(session, Frame::Asleep { number: handle.number, wakes_in_ms });
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
        let Self { station, outgoing, incoming, .. } = &mut endpoint;
        station.incarnation = rest.incarnation;
        station.peers.next_number = rest.next_number;
        station.peers.list = rest.peers.into_iter().map(|peer| peer.wake(now)).collect();
        let calls = rest.calls.into_iter().map(|call| call.wake(now, &station.config));
        outgoing.calls = calls.collect();
        incoming.callers = Callers::wake(now, rest.callers);
        endpoint.next_handle = rest.next_handle;
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
        let added = self.station.machines.add(self.station.config.machines_max, secret, key)?;
        if added.is_new {
            self.station.outbox.count_for(added.id);
        }
        Ok(added.id)
    }

    /// Speaks no longer for `machine`: its sessions end, its own calls fail, and replies to calls
    /// that it is still executing are dropped.
    pub fn remove_machine(&mut self, now: Instant, machine: &MachineId) {
        if self.station.machines.remove(machine) {
            self.station.outbox.count_no_longer(machine);
        }
        for forgotten in self.incoming.callers.forget_machine(|pair| pair.local == *machine) {
            self.after_forgetting(now, forgotten);
        }
        self.outgoing.fail(&mut self.station, now, |pair| pair.local == *machine);
        let Station { sessions, peers, .. } = &mut self.station;
        peers.list.retain(|peer| peer.pair.local != *machine);
        let of_machine = sessions.iter().filter(|session| session.pair.local == *machine);
        let of_machine: Vec<SessionIndex> = of_machine.map(|session| session.index).collect();
        of_machine.into_iter().for_each(|index| sessions.remove(index));
    }

    /// Speaks to `peer` in the name of `machine` elsewhere from now on, as with a peer that runs in several places with one
    /// key: their sessions end, the calls that are under way fail, and the next one opens a session where it goes.
    pub fn leave(&mut self, now: Instant, machine: &MachineId, peer: &PublicKey) {
        let pair = Pair { local: *machine, peer: *peer };
        self.outgoing.fail(&mut self.station, now, |called| *called == pair);
        let Station { sessions, peers, .. } = &mut self.station;
        peers.list.retain(|known| known.pair != pair);
        let of_pair: Vec<SessionIndex> =
            sessions.of_pair(&pair).map(|session| session.index).collect();
        of_pair.into_iter().for_each(|index| sessions.remove(index));
    }

    /// Names the machine whose key this device tells to anybody who asks: its own.
    pub fn identify_as(&mut self, machine: &MachineId) {
        self.station.machines.identify_as(machine);
    }

    /// Keeps room for another owner's calls from now on, and none for the former's.
    pub fn change_owner(&mut self, owner: PublicKey) {
        self.station.config.owner = Some(owner);
        self.station.machines.forget_owner();
    }

    /// Prefers a peer to strangers from now on, or no longer ([`Config::favoured`]).
    pub fn favour(&mut self, peer: &PublicKey, is_favoured: bool) {
        self.station.favour(peer, is_favoured);
    }

    /// Has at least as much room for peers from now on as `config` says: for sessions, callers and accepted initiations.
    pub fn widen(&mut self, config: &Config) {
        self.station.widen(config);
    }

    /// How full the tables are that peers fill.
    pub fn fullness(&self) -> [Fullness; 4] {
        let Station { config, sessions, gate, outbox, .. } = &self.station;
        let callers = &self.incoming.callers;
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
                times_full: self.incoming.times_full,
            },
            Fullness {
                table: "initiations",
                used: initiations,
                most: config.accepted_initiations_max,
                times_full: epochs_cut,
            },
            Fullness {
                table: "datagrams",
                used: outbox.len(),
                most: config.queued_datagrams_max,
                times_full: outbox.lost(),
            },
        ]
    }

    /// The current epoch. It changes now and then: compare before publishing.
    pub fn epoch(&self) -> Epoch {
        self.station.gate.epoch()
    }

    /// The epoch to publish now: one that is accepted for as long as [`Config::epoch_lifetime`] from
    /// now, unless the memory for accepted initiations is full before.
    pub fn epoch_to_publish(&mut self, now: Instant) -> Epoch {
        self.station.epoch_to_publish(now)
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
        if self.station.machines.get(from).is_none() {
            return Err(CallError::UnknownMachine);
        }
        let to = (Pair { local: *from, peer: *peer }, route, epoch_hint);
        let mut means = self.means(now, entropy);
        let Self { station, outgoing, next_handle, .. } = self;
        outgoing.call(station, &mut means, to, || CallHandle(draw(next_handle)), &call)
    }

    /// Gives up on a call: there is no event for it. It may have been executed, or yet be.
    pub fn cancel(&mut self, now: Instant, handle: CallHandle) {
        self.outgoing.withdraw(&mut self.station, now, handle);
    }

    /// Answers a call that came in. An answer to a call that is no longer known is dropped.
    pub fn reply(
        &mut self,
        now: Instant,
        handle: IncomingCallHandle,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        let result = match &result {
            Ok(Some(value)) if value.len() > self.station.config.parameter_bytes_max => {
                Err(NoResult::TooLong)
            }
            Ok(value) => Ok(value.as_deref()),
            Err(declined) => Err(*declined),
        };
        self.incoming.finish_incoming(&mut self.station, now, handle, ReplyBody(result).to_bytes());
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
        self.incoming.finish_incoming(
            &mut self.station,
            now,
            handle,
            ReplyBody::failure(reason, words),
        );
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
        if self.questions.len() >= self.station.config.questions_max {
            return Err(CallError::Busy);
        }
        let handle = IdentifyHandle(draw(&mut self.next_handle));
        let nonce = self.station.gate.draw_nonce();
        let mut question = Question::new(handle, nonce, route, deadline);
        let datagram = question.ask(&self.station.config, now);
        self.station.outbox.push(question.route().clone(), datagram, false);
        self.questions.push(question);
        Ok(handle)
    }

    /// Which incarnation of its peer a call that came in is of, as long as that is remembered.
    pub fn incarnation_of(&mut self, handle: IncomingCallHandle) -> Option<u64> {
        self.incoming.callers.by_id(handle.caller).map(|caller| caller.incarnation)
    }

    /// Where `peer` has shown that it receives, in its newest session with `machine` that is open; or in the newest one of an
    /// `incarnation` of it.
    pub fn shown_route(
        &self,
        now: Instant,
        machine: &MachineId,
        peer: &PublicKey,
        incarnation: Option<u64>,
    ) -> Option<&A> {
        let pair = Pair { local: *machine, peer: *peer };
        let session = match incarnation {
            None => self.station.newest_session(now, &pair),
            Some(incarnation) => self.station.newest_session_of(now, &pair, incarnation),
        }?;
        session.reaches().then_some(&session.route)
    }

    /// Asks `peer` to show that it receives where it was last heard, if it hasn't yet.
    pub fn ask_where(&mut self, now: Instant, machine: &MachineId, peer: &PublicKey) {
        let pair = Pair { local: *machine, peer: *peer };
        let session = self.station.newest_session(now, &pair);
        if let Some(index) = session.filter(|session| !session.reaches()).map(|it| it.index) {
            self.station.ask_for_proof(now, index, CallNumber(0));
        }
    }

    /// Takes in a datagram that came from `from`. Whatever is in it, the worst that happens is that
    /// nothing does.
    pub fn receive(&mut self, now: Instant, entropy: &mut dyn Entropy, from: A, datagram: &[u8]) {
        let Ok(parsed) = Datagram::parse(datagram) else { return };
        let mut means = self.means(now, entropy);
        let Self { station, outgoing, .. } = self;
        match parsed {
            Datagram::Initiation(initiation) => {
                self.on_initiation(now, means.entropy, from, datagram.len(), &initiation);
            }
            Datagram::Response(response) => self.on_response(now, from, &response),
            Datagram::Data(data) => self.on_data(now, means.entropy, from, datagram.len(), &data),
            Datagram::Probe(Probe { nonce }) => station.challenge(now, from, nonce),
            Datagram::Challenge(challenge) => on_challenge(self, &mut means, &challenge),
            Datagram::Refusal(refusal) => outgoing.on_refusal(station, &mut means, &refusal),
            Datagram::Deferral(deferral) => outgoing.on_deferral(station, now, &deferral),
        }
    }

    /// The device stood still until `now`, so that nobody can tell how long what comes next has waited. What comes in a session
    /// says by itself until when it is wanted; no first message that was made before is executed as it comes: who made it is
    /// asked for another, and still has its call run once, if it waits for it.
    pub fn stood_still(&mut self, now: Instant) {
        self.station.gate.begin_epoch(now);
    }

    /// Whose a datagram is, for somebody who carries datagrams of another endpoint too.
    pub fn whose(&self, datagram: &[u8]) -> Whose {
        let is_here = |index: SessionIndex| self.station.sessions.get(index).is_some();
        let is_own = match Datagram::parse(datagram) {
            Ok(Datagram::Response(response)) => {
                self.station.peers.awaits_response(response.receiver)
            }
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
        let Station { config, sessions, .. } = &mut self.station;
        let session = sessions.get_mut(data.receiver);
        let Some(session) = session.filter(|session| !session.is_over(config, now)) else {
            return self.station.refuse(now, from, RefusalReason::NoSuchSession, data.echo());
        };
        let Ok((bytes, newest)) = session.open(data) else { return };
        let moved = session.heard(now, &from, length, newest);
        let pair = session.pair;
        let newly_confirmed = !core::mem::replace(&mut session.confirmed, true);
        session.clocks.peer_has_session(now);
        if moved {
            self.station.saw(&pair, from);
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
        let mut means = self.means(now, entropy);
        let Self { station, outgoing, incoming, .. } = self;
        let Some(known) = station.sessions.get(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        if let Some(caller) = incoming.callers.find(&pair, incarnation) {
            caller.note_finished(&message.finished);
        }
        match message.frame {
            Frame::Acknowledge => {}
            Frame::Call { number, until_ms, fragment } => {
                self.on_call(now, session, &message.finished, (number, until_ms), &fragment);
            }
            Frame::Late { number, clock_ms } => {
                outgoing.on_late(station, now, session, number, clock_ms);
            }
            Frame::Query { number } => incoming.on_query(station, now, session, number),
            Frame::Want { number, burst, fragments } => {
                incoming.on_want(station, now, session, number, burst, &fragments);
            }
            Frame::Prove { number, cookie } => {
                station.send(session, Frame::Proof { number, cookie });
                outgoing.on_later(station, now, &pair, number);
            }
            Frame::Proof { cookie, .. } => self.on_proof(now, session, &cookie),
            Frame::Later { number } => outgoing.on_later(station, now, &pair, number),
            Frame::Running { number } => outgoing.on_running(station, now, &pair, number),
            Frame::Asleep { number, wakes_in_ms } => {
                let wakes_in = Duration::from_millis(wakes_in_ms.into());
                outgoing.on_asleep(station, now, &pair, number, wakes_in);
            }
            Frame::Missing { number, fragments } => {
                outgoing.on_missing(station, now, &pair, number, &fragments);
            }
            Frame::Reply { number, held_us, fragment } => {
                outgoing.on_reply(station, &mut means, &pair, number, held_us, &fragment);
            }
        }
    }

    /// A part of a call came: its caller is remembered, in the place of another if need be, or it isn't executed. Nor is it if it
    /// comes later than it is wanted.
    fn on_call(
        &mut self,
        now: Instant,
        session: SessionIndex,
        finished: &Finished,
        (number, until_ms): (CallNumber, Option<u32>),
        fragment: &Fragment<'_>,
    ) {
        let Some(known) = self.station.sessions.get(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        let late_at_ms = known.clocks.late_at_ms(now, until_ms);
        // One that has begun is asked after, however late.
        let late_at_ms =
            late_at_ms.filter(|_| !self.incoming.callers.has_begun(&pair, incarnation, number));
        if let Some(clock_ms) = late_at_ms {
            if fragment.last_of_burst() {
                self.station.send(session, Frame::Late { number, clock_ms });
            }
            return;
        }
        match self.incoming.make_room(&self.station.config, &pair, incarnation) {
            Room::Free => {}
            Room::Made(forgotten) => self.after_forgetting(now, forgotten),
            Room::Full => {
                self.station.send(session, Frame::Later { number });
                return;
            }
        }
        self.incoming.on_call(&mut self.station, now, session, finished, number, fragment);
    }

    /// The peer returns a cookie: what waited for that can be sent.
    fn on_proof(&mut self, now: Instant, index: SessionIndex, cookie: &Cookie) {
        let Self { station, outgoing, incoming, .. } = self;
        let Some(session) = station.sessions.get_mut(index) else { return };
        if station.gate.cookie_is_valid(now, &session.route, cookie) {
            session.shown_to_reach();
            let (pair, incarnation) = (session.pair, session.incarnation);
            incoming.send_withheld(station, now, &pair, incarnation);
            outgoing.transmit_withheld(station, now, index);
        }
    }

    /// Does what time has come for: sends again, gives up, forgets.
    pub fn poll(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        self.poll_questions(now);
        self.poll_sessions(now, entropy);
        let mut means = self.means(now, entropy);
        let Self { station, outgoing, incoming, .. } = self;
        outgoing.poll_calls(station, &mut means);
        outgoing.poll_handshakes(station, &mut means);
        station.acknowledge(now, |at| at <= now);
        incoming.callers.expire_assemblies(&station.config, now);
    }

    /// Acknowledges at once what would be a little later: for an end that is about to go, so that its
    /// peers needn't keep their answers.
    pub fn acknowledge_all(&mut self, now: Instant) {
        self.station.acknowledge(now, |_| true);
    }

    /// When to call [`Self::poll`] next, if nothing else happens before.
    pub fn poll_at(&self) -> Option<Instant> {
        let Station { config, peers, sessions, .. } = &self.station;
        let calls = self.outgoing.poll_at(peers);
        let peers = peers.list.iter().flat_map(|peer| {
            [peer.acknowledge_at, peer.handshake.as_ref().map(|handshake| handshake.next_at)]
        });
        let questions = self.questions.iter().map(Question::next_at);
        calls
            .chain(peers.flatten())
            .chain(sessions.next_over(config))
            .chain(questions)
            .chain(self.incoming.callers.next_expiry(config))
            .min()
    }

    /// The next datagram to send, and where to.
    pub fn transmit(&mut self) -> Option<(A, Vec<u8>)> {
        self.station.outbox.pop()
    }

    /// The bytes that were sent in the name of `machine` in its sessions and to open them, since
    /// the last call of this.
    pub fn take_sent_bytes(&mut self, machine: &MachineId) -> u64 {
        self.station.outbox.take_sent_bytes(machine)
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event<A>> {
        self.station.events.pop_front()
    }

    /// The means to open a session now.
    fn means<'a>(&self, now: Instant, entropy: &'a mut dyn Entropy) -> Means<'a> {
        Means { now, entropy, remembers_since: self.incoming.callers.horizon() }
    }

    fn poll_questions(&mut self, now: Instant) {
        for question in &mut self.questions {
            if question.next_at() <= now && !question.is_over(now) {
                let datagram = question.ask(&self.station.config, now);
                self.station.outbox.push(question.route().clone(), datagram, false);
            }
        }
        for question in self.questions.extract_if(.., |question| question.is_over(now)) {
            self.station
                .events
                .push_back(Event::Identified { handle: question.handle(), identity: None });
        }
    }
}

/// A peer was asked for its epoch: for its identity, or to open a session with it.
fn on_challenge<A: PeerAddress>(
    endpoint: &mut Endpoint<A>,
    means: &mut Means<'_>,
    challenge: &Challenge,
) {
    let answered = |question: &Question<A>| question.is_answered_by(&challenge.echo);
    let Some(position) = endpoint.questions.iter().position(answered) else {
        return endpoint.outgoing.on_challenge(&mut endpoint.station, means, challenge);
    };
    let question = endpoint.questions.swap_remove(position);
    let key = (challenge.key != PublicKey([0; 32])).then_some(challenge.key);
    let identity = Some(Identity { key, epoch: challenge.epoch });
    endpoint.station.events.push_back(Event::Identified { handle: question.handle(), identity });
}

/// A number that names a call or a question, and none before it.
fn draw(next_handle: &mut u64) -> u64 {
    *next_handle += 1;
    *next_handle
}

#[cfg(test)]
mod tests;
