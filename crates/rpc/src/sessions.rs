//! All sessions of an endpoint, found by number and by peer, and ended one by one where there is no room.
//!
//! Invariants:
//! - Finding a session, adding or ending one, and choosing which one is missed least take a number of steps that
//!   grows with the logarithm of how many there are; choosing also skips those that a call depends on.
//! - Whatever is queued here of a session that ended or was heard since is corrected when it comes to the front.

use alloc::boxed::Box;
use alloc::vec::Vec;

use litemap::LiteMap;
use tenure_hal::Instant;
use tenure_wire::datagram::SessionIndex;

use crate::Config;
use crate::config::Standing;
use crate::places::{Ends, Index, LeastMissed, Rank, beginning};
use crate::session::{Pair, Session};

/// All sessions of an endpoint.
pub(crate) struct Sessions<A> {
    table: LiteMap<SessionIndex, Box<Session<A>>>,
    /// The sessions of each peer, by the beginning of its key; others' whose keys begin alike stand among them.
    of_peers: Index,
    /// The sessions by when they were opened, which is the order in which they end by their age.
    by_age: Index,
    /// Those whose opener hasn't shown that it got the response, and some that have.
    half_open: Vec<SessionIndex>,
    pub(crate) least_missed: LeastMissed,
    /// Those that have sent as much as they may.
    used_up: Vec<SessionIndex>,
}

impl<A> Sessions<A> {
    pub(crate) fn new() -> Self {
        Self {
            table: LiteMap::new(),
            of_peers: Index::default(),
            by_age: Index::default(),
            half_open: Vec::new(),
            least_missed: LeastMissed::default(),
            used_up: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get(&self, index: SessionIndex) -> Option<&Session<A>> {
        self.table.get(&index).map(|session| &**session)
    }

    pub(crate) fn get_mut(&mut self, index: SessionIndex) -> Option<&mut Session<A>> {
        self.table.get_mut(&index).map(|session| &mut **session)
    }

    /// All of them, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session<A>> {
        self.table.iter().map(|(_, session)| &**session)
    }

    /// Those of one pair.
    pub(crate) fn of_pair(&self, pair: &Pair) -> impl Iterator<Item = &Session<A>> {
        let pair = *pair;
        let of_peer = self.of_peers.of(beginning(&pair.peer.0));
        of_peer
            .filter_map(move |index| self.get(index_of(index)))
            .filter(move |one| one.pair == pair)
    }

    /// Adds a session whose number is unused.
    pub(crate) fn add(&mut self, config: &Config, session: Session<A>) {
        let (index, item) = (session.index, item_of(session.index));
        self.of_peers.insert(beginning(&session.pair.peer.0), item);
        self.by_age.insert(session.created.as_micros(), item);
        if !session.confirmed {
            self.half_open.push(index);
        }
        self.least_missed.add(rank(config, &session), item);
        self.table.insert(index, Box::new(session));
    }

    /// Ends a session.
    pub(crate) fn remove(&mut self, index: SessionIndex) {
        let Some(session) = self.table.remove(&index) else { return };
        self.of_peers.remove(beginning(&session.pair.peer.0), item_of(index));
        self.by_age.remove(session.created.as_micros(), item_of(index));
        let table = &self.table;
        self.least_missed.drop_gone(table.len(), &|item| table.get(&index_of(item)).is_some());
    }

    /// Takes note that a session has sent as much as it may.
    pub(crate) fn note_used_up(&mut self, index: SessionIndex) {
        if !self.used_up.contains(&index) {
            self.used_up.push(index);
        }
    }

    /// Ends one that may be used no longer, if there is one.
    pub(crate) fn end_one_over(
        &mut self,
        config: &Config,
        now: Instant,
    ) -> Option<(SessionIndex, Pair)> {
        let oldest = self.by_age.first().map(|(_, item)| index_of(item));
        let used_up = self.used_up.pop();
        let is_over = |one: &&Session<A>| one.is_over(config, now);
        let over =
            used_up.into_iter().chain(oldest).find_map(|index| self.get(index).filter(is_over));
        let over = over.map(|session| (session.index, session.pair))?;
        self.remove(over.0);
        Some(over)
    }

    /// When the next session ends by its age.
    pub(crate) fn next_over(&self, config: &Config) -> Option<Instant> {
        let (created, _) = self.by_age.first()?;
        Some(Instant::from_micros(created) + config.session_lifetime)
    }

    /// The half-open session that makes room for one of a peer of that standing, if as many as may be are half open.
    pub(crate) fn surplus_half_open(
        &mut self,
        config: &Config,
        standing: Standing,
    ) -> Option<Result<SessionIndex, ()>> {
        if self.half_open.len() < config.half_open_max {
            return None;
        }
        let table = &self.table;
        self.half_open.retain(|index| table.get(index).is_some_and(|session| !session.confirmed));
        if self.half_open.len() < config.half_open_max {
            return None;
        }
        let open = self.half_open.iter().filter_map(|index| self.get(*index));
        let order = |one: &&Session<A>| (config.standing(&one.pair.peer), one.created);
        let oldest = open.min_by_key(order)?;
        let may_end = standing.may_end(config.standing(&oldest.pair.peer));
        Some(if may_end { Ok(oldest.index) } else { Err(()) })
    }

    /// The session that is missed least among those that `ends` says may end; one of a peer that comes before
    /// `standing` never does.
    pub(crate) fn least_missed(
        &mut self,
        config: &Config,
        standing: Standing,
        ends: impl Fn(&Session<A>) -> Ends,
    ) -> Option<SessionIndex> {
        let table = &self.table;
        let rank_of = |item| {
            let session = table.get(&index_of(item))?;
            Some((rank(config, session), ends(session)))
        };
        self.least_missed.choose(standing, &rank_of).map(index_of)
    }
}

fn rank<A>(config: &Config, session: &Session<A>) -> Rank {
    (config.standing(&session.pair.peer), session.confirmed, session.last_heard)
}

fn item_of(index: SessionIndex) -> u64 {
    index.0.into()
}

fn index_of(item: u64) -> SessionIndex {
    SessionIndex(item as u32)
}

#[cfg(test)]
impl<A> Sessions<A> {
    pub(crate) fn first_mut(&mut self) -> Option<&mut Session<A>> {
        self.table.iter_mut().next().map(|(_, session)| &mut **session)
    }

    /// The one that was opened last.
    pub(crate) fn last(&self) -> Option<&Session<A>> {
        self.by_age.last().and_then(|(_, item)| self.get(index_of(item)))
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Session<A>> {
        let (_, item) = self.by_age.last()?;
        self.get_mut(index_of(item))
    }
}

#[cfg(test)]
mod tests;
