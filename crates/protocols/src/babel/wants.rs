//! Requests for newer sequence numbers (RFC 8966 §3.8): made, passed on, and answered.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{self as mesh, Context, Handles, NodeId, Outgoing, Reception};

use super::link::note_heard;
use super::table::{News, Seqno};
use super::{Babel, NEIGHBOURS_AT_EASE, Want};
use crate::forwarding::IN_CROWDS;

/// Requests for sequence numbers wait so long for others to share a frame with.
const WANT_PATIENCE: Duration = Duration::from_millis(10);
/// A destination's request is passed on once in this time.
const PASS_ON_PAUSE: Duration = Duration::from_millis(100);
/// How often a newer sequence number is asked for, and how long after the first time again.
const WANT_TRIES: u8 = 8;
const WANT_PAUSE: Duration = Duration::from_millis(120);
/// Where links come and go: how long after the first search until the second, how many follow each other, and
/// how long none follows them.
const SEARCH_PAUSE: Duration = Duration::from_millis(200);
const SEARCHES: u8 = 4;
const SEARCHED_PAUSE: Duration = Duration::from_millis(800);
/// How long a better way, where there is a way, is not asked for again.
const IMPROVE_PAUSE: Duration = Duration::from_secs(30);
/// How far a request goes.
const HOPS_MAX: u8 = 64;
/// A request for a better way, where there is one, comes within this.
const IMPROVE_WITHIN: Duration = Duration::from_millis(60);
/// So many sequence numbers may be waited for at ease. Where more are, all have more patience: the
/// answers share the air as well.
const WANTS_AT_EASE: usize = 16;

/// A sequence number that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) seqno: Seqno,
    /// Asked for by this node, and not just passed on.
    is_own: bool,
    tries: u8,
    at: Instant,
}

impl Babel {
    /// A pause, the longer the more sequence numbers are waited for.
    fn patient(&self, pause: Duration) -> Duration {
        pause * (1 + self.wants.len() / WANTS_AT_EASE) as u32
    }

    /// A datagram goes to `destination`: if there is no way, one is asked for; where links come and
    /// go, also if nothing comes through by the one that there is.
    pub(super) fn need(&mut self, destination: NodeId, context: &mut Context<'_, Self>) {
        self.demand.note(destination, context.now());
        let is_restless = self.unrest.is_restless(context.now());
        let is_reachable = match is_restless {
            true => self.table.has_open_way(destination),
            false => self.table.route(destination).is_some(),
        };
        if destination == context.node() || is_reachable {
            return;
        }
        let seqno = self.table.next_seqno(destination);
        if seqno.is_some() || is_restless {
            self.want(destination, seqno.unwrap_or_default(), true, context);
        }
    }

    /// Asks for a way to `destination`, and keeps asking a few times.
    pub(super) fn want(
        &mut self,
        destination: NodeId,
        seqno: Seqno,
        is_urgent: bool,
        context: &mut Context<'_, Self>,
    ) {
        let is_restless = self.unrest.is_restless(context.now());
        if is_restless && !(is_urgent && self.demand.is_used(destination, context.now())) {
            return;
        }
        // Where there is a way, if a long one, there is no haste, and no second try.
        let tries = if is_urgent { 0 } else { WANT_TRIES - 1 };
        let wanted = Wanted { seqno, is_own: true, tries, at: context.now() };
        let is_full = self.wants.len() >= self.config.destinations_max;
        let cost = match IN_CROWDS {
            true => (self.links.len() as u32 / NEIGHBOURS_AT_EASE).max(1),
            false => 1,
        };
        match self.wants.get(&destination) {
            Some(known) if known.is_own && known.seqno >= seqno && known.tries <= tries => return,
            Some(known) if is_restless && known.is_own && known.seqno >= seqno => return,
            None if is_full => return,
            _ if !self.demand.may_ask(destination, cost, context.now()) => return,
            _ => drop(self.wants.insert(destination, wanted)),
        }
        let within = if is_urgent { Duration::from_millis(5) } else { IMPROVE_WITHIN };
        let after = context.random().below_span(within);
        self.chase_in(after, context);
    }

    /// Sends what is wanted and due; forgets what was asked for often enough.
    pub(super) fn send_wants(&mut self, context: &mut Context<'_, Self>) {
        let now = context.now();
        let mut next: Option<Instant> = None;
        let mut due = Vec::new();
        let is_restless = self.unrest.is_restless(now);
        let want_pause = match is_restless {
            true => SEARCH_PAUSE,
            false => self.patient(self.shared(WANT_PAUSE)),
        };
        let table = &self.table;
        let mut keep = |destination: &NodeId, wanted: &mut Wanted| {
            if wanted.at <= now && due.len() < WANTS_AT_EASE {
                let is_reachable = table.has_open_way(*destination);
                if !wanted.is_own || (wanted.tries >= WANT_TRIES && is_reachable) {
                    return false;
                }
                if is_restless && (wanted.tries >= WANT_TRIES || is_reachable) {
                    return false;
                }
                let tries = wanted.tries + 1;
                due.push((*destination, wanted.seqno, tries));
                wanted.tries = (wanted.tries + 1).min(WANT_TRIES);
                if is_restless {
                    // Once it was searched for everywhere, it is left alone for a while.
                    wanted.tries = if tries >= SEARCHES { WANT_TRIES } else { tries };
                    wanted.at = match wanted.tries {
                        WANT_TRIES => now + SEARCHED_PAUSE,
                        tries => now + SEARCH_PAUSE * u32::from(tries),
                    };
                    next = Some(next.map_or(wanted.at, |next| next.min(wanted.at)));
                    return true;
                }
                let is_offered = table.any_way(*destination, None).is_some();
                wanted.at = now
                    + match wanted.tries {
                        WANT_TRIES => IMPROVE_PAUSE,
                        tries => want_pause * u32::from(tries),
                    };
                if wanted.tries == WANT_TRIES && !is_offered && !is_reachable {
                    return false;
                }
            }
            next = Some(next.map_or(wanted.at, |next| next.min(wanted.at)));
            true
        };
        let wants = self.wants.iter_mut();
        let given_up: Vec<_> =
            wants.filter_map(|(id, wanted)| (!keep(id, wanted)).then_some(*id)).collect();
        for destination in given_up {
            self.wants.remove(&destination);
        }
        let is_full = due.len() == WANTS_AT_EASE;
        let is_dense = self.links.len() > NEIGHBOURS_AT_EASE as usize;
        for (destination, seqno, tries) in due {
            if is_restless {
                self.search((destination, seqno), tries, context);
                continue;
            }
            // Where there is no haste, or there are many who would each pass the request on, who offers the shortest
            // way is asked by itself (§3.8.2.2); then all are, for that may have been the wrong one.
            let asks_one = IN_CROWDS && (tries == WANT_TRIES || is_dense && tries % 2 == 1);
            let offers = if asks_one { self.table.any_way(destination, None) } else { None };
            let to = offers.map_or(mesh::Destination::All, mesh::Destination::One);
            let want = Want { destination, seqno, hops: HOPS_MAX };
            context.transmit(&want, Outgoing { to, patience: WANT_PATIENCE, body: &[] });
        }
        if let Some(at) = next {
            let least = if is_full { want_pause } else { WANT_PATIENCE };
            self.chase_in(at.since(now).max(least), context);
        }
    }

    /// Passes a request on towards its destination (§3.8.1.2), and remembers that it was.
    fn pass_on(&mut self, want: Want, from: NodeId, context: &mut Context<'_, Self>) {
        let now = context.now();
        let Want { destination, seqno, hops } = want;
        let is_full = self.wants.len() >= self.config.destinations_max;
        let pause = self.patient(PASS_ON_PAUSE);
        match self.wants.get_mut(&destination) {
            // All neighbours were asked already, and will be again.
            Some(Wanted { is_own: true, seqno: known, tries: 1..WANT_TRIES, .. })
                if *known >= seqno =>
            {
                return;
            }
            Some(wanted) if wanted.is_own => {}
            Some(wanted) if wanted.seqno >= seqno && wanted.at > now + pause * 2 => return,
            Some(wanted) => {
                wanted.seqno = wanted.seqno.max(seqno);
                wanted.at = now + pause * 3;
            }
            None if is_full => return,
            None => {
                let wanted = Wanted { seqno, is_own: false, tries: 0, at: now + pause * 3 };
                self.wants.insert(destination, wanted);
            }
        }
        let Some(hops) = hops.checked_sub(1).filter(|hops| *hops > 0) else { return };
        let route = self.table.route(destination).map(|(neighbour, _)| neighbour);
        let next = route.filter(|next| *next != from);
        if let Some(next) = next.or_else(|| self.table.any_way(destination, Some(from))) {
            let to = mesh::Destination::One(next);
            let want = Want { destination, seqno, hops };
            context.transmit(&want, Outgoing { to, patience: WANT_PATIENCE, body: &[] });
        }
        self.chase_in(pause * 3, context);
    }
}

impl Handles<Want> for Babel {
    fn handle(&mut self, want: Want, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        note_heard(&mut self.links, reception.from, context.now());
        if self.link(reception.from).is_none() {
            return;
        }
        if want.destination == context.node() {
            if self.table.raise_own_seqno(want.seqno) || self.table.own_seqno() >= want.seqno {
                self.flush(News::AtOnce, context);
            }
            return;
        }
        match self.table.route(want.destination) {
            Some((next, distance)) if distance.seqno >= want.seqno && next != reception.from => {
                if let Some(place) = self.table.place(want.destination) {
                    self.table.tell(place, context.now());
                }
                self.flush(News::AtOnce, context);
            }
            _ if reception.addressed || self.is_among_few(context) => {
                self.pass_on(want, reception.from, context);
            }
            _ => {}
        }
    }
}
