//! Calls that come in: executed at most once, and answered as often as they are asked for.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::NoResult;
use tenure_wire::datagram::SessionIndex;
use tenure_wire::frame::{
    CallBody, CallNumber, Finished, Fragment, FragmentSet, Frame, Message, ReplyBody,
};

use super::station::{Delivery, Station, seal};
use crate::callers::{Allowance, Callers, Forgotten, Use, Verdict};
use crate::calls::{BURST_INITIAL, BURST_MAX};
use crate::session::Pair;
use crate::{Config, Event, IncomingCallHandle, PeerAddress};

/// The calls that come in, and those who make them.
pub(super) struct Incoming {
    pub(super) callers: Callers,
    /// How often a caller was forgotten, or put off, for want of room.
    pub(super) times_full: u64,
}

/// The fate of a caller for whose calls there is room, or none.
pub(super) enum Room {
    Free,
    /// Another was forgotten for it.
    Made(Forgotten),
    /// It can't be remembered: its call is not executed.
    Full,
}

impl Incoming {
    pub(super) fn new(callers: Callers) -> Self {
        Self { callers, times_full: 0 }
    }

    /// Sees to it that one more caller can be remembered.
    pub(super) fn make_room(&mut self, config: &Config, pair: &Pair, incarnation: u64) -> Room {
        if self.callers.has_room(config, pair, incarnation) {
            return Room::Free;
        }
        self.times_full += 1;
        let forgotten = self.callers.forget_one(config, config.standing(&pair.peer));
        forgotten.map_or(Room::Full, Room::Made)
    }

    /// Takes in a part of a call, whose caller can be remembered.
    pub(super) fn on_call<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        session: SessionIndex,
        finished: &Finished,
        number: CallNumber,
        fragment: &Fragment<'_>,
    ) {
        let Some(known) = station.sessions.get(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        let config = &station.config;
        let is_owner = config.is_owner(&pair.peer);
        let length = fragment.length();
        let begins = !self.callers.know(now, pair, incarnation).is_known(number);
        let in_parts = begins && fragment.count() > 1;
        let room_of_caller = self.callers.know(now, pair, incarnation).bytes_taken() + length
            <= config.buffer_bytes_per_caller_max;
        let room_in_all = in_parts
            && room_of_caller
            && self.callers.make_room(config, now, length, Use::Assembly, is_owner);
        let may_run = self.callers.may_run(config, &pair.peer);
        let caller = self.callers.know(now, pair, incarnation);
        caller.note_finished(finished);
        let allowance = Allowance { may_run, may_assemble: room_in_all };
        let verdict = caller.take_fragment(config, now, session, number, fragment, allowance);
        self.carry_out(station, now, session, number, verdict);
    }

    pub(super) fn on_query<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
    ) {
        let Some(known) = station.sessions.get(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        let verdict = match self.callers.find(&pair, incarnation) {
            Some(caller) => caller.query(now, session, number),
            None => Verdict::Missing(FragmentSet::ALL),
        };
        self.carry_out(station, now, session, number, verdict);
    }

    pub(super) fn on_want<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
        burst: u8,
        fragments: &FragmentSet,
    ) {
        let Some(known) = station.sessions.get(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        let Some(caller) = self.callers.find(&pair, incarnation) else { return };
        match caller.query(now, session, number) {
            Verdict::Reply => {
                let burst = burst.clamp(1, BURST_MAX);
                self.send_reply(station, now, &pair, incarnation, number, (burst, fragments));
            }
            verdict => self.carry_out(station, now, session, number, verdict),
        }
    }

    pub(super) fn carry_out<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
        verdict: Verdict,
    ) {
        let Some(known) = station.sessions.get(session) else { return };
        let (pair, incarnation) = (known.pair, known.incarnation);
        match verdict {
            Verdict::Ignore => {}
            Verdict::Later => {
                station.send(session, Frame::Later { number });
            }
            Verdict::Running => {
                station.send(session, Frame::Running { number });
            }
            Verdict::Missing(fragments) => {
                station.send(session, Frame::Missing { number, fragments });
            }
            Verdict::Reply => self.send_reply_again(station, now, &pair, incarnation, number),
            Verdict::Execute(body) => self.hand_out(station, now, session, number, &body),
        }
    }

    /// Gives a call, whole for the first time, to whoever executes it.
    fn hand_out<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
        body: &[u8],
    ) {
        let Some(known) = station.sessions.get(session) else { return };
        let (pair, from) = (known.pair, known.route.clone());
        let Some(caller) = self.callers.find(&pair, known.incarnation) else { return };
        let handle = IncomingCallHandle { caller: caller.id, number };
        match CallBody::parse(body) {
            Ok(call) => station.events.push_back(Event::IncomingCall {
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
                self.finish_incoming(station, now, handle, body);
            }
        }
    }

    pub(super) fn finish_incoming<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        handle: IncomingCallHandle,
        body: Vec<u8>,
    ) {
        let Some(caller) = self.callers.by_id(handle.caller) else { return };
        let (pair, incarnation) = (caller.pair, caller.incarnation);
        if !caller.finish(now, handle.number, body) {
            return;
        }
        self.send_reply_again(station, now, &pair, incarnation, handle.number);
        let within_caller = self
            .callers
            .find(&pair, incarnation)
            .is_some_and(|one| one.bytes_taken() <= station.config.buffer_bytes_per_caller_max);
        let is_owner = station.config.is_owner(&pair.peer);
        let within_all = self.callers.make_room(&station.config, now, 0, Use::Result, is_owner);
        if !(within_caller && within_all)
            && let Some(caller) = self.callers.find(&pair, incarnation)
        {
            caller.drop_result(handle.number);
        }
    }

    /// Sends a reply from its beginning.
    pub(super) fn send_reply_again<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
        number: CallNumber,
    ) {
        self.send_reply(
            station,
            now,
            pair,
            incarnation,
            number,
            (BURST_INITIAL, &FragmentSet::ALL),
        );
    }

    /// Sends the first `burst` of those fragments of a reply that are wanted, over the session by
    /// which the caller last asked, or its newest one.
    fn send_reply<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
        number: CallNumber,
        (burst, wanted): (u8, &FragmentSet),
    ) {
        let finished = station.peers.finished(pair);
        let Station { config, sessions, outbox, .. } = &mut *station;
        let Some(caller) = self.callers.find(pair, incarnation) else { return };
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
        let Some(withheld) = withheld else { return station.peers.acknowledged(pair) };
        caller.withhold(number, withheld);
        station.ask_for_proof(now, index, number);
    }

    /// Sends the replies that waited for their caller to show where it receives.
    pub(super) fn send_withheld<A: PeerAddress>(
        &mut self,
        station: &mut Station<A>,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
    ) {
        let Some(caller) = self.callers.find(pair, incarnation) else { return };
        for number in caller.take_withheld() {
            self.send_reply_again(station, now, pair, incarnation, number);
        }
    }
}
