//! Calls that come in: executed at most once, and answered as often as they are asked for.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::NoResult;
use tenure_wire::datagram::{Cookie, SessionIndex};
use tenure_wire::frame::{
    CallBody, CallNumber, Finished, Fragment, FragmentSet, Frame, Message, ReplyBody,
};

use super::{Delivery, Endpoint, seal};
use crate::callers::{Allowance, Forgotten, Use, Verdict};
use crate::calls::{BURST_INITIAL, BURST_MAX, Step};
use crate::session::Pair;
use crate::{Event, IncomingCallHandle, PeerAddress};

impl<A: PeerAddress> Endpoint<A> {
    pub(super) fn on_call(
        &mut self,
        now: Instant,
        session: SessionIndex,
        finished: &Finished,
        number: CallNumber,
        fragment: &Fragment<'_>,
    ) {
        let Some(known) = self.session(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        // If the caller can't be remembered, the call is not executed.
        if !self.callers.has_room(&self.config, &pair, incarnation) {
            self.callers_full += 1;
            let standing = self.config.standing(&pair.peer);
            let Some(forgotten) = self.callers.forget_one(&self.config, standing) else {
                return self.carry_out(now, session, number, Verdict::Later);
            };
            self.after_forgetting(now, forgotten);
        }
        let is_owner = self.config.is_owner(&pair.peer);
        let length = fragment.length();
        let begins = !self.callers.know(now, pair, incarnation).is_known(number);
        let in_parts = begins && fragment.count() > 1;
        let room_of_caller = self.callers.know(now, pair, incarnation).bytes_taken() + length
            <= self.config.buffer_bytes_per_caller_max;
        let room_in_all = in_parts
            && room_of_caller
            && self.callers.make_room(&self.config, now, length, Use::Assembly, is_owner);
        let may_run = self.callers.may_run(&self.config, &pair.peer);
        let caller = self.callers.know(now, pair, incarnation);
        caller.note_finished(finished);
        let allowance = Allowance { may_run, may_assemble: room_in_all };
        let verdict = caller.take_fragment(&self.config, now, session, number, fragment, allowance);
        self.carry_out(now, session, number, verdict);
    }

    pub(super) fn on_query(&mut self, now: Instant, session: SessionIndex, number: CallNumber) {
        let Some(known) = self.session(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        let verdict = match self.callers.find(&pair, incarnation) {
            Some(caller) => caller.query(now, session, number),
            None => Verdict::Missing(FragmentSet::ALL),
        };
        self.carry_out(now, session, number, verdict);
    }

    pub(super) fn on_want(
        &mut self,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
        burst: u8,
        fragments: &FragmentSet,
    ) {
        let Some(known) = self.session(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        let Some(caller) = self.callers.find(&pair, incarnation) else { return };
        match caller.query(now, session, number) {
            Verdict::Reply => {
                let burst = burst.clamp(1, BURST_MAX);
                self.send_reply(now, &pair, incarnation, number, burst, fragments);
            }
            verdict => self.carry_out(now, session, number, verdict),
        }
    }

    fn carry_out(
        &mut self,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
        verdict: Verdict,
    ) {
        let Some(known) = self.session(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        match verdict {
            Verdict::Ignore => {}
            Verdict::Later => {
                self.send(session, Frame::Later { number });
            }
            Verdict::Running => {
                self.send(session, Frame::Running { number });
            }
            Verdict::Missing(fragments) => {
                self.send(session, Frame::Missing { number, fragments });
            }
            Verdict::Reply => self.send_reply_again(now, &pair, incarnation, number),
            Verdict::Execute(body) => {
                let from = known.route.clone();
                self.hand_out(now, &pair, incarnation, number, from, &body);
            }
        }
    }

    /// Gives a call, whole for the first time, to whoever executes it.
    fn hand_out(
        &mut self,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
        number: CallNumber,
        from: A,
        body: &[u8],
    ) {
        let Some(caller) = self.callers.find(pair, incarnation) else { return };
        let handle = IncomingCallHandle { caller: caller.id, number };
        match CallBody::parse(body) {
            Ok(call) => self.events.push_back(Event::IncomingCall {
                handle,
                to: pair.local,
                peer: pair.peer,
                function: call.function.to_owned(),
                parameter: call.parameter.map(<[u8]>::to_vec),
                deadline: now + Duration::from_millis(call.remaining_ms.into()),
                from,
            }),
            Err(_) => {
                let body = ReplyBody(Err(NoResult::NoSuchFunction)).to_bytes();
                self.finish_incoming(now, handle, body);
            }
        }
    }

    pub(super) fn finish_incoming(
        &mut self,
        now: Instant,
        handle: IncomingCallHandle,
        body: Vec<u8>,
    ) {
        let Some(caller) = self.callers.by_id(handle.caller) else { return };
        let (pair, incarnation) = (caller.pair, caller.incarnation);
        if !caller.finish(now, handle.number, body) {
            return;
        }
        self.send_reply_again(now, &pair, incarnation, handle.number);
        let within_caller = self
            .callers
            .find(&pair, incarnation)
            .is_some_and(|one| one.bytes_taken() <= self.config.buffer_bytes_per_caller_max);
        let is_owner = self.config.is_owner(&pair.peer);
        let within_all = self.callers.make_room(&self.config, now, 0, Use::Result, is_owner);
        if !(within_caller && within_all)
            && let Some(caller) = self.callers.find(&pair, incarnation)
        {
            caller.drop_result(handle.number);
        }
    }

    /// Sends a reply from its beginning.
    pub(super) fn send_reply_again(
        &mut self,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
        number: CallNumber,
    ) {
        self.send_reply(now, pair, incarnation, number, BURST_INITIAL, &FragmentSet::ALL);
    }

    /// Sends the first `burst` of those fragments of a reply that are wanted, over the session by
    /// which the caller last asked, or its newest one.
    fn send_reply(
        &mut self,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
        number: CallNumber,
        burst: u8,
        wanted: &FragmentSet,
    ) {
        let finished = self.finished(pair);
        let Self { config, sessions, outbox, callers, .. } = self;
        let Some(caller) = callers.find(pair, incarnation) else { return };
        let Some((body, asked_over, asked_at)) = caller.reply(number) else { return };
        let of_caller = sessions
            .of_pair(pair)
            .filter(|session| session.incarnation == incarnation)
            .max_by_key(|session| (session.index == asked_over, session.created));
        let Some(index) = of_caller.map(|session| session.index) else { return };
        let held_us = u32::try_from(now.since(asked_at).as_micros()).unwrap_or(u32::MAX);
        let fragment_bytes = config.fragment_bytes();
        let count = body.len().div_ceil(fragment_bytes.into());
        let burst: Vec<usize> =
            FragmentSet::first(count).intersection(wanted).iter().take(burst.into()).collect();
        let is_owner = config.is_owner(&pair.peer);
        let mut withheld = None;
        for fragment_index in &burst {
            // An answer that would be lost before it leaves isn't sealed.
            let is_lost = outbox.is_full() && !is_owner;
            if is_lost || !caller.may_send_fragment(now, number, *fragment_index) {
                break;
            }
            let Some((body, ..)) = caller.reply(number) else { return };
            let last = Some(fragment_index) == burst.last();
            let Some(fragment) = Fragment::of(body, fragment_bytes, *fragment_index, last) else {
                continue;
            };
            let frame = Frame::Reply { number, held_us, fragment };
            let message = Message { finished, frame };
            if seal(config, sessions, outbox, index, None, &message) == Delivery::Withheld {
                withheld = Some(*fragment_index);
                break;
            }
        }
        let Some(withheld) = withheld else { return self.acknowledged(pair) };
        caller.withhold(number, withheld);
        let Some(route) = self.session(index).map(|session| session.route.clone()) else { return };
        let cookie = self.gate.cookie(now, &route);
        self.send(index, Frame::Prove { number, cookie });
    }

    /// The peer returns a cookie: what waited for that can be sent.
    pub(super) fn on_proof(&mut self, now: Instant, index: SessionIndex, cookie: &Cookie) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if self.gate.cookie_is_valid(now, &session.route, cookie) {
            session.shown_to_reach();
            let (pair, incarnation) = (session.pair, session.incarnation);
            self.send_withheld(now, &pair, incarnation);
            self.transmit_withheld(now, index);
        }
    }

    /// Sends the replies that waited for their caller to show where it receives.
    pub(super) fn send_withheld(&mut self, now: Instant, pair: &Pair, incarnation: u64) {
        let Some(caller) = self.callers.find(pair, incarnation) else { return };
        for number in caller.take_withheld() {
            self.send_reply_again(now, pair, incarnation, number);
        }
    }

    /// Ends the sessions of a caller that was forgotten, and sees to it that no initiation of its
    /// is accepted any more that may carry a call it made before.
    pub(super) fn after_forgetting(&mut self, now: Instant, forgotten: Forgotten) {
        self.gate.forgot(now, forgotten.last_call);
        let Forgotten { pair, incarnation, .. } = forgotten;
        let of_caller = self.sessions.of_pair(&pair).filter(|one| one.incarnation == incarnation);
        let of_caller: Vec<SessionIndex> = of_caller.map(|one| one.index).collect();
        of_caller.into_iter().for_each(|index| self.end_session(index));
        // An initiation under way tells of this end's memory as it no longer is.
        self.recall_initiation(now, &pair);
    }

    fn recall_initiation(&mut self, now: Instant, pair: &Pair) {
        self.unseat_rider(pair);
        if let Some(handshake) = self.peer(pair).and_then(|peer| peer.handshake.as_mut()) {
            handshake.step = Step::Idle;
            handshake.next_at = now;
        }
    }
}
