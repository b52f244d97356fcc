//! Searches for a way that is needed now: they spread in growing rings, and what is found comes back on the way
//! that the search took (as in AODV, RFC 3561 §6.3 to §6.7), as a line of Babel's table.
//!
//! Searches for the same destination are one: who has passed one on a moment ago notes who asks, and no more.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{self as mesh, Context, Handles, NodeId, Outgoing, Reception};

use super::link::note_heard;
use super::table::{Distance, Entry, News, Seqno};
use super::{Babel, Found, Search};
use crate::forwarding::IN_CROWDS;

/// How far a search goes: at first, then, and at last.
const RINGS: [u8; 3] = [3, 32, 32];
/// A search is passed on within this, so that neighbours don't all do at once.
const PASS_ON_WITHIN: Duration = Duration::from_millis(15);
/// So many neighbours that pass a search on are enough.
const COPIES_ENOUGH: u8 = 3;
/// The same search is passed on once in this time. A copy that came by a shorter way reaches further by some
/// hops, and isn't worth the air; one of a wider ring is.
const PASS_ON_PAUSE: Duration = Duration::from_millis(200);
const WIDER_BY: u8 = 8;
/// So many searches of others may be passed on one after the other, and one more after so long.
const PASSED_ON_AT_ONCE: u32 = 30;
const PASSED_ON_EVERY: Duration = Duration::from_millis(80);
/// How long it is remembered who searched.
const REMEMBERED_FOR: Duration = Duration::from_secs(2);
/// The most searches that are remembered, and the most neighbours that are for each.
const SEARCHES_MAX: usize = 64;
const ASKERS_MAX: usize = 6;

/// A search that others have passed on to this node.
#[derive(Debug)]
pub(super) struct Searched {
    seqno: Seqno,
    askers: Vec<NodeId>,
    hops: u8,
    at: Instant,
    /// When it is passed on, and how many neighbours have done so meanwhile.
    pass_at: Option<Instant>,
    copies: u8,
}

/// How many searches of others a node may pass on: whatever others search for, and whoever invents it, the air
/// stays free for hellos and datagrams.
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    counted_at: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: PASSED_ON_AT_ONCE, counted_at: Instant::BOOT }
    }
}

impl Budget {
    /// How many may be passed on at once, as it was when one was last.
    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    /// Whether one more may be passed on now; it counts as passed on then.
    fn take(&mut self, now: Instant) -> bool {
        let more = now.since(self.counted_at).as_micros() / PASSED_ON_EVERY.as_micros();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        self.counted_at = self.counted_at + PASSED_ON_EVERY * more;
        self.left = self.left.saturating_add(more).min(PASSED_ON_AT_ONCE);
        let may_pass = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may_pass
    }
}

impl Babel {
    /// Searches for a way to `destination`, the further the more often it was.
    pub(super) fn search(
        &mut self,
        (destination, seqno): (NodeId, Seqno),
        tries: u8,
        context: &mut Context<'_, Self>,
    ) {
        let hops = RINGS[usize::from(tries.saturating_sub(1)).min(RINGS.len() - 1)];
        context.transmit(&Search { destination, seqno, hops }, Outgoing::default());
    }

    /// Tells a neighbour the way to `destination`, as a line of its own.
    fn tell_found(&mut self, destination: NodeId, to: NodeId, context: &mut Context<'_, Self>) {
        let distance = if destination == context.node() {
            Distance { seqno: self.table.own_seqno(), metric: 0 }
        } else {
            let Some(place) = self.table.place(destination) else { return };
            // The asker may count on it: it is the feasibility distance from now on (RFC 8966 §3.7.3).
            self.table.tell(place, context.now());
            let Some((_, distance)) = self.table.route(destination) else { return };
            distance
        };
        let found = Found { boot: self.boot, entry: Entry { destination, distance } };
        let to = mesh::Destination::One(to);
        context.transmit(&found, Outgoing { to, ..Outgoing::default() });
        self.flush(News::Later, context);
    }

    /// Whether this node may answer who searches: `from` isn't told of a way that leads back to it.
    fn can_answer(&self, search: &Search, from: NodeId, own: NodeId) -> bool {
        if search.destination == own {
            return self.table.own_seqno() >= search.seqno;
        }
        let route = self.table.route(search.destination);
        route.is_some_and(|(next, distance)| next != from && distance.seqno >= search.seqno)
    }

    fn make_room_for_search(&mut self, now: Instant) {
        if self.searches.len() >= SEARCHES_MAX {
            self.searches.retain(|_, searched| now.since(searched.at) < REMEMBERED_FOR);
        }
        if self.searches.len() >= SEARCHES_MAX {
            let oldest = self.searches.iter().min_by_key(|(_, searched)| searched.at);
            if let Some(oldest) = oldest.map(|(destination, _)| *destination) {
                self.searches.remove(&oldest);
            }
        }
    }

    /// Passes on the searches of others that are due, unless so many neighbours did that hardly anybody else would hear
    /// it (the counter-based scheme of Ni, Tseng, Chen and Sheu, MobiCom 1999).
    pub(super) fn pass_searches_on(&mut self, context: &mut Context<'_, Self>) {
        if !IN_CROWDS {
            return;
        }
        let now = context.now();
        let mut next = None::<Instant>;
        for (destination, searched) in self.searches.iter_mut() {
            let Some(at) = searched.pass_at else { continue };
            if at > now {
                next = next.into_iter().chain([at]).min();
                continue;
            }
            searched.pass_at = None;
            if searched.copies < COPIES_ENOUGH && self.search_budget.take(now) {
                let Searched { seqno, hops, .. } = *searched;
                let search = Search { destination: *destination, seqno, hops: hops - 1 };
                context.transmit(&search, Outgoing::default());
            }
        }
        if let Some(at) = next {
            self.chase_in(at.since(now), context);
        }
    }

    /// Answers all who searched for ways that are known now.
    pub(super) fn answer_all_searches(&mut self, context: &mut Context<'_, Self>) {
        let waits = self.searches.iter().filter(|(_, searched)| !searched.askers.is_empty());
        let waits: Vec<_> = waits.map(|(destination, _)| *destination).collect();
        for destination in waits {
            self.answer_searches(destination, context);
        }
    }

    /// Answers those who searched for a way that is known now.
    fn answer_searches(&mut self, destination: NodeId, context: &mut Context<'_, Self>) {
        let route = self.table.route(destination);
        let Some((next, distance)) = route else { return };
        let now = context.now();
        let Some(searched) = self.searches.get_mut(&destination) else { return };
        if distance.seqno < searched.seqno || now.since(searched.at) >= REMEMBERED_FOR {
            return;
        }
        searched.pass_at = None;
        let askers = core::mem::take(&mut searched.askers);
        for asker in askers.into_iter().filter(|asker| *asker != next) {
            self.tell_found(destination, asker, context);
        }
    }
}

impl Handles<Search> for Babel {
    fn handle(
        &mut self,
        search: Search,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let (now, from, own) = (context.now(), reception.from, context.node());
        let Search { destination, seqno, hops } = search;
        // That it can be used is shown when what is found comes back on it.
        note_heard(&mut self.links, from, now);
        if self.link(from).is_none() {
            return;
        }
        self.make_room_for_search(now);
        let fresh =
            Searched { seqno, askers: Vec::new(), hops: 0, at: now, pass_at: None, copies: 0 };
        let searched = self.searches.entry(destination).or_insert(fresh);
        let is_recent = now.since(searched.at) < PASS_ON_PAUSE && searched.seqno >= seqno;
        if is_recent && hops <= searched.hops.saturating_add(WIDER_BY) {
            searched.copies = searched.copies.saturating_add(1);
            // A neighbour whose copy has fewer hops left had the search from this node's source. Others answer
            // it, so that each asker is told on one way only.
            let is_open = hops == searched.hops && !searched.askers.is_empty();
            if is_open && !searched.askers.contains(&from) && searched.askers.len() < ASKERS_MAX {
                searched.askers.push(from);
            }
            return;
        }
        if now.since(searched.at) >= REMEMBERED_FOR {
            searched.askers.clear();
        }
        (searched.seqno, searched.hops, searched.at) = (searched.seqno.max(seqno), hops, now);
        (searched.pass_at, searched.copies) = (None, 0);
        if destination == own {
            self.table.raise_own_seqno(seqno);
        }
        if self.can_answer(&search, from, own) {
            return self.tell_found(destination, from, context);
        }
        let Some(hops) = hops.checked_sub(1).filter(|_| destination != own) else { return };
        // A number that isn't newer than this node has told can't be used here, and so not be passed back.
        let seqno = seqno.max(self.table.next_seqno(destination).unwrap_or_default());
        if let Some(searched) = self.searches.get_mut(&destination) {
            searched.seqno = searched.seqno.max(seqno);
            if !searched.askers.contains(&from) && searched.askers.len() < ASKERS_MAX {
                searched.askers.push(from);
            }
        }
        if hops > 0 && !IN_CROWDS {
            if self.search_budget.take(now) {
                let patience = context.random().below_span(PASS_ON_WITHIN);
                let search = Search { destination, seqno, hops };
                context.transmit(&search, Outgoing { patience, ..Outgoing::default() });
            }
        } else if hops > 0 {
            let after = context.random().below_span(self.shared(PASS_ON_WITHIN));
            if let Some(searched) = self.searches.get_mut(&destination) {
                searched.pass_at = Some(now + after);
            }
            self.chase_in(after, context);
        }
    }
}

impl Handles<Found> for Babel {
    fn handle(&mut self, found: Found, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let from = reception.from;
        note_heard(&mut self.links, from, context.now());
        let Some(link) = self.link(from).filter(|link| link.boot == found.boot) else { return };
        if !reception.addressed {
            return;
        }
        // It heard the search, and this node hears the answer. The search was for everybody: whether what is for the
        // neighbour alone arrives, an acknowledgment shows.
        link.vouch();
        if link.is_given_up() {
            self.request_acknowledgment(from, context);
        }
        self.renew_cost(from, context);
        self.learn_line(from, found.entry, context);
        self.answer_searches(found.entry.destination, context);
    }
}
