//! Whether next hops pass on what they take: now and then a datagram is watched, and who gets it after the next
//! hop says so, back through the next hop.
//!
//! ```text
//!   this node ──datagram, asks──▶ next hop ──datagram, witnessed──▶ who comes after it
//!             ◀─Witness, passed──          ◀────────Witness────────
//! ```
//!
//! Sources: TWOACK (Balakrishnan, Deng and Varshney, WCNC 2005); watchdog and pathrater (Marti, Giuli, Lai and
//! Baker, MobiCom 2000), without overhearing, which links that carry frames to one alone don't allow.
//!
//! A next hop is suspected if at least three of the last eight watched datagrams and two fifths of them came no
//! further; a router that hears so goes around it where it can. It isn't any more once four in a row came further:
//! of those that had no other way, or of empty ones that are sent through it after a while, which grows each time
//! that they don't. One that has had no room for four seconds, whatever it was given, is suspected as well.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::NodeId;

/// Whether this program has what watches, beside what bears witness for others.
pub(crate) const IS_ON: bool = cfg!(feature = "watch");
/// How often a next hop is watched that passes on what it takes, and how often the node watches any.
const WATCH_EVERY: Duration = Duration::from_secs(4);
const WATCH_ANY_EVERY: Duration = Duration::from_secs(1);
/// How often one is watched that is in doubt: misses that count are apart, so that one lost way isn't three.
const WATCH_DOUBTFUL_EVERY: Duration = Duration::from_millis(600);
/// How long who comes after the next hop has to say that it got the datagram, once the next hop took it.
const PATIENCE: Duration = Duration::from_millis(1500);
/// A datagram that the next hop didn't take by then was no watch of it.
const TAKEN_WITHIN: Duration = Duration::from_secs(8);
/// How long after the first suspicion a next hop is tried with an empty datagram; it doubles so often at most.
const TRIED_AFTER: Duration = Duration::from_secs(20);
const DOUBLINGS_MAX: u32 = 4;
/// A next hop that takes nothing for so long, and says each time that it has no room, is none either.
#[cfg(feature = "crowds")]
const REFUSES_FOR: Duration = Duration::from_secs(4);
#[cfg(feature = "crowds")]
const REFUSALS_MIN: u32 = 8;
/// So many of the last eight must be missing, and such a part of them.
const MISSES_MIN: u32 = 3;
/// So many in a row that came show that a next hop passes on.
const PROVES: u32 = 4;
const RESULTS_MAX: u32 = u8::BITS;
/// The most next hops that are watched, and the most datagrams of each.
const HOPS_MAX: usize = 32;
const WATCHED_MAX: usize = 4;

/// The facts about next hops.
#[derive(Debug, Default)]
pub(super) struct Watch {
    hops: Vec<Hop>,
    any_at: Option<Instant>,
}

/// Whether a neighbour may be counted on to pass on what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rating {
    pub(super) neighbour: NodeId,
    pub(super) passes_on: bool,
}

#[derive(Debug)]
struct Hop {
    neighbour: NodeId,
    watched: Vec<Watched>,
    asked_at: Option<Instant>,
    /// One bit for each watched datagram, the latest lowest: whether it came further.
    results: u8,
    count: u32,
    /// When it is tried again, if it is suspected, and how often it was.
    try_at: Option<Instant>,
    doublings: u32,
    /// Since when it has had no room for anything, and how often it said so.
    #[cfg(feature = "crowds")]
    refused: Option<(Instant, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    hop: u16,
    is_taken: bool,
    until: Instant,
}

impl Watch {
    /// Whether the datagram that is given to `neighbour` now, as the hop of that number, is to be watched.
    pub(super) fn asks(&mut self, neighbour: NodeId, hop: u16, now: Instant) -> bool {
        if !IS_ON {
            return false;
        }
        let at = self.place(neighbour, now);
        let known = &mut self.hops[at];
        let is_doubtful = known.is_doubtful();
        let pause = if is_doubtful { WATCH_DOUBTFUL_EVERY } else { WATCH_EVERY };
        let is_early = |last: Option<Instant>, pause| last.is_some_and(|at| now.since(at) < pause);
        if known.watched.len() >= WATCHED_MAX
            || is_early(known.asked_at, pause)
            || !is_doubtful && is_early(self.any_at, WATCH_ANY_EVERY)
        {
            return false;
        }
        known.asked_at = Some(now);
        self.any_at = Some(now);
        known.watched.push(Watched { hop, is_taken: false, until: now + TAKEN_WITHIN });
        true
    }

    /// A suspected neighbour that an empty datagram to `destination` is to be given to now, whose next hop is
    /// `next`.
    pub(super) fn tries(&self, next: NodeId, destination: NodeId, now: Instant) -> Option<NodeId> {
        let is_early =
            |at: Option<Instant>| at.is_some_and(|at| now.since(at) < WATCH_DOUBTFUL_EVERY);
        let is_due = |known: &&Hop| {
            let is_other = known.neighbour != next && known.neighbour != destination;
            is_other
                && known.try_at.is_some_and(|at| at <= now)
                && known.watched.is_empty()
                && !is_early(known.asked_at)
        };
        self.hops.iter().find(is_due).map(|known| known.neighbour)
    }

    /// The neighbour took the datagram of that hop.
    pub(super) fn taken(&mut self, neighbour: NodeId, hop: u16, now: Instant) {
        if !IS_ON {
            return;
        }
        let known = self.hops.iter_mut().find(|known| known.neighbour == neighbour);
        let Some(known) = known else { return };
        #[cfg(feature = "crowds")]
        (known.refused = None);
        for watched in known.watched.iter_mut().filter(|it| it.hop == hop) {
            (watched.is_taken, watched.until) = (true, now + PATIENCE);
        }
    }

    /// The neighbour had no room for it; returns what is to be told of one that never has.
    #[cfg(feature = "crowds")]
    pub(super) fn refused(&mut self, neighbour: NodeId, hop: u16, now: Instant) -> Option<Rating> {
        self.not_taken(neighbour, hop);
        if !IS_ON {
            return None;
        }
        let at = self.place(neighbour, now);
        let known = &mut self.hops[at];
        let (since, times) = known.refused.get_or_insert((now, 0));
        *times += 1;
        if now.since(*since) < REFUSES_FOR || *times < REFUSALS_MIN {
            return None;
        }
        // What it passed on before says nothing of it now.
        (known.refused, known.results, known.count) = (None, 0, 0);
        Some(known.suspect(now))
    }

    /// Whether the neighbour is thought to pass nothing on.
    #[cfg(feature = "crowds")]
    pub(super) fn suspects(&self, neighbour: NodeId) -> bool {
        let mut suspected = self.hops.iter().filter(|known| known.try_at.is_some());
        suspected.any(|known| known.neighbour == neighbour)
    }

    /// The neighbour didn't take it: that says nothing of what it does with what it takes.
    pub(super) fn not_taken(&mut self, neighbour: NodeId, hop: u16) {
        if let Some(known) = self.hops.iter_mut().find(|it| IS_ON && it.neighbour == neighbour) {
            known.watched.retain(|watched| watched.hop != hop);
        }
    }

    /// It came further; returns what is to be told of the neighbour, if that changes.
    pub(super) fn came_further(&mut self, neighbour: NodeId, hop: u16) -> Option<Rating> {
        let known = self.hops.iter_mut().find(|it| IS_ON && it.neighbour == neighbour)?;
        let at = known.watched.iter().position(|watched| watched.hop == hop)?;
        known.watched.remove(at);
        known.note(true);
        let is_proven = known.results.trailing_ones() >= PROVES;
        if is_proven && known.try_at.take().is_some() {
            return Some(Rating { neighbour, passes_on: true });
        }
        None
    }

    /// Counts what came no further in time; returns what is to be told of which neighbours.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Rating> {
        let mut ratings = Vec::new();
        if !IS_ON {
            return ratings;
        }
        for known in &mut self.hops {
            let misses = known.watched.extract_if(.., |watched| watched.until <= now);
            let misses = misses.filter(|watched| watched.is_taken).count();
            (0..misses).for_each(|_| known.note(false));
            if misses > 0 && known.passes_too_little() {
                // Each time: a router that has forgotten the neighbour since is told anew.
                ratings.push(known.suspect(now));
            }
        }
        ratings
    }

    /// Where a neighbour stands, which may be new; the one that was watched longest ago gives its place.
    fn place(&mut self, neighbour: NodeId, now: Instant) -> usize {
        if let Some(at) = self.hops.iter().position(|known| known.neighbour == neighbour) {
            return at;
        }
        if self.hops.len() >= HOPS_MAX {
            let idle = |known: &Hop| (known.try_at.is_some(), known.asked_at);
            let oldest = self.hops.iter().enumerate().min_by_key(|(_, known)| idle(known));
            let oldest = oldest.map(|(at, _)| at);
            oldest.into_iter().for_each(|at| drop(self.hops.swap_remove(at)));
        }
        self.hops.push(Hop {
            neighbour,
            watched: Vec::new(),
            // A new neighbour is watched after a moment: its first datagrams may find no way yet.
            asked_at: Some(now),
            results: 0,
            count: 0,
            try_at: None,
            doublings: 0,
            #[cfg(feature = "crowds")]
            refused: None,
        });
        self.hops.len() - 1
    }
}

impl Hop {
    fn note(&mut self, came_further: bool) {
        self.results = self.results << 1 | u8::from(came_further);
        self.count = (self.count + 1).min(RESULTS_MAX);
        if self.results == u8::MAX {
            self.doublings = 0;
        }
    }

    /// It is tried again after a while.
    fn suspect(&mut self, now: Instant) -> Rating {
        if self.try_at.is_none_or(|at| at <= now) {
            self.try_at = Some(now + TRIED_AFTER * (1 << self.doublings));
            self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        }
        Rating { neighbour: self.neighbour, passes_on: false }
    }

    fn misses(&self) -> u32 {
        self.count - self.results.count_ones()
    }

    /// Whether it is to be watched often: a datagram was missing lately, or it was suspected before.
    fn is_doubtful(&self) -> bool {
        self.results.trailing_ones() < self.count.min(PROVES) || self.doublings > 0
    }

    /// Whether too few came further.
    fn passes_too_little(&self) -> bool {
        self.misses() >= MISSES_MIN && self.misses() * 5 >= self.count * 2
    }
}
