//! Calls that go out: sent, asked after, and brought to exactly one end.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Entropy, Instant};
use tenure_wire::datagram::{Epoch, SessionIndex};
use tenure_wire::frame::{CallNumber, Fragment, FragmentSet, Frame, Message, ReplyBody};

use super::{Delivery, Endpoint, seal};
use crate::assembly::Assembly;
use crate::budget::Budget;
use crate::calls::{BURST_INITIAL, Call, Peer, REPEATS_PER_SECOND, Stage, may_send};
use crate::session::Pair;
use crate::{CallHandle, Event, NoResult, PeerAddress};

/// After how many messages without an answer a session is suspected to be dead.
const UNANSWERED_DOUBT: u32 = 2;
/// How long no new part of a reply has come before it makes room for another peer's.
const REPLY_STANDS_STILL: Duration = Duration::from_secs(2);

impl<A: PeerAddress> Endpoint<A> {
    /// Makes a peer known, in the place of one that no call goes to if need be.
    pub(super) fn know_peer(&mut self, now: Instant, pair: Pair, hint: Option<Epoch>) -> bool {
        if self.peer(&pair).is_none() {
            if self.peers.len() >= self.config.peers_max {
                let idle = self
                    .peers
                    .iter()
                    .enumerate()
                    .filter(|(_, peer)| !self.calls.iter().any(|call| call.pair == peer.pair))
                    .min_by_key(|(_, peer)| peer.last_used)
                    .map(|(position, _)| position);
                let Some(position) = idle else { return false };
                self.peers.swap_remove(position);
            }
            self.peers.push(Peer::new(now, pair, CallNumber(self.next_number)));
        }
        if let Some(peer) = self.peer(&pair) {
            peer.last_used = now;
            // The peer's own word holds until something else is published.
            if hint.is_some() && hint != peer.hint {
                peer.hint = hint;
                peer.epoch = hint;
            }
        }
        true
    }

    /// Sends what waits for a session, over the newest there is, or opens one.
    pub(super) fn advance(&mut self, now: Instant, entropy: &mut dyn Entropy, pair: &Pair) {
        let Some(peer) = self.peers.iter().find(|peer| peer.pair == *pair) else { return };
        let mut waiting = self.calls.iter().filter(|call| {
            call.pair == *pair && call.stage == Stage::Waiting && peer.may_send(call.number)
        });
        let Some(first) = waiting.next() else { return };
        let route = first.route.clone();
        let mut handles = alloc::vec![first.handle];
        handles.extend(waiting.map(|call| call.handle));
        match self.newest_session(now, pair) {
            Some(session) => {
                let (index, old) = (session.index, session.wants_successor(&self.config, now));
                let mut unsure = false;
                for handle in handles {
                    unsure |= self.place(now, handle, index) == Placement::Unsure;
                }
                if old || unsure {
                    self.open(now, entropy, pair, route);
                }
            }
            None => self.open(now, entropy, pair, route),
        }
    }

    /// The call that travelled in an initiation is on this session now.
    pub(super) fn seat_rider(
        &mut self,
        now: Instant,
        over: SessionIndex,
        rider: Option<CallHandle>,
    ) {
        let rider = self.calls.iter_mut().find(|call| Some(call.handle) == rider);
        let Some(call) = rider.filter(|call| call.stage == Stage::Riding) else { return };
        let timeout = self
            .peers
            .iter()
            .find(|peer| peer.pair == call.pair)
            .map_or(self.config.timeout_initial, |peer| peer.round_trip.timeout(&self.config, 0));
        call.stage = Stage::Sent { over };
        call.attempts_left = call.attempts;
        call.was_sent(now, timeout);
        call.sent_once = false;
    }

    /// Moves the calls of a session's pair to that session, newly established: those that wait, and
    /// those that were sent over others, which the peer may have lost.
    pub(super) fn settle(&mut self, now: Instant, index: SessionIndex) {
        let Some(pair) = self.session(index).map(|session| session.pair) else { return };
        let Some(peer) = self.peers.iter().find(|peer| peer.pair == pair) else { return };
        let handles: Vec<CallHandle> = self
            .calls
            .iter()
            .filter(|call| call.pair == pair && call.stage != (Stage::Sent { over: index }))
            .filter(|call| call.stage != Stage::Riding && peer.may_send(call.number))
            .map(|call| call.handle)
            .collect();
        for handle in handles {
            self.place(now, handle, index);
        }
    }

    /// Sends a call over a session. One that was sent before is sent again only if the peer still
    /// knows whether it executed it.
    fn place(&mut self, now: Instant, handle: CallHandle, index: SessionIndex) -> Placement {
        let Some(session) = self.session(index) else { return Placement::Unsure };
        let (remembers_since, opened_here) = (session.peer_remembers_since, session.opened_here);
        let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) else {
            return Placement::Over;
        };
        if !may_send(call.first_sent, remembers_since) {
            if !opened_here {
                return Placement::Unsure;
            }
            self.finish(now, handle, Err(NoResult::OutcomeUnknown));
            return Placement::Over;
        }
        call.stage = Stage::Sent { over: index };
        call.unanswered = 0;
        call.attempts_left = call.attempts;
        self.transmit_call(now, handle);
        Placement::Sent
    }

    /// Sends what a call needs next: its fragments, a question, or a wish for the reply's. What is
    /// too long for an address where the peer may not receive has to wait for it to show that.
    fn transmit_call(&mut self, now: Instant, handle: CallHandle) {
        let Some(over) = self.transmit_call_if_allowed(now, handle) else { return };
        let Some(session) = self.session(over).filter(|session| !session.reaches()) else { return };
        let cookie = self.gate.cookie(now, &session.route);
        self.send(over, Frame::Prove { number: CallNumber(0), cookie });
    }

    /// Does what [`Self::transmit_call`] says; returns the session over which something couldn't be
    /// sent.
    fn transmit_call_if_allowed(
        &mut self,
        now: Instant,
        handle: CallHandle,
    ) -> Option<SessionIndex> {
        let call = self.calls.iter().find(|call| call.handle == handle)?;
        let (pair, number) = (call.pair, call.number);
        let Stage::Sent { over } = call.stage else { return None };
        let heard_at = self.session(over).map(|session| session.route.clone());
        let finished = self.finished(&pair);
        let Self { config, sessions, outbox, calls, peers, .. } = self;
        let call = calls.iter_mut().find(|call| call.handle == handle)?;
        let peer = peers.iter_mut().find(|peer| peer.pair == pair)?;
        // Every other time without an answer, ask where the caller believes the peer to be. Nobody has
        // shown to receive there, so it is no more than a question.
        let elsewhere = (call.unanswered % 2 == 1 && heard_at.as_ref() != Some(&call.route))
            .then(|| call.route.clone());
        call.withheld = false;
        let mut withheld = false;
        let mut deliver = |frame: Frame<'_>| {
            let message = Message { finished, frame };
            let delivery = seal(config, sessions, outbox, over, elsewhere.as_ref(), &message);
            withheld |= delivery == Delivery::Withheld;
            delivery == Delivery::Sent
        };
        let delivered = match call.next_frames(config.fragment_bytes()) {
            _ if elsewhere.is_some() => deliver(Frame::Query { number }),
            NextFrames::Want(fragments) => {
                deliver(Frame::Want { number, burst: peer.burst, fragments })
            }
            NextFrames::Query => deliver(Frame::Query { number }),
            NextFrames::Body => {
                let burst: Vec<usize> = call.missing.iter().take(usize::from(peer.burst)).collect();
                call.in_flight = FragmentSet::EMPTY;
                let mut delivered = false;
                for index in &burst {
                    let last = Some(index) == burst.last();
                    let fragment = Fragment::of(&call.body, config.fragment_bytes(), *index, last);
                    let Some(fragment) = fragment else { continue };
                    delivered |= deliver(Frame::Call { number, fragment });
                    call.in_flight.insert(*index);
                    call.sent.insert(*index);
                }
                delivered
            }
        };
        let retries = call.unanswered.max(call.still_running);
        call.was_sent(now, peer.round_trip.timeout(config, retries));
        call.withheld = withheld;
        if delivered {
            peer.acknowledge_at = None;
        }
        withheld.then_some(over)
    }

    /// Sends the calls that waited for their peer to show where it receives.
    pub(super) fn transmit_withheld(&mut self, now: Instant, over: SessionIndex) {
        let withheld = |call: &&Call<A>| call.withheld && call.stage == Stage::Sent { over };
        let handles: Vec<CallHandle> =
            self.calls.iter().filter(withheld).map(|call| call.handle).collect();
        for handle in handles {
            if let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) {
                // Nothing of it is there, so that it isn't asked after but sent.
                call.unanswered = 0;
            }
            self.transmit_call(now, handle);
        }
    }

    pub(super) fn on_running(&mut self, now: Instant, pair: &Pair, number: CallNumber) {
        let Some(call) = self.call_of(pair, number) else { return };
        call.missing = FragmentSet::EMPTY;
        self.ask_later(now, pair, number);
    }

    /// The peer sleeps with the call: ask again when it wakes, if there is time for that.
    pub(super) fn on_asleep(
        &mut self,
        now: Instant,
        pair: &Pair,
        number: CallNumber,
        wakes_in: Duration,
    ) {
        let margin = self.config.timeout_initial;
        let Some(call) = self.call_of(pair, number) else { return };
        if now + wakes_in >= call.deadline {
            let handle = call.handle;
            return self.finish(now, handle, Err(NoResult::Asleep { again_in: wakes_in }));
        }
        call.answered(now);
        call.missing = FragmentSet::EMPTY;
        call.still_running = 0;
        call.next_at = now + wakes_in + margin;
    }

    /// The peer has no room for the call now.
    pub(super) fn on_later(&mut self, now: Instant, pair: &Pair, number: CallNumber) {
        self.ask_later(now, pair, number);
    }

    fn ask_later(&mut self, now: Instant, pair: &Pair, number: CallNumber) {
        let Some(call) = self.call_of(pair, number) else { return };
        call.still_running = call.still_running.saturating_add(1);
        let still_running = call.still_running;
        let measured = call.answered(now);
        let timeout = self.sample(pair, measured).timeout(&self.config, still_running);
        if let Some(call) = self.call_of(pair, number) {
            call.next_at = now + timeout;
        }
    }

    pub(super) fn on_missing(
        &mut self,
        now: Instant,
        pair: &Pair,
        number: CallNumber,
        fragments: &FragmentSet,
    ) {
        let fragment_bytes = self.config.fragment_bytes();
        let Some(call) = self.call_of(pair, number) else { return };
        if call.reply.is_some() {
            return;
        }
        let missing = fragments.intersection(&call.all_fragments(fragment_bytes));
        if missing.is_empty() {
            return;
        }
        let lost = !missing.intersection(&call.in_flight).is_empty();
        call.missing = missing;
        call.still_running = 0;
        let measured = call.answered(now);
        // A part that was sent before is sent again at once so often; after that the next timeout is awaited.
        let is_repeated = !missing.intersection(&call.sent).is_empty();
        let at_once = !is_repeated || call.repeats.take(now);
        self.sample(pair, measured);
        if let Some(peer) = self.peer(pair) {
            peer.adapt_burst(lost);
        }
        let handle = self.call_of(pair, number).map(|call| call.handle);
        if let Some(handle) = handle.filter(|_| at_once) {
            self.transmit_call(now, handle);
        }
    }

    pub(super) fn on_reply(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        pair: &Pair,
        number: CallNumber,
        held_us: u32,
        fragment: &Fragment<'_>,
    ) {
        let body_bytes_max = self.config.body_bytes_max();
        let Some(call) = self.call_of(pair, number) else { return };
        let (handle, begins) = (call.handle, call.reply.is_none());
        if fragment.length() > body_bytes_max {
            return self.finish(now, handle, Err(NoResult::TooLong));
        }
        // A reply in one fragment is here and gone; a longer one is asked for again when others
        // have made room.
        if begins && fragment.count() > 1 && !self.make_room_for_reply(now, pair, fragment.length())
        {
            return;
        }
        let Some(call) = self.call_of(pair, number) else { return };
        let measured = call
            .answered(now)
            .map(|whole| whole.saturating_sub(Duration::from_micros(held_us.into())));
        // A call that was executed needn't be sent again.
        call.body = Vec::new();
        call.missing = FragmentSet::EMPTY;
        // A result may have been dropped for want of memory, and the reply be another one now.
        call.reply.take_if(|reply| !reply.fits(fragment));
        let reply = call.reply.get_or_insert_with(|| Assembly::begin(fragment));
        if reply.add(fragment) {
            call.reply_grew_at = now;
        }
        let Some(body) = reply.complete() else {
            let lost = reply.has_gap_before(fragment.index());
            self.sample(pair, measured);
            return self.on_reply_in_part(now, pair, handle, fragment.last_of_burst(), lost);
        };
        self.sample(pair, measured);
        let result = match ReplyBody::parse(&body) {
            Ok(ReplyBody(Ok(result))) => Ok(result.map(<[u8]>::to_vec)),
            Ok(ReplyBody(Err(declined))) => Err(declined),
            // The peer is who it should be, and talks nonsense.
            Err(_) => Err(NoResult::Execution),
        };
        if self.withdraw(now, handle) {
            let words = ReplyBody::words(&body).to_vec();
            self.events.push_back(Event::CallDone { handle, result, words });
        }
        self.advance(now, entropy, pair);
    }

    /// Sees to it that there is room for a reply of `bytes` that comes in parts from `pair`, by dropping
    /// others' that stand still: they are asked for again.
    fn make_room_for_reply(&mut self, now: Instant, pair: &Pair, bytes: usize) -> bool {
        loop {
            let taken: usize =
                self.calls.iter().map(|call| call.body.len() + call.reply_bytes()).sum();
            if taken.saturating_add(bytes) <= self.config.calls_bytes_max {
                return true;
            }
            let still = self
                .calls
                .iter_mut()
                .filter(|call| call.pair != *pair && call.reply.is_some())
                .filter(|call| now.since(call.reply_grew_at) >= REPLY_STANDS_STILL)
                .min_by_key(|call| call.reply_grew_at);
            let Some(still) = still else { return false };
            still.reply = None;
        }
    }

    /// Asks for the fragments that are still missing once a burst is over.
    fn on_reply_in_part(
        &mut self,
        now: Instant,
        pair: &Pair,
        handle: CallHandle,
        burst_over: bool,
        lost: bool,
    ) {
        if burst_over {
            if let Some(peer) = self.peer(pair) {
                peer.adapt_burst(lost);
            }
            return self.transmit_call(now, handle);
        }
        let Some(peer) = self.peer(pair) else { return };
        let round_trip = peer.round_trip;
        let timeout = round_trip.timeout(&self.config, 0);
        if let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) {
            call.next_at = now + timeout;
        }
    }

    /// Asks again after calls whose answer is overdue, and ends those whose time is up.
    pub(super) fn poll_calls(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        while let Some(call) = self.calls.iter().find(|call| call.deadline <= now) {
            let failure = self.or_deferred(now, &call.pair, NoResult::Deadline);
            self.finish(now, call.handle, Err(failure));
        }
        let due: Vec<CallHandle> = self
            .calls
            .iter()
            .filter(|call| matches!(call.stage, Stage::Sent { .. }) && call.next_at <= now)
            .map(|call| call.handle)
            .collect();
        for handle in due {
            self.retry_call(now, entropy, handle);
        }
        self.poll_waiting(now, entropy);
    }

    /// Looks for sessions for the calls that have lost theirs, and sends those that waited for
    /// older ones to end.
    fn poll_waiting(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        let again = now + self.config.timeout_initial;
        let mut due: Vec<Pair> = Vec::new();
        for call in &mut self.calls {
            if call.stage == Stage::Waiting && call.next_at <= now {
                call.next_at = again;
                due.push(call.pair);
            }
        }
        for pair in due {
            if !self.is_opening(&pair) {
                self.advance(now, entropy, &pair);
            }
        }
    }

    fn retry_call(&mut self, now: Instant, entropy: &mut dyn Entropy, handle: CallHandle) {
        let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) else { return };
        let (pair, route, unanswered) = (call.pair, call.route.clone(), call.unanswered);
        let Some(left) = call.attempts_left.checked_sub(1) else {
            let failure = self.or_deferred(now, &pair, NoResult::Unreachable);
            return self.finish(now, handle, Err(failure));
        };
        call.attempts_left = left;
        if unanswered > 0
            && let Some(peer) = self.peer(&pair)
        {
            peer.adapt_burst(true);
        }
        if unanswered >= UNANSWERED_DOUBT {
            self.doubt(now, entropy, &pair, route);
        }
        self.transmit_call(now, handle);
    }

    /// Tells peers which results have arrived, where nothing else did in time.
    pub(super) fn poll_acknowledgements(&mut self, now: Instant) {
        self.acknowledge(now, |at| at <= now);
    }

    /// Acknowledges at once what would be a little later: for an end that is about to go, so that its
    /// peers needn't keep their answers.
    pub fn acknowledge_all(&mut self, now: Instant) {
        self.acknowledge(now, |_| true);
    }

    fn acknowledge(&mut self, now: Instant, is_due: impl Fn(Instant) -> bool) {
        let due: Vec<Pair> = self
            .peers
            .iter()
            .filter(|peer| peer.acknowledge_at.is_some_and(&is_due))
            .map(|peer| peer.pair)
            .collect();
        for pair in due {
            self.acknowledged(&pair);
            if let Some(index) = self.newest_session(now, &pair).map(|session| session.index) {
                self.send(index, Frame::Acknowledge);
            }
        }
    }

    /// Ends a call, and says so.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        handle: CallHandle,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        if self.withdraw(now, handle) {
            self.events.push_back(Event::CallDone { handle, result, words: Vec::new() });
        }
    }

    /// Ends a call without a word. The peer will be told that it needn't remember it.
    pub(super) fn withdraw(&mut self, now: Instant, handle: CallHandle) -> bool {
        let Some(position) = self.calls.iter().position(|call| call.handle == handle) else {
            return false;
        };
        let call = self.calls.swap_remove(position);
        let acknowledge_at = now + self.config.acknowledge_after;
        if let Some(peer) = self.peer(&call.pair) {
            peer.last_used = now;
            peer.finished.insert(call.number);
            if matches!(call.stage, Stage::Sent { .. }) {
                peer.acknowledge_at.get_or_insert(acknowledge_at);
            }
        }
        true
    }

    pub(super) fn call_of(&mut self, pair: &Pair, number: CallNumber) -> Option<&mut Call<A>> {
        self.calls.iter_mut().find(|call| call.number == number && call.pair == *pair)
    }

    fn sample(&mut self, pair: &Pair, measured: Option<Duration>) -> crate::round_trip::RoundTrip {
        let Some(peer) = self.peer(pair) else { return Default::default() };
        if let Some(measured) = measured {
            peer.round_trip.sample(measured);
        }
        peer.round_trip
    }
}

/// The outcome of an attempt to send a call over a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    /// It was sent.
    Sent,
    /// It has come to its end.
    Over,
    /// It may have been executed and forgotten. A session that this end opens will tell.
    Unsure,
}

/// The parts of a call to send.
enum NextFrames {
    Want(FragmentSet),
    Query,
    Body,
}

impl<A> Call<A> {
    #[expect(clippy::too_many_arguments, reason = "nothing of a call is known otherwise")]
    pub(crate) fn new(
        now: Instant,
        handle: CallHandle,
        number: CallNumber,
        pair: Pair,
        route: A,
        body: Vec<u8>,
        fragment_bytes: u16,
        (deadline, attempts): (Instant, u8),
    ) -> Self {
        let missing = all_fragments(&body, fragment_bytes);
        Self {
            handle,
            number,
            pair,
            route,
            body,
            deadline,
            attempts,
            attempts_left: attempts,
            first_sent: None,
            stage: Stage::Waiting,
            sent_at: Instant::BOOT,
            sent_once: false,
            unanswered: 0,
            still_running: 0,
            next_at: Instant::BOOT,
            missing,
            in_flight: FragmentSet::EMPTY,
            sent: FragmentSet::EMPTY,
            repeats: Budget::new(now, REPEATS_PER_SECOND / u32::from(BURST_INITIAL)),
            withheld: false,
            reply: None,
            reply_grew_at: now,
        }
    }

    fn all_fragments(&self, fragment_bytes: u16) -> FragmentSet {
        all_fragments(&self.body, fragment_bytes)
    }

    /// A call in one fragment is simply sent again; of a longer one it is asked first what is
    /// missing.
    fn next_frames(&self, fragment_bytes: u16) -> NextFrames {
        if let Some(reply) = &self.reply {
            return NextFrames::Want(reply.missing());
        }
        let short = self.body.len() <= usize::from(fragment_bytes);
        let fresh = self.unanswered == 0 && self.first_sent.is_none_or(|_| self.was_answered());
        if !self.missing.is_empty() && (short || fresh) {
            NextFrames::Body
        } else {
            NextFrames::Query
        }
    }

    /// Whether the last thing heard was what is missing, so that it can be sent at once.
    fn was_answered(&self) -> bool {
        !self.in_flight.is_empty()
    }

    fn reply_bytes(&self) -> usize {
        self.reply.as_ref().map_or(0, Assembly::bytes_taken)
    }
}

fn all_fragments(body: &[u8], fragment_bytes: u16) -> FragmentSet {
    FragmentSet::first(body.len().div_ceil(usize::from(fragment_bytes.max(1))))
}
