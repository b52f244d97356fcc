//! Calls that go out: sent, asked after, and brought to exactly one end.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::datagram::{Epoch, SessionIndex};
use tenure_wire::frame::{CallBody, CallNumber, Fragment, FragmentSet, Frame, Message, ReplyBody};

use super::peers::Peers;
use super::station::{Delivery, Means, Station, seal};
use crate::assembly::Assembly;
use crate::budget::Budget;
use crate::calls::{BURST_INITIAL, Call, REPEATS_PER_SECOND, Stage, may_send};
use crate::lateness::Clocks;
use crate::round_trip::RoundTrip;
use crate::session::Pair;
use crate::{CallError, CallHandle, Config, Event, NoResult, OutgoingCall, PeerAddress};

/// After how many messages without an answer a session is suspected to be dead.
const UNANSWERED_DOUBT: u32 = 2;
/// Where an answer has so much time, the receipt of a result has so many times that: most callers call again before, and say it
/// with the next call. The called end drops results that nobody asks for where it lacks room.
const ACKNOWLEDGED_AFTER_PATIENCES: u32 = 30;
/// How long no new part of a reply has come before it makes room for another peer's.
const REPLY_STANDS_STILL: Duration = Duration::from_secs(2);

/// The calls that go out and are under way.
pub(super) struct Outgoing<A> {
    pub(super) calls: Vec<Call<A>>,
}

impl<A: PeerAddress> Outgoing<A> {
    pub(super) fn new() -> Self {
        Self { calls: Vec::new() }
    }

    /// Makes one more call, if there is room for it; only then its handle is drawn.
    pub(super) fn call(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        (pair, route, epoch_hint): (Pair, A, Option<Epoch>),
        draw_handle: impl FnOnce() -> CallHandle,
        call: &OutgoingCall,
    ) -> Result<CallHandle, CallError> {
        let now = means.now;
        let config = &station.config;
        let parameter = call.parameter.as_deref();
        if parameter.map_or(0, <[u8]>::len) > config.parameter_bytes_max {
            return Err(CallError::TooLong);
        }
        let remaining_ms = call.deadline.since(now).as_millis();
        let body = CallBody {
            remaining_ms: u32::try_from(remaining_ms).unwrap_or(u32::MAX),
            function: &call.function,
            parameter,
        };
        let body = body.to_bytes().map_err(|_| CallError::Function)?;
        let bytes: usize = self.calls.iter().map(|call| call.body.len()).sum();
        let bytes_max = config.calls_bytes_max.saturating_sub(config.body_bytes_max());
        if bytes + body.len() > bytes_max || self.calls.len() >= config.calls_max {
            return Err(CallError::Busy);
        }
        let is_called = |pair: &Pair| self.calls.iter().any(|call| call.pair == *pair);
        if !station.peers.know(now, pair, epoch_hint, config.peers_max, is_called) {
            return Err(CallError::Busy);
        }
        let handle = draw_handle();
        let number = station.peers.draw_number(&pair).ok_or(CallError::Busy)?;
        let fragment_bytes = config.fragment_bytes();
        // The first sending is none of the further attempts.
        let limits = (call.deadline, call.attempts.max(1) - 1);
        let call = Call::new(now, handle, number, pair, route, body, fragment_bytes, limits);
        self.calls.push(call);
        self.advance(station, means, &pair);
        Ok(handle)
    }

    /// Sends what waits for a session, over the newest there is, or opens one.
    pub(super) fn advance(&mut self, station: &mut Station<A>, means: &mut Means<'_>, pair: &Pair) {
        let now = means.now;
        let Some(peer) = station.peers.get(pair) else { return };
        let mut waiting = self.calls.iter().filter(|call| {
            call.pair == *pair && call.stage == Stage::Waiting && peer.may_send(call.number)
        });
        let Some(first) = waiting.next() else { return };
        let route = first.route.clone();
        let mut handles = alloc::vec![first.handle];
        handles.extend(waiting.map(|call| call.handle));
        match station.newest_session(now, pair) {
            Some(session) => {
                let (index, old) = (session.index, session.wants_successor(&station.config, now));
                let mut unsure = false;
                for handle in handles {
                    unsure |= self.place(station, now, handle, index) == Placement::Unsure;
                }
                if old || unsure {
                    self.open(station, means, pair, route);
                }
            }
            None => self.open(station, means, pair, route),
        }
    }

    /// Whether a call was last sent over that session.
    pub(super) fn depends_on(&self, session: SessionIndex) -> bool {
        let stage = Stage::Sent { over: session };
        self.calls.iter().any(|call| call.stage == stage)
    }

    /// The calls that were sent over a session that ended wait for another.
    pub(super) fn let_go(&mut self, ended: SessionIndex) {
        for call in &mut self.calls {
            if call.stage == (Stage::Sent { over: ended }) {
                call.stage = Stage::Waiting;
            }
        }
    }

    /// The call that travelled in an initiation is on this session now.
    pub(super) fn seat_rider(
        &mut self,
        station: &Station<A>,
        now: Instant,
        over: SessionIndex,
        rider: Option<CallHandle>,
    ) {
        let rider = self.calls.iter_mut().find(|call| Some(call.handle) == rider);
        let Some(call) = rider.filter(|call| call.stage == Stage::Riding) else { return };
        let timeout =
            station.peers.get(&call.pair).map_or(station.config.timeout_initial, |peer| {
                peer.round_trip.timeout(&station.config, &call.route, 0)
            });
        call.stage = Stage::Sent { over };
        call.attempts_left = call.attempts;
        call.was_sent(now, timeout);
        call.sent_once = false;
    }

    /// Moves the calls of a session's pair to that session, newly established: those that wait, and
    /// those that were sent over others, which the peer may have lost.
    pub(super) fn settle(&mut self, station: &mut Station<A>, now: Instant, index: SessionIndex) {
        let Some(pair) = station.sessions.get(index).map(|session| session.pair) else { return };
        let Some(peer) = station.peers.get(&pair) else { return };
        let handles: Vec<CallHandle> = self
            .calls
            .iter()
            .filter(|call| call.pair == pair && call.stage != (Stage::Sent { over: index }))
            .filter(|call| call.stage != Stage::Riding && peer.may_send(call.number))
            .map(|call| call.handle)
            .collect();
        for handle in handles {
            self.place(station, now, handle, index);
        }
    }

    /// Sends a call over a session. One that was sent before is sent again only if the peer still
    /// knows whether it executed it.
    fn place(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        handle: CallHandle,
        index: SessionIndex,
    ) -> Placement {
        let Some(session) = station.sessions.get(index) else { return Placement::Unsure };
        let (remembers_since, opened_here) = (session.peer_remembers_since, session.opened_here);
        let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) else {
            return Placement::Over;
        };
        if !may_send(call.first_sent, remembers_since) {
            if !opened_here {
                return Placement::Unsure;
            }
            self.finish(station, now, handle, Err(NoResult::OutcomeUnknown));
            return Placement::Over;
        }
        call.stage = Stage::Sent { over: index };
        call.unanswered = 0;
        call.attempts_left = call.attempts;
        self.transmit_call(station, now, handle);
        Placement::Sent
    }

    /// Sends what a call needs next: its fragments, a question, or a wish for the reply's. What is
    /// too long for an address where the peer may not receive has to wait for it to show that.
    fn transmit_call(&mut self, station: &mut Station<A>, now: Instant, handle: CallHandle) {
        let Some(over) = self.transmit_call_if_allowed(station, now, handle) else { return };
        if station.sessions.get(over).is_some_and(|session| !session.reaches()) {
            station.ask_for_proof(now, over, CallNumber(0));
        }
    }

    /// Does what [`Self::transmit_call`] says; returns the session over which something couldn't be
    /// sent.
    fn transmit_call_if_allowed(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        handle: CallHandle,
    ) -> Option<SessionIndex> {
        // At its deadline a call isn't sent but ended, as by a device that stood still and hears of a session first.
        let is_wanted = |call: &&Call<A>| call.handle == handle && call.deadline > now;
        let call = self.calls.iter().find(is_wanted)?;
        let (pair, number) = (call.pair, call.number);
        let Stage::Sent { over } = call.stage else { return None };
        let heard_at = station.sessions.get(over).map(|session| session.route.clone());
        let finished = station.peers.finished(&pair);
        let Station { config, sessions, outbox, peers, .. } = station;
        let call = self.calls.iter_mut().find(|call| call.handle == handle)?;
        let peer = peers.get_mut(&pair)?;
        let clocks = sessions.get(over).map(|session| session.clocks);
        let until_ms =
            clocks.and_then(|clocks| until_ms(&clocks, call, &peer.round_trip, (&*config, now)));
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
                    delivered |= deliver(Frame::Call { number, until_ms, fragment });
                    call.in_flight.insert(*index);
                    call.sent.insert(*index);
                }
                delivered
            }
        };
        let retries = call.unanswered.max(call.still_running);
        let timeout = peer.round_trip.timeout(config, &call.route, retries);
        call.was_sent(now, timeout);
        call.withheld = withheld;
        if delivered {
            peer.acknowledge_at = None;
        }
        withheld.then_some(over)
    }

    /// Sends the calls that waited for their peer to show where it receives.
    pub(super) fn transmit_withheld(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        over: SessionIndex,
    ) {
        let withheld = |call: &&Call<A>| call.withheld && call.stage == Stage::Sent { over };
        let handles: Vec<CallHandle> =
            self.calls.iter().filter(withheld).map(|call| call.handle).collect();
        for handle in handles {
            if let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) {
                // Nothing of it is there, so that it isn't asked after but sent.
                call.unanswered = 0;
            }
            self.transmit_call(station, now, handle);
        }
    }

    pub(super) fn on_running(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        number: CallNumber,
    ) {
        let Some(call) = self.call_of(pair, number) else { return };
        call.missing = FragmentSet::EMPTY;
        self.ask_later(station, now, pair, number);
    }

    /// The peer sleeps with the call: ask again when it wakes, if there is time for that.
    pub(super) fn on_asleep(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        number: CallNumber,
        wakes_in: Duration,
    ) {
        let margin = station.config.timeout_initial;
        let Some(call) = self.call_of(pair, number) else { return };
        if now + wakes_in >= call.deadline {
            let handle = call.handle;
            return self.finish(station, now, handle, Err(NoResult::Asleep { again_in: wakes_in }));
        }
        call.answered(now);
        call.missing = FragmentSet::EMPTY;
        call.still_running = 0;
        call.next_at = now + wakes_in + margin;
    }

    /// The peer has no room for the call now.
    pub(super) fn on_later(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        number: CallNumber,
    ) {
        self.ask_later(station, now, pair, number);
    }

    fn ask_later(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        number: CallNumber,
    ) {
        let Some(call) = self.call_of(pair, number) else { return };
        call.still_running = call.still_running.saturating_add(1);
        let still_running = call.still_running;
        let measured = call.answered(now);
        let round_trip = station.peers.sample(pair, measured);
        if let Some(call) = self.call_of(pair, number) {
            call.next_at = now + round_trip.timeout(&station.config, &call.route, still_running);
        }
    }

    /// The call came later than it is wanted, by the peer's clock. It is sent again if this end believed that clock to show
    /// less.
    pub(super) fn on_late(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        over: SessionIndex,
        number: CallNumber,
        clock_ms: u32,
    ) {
        let fragment_bytes = station.config.fragment_bytes();
        let Some(session) = station.sessions.get_mut(over) else { return };
        let (pair, is_news) = (session.pair, session.clocks.learn(now, clock_ms));
        let Some(call) = self.call_of(&pair, number) else { return };
        if call.stage != (Stage::Sent { over }) || call.reply.is_some() {
            return;
        }
        let measured = call.answered(now);
        if call.missing.is_empty() {
            call.missing = call.all_fragments(fragment_bytes);
        }
        let (handle, at_once) = (call.handle, is_news && call.repeats.take(now));
        station.peers.sample(&pair, measured);
        if at_once {
            self.transmit_call(station, now, handle);
        }
    }

    pub(super) fn on_missing(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        number: CallNumber,
        fragments: &FragmentSet,
    ) {
        let fragment_bytes = station.config.fragment_bytes();
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
        station.peers.sample(pair, measured);
        if let Some(peer) = station.peers.get_mut(pair) {
            peer.adapt_burst(lost);
        }
        let handle = self.call_of(pair, number).map(|call| call.handle);
        if let Some(handle) = handle.filter(|_| at_once) {
            self.transmit_call(station, now, handle);
        }
    }

    pub(super) fn on_reply(
        &mut self,
        station: &mut Station<A>,
        means: &mut Means<'_>,
        pair: &Pair,
        number: CallNumber,
        held_us: u32,
        fragment: &Fragment<'_>,
    ) {
        let now = means.now;
        let body_bytes_max = station.config.body_bytes_max();
        let Some(call) = self.call_of(pair, number) else { return };
        let (handle, begins) = (call.handle, call.reply.is_none());
        if fragment.length() > body_bytes_max {
            return self.finish(station, now, handle, Err(NoResult::TooLong));
        }
        // A reply in one fragment is here and gone; a longer one is asked for again when others
        // have made room.
        if begins
            && fragment.count() > 1
            && !self.make_room_for_reply(&station.config, now, pair, fragment.length())
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
            station.peers.sample(pair, measured);
            return self.on_reply_in_part(
                station,
                now,
                pair,
                handle,
                fragment.last_of_burst(),
                lost,
            );
        };
        station.peers.sample(pair, measured);
        let result = match ReplyBody::parse(&body) {
            Ok(ReplyBody(Ok(result))) => Ok(result.map(<[u8]>::to_vec)),
            Ok(ReplyBody(Err(declined))) => Err(declined),
            // The peer is who it should be, and talks nonsense.
            Err(_) => Err(NoResult::Execution),
        };
        if self.withdraw(station, now, handle) {
            let words = ReplyBody::words(&body).to_vec();
            station.events.push_back(Event::CallDone { handle, result, words });
        }
        self.advance(station, means, pair);
    }

    /// Sees to it that there is room for a reply of `bytes` that comes in parts from `pair`, by dropping
    /// others' that stand still: they are asked for again.
    fn make_room_for_reply(
        &mut self,
        config: &Config,
        now: Instant,
        pair: &Pair,
        bytes: usize,
    ) -> bool {
        loop {
            let taken: usize =
                self.calls.iter().map(|call| call.body.len() + call.reply_bytes()).sum();
            if taken.saturating_add(bytes) <= config.calls_bytes_max {
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
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        handle: CallHandle,
        burst_over: bool,
        lost: bool,
    ) {
        if burst_over {
            if let Some(peer) = station.peers.get_mut(pair) {
                peer.adapt_burst(lost);
            }
            return self.transmit_call(station, now, handle);
        }
        let Some(peer) = station.peers.get_mut(pair) else { return };
        let round_trip = peer.round_trip;
        if let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) {
            call.next_at = now + round_trip.timeout(&station.config, &call.route, 0);
        }
    }

    /// Asks again after calls whose answer is overdue, and ends those whose time is up.
    pub(super) fn poll_calls(&mut self, station: &mut Station<A>, means: &mut Means<'_>) {
        let now = means.now;
        while let Some(call) = self.calls.iter().find(|call| call.deadline <= now) {
            let failure = station.or_deferred(now, &call.pair, NoResult::Deadline);
            self.finish(station, now, call.handle, Err(failure));
        }
        let due: Vec<CallHandle> = self
            .calls
            .iter()
            .filter(|call| matches!(call.stage, Stage::Sent { .. }) && call.next_at <= now)
            .map(|call| call.handle)
            .collect();
        for handle in due {
            self.retry_call(station, means, handle);
        }
        self.poll_waiting(station, means);
    }

    /// When something is to be done about the calls.
    pub(super) fn poll_at<'a>(&'a self, peers: &'a Peers<A>) -> impl Iterator<Item = Instant> + 'a {
        self.calls.iter().flat_map(|call| {
            let again = match call.stage {
                Stage::Sent { .. } => true,
                Stage::Waiting => !peers.is_opening(&call.pair),
                Stage::Riding => false,
            };
            [Some(call.deadline), again.then_some(call.next_at)].into_iter().flatten()
        })
    }

    /// Ends the calls of a machine that is gone, or to one that is spoken to elsewhere from now on.
    pub(super) fn fail(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        is_between: impl Fn(&Pair) -> bool,
    ) {
        while let Some(call) = self.calls.iter().find(|call| is_between(&call.pair)) {
            let failure =
                if call.is_unsent() { NoResult::Unreachable } else { NoResult::OutcomeUnknown };
            self.finish(station, now, call.handle, Err(failure));
        }
    }

    /// Looks for sessions for the calls that have lost theirs, and sends those that waited for
    /// older ones to end.
    fn poll_waiting(&mut self, station: &mut Station<A>, means: &mut Means<'_>) {
        let now = means.now;
        let again = now + station.config.timeout_initial;
        let mut due: Vec<Pair> = Vec::new();
        for call in &mut self.calls {
            if call.stage == Stage::Waiting && call.next_at <= now {
                call.next_at = again;
                due.push(call.pair);
            }
        }
        for pair in due {
            if !station.peers.is_opening(&pair) {
                self.advance(station, means, &pair);
            }
        }
    }

    fn retry_call(&mut self, station: &mut Station<A>, means: &mut Means<'_>, handle: CallHandle) {
        let now = means.now;
        let Some(call) = self.calls.iter_mut().find(|call| call.handle == handle) else { return };
        let (pair, route, unanswered) = (call.pair, call.route.clone(), call.unanswered);
        let Some(left) = call.attempts_left.checked_sub(1) else {
            if call.wanted_until > now {
                // The peer may still take it: the estimate by which it was told so was a longer one.
                call.next_at = call.wanted_until;
                return;
            }
            let failure = station.or_deferred(now, &pair, NoResult::Unreachable);
            return self.finish(station, now, handle, Err(failure));
        };
        call.attempts_left = left;
        if unanswered > 0
            && let Some(peer) = station.peers.get_mut(&pair)
        {
            peer.adapt_burst(true);
        }
        if unanswered >= UNANSWERED_DOUBT {
            self.doubt(station, means, &pair, route);
        }
        self.transmit_call(station, now, handle);
    }

    /// Ends a call, and says so.
    pub(super) fn finish(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        handle: CallHandle,
        result: Result<Option<Vec<u8>>, NoResult>,
    ) {
        if self.withdraw(station, now, handle) {
            station.events.push_back(Event::CallDone { handle, result, words: Vec::new() });
        }
    }

    /// Ends a call without a word. The peer will be told that it needn't remember it.
    pub(super) fn withdraw(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        handle: CallHandle,
    ) -> bool {
        let Some(position) = self.calls.iter().position(|call| call.handle == handle) else {
            return false;
        };
        let call = self.calls.swap_remove(position);
        let patience = call.route.patience() * ACKNOWLEDGED_AFTER_PATIENCES;
        let acknowledge_at = now + station.config.acknowledge_after.max(patience);
        if let Some(peer) = station.peers.get_mut(&call.pair) {
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

/// Until when a call is wanted that is sent `now`, by the clock of its peer.
fn until_ms<A: PeerAddress>(
    clocks: &Clocks,
    call: &mut Call<A>,
    round_trip: &RoundTrip,
    (config, now): (&Config, Instant),
) -> Option<u32> {
    let retries = call.unanswered.max(call.still_running);
    let timeouts = (0..=u32::from(call.attempts_left))
        .map(|more| round_trip.timeout(config, &call.route, retries.saturating_add(more)));
    clocks.until_ms((now, call.deadline), timeouts, &mut call.wanted_until)
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
            wanted_until: now,
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
