//! Handshakes, from both ends, and the sessions that come of them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_crypto::{StaticSecret, equal, machine_id};
use tenure_hal::{Entropy, Instant};
use tenure_wire::PublicKey;
use tenure_wire::datagram::{
    Challenge, Cookie, Deferral, Echo, Epoch, INITIATION_HEADER_BYTES, INITIATION_OVERHEAD,
    Initiation, PROOF_BYTES, Probe, Refusal, RefusalReason, Response, SessionIndex,
};
use tenure_wire::frame::{FRAGMENT_OVERHEAD, Fragment, Frame, FrameError, Greeting, Message};

use super::Endpoint;
use crate::callers::Callers;
use crate::calls::{Call, Handshake, Initiating, Peer, SentTo, Stage, Step};
use crate::config::Standing;
use crate::gate::{Acceptance, Admission, Repeated};
use crate::noise::{Acquaintance, Invited, initiate, proof};
use crate::places::Ends;
use crate::session::{Opening, Pair, Reach, Session};
use crate::{CallHandle, Event, Identity, NoResult, PeerAddress};

/// The constant that binds a handshake to this protocol; the initiation's header follows it in the prologue.
const PROTOCOL: &[u8] = b"tenure rpc 1";

/// How many challenges in a row are answered at once; after that, only when a timeout is up. Those
/// who see the initiations could keep an endpoint busy with false challenges otherwise.
const CHALLENGES_AT_ONCE: u8 = 2;
/// How many responses to an initiation are tried until it is sent again. Each costs two key
/// agreements, and whoever has seen the initiation can forge one.
const RESPONSES_TRIED_MAX: u8 = 4;
/// How often it must be said that a machine isn't there, or has no time yet, before it is believed, if nothing else is
/// heard until the next timeout: anybody who has seen the initiation can say so.
const ALLEGATIONS_BELIEVED: u32 = 2;
/// How often an initiation is sent while no call waits for it.
const ATTEMPTS_IN_BACKGROUND: u8 = 4;
/// The longest that this end waits for its turn because somebody said so.
const DEFERRAL_MAX: Duration = Duration::from_secs(60);
/// Sessions of one pair and one incarnation of the peer; a successor, and one that the other end opened at the
/// same time.
const SESSIONS_PER_CALLER_MAX: usize = 3;
/// The share of all sessions that one pair may have, whatever its incarnations: one part in so many. A user's
/// commands are incarnations of one peer, and several may run at once.
const SHARE_OF_PAIR: usize = 3;
/// The most of them, so that a step looks through few.
const SESSIONS_PER_PAIR_MAX: usize = 64;
/// The least time between two handshakes that are begun because a peer seems to have lost its
/// sessions.
const DOUBT_PERIOD: Duration = Duration::from_secs(1);

/// How far apart two clocks run at most: one part in this many.
const CLOCK_DRIFT: u32 = 1_000;

impl<A: PeerAddress> Endpoint<A> {
    // The initiator.

    /// Begins a handshake with a peer. One that is under way, with where the peer was before, goes
    /// on at `route`: a peer that moved isn't waited for at its old place.
    pub(super) fn open(&mut self, now: Instant, entropy: &mut dyn Entropy, pair: &Pair, route: A) {
        let Some(peer) = self.peer(pair) else { return };
        if let Some(handshake) = &mut peer.handshake {
            if handshake.route != route {
                handshake.route = route;
                self.send_handshake_again(now, entropy, pair);
            }
        } else {
            peer.handshake = Some(Handshake {
                step: Step::Idle,
                route,
                sent_to: SentTo::Nobody,
                responses_left: RESPONSES_TRIED_MAX,
                cookie: None,
                cookie_is_next: true,
                transmissions: 0,
                sent_at: now,
                next_at: now,
                deferrals: 0,
                challenges: 0,
                absences: 0,
                attempts_in_background: ATTEMPTS_IN_BACKGROUND,
            });
            self.begin(now, entropy, pair);
        }
    }

    /// Begins a handshake because a peer seems to have lost its sessions, though not too often.
    pub(super) fn doubt(&mut self, now: Instant, entropy: &mut dyn Entropy, pair: &Pair, route: A) {
        let Some(peer) = self.peer(pair) else { return };
        let elsewhere = peer.handshake.as_ref().is_some_and(|one| one.route != route);
        if elsewhere || peer.last_doubt.is_none_or(|last| now.since(last) >= DOUBT_PERIOD) {
            peer.last_doubt = Some(now);
            self.open(now, entropy, pair, route);
        }
    }

    /// Builds and sends the first message that the peer's epoch allows.
    fn begin(&mut self, now: Instant, entropy: &mut dyn Entropy, pair: &Pair) {
        let nonce = self.gate.draw_nonce();
        let Some(peer) = self.peer(pair) else { return };
        let Some(epoch) = peer.epoch else {
            if let Some(handshake) = &mut peer.handshake {
                handshake.step = Step::Probing { nonce };
                handshake.transmissions = 0;
            }
            return self.transmit_handshake(now, pair);
        };
        match self.initiation(now, entropy, pair, epoch) {
            Ok(initiating) => {
                if let Some(handshake) = self.peer(pair).and_then(|peer| peer.handshake.as_mut()) {
                    handshake.step = Step::Initiating(Box::new(initiating));
                    handshake.sent_to = SentTo::Nobody;
                    handshake.transmissions = 0;
                }
                self.transmit_handshake(now, pair);
            }
            Err(NoInitiation::Entropy) => {
                let again = now + self.config.timeout_initial;
                if let Some(handshake) = self.peer(pair).and_then(|peer| peer.handshake.as_mut()) {
                    handshake.step = Step::Idle;
                    handshake.next_at = again;
                }
            }
            Err(NoInitiation::BadKey) => self.give_up_opening(now, pair, NoResult::Unreachable),
        }
    }

    /// The first message of a handshake, with a call in it if one waits that was never sent before:
    /// the peer can't tell whether it executed, in an epoch before this, one that was.
    fn initiation(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        pair: &Pair,
        epoch: Epoch,
    ) -> Result<Initiating, NoInitiation> {
        let ephemeral = StaticSecret::generate(entropy).map_err(|_| NoInitiation::Entropy)?;
        let index = self.unused_index();
        let payload_bytes_max = self.config.datagram_bytes_max - INITIATION_OVERHEAD;
        let body_bytes_max = payload_bytes_max.saturating_sub(Greeting::BYTES + FRAGMENT_OVERHEAD);
        let peer = self.peers.iter().find(|peer| peer.pair == *pair).ok_or(NoInitiation::BadKey)?;
        let rider = self.calls.iter().position(|call| {
            call.pair == *pair
                && peer.may_send(call.number)
                && call.stage == Stage::Waiting
                && call.is_unsent()
                && call.body.len() <= body_bytes_max
        });
        let rider_handle = rider.map(|position| self.calls[position].handle);
        let frame = rider.and_then(|position| {
            let call = &self.calls[position];
            let length = u16::try_from(call.body.len()).ok()?;
            let fragment = Fragment::of(&call.body, length, 0, true)?;
            Some(Frame::Call { number: call.number, fragment })
        });
        let mut payload = Vec::with_capacity(payload_bytes_max);
        payload.extend_from_slice(&self.greeting(now, pair, None).to_bytes());
        let message =
            Message { finished: self.finished(pair), frame: frame.unwrap_or(Frame::Acknowledge) };
        message.emit(&mut payload);

        let machine = self.machine(&pair.local).ok_or(NoInitiation::BadKey)?;
        let header = Initiation::header(&machine_id(&pair.peer), index, &epoch);
        let mut datagram = Vec::with_capacity(INITIATION_OVERHEAD + payload.len());
        datagram.extend_from_slice(&header);
        datagram.extend_from_slice(&[0; PROOF_BYTES]);
        let noise_start = datagram.len();
        let noise = initiate(
            &machine.secret,
            &machine.key,
            &pair.peer,
            ephemeral,
            &[PROTOCOL, &header],
            &payload,
            &mut datagram,
        )
        .map_err(|_| NoInitiation::BadKey)?;
        let echo = datagram[noise_start..].first_chunk().map_or(Echo([0; 16]), |echo| Echo(*echo));
        let own_proof = noise.proof_key().proof(&header, &datagram[noise_start..]);
        if let Some(call) = rider.and_then(|position| self.calls.get_mut(position)) {
            call.stage = Stage::Riding;
            call.first_sent = Some(now);
        }
        Ok(Initiating { noise, index, datagram, echo, epoch, own_proof, rider: rider_handle })
    }

    /// Sends the current message of a handshake.
    fn transmit_handshake(&mut self, now: Instant, pair: &Pair) {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.pair == *pair) else { return };
        let Some(handshake) = &mut peer.handshake else { return };
        let datagram = match &mut handshake.step {
            Step::Idle => return,
            Step::Probing { nonce } => Probe { nonce: *nonce }.to_bytes().to_vec(),
            Step::Initiating(initiating) => {
                // The two proofs take turns: a device that knows this end as its owner heeds the one
                // when it has no time even for those with a cookie.
                let own = initiating.own_proof;
                let cookie = handshake.cookie.filter(|_| handshake.cookie_is_next);
                handshake.cookie_is_next = cookie.is_none();
                let proof = cookie.map_or(own, |cookie| proof_by(&cookie, &initiating.datagram));
                Initiation::set_proof(&mut initiating.datagram, &proof);
                handshake.sent_to.add(handshake.route.clone());
                handshake.responses_left = RESPONSES_TRIED_MAX;
                initiating.datagram.clone()
            }
        };
        let is_owner = self.config.is_owner(&pair.peer);
        self.outbox.push_for(&pair.local, handshake.route.clone(), datagram, is_owner);
        let timeout = peer.round_trip.timeout(&self.config, handshake.transmissions);
        let least = self.config.handshake_timeout_min() * (1 << handshake.transmissions.min(3));
        let timeout = timeout.max(least.min(self.config.timeout_max));
        handshake.transmissions += 1;
        handshake.sent_at = now;
        handshake.next_at = now + timeout;
    }

    /// Sends handshakes again whose answer is overdue, and gives up those that nobody waits for.
    pub(super) fn poll_handshakes(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        let due: Vec<Pair> = self
            .peers
            .iter()
            .filter(|peer| peer.handshake.as_ref().is_some_and(|one| one.next_at <= now))
            .map(|peer| peer.pair)
            .collect();
        for pair in due {
            self.retry_handshake(now, entropy, &pair);
        }
    }

    fn retry_handshake(&mut self, now: Instant, entropy: &mut dyn Entropy, pair: &Pair) {
        let mut exhausted = Vec::new();
        let mut waiting = None;
        for call in self.calls.iter_mut().filter(|call| call.waits_for_session(pair)) {
            match call.attempts_left.checked_sub(1) {
                Some(left) => {
                    call.attempts_left = left;
                    waiting = Some(call.route.clone());
                }
                None => exhausted.push(call.handle),
            }
        }
        for handle in exhausted {
            let failure = self.or_deferred(now, pair, NoResult::Unreachable);
            self.finish(now, handle, Err(failure));
        }
        let heard_at = self.newest_session(now, pair).map(|session| session.route.clone());
        let Some(peer) = self.peer(pair) else { return };
        let Some(handshake) = &mut peer.handshake else { return };
        if handshake.absences >= ALLEGATIONS_BELIEVED {
            return self.give_up_opening(now, pair, NoResult::AllegedlyGone);
        }
        match waiting {
            // Every other time, to where the peer was last heard, if that is somewhere else.
            Some(route) => {
                let alternate = heard_at.filter(|_| handshake.transmissions % 2 == 1);
                handshake.route = alternate.unwrap_or(route);
            }
            None => match handshake.attempts_in_background.checked_sub(1) {
                Some(left) => handshake.attempts_in_background = left,
                None => return self.close_handshake(pair),
            },
        }
        self.send_handshake_again(now, entropy, pair);
    }

    /// Sends the current message of a handshake again, or another if the peer's epoch is another.
    fn send_handshake_again(&mut self, now: Instant, entropy: &mut dyn Entropy, pair: &Pair) {
        let Some(peer) = self.peers.iter().find(|peer| peer.pair == *pair) else { return };
        let Some(handshake) = &peer.handshake else { return };
        let (epoch, step) = (peer.epoch, &handshake.step);
        let holds = match step {
            Step::Idle => false,
            Step::Probing { .. } => epoch.is_none(),
            // A call that is over isn't sent again.
            Step::Initiating(initiating) => {
                epoch == Some(initiating.epoch)
                    && initiating.rider.is_none_or(|rider| self.has_call(rider))
            }
        };
        if holds {
            self.transmit_handshake(now, pair);
        } else {
            self.begin_again(now, entropy, pair);
        }
    }

    fn has_call(&self, handle: CallHandle) -> bool {
        self.calls.iter().any(|call| call.handle == handle)
    }

    /// Drops the current message of a handshake, which may have been received, and builds another.
    fn begin_again(&mut self, now: Instant, entropy: &mut dyn Entropy, pair: &Pair) {
        self.unseat_rider(pair);
        self.begin(now, entropy, pair);
    }

    /// Takes the call out of an initiation that is given up: it waits for a session from now on.
    pub(super) fn unseat_rider(&mut self, pair: &Pair) {
        for call in &mut self.calls {
            if call.pair == *pair && call.stage == Stage::Riding {
                call.stage = Stage::Waiting;
            }
        }
    }

    /// Ends a handshake without a session.
    pub(super) fn close_handshake(&mut self, pair: &Pair) {
        if let Some(peer) = self.peer(pair) {
            peer.handshake = None;
        }
    }

    /// Ends a handshake without a session, and the calls that wait for one with it.
    fn give_up_opening(&mut self, now: Instant, pair: &Pair, failure: NoResult) {
        self.close_handshake(pair);
        while let Some(call) = self.calls.iter().find(|call| call.waits_for_session(pair)) {
            self.finish(now, call.handle, Err(failure));
        }
    }

    pub(super) fn on_challenge(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        challenge: &Challenge,
    ) {
        if let Some(position) =
            self.questions.iter().position(|question| question.is_answered_by(&challenge.echo))
        {
            let question = self.questions.swap_remove(position);
            let key = (challenge.key != PublicKey([0; 32])).then_some(challenge.key);
            let identity = Some(Identity { key, epoch: challenge.epoch });
            self.events.push_back(Event::Identified { handle: question.handle(), identity });
            return;
        }
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.opened_with(&challenge.echo))
        else {
            return;
        };
        let pair = peer.pair;
        let Some(handshake) = &mut peer.handshake else { return };
        if handshake.transmissions == 1 {
            peer.round_trip.sample(now.since(handshake.sent_at));
        }
        handshake.cookie = Some(challenge.cookie);
        handshake.cookie_is_next = true;
        // A device without that machine refuses and challenges nobody.
        handshake.absences = 0;
        let same_epoch = peer.epoch == Some(challenge.epoch);
        peer.epoch = Some(challenge.epoch);
        handshake.challenges = handshake.challenges.saturating_add(1);
        let is_answered_later = handshake.challenges > CHALLENGES_AT_ONCE;
        self.hope(&pair);
        if is_answered_later {
            return;
        }
        let Some(handshake) = self.peer(&pair).and_then(|peer| peer.handshake.as_mut()) else {
            return;
        };
        match handshake.step {
            Step::Initiating(_) if same_epoch => self.transmit_handshake(now, &pair),
            _ => self.begin_again(now, entropy, &pair),
        }
    }

    pub(super) fn on_refusal(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        refusal: &Refusal,
    ) {
        match refusal.reason {
            RefusalReason::NoSuchMachine => {
                let refused = self.peers.iter_mut().find(|peer| peer.opened_with(&refusal.echo));
                let Some(handshake) = refused.and_then(|peer| peer.handshake.as_mut()) else {
                    return;
                };
                // Once for each time it was sent: a copy of the word is no second witness.
                let told = handshake.absences.saturating_add(1);
                handshake.absences = told.min(handshake.transmissions);
            }
            RefusalReason::NoSuchSession => {
                // Only a call that waits for its answer makes a session worth a look.
                let doubted = self.calls.iter().filter(|call| call.unanswered > 0).find(|call| {
                    let Stage::Sent { over } = call.stage else { return false };
                    self.session(over).is_some_and(|session| session.sent_recently(&refusal.echo))
                });
                if let Some(call) = doubted {
                    let (handle, pair, route) = (call.handle, call.pair, call.route.clone());
                    // Until a session is open it is sent over the old one again now and then, lest that word was false.
                    let again = now + self.config.timeout_initial;
                    if let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) {
                        call.next_at = call.next_at.max(again);
                    }
                    self.hope(&pair);
                    self.doubt(now, entropy, &pair, route);
                }
            }
        }
    }

    /// The peer is there, if it has no time for a handshake now: until its deadline a call may wait for its turn.
    fn hope(&mut self, pair: &Pair) {
        for call in self.calls.iter_mut().filter(|call| call.pair == *pair) {
            call.attempts_left = call.attempts;
        }
    }

    /// Waits for the turn that the peer gives this end, once it said so twice. The handshake goes on, and the message is
    /// sent again now and then, so that a false word doesn't fail a call.
    pub(super) fn on_deferral(&mut self, now: Instant, deferral: &Deferral) {
        let again_in = Duration::from_millis(deferral.again_in_ms.into()).min(DEFERRAL_MAX);
        let asks_in =
            again_in.min(self.config.timeout_max).max(self.config.handshake_timeout_min());
        let peer = self.peers.iter_mut().find(|peer| peer.opened_with(&deferral.echo));
        let Some(peer) = peer else { return };
        let pair = peer.pair;
        let Some(handshake) = &mut peer.handshake else { return };
        // Once for each time it was sent: a copy of the word is no second witness.
        handshake.deferrals = handshake.deferrals.saturating_add(1).min(handshake.transmissions);
        // The peer asks again for the cookie of a sender that doesn't show it.
        handshake.cookie_is_next = handshake.cookie.is_some();
        if handshake.deferrals >= ALLEGATIONS_BELIEVED {
            handshake.next_at = now + asks_in;
            handshake.attempts_in_background = ATTEMPTS_IN_BACKGROUND;
            peer.turn = Some(now + again_in);
            for call in self.calls.iter_mut().filter(|call| call.pair == pair) {
                call.next_at = call.next_at.max(now + asks_in);
            }
        }
        self.hope(&pair);
    }

    /// Why a call gets no result that `failure` ends: the peer may have given it a turn, in which it waits a little for
    /// the response.
    pub(super) fn or_deferred(&self, now: Instant, pair: &Pair, failure: NoResult) -> NoResult {
        let peer = self.peers.iter().find(|peer| peer.pair == *pair);
        match peer.and_then(|peer| peer.turn) {
            Some(turn) if turn + self.config.timeout_max > now => {
                NoResult::Deferred { again_in: turn.since(now) }
            }
            _ => failure,
        }
    }

    /// Whether a handshake under way is the one that `receiver` is the number of.
    pub(super) fn awaits_response(&self, receiver: SessionIndex) -> bool {
        self.peers.iter().filter_map(|peer| peer.handshake.as_ref()).any(|handshake| {
            matches!(&handshake.step, Step::Initiating(initiating) if initiating.index == receiver)
        })
    }

    pub(super) fn on_response(&mut self, now: Instant, from: A, response: &Response<'_>) {
        let answered = self.peers.iter_mut().find_map(|peer| {
            let handshake = peer.handshake.as_mut()?;
            let Step::Initiating(initiating) = &handshake.step else { return None };
            if initiating.index != response.receiver {
                return None;
            }
            handshake.responses_left = handshake.responses_left.checked_sub(1)?;
            Some((peer.pair, &*handshake, initiating))
        });
        let Some((pair, handshake, initiating)) = answered else { return };
        let Ok((keys, payload)) = initiating.noise.read_response(response.noise) else { return };
        let Ok((remote, greeting)) = parse_response(&payload) else { return };
        let measured = (handshake.transmissions == 1).then(|| now.since(handshake.sent_at));
        let (index, rider) = (initiating.index, initiating.rider);
        let is_shown = handshake.sent_to == SentTo::One(from.clone());
        if !self.make_room_for_session(now, &pair, greeting.incarnation, true) {
            // The response will come again when the initiation is.
            return;
        }
        if let Some(peer) = self.peer(&pair) {
            peer.handshake = None;
            if let Some(measured) = measured {
                peer.round_trip.sample(measured);
            }
        }
        let reaches =
            if is_shown { Reach::Shown } else { Reach::of_one_datagram(response.length()) };
        let session = Session::new(
            now,
            Opening {
                index,
                remote,
                pair,
                incarnation: greeting.incarnation,
                opened_here: true,
                route: from,
                reaches,
                peer_remembers_since: remembers_since(now, &greeting),
                keys,
            },
        );
        self.sessions.add(&self.config, session);
        self.seat_rider(now, index, rider);
        // Confirms the session, and the address, to the responder even if nothing else does.
        self.send(index, Frame::Acknowledge);
        self.settle(now, index);
    }

    /// The number of a session that doesn't exist yet.
    fn unused_index(&mut self) -> SessionIndex {
        loop {
            let index = self.gate.draw_index();
            let taken = self.session(index).is_some()
                || self.peers.iter().any(|peer| {
                    peer.handshake.as_ref().is_some_and(|handshake| {
                        matches!(&handshake.step, Step::Initiating(one) if one.index == index)
                    })
                });
            if !taken {
                return index;
            }
        }
    }

    // The responder.

    pub(super) fn on_initiation(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        from: A,
        length: usize,
        initiation: &Initiation<'_>,
    ) {
        let echo = initiation.echo();
        if self.machine(&initiation.destination).is_none() {
            if self.gate.may_refuse(now) {
                let refusal = Refusal { reason: RefusalReason::NoSuchMachine, echo };
                self.outbox.push_unasked(from, refusal.to_bytes().to_vec());
            }
            return;
        }
        let is_shown = self.gate.shows_address(now, &from, initiation);
        match self.gate.repeated(&from, &echo, is_shown) {
            None => {}
            Some(Repeated::Answer(response)) => return self.outbox.push_unasked(from, response),
            Some(Repeated::AnswerElsewhere(response, index)) => {
                if let Some(session) = self.sessions.get_mut(index) {
                    session.response_is_known_elsewhere();
                }
                return self.outbox.push_unasked(from, response);
            }
            Some(Repeated::Challenge) => return self.challenge(now, from, echo),
        }
        let Self { gate, machines, config, .. } = self;
        let is_owners = || {
            let local = machines.iter_mut().find(|machine| machine.id == initiation.destination);
            let (Some(owner), Some(local)) = (config.owner, local) else { return false };
            let meet = || Acquaintance::with(&local.secret, &owner).map(Box::new);
            let owner = local.owner_acquaintance.get_or_insert_with(meet).as_ref();
            owner.is_some_and(|owner| {
                let proof = owner.proof_key.proof(initiation.header, initiation.noise);
                equal(&proof, &initiation.proof)
            })
        };
        match gate.admit(now, &from, &initiation.epoch, is_shown, is_owners) {
            Admission::Admit => self.accept(now, entropy, from, length, initiation),
            Admission::Challenge => self.challenge(now, from, echo),
            Admission::Drop => {}
        }
    }

    /// Tells whoever is at `to` what an initiation must name.
    pub(super) fn challenge(&mut self, now: Instant, to: A, echo: Echo) {
        let challenge = Challenge {
            echo,
            epoch: self.gate.epoch(),
            cookie: self.gate.cookie(now, &to),
            key: self.identity.unwrap_or(PublicKey([0; 32])),
        };
        self.outbox.push_unasked(to, challenge.to_bytes().to_vec());
    }

    fn accept(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        from: A,
        length: usize,
        initiation: &Initiation<'_>,
    ) {
        let Some(machine) = self.machine(&initiation.destination) else { return };
        let prologue: [&[u8]; 2] = [PROTOCOL, initiation.header];
        let known = machine.owner_acquaintance.as_ref().and_then(Option::as_deref);
        let Ok((invited, payload)) =
            Invited::read(&machine.secret, &machine.key, &prologue, initiation.noise, known)
        else {
            return;
        };
        let Ok((greeting, rest)) = Greeting::parse(&payload) else { return };
        let Ok(message) = Message::parse(rest) else { return };
        let Ok(ephemeral) = StaticSecret::generate(entropy) else { return };
        let pair = Pair { local: initiation.destination, peer: invited.peer() };
        if !self.make_room_for_session(now, &pair, greeting.incarnation, false) {
            return;
        }

        let index = self.unused_index();
        let mut payload = Vec::new();
        payload.extend_from_slice(&index.0.to_le_bytes());
        let own_greeting = self.greeting(now, &pair, Some(greeting.incarnation));
        payload.extend_from_slice(&own_greeting.to_bytes());
        Message { finished: self.finished(&pair), frame: Frame::Acknowledge }.emit(&mut payload);
        let mut response = Response::header(initiation.sender).to_vec();
        let Ok(keys) = invited.respond(ephemeral, &payload, &mut response) else { return };

        let is_owner = self.config.is_owner(&pair.peer);
        let mut reaches = Reach::of_one_datagram(length);
        reaches.spend(response.len());
        let session = Session::new(
            now,
            Opening {
                index,
                remote: initiation.sender,
                pair,
                incarnation: greeting.incarnation,
                opened_here: false,
                route: from.clone(),
                reaches,
                peer_remembers_since: remembers_since(now, &greeting),
                keys,
            },
        );
        self.sessions.add(&self.config, session);
        let acceptance = Acceptance {
            epoch: initiation.epoch,
            echo: initiation.echo(),
            from: &from,
            session: index,
            response: response.clone(),
        };
        self.gate.accept(now, acceptance);
        self.outbox.push_for(&pair.local, from.clone(), response, is_owner);
        self.saw(&pair, from);
        self.on_message(now, entropy, index, &message);
    }

    /// The opener of a session has shown that it has the keys.
    pub(super) fn on_confirmed(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        index: SessionIndex,
    ) {
        let Some(session) = self.session(index) else { return };
        let (pair, incarnation) = (session.pair, session.incarnation);
        self.send_withheld(now, &pair, incarnation);
        self.settle(now, index);
        self.advance(now, entropy, &pair);
    }

    // Both.

    /// The greeting of this end to a peer. A responder alone knows the `incarnation` of the peer that it
    /// talks to; an initiator's greeting holds for all of them.
    fn greeting(&self, now: Instant, pair: &Pair, incarnation: Option<u64>) -> Greeting {
        let since = match incarnation {
            Some(incarnation) => self.callers.complete_since(pair, incarnation),
            None => self.callers.horizon(),
        };
        let remembers_ms = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
        Greeting { incarnation: self.incarnation, remembers_ms }
    }

    /// Sees to it that there is room for one more session, by ending others if need be: those that
    /// are over, one of the pair if that has its share, half-open ones, and then the one that was
    /// silent for longest among those that no call uses. For a session of the owner's, or one that this end
    /// opens (`opened_here`), a stranger's ends even if calls use it: its opener can open another,
    /// and finds its calls there. The owner's end last, and a stranger ends none of a favoured peer.
    fn make_room_for_session(
        &mut self,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
        opened_here: bool,
    ) -> bool {
        while let Some((index, _)) = self.sessions.end_one_over(&self.config, now) {
            let_go(&mut self.calls, index);
        }
        if let Some(index) = self.surplus_of_pair(pair, incarnation) {
            self.end_session(index);
        }
        let standing = if opened_here { Standing::Owner } else { self.config.standing(&pair.peer) };
        if !opened_here {
            match self.sessions.surplus_half_open(&self.config, standing) {
                None => {}
                Some(Ok(index)) => self.end_session(index),
                Some(Err(())) => {
                    self.sessions_full += 1;
                    return false;
                }
            }
        }
        if self.sessions.len() < self.config.sessions_max {
            return true;
        }
        self.sessions_full += 1;
        let has_precedence = standing == Standing::Owner;
        let Self { config, sessions, calls, callers, .. } = self;
        let least_missed = sessions.least_missed(config, standing, |session| {
            match is_in_use(calls, callers, session) {
                false => Ends::Yes,
                true if has_precedence && !session.opened_here => Ends::AtWorst,
                true => Ends::No,
            }
        });
        match least_missed {
            Some(index) => {
                self.end_session(index);
                true
            }
            None => false,
        }
    }

    /// The session of the pair that makes room for one more of the incarnation, if the pair has its share.
    fn surplus_of_pair(&self, pair: &Pair, incarnation: u64) -> Option<SessionIndex> {
        let of_pair = || self.sessions.of_pair(pair);
        let of_caller = || of_pair().filter(|session| session.incarnation == incarnation);
        let surplus = if of_caller().count() >= SESSIONS_PER_CALLER_MAX {
            of_caller().min_by_key(|session| (session.confirmed, session.created))
        } else if of_pair().count() >= self.of_pair_max() {
            let is_in_use = |session: &Session<A>| is_in_use(&self.calls, &self.callers, session);
            of_pair().min_by_key(|session| (is_in_use(session), session.last_heard))
        } else {
            None
        };
        surplus.map(|session| session.index)
    }

    /// How many sessions one pair may have.
    fn of_pair_max(&self) -> usize {
        let share = self.config.sessions_max / SHARE_OF_PAIR;
        share.clamp(SESSIONS_PER_CALLER_MAX, SESSIONS_PER_PAIR_MAX)
    }

    /// Ends a session; calls that were sent over it wait for another.
    pub(super) fn end_session(&mut self, index: SessionIndex) {
        self.sessions.remove(index);
        let_go(&mut self.calls, index);
    }

    /// Ends sessions that are too old, and opens others where calls wait.
    pub(super) fn poll_sessions(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        while let Some((index, pair)) = self.sessions.end_one_over(&self.config, now) {
            let_go(&mut self.calls, index);
            self.advance(now, entropy, &pair);
        }
    }

    /// The newest session with a peer that may be sent over.
    pub(super) fn newest_session(&self, now: Instant, pair: &Pair) -> Option<&Session<A>> {
        self.sessions
            .of_pair(pair)
            .filter(|session| session.confirmed && !session.is_over(&self.config, now))
            .max_by_key(|session| session.created)
    }
}

/// Whether a call, in either direction, depends on a session.
fn is_in_use<A>(calls: &[Call<A>], callers: &Callers, session: &Session<A>) -> bool {
    let stage = Stage::Sent { over: session.index };
    calls.iter().any(|call| call.stage == stage)
        || callers.is_running(&session.pair, session.incarnation)
}

/// The calls that were sent over a session that ended wait for another.
fn let_go<A>(calls: &mut [Call<A>], index: SessionIndex) {
    for call in calls {
        if call.stage == (Stage::Sent { over: index }) {
            call.stage = Stage::Waiting;
        }
    }
}

/// The proof, in the initiation in `datagram`, that its sender was given a cookie.
fn proof_by(cookie: &Cookie, datagram: &[u8]) -> [u8; PROOF_BYTES] {
    let (header, rest) = datagram.split_at(INITIATION_HEADER_BYTES);
    proof(&cookie.0, header, &rest[PROOF_BYTES..])
}

/// Why there is no first message.
enum NoInitiation {
    Entropy,
    /// The peer's key is nobody's, or the calling machine is gone.
    BadKey,
}

impl<A> Call<A> {
    fn waits_for_session(&self, pair: &Pair) -> bool {
        self.pair == *pair && matches!(self.stage, Stage::Waiting | Stage::Riding)
    }
}

impl<A> Peer<A> {
    /// Whether `echo` is of what was last sent to open a session.
    fn opened_with(&self, echo: &Echo) -> bool {
        match self.handshake.as_ref().map(|handshake| &handshake.step) {
            Some(Step::Probing { nonce }) => nonce == echo,
            Some(Step::Initiating(initiating)) => initiating.echo == *echo,
            Some(Step::Idle) | None => false,
        }
    }
}

/// The content of a response: the responder's number for the session, its greeting, a message.
fn parse_response(payload: &[u8]) -> Result<(SessionIndex, Greeting), FrameError> {
    let (index, rest) = payload.split_first_chunk().ok_or(FrameError)?;
    let (greeting, rest) = Greeting::parse(rest)?;
    Message::parse(rest)?;
    Ok((SessionIndex(u32::from_le_bytes(*index)), greeting))
}

/// Since when, on this end's clock, the peer surely remembers. The greeting was made at some time
/// before `now`, so counting back from `now` errs on the side of forgetting.
pub(crate) fn remembers_since(now: Instant, greeting: &Greeting) -> Instant {
    let remembers = Duration::from_millis(greeting.remembers_ms);
    now - (remembers - remembers / CLOCK_DRIFT)
}
