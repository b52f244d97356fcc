//! Handshakes that this end opens, for calls that wait for a session.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_crypto::{StaticSecret, machine_id};
use tenure_hal::Instant;
use tenure_wire::datagram::{
    Challenge, Cookie, Deferral, Echo, Epoch, INITIATION_HEADER_BYTES, INITIATION_OVERHEAD,
    Initiation, PROOF_BYTES, Probe, Refusal, RefusalReason,
};
use tenure_wire::frame::{FRAGMENT_OVERHEAD, Fragment, Frame, Greeting, Message};

use super::calling::Outgoing;
use super::station::{Means, Station};
use crate::calls::{Call, Handshake, Initiating, SentTo, Stage, Step};
use crate::config::CLOCK_DRIFT;
use crate::lateness::{FIRST_FRAME, first_part_bytes};
use crate::noise::{initiate, proof};
use crate::session::Pair;
use crate::{CallHandle, NoResult, PeerAddress};

/// The constant that binds a handshake to this protocol; the initiation's header follows it in the prologue.
pub(super) const PROTOCOL: &[u8] = b"tenure rpc 1";

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
/// The least time between two handshakes that are begun because a peer seems to have lost its
/// sessions.
const DOUBT_PERIOD: Duration = Duration::from_secs(1);

impl<A: PeerAddress> Outgoing<A> {
    /// Begins a handshake with a peer. One that is under way, with where the peer was before, goes
    /// on at `route`: a peer that moved isn't waited for at its old place.
    pub(super) fn open(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        pair: &Pair,
        route: A,
    ) {
        let now = means.now;
        let Some(peer) = station.peers.get_mut(pair) else { return };
        if let Some(handshake) = &mut peer.handshake {
            if handshake.route != route {
                handshake.route = route;
                self.send_handshake_again(station, means, pair);
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
            self.begin(station, means, pair);
        }
    }

    /// Begins a handshake because a peer seems to have lost its sessions, though not too often.
    pub(super) fn doubt(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        pair: &Pair,
        route: A,
    ) {
        let now = means.now;
        let Some(peer) = station.peers.get_mut(pair) else { return };
        let elsewhere = peer.handshake.as_ref().is_some_and(|one| one.route != route);
        if elsewhere || peer.last_doubt.is_none_or(|last| now.since(last) >= DOUBT_PERIOD) {
            peer.last_doubt = Some(now);
            self.open(station, means, pair, route);
        }
    }

    /// Builds and sends the first message that the peer's epoch allows.
    fn begin(&mut self, station: &mut Station<A>, means: &mut Means<'_>, pair: &Pair) {
        let now = means.now;
        let nonce = station.gate.draw_nonce();
        let Some(peer) = station.peers.get_mut(pair) else { return };
        let Some(epoch) = peer.epoch else {
            if let Some(handshake) = &mut peer.handshake {
                handshake.step = Step::Probing { nonce };
                handshake.transmissions = 0;
            }
            return station.transmit_handshake(now, pair);
        };
        match self.initiation(station, means, pair, epoch) {
            Ok(initiating) => {
                if let Some(handshake) = station.peers.handshake(pair) {
                    handshake.step = Step::Initiating(Box::new(initiating));
                    handshake.sent_to = SentTo::Nobody;
                    handshake.transmissions = 0;
                }
                station.transmit_handshake(now, pair);
            }
            Err(NoInitiation::Entropy) => {
                let again = now + station.config.timeout_initial;
                if let Some(handshake) = station.peers.handshake(pair) {
                    handshake.step = Step::Idle;
                    handshake.next_at = again;
                }
            }
            Err(NoInitiation::BadKey) => {
                self.give_up_opening(station, now, pair, NoResult::Unreachable)
            }
        }
    }

    /// The first message of a handshake, with a call in it if one waits that was never sent before:
    /// the peer can't tell whether it executed, in an epoch before this, one that was.
    fn initiation(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        pair: &Pair,
        epoch: Epoch,
    ) -> Result<Initiating, NoInitiation> {
        let now = means.now;
        let ephemeral = StaticSecret::generate(means.entropy).map_err(|_| NoInitiation::Entropy)?;
        let index = station.unused_index();
        let payload_bytes_max = station.config.datagram_bytes_max - INITIATION_OVERHEAD;
        let body_bytes_max = payload_bytes_max.saturating_sub(Greeting::BYTES + FRAGMENT_OVERHEAD);
        let peer = station.peers.get(pair).ok_or(NoInitiation::BadKey)?;
        let rider = self.calls.iter().position(|call| {
            call.pair == *pair
                && peer.may_send(call.number)
                && call.stage == Stage::Waiting
                && call.is_unsent()
                && call.deadline > now
                && call.body.len() <= body_bytes_max
        });
        let rider_handle = rider.map(|position| self.calls[position].handle);
        let frame = rider.and_then(|position| {
            let call = &self.calls[position];
            let part_bytes = first_part_bytes(call.body.len())?;
            let fragment = Fragment::of(&call.body, part_bytes, 0, true)?;
            Some(Frame::Call { number: call.number, until_ms: None, fragment })
        });
        let mut payload = Vec::with_capacity(payload_bytes_max);
        payload.extend_from_slice(&station.greeting(now, means.remembers_since).to_bytes());
        let message =
            Message { finished: station.peers.finished(pair), frame: frame.unwrap_or(FIRST_FRAME) };
        message.emit(&mut payload);

        let machine = station.machines.get(&pair.local).ok_or(NoInitiation::BadKey)?;
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

    /// Sends handshakes again whose answer is overdue, and gives up those that nobody waits for.
    pub(super) fn poll_handshakes(&mut self, station: &mut Station<A>, means: &mut Means<'_>) {
        let now = means.now;
        let due: Vec<Pair> = station
            .peers
            .list
            .iter()
            .filter(|peer| peer.handshake.as_ref().is_some_and(|one| one.next_at <= now))
            .map(|peer| peer.pair)
            .collect();
        for pair in due {
            self.retry_handshake(station, means, &pair);
        }
    }

    fn retry_handshake(&mut self, station: &mut Station<A>, means: &mut Means<'_>, pair: &Pair) {
        let now = means.now;
        let mut exhausted = Vec::new();
        let mut waiting = None;
        for call in self.calls.iter_mut().filter(|call| call.waits_for_session(pair)) {
            match call.attempts_left.checked_sub(1) {
                Some(left) => {
                    call.attempts_left = left;
                    waiting = Some(call.route.clone());
                }
                // The peer may still take what it was sent in a session.
                None if call.wanted_until > now => waiting = Some(call.route.clone()),
                None => exhausted.push(call.handle),
            }
        }
        for handle in exhausted {
            let failure = station.or_deferred(now, pair, NoResult::Unreachable);
            self.finish(station, now, handle, Err(failure));
        }
        let heard_at = station.newest_session(now, pair).map(|session| session.route.clone());
        let Some(peer) = station.peers.get_mut(pair) else { return };
        let Some(handshake) = &mut peer.handshake else { return };
        if handshake.absences >= ALLEGATIONS_BELIEVED {
            return self.give_up_opening(station, now, pair, NoResult::AllegedlyGone);
        }
        match waiting {
            // Every other time, to where the peer was last heard, if that is somewhere else.
            Some(route) => {
                let alternate = heard_at.filter(|_| handshake.transmissions % 2 == 1);
                handshake.route = alternate.unwrap_or(route);
            }
            None => match handshake.attempts_in_background.checked_sub(1) {
                Some(left) => handshake.attempts_in_background = left,
                None => return station.peers.close_handshake(pair),
            },
        }
        self.send_handshake_again(station, means, pair);
    }

    /// Sends the current message of a handshake again, or another if the peer's epoch is another.
    fn send_handshake_again(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        pair: &Pair,
    ) {
        let now = means.now;
        let Some(peer) = station.peers.get(pair) else { return };
        let Some(handshake) = &peer.handshake else { return };
        let (epoch, step) = (peer.epoch, &handshake.step);
        let holds = match step {
            Step::Idle => false,
            Step::Probing { .. } => epoch.is_none(),
            // A call that is over isn't sent again, nor one whose end is due.
            Step::Initiating(initiating) => {
                epoch == Some(initiating.epoch)
                    && initiating.rider.is_none_or(|rider| self.is_wanted(now, rider))
            }
        };
        if holds {
            station.transmit_handshake(now, pair);
        } else {
            self.begin_again(station, means, pair);
        }
    }

    fn is_wanted(&self, now: Instant, handle: CallHandle) -> bool {
        self.calls.iter().any(|call| call.handle == handle && call.deadline > now)
    }

    /// Drops the current message of a handshake, which may have been received, and builds another.
    fn begin_again(&mut self, station: &mut Station<A>, means: &mut Means<'_>, pair: &Pair) {
        self.unseat_rider(pair);
        self.begin(station, means, pair);
    }

    /// Takes the call out of an initiation that is given up: it waits for a session from now on.
    fn unseat_rider(&mut self, pair: &Pair) {
        for call in &mut self.calls {
            if call.pair == *pair && call.stage == Stage::Riding {
                call.stage = Stage::Waiting;
            }
        }
    }

    /// Drops the initiation to a peer that is under way, and builds another when it is polled next.
    pub(super) fn recall_initiation(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
    ) {
        self.unseat_rider(pair);
        if let Some(handshake) = station.peers.handshake(pair) {
            handshake.step = Step::Idle;
            handshake.next_at = now;
        }
    }

    /// Ends a handshake without a session, and the calls that wait for one with it.
    fn give_up_opening(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        failure: NoResult,
    ) {
        station.peers.close_handshake(pair);
        while let Some(call) = self.calls.iter().find(|call| call.waits_for_session(pair)) {
            self.finish(station, now, call.handle, Err(failure));
        }
    }

    pub(super) fn on_challenge(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        challenge: &Challenge,
    ) {
        let now = means.now;
        let Some(peer) = station.peers.opened_with(&challenge.echo) else {
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
        peer.epoch = Some(challenge.epoch);
        handshake.challenges = handshake.challenges.saturating_add(1);
        let is_answered_later = handshake.challenges > CHALLENGES_AT_ONCE;
        self.hope(&pair);
        if is_answered_later {
            return;
        }
        self.send_handshake_again(station, means, &pair);
    }

    pub(super) fn on_refusal(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        refusal: &Refusal,
    ) {
        let now = means.now;
        match refusal.reason {
            RefusalReason::NoSuchMachine => {
                let refused = station.peers.opened_with(&refusal.echo);
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
                    station
                        .sessions
                        .get(over)
                        .is_some_and(|session| session.sent_recently(&refusal.echo))
                });
                if let Some(call) = doubted {
                    let (handle, pair, route) = (call.handle, call.pair, call.route.clone());
                    // Until a session is open it is sent over the old one again now and then, lest that word was false.
                    let again = now + station.config.timeout_initial;
                    if let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) {
                        call.next_at = call.next_at.max(again);
                    }
                    self.hope(&pair);
                    self.doubt(station, means, &pair, route);
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
    pub(super) fn on_deferral(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        deferral: &Deferral,
    ) {
        let again_in = Duration::from_millis(deferral.again_in_ms.into()).min(DEFERRAL_MAX);
        let asks_in =
            again_in.min(station.config.timeout_max).max(station.config.handshake_timeout_min());
        let peer = station.peers.opened_with(&deferral.echo);
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
}

impl<A: PeerAddress> Station<A> {
    /// Sends the current message of a handshake.
    fn transmit_handshake(&mut self, now: Instant, pair: &Pair) {
        let Some(peer) = self.peers.get_mut(pair) else { return };
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
        let timeout =
            peer.round_trip.timeout(&self.config, &handshake.route, handshake.transmissions);
        let least = self.config.handshake_timeout_min() * (1 << handshake.transmissions.min(3));
        let timeout = timeout.max(least.min(self.config.timeout_max));
        handshake.transmissions += 1;
        handshake.sent_at = now;
        handshake.next_at = now + timeout;
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

/// Since when, on this end's clock, the peer surely remembers. The greeting was made at some time
/// before `now`, so counting back from `now` errs on the side of forgetting.
pub(crate) fn remembers_since(now: Instant, greeting: &Greeting) -> Instant {
    let remembers = Duration::from_millis(greeting.remembers_ms);
    now - (remembers - remembers / CLOCK_DRIFT)
}
