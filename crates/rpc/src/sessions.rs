//! All sessions of an endpoint, found by number and by peer, and ended one by one where there is no room.
//!
//! Invariants:
//! - Finding a session, adding or ending one, and choosing which one is missed least take a number of steps that
//!   grows with the logarithm of how many there are; choosing also skips those that a call depends on.
//! - Whatever is queued here of a session that ended or was heard since is corrected when it comes to the front.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use litemap::LiteMap;
use tenure_hal::Instant;
use tenure_wire::PublicKey;
use tenure_wire::datagram::SessionIndex;

use crate::Config;
use crate::config::Standing;
use crate::session::{Pair, Session};

/// How much a session is missed: by whose it is, whether it was ever confirmed, and when it was last heard.
type Rank = (Standing, bool, Instant);

/// Entries of sessions that ended may be as many as there are sessions, and so many more.
const STALE_MAX: usize = 16;

/// All sessions of an endpoint.
pub(crate) struct Sessions<A> {
    table: LiteMap<SessionIndex, Box<Session<A>>>,
    /// The sessions of each peer, by the beginning of its key; others' whose keys begin alike stand among them.
    of_peers: Vec<(u64, SessionIndex)>,
    /// In the order in which they were opened, which is that in which they end by their age.
    by_age: VecDeque<(Instant, SessionIndex)>,
    /// Those whose opener hasn't shown that it got the response, and some that have.
    half_open: Vec<SessionIndex>,
    /// The one that is missed least first, as far as it was known when it was last looked at.
    least_missed: BinaryHeap<Reverse<(Rank, SessionIndex)>>,
    /// Those that have sent as much as they may.
    used_up: Vec<SessionIndex>,
    /// How many entries were looked at to choose which session ends.
    #[cfg(test)]
    pub(crate) steps: u64,
}

/// Whether a session may end to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// It may.
    Yes,
    /// Only if no other may.
    AtWorst,
    /// It may not.
    No,
}

impl<A> Sessions<A> {
    pub(crate) fn new() -> Self {
        Self {
            table: LiteMap::new(),
            of_peers: Vec::new(),
            by_age: VecDeque::new(),
            half_open: Vec::new(),
            least_missed: BinaryHeap::new(),
            used_up: Vec::new(),
            #[cfg(test)]
            steps: 0,
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
        let (pair, key) = (*pair, beginning(&pair.peer));
        let first = self.of_peers.partition_point(|(peer, _)| *peer < key);
        let of_peer = self.of_peers.iter().skip(first).take_while(move |(peer, _)| *peer == key);
        of_peer.filter_map(move |(_, index)| self.get(*index)).filter(move |one| one.pair == pair)
    }

    /// Adds a session whose number is unused.
    pub(crate) fn add(&mut self, config: &Config, session: Session<A>) {
        let index = session.index;
        let of_peer = (beginning(&session.pair.peer), index);
        if let Err(position) = self.of_peers.binary_search(&of_peer) {
            self.of_peers.insert(position, of_peer);
        }
        if !session.confirmed {
            self.half_open.push(index);
        }
        self.by_age.push_back((session.created, index));
        self.least_missed.push(Reverse((rank(config, &session), index)));
        self.table.insert(index, Box::new(session));
        self.drop_stale(config);
    }

    /// Ends a session.
    pub(crate) fn remove(&mut self, index: SessionIndex) {
        let Some(session) = self.table.remove(&index) else { return };
        if let Ok(position) = self.of_peers.binary_search(&(beginning(&session.pair.peer), index)) {
            self.of_peers.remove(position);
        }
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
        while let Some(index) = self.used_up.pop() {
            if let Some(session) = self.get(index).filter(|session| session.is_used_up(config)) {
                let pair = session.pair;
                self.remove(index);
                return Some((index, pair));
            }
        }
        while let Some((created, index)) = self.by_age.front().copied() {
            let known = self.get(index).filter(|session| session.created == created);
            let known = known.map(|session| (session.pair, session.is_over(config, now)));
            if let Some((_, false)) = known {
                break;
            }
            self.by_age.pop_front();
            if let Some((pair, _)) = known {
                self.remove(index);
                return Some((index, pair));
            }
        }
        None
    }

    /// When the next session ends by its age, at the earliest.
    pub(crate) fn next_over(&self, config: &Config) -> Option<Instant> {
        self.by_age.front().map(|(created, _)| *created + config.session_lifetime)
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
        let oldest = open
            .map(|session| ((config.standing(&session.pair.peer), session.created), session.index))
            .min_by_key(|(order, _)| *order)?;
        let ((whose, _), index) = oldest;
        Some(if standing.may_end(whose) { Ok(index) } else { Err(()) })
    }

    /// The session that is missed least among those that `ends` says may end; one of a peer that comes before
    /// `standing` never does.
    pub(crate) fn least_missed(
        &mut self,
        config: &Config,
        standing: Standing,
        ends: impl Fn(&Session<A>) -> Ends,
    ) -> Option<SessionIndex> {
        let mut aside = Vec::new();
        let (mut found, mut at_worst) = (None, None);
        while let Some(Reverse((known, index))) = self.least_missed.pop() {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let Some(session) = self.table.get(&index) else { continue };
            let rank = rank(config, session);
            if rank != known {
                self.least_missed.push(Reverse((rank, index)));
                continue;
            }
            aside.push(Reverse((rank, index)));
            if !standing.may_end(rank.0) {
                break;
            }
            match ends(session) {
                Ends::Yes => {
                    found = Some(index);
                    break;
                }
                Ends::AtWorst => at_worst = at_worst.or(Some(index)),
                Ends::No => {}
            }
        }
        self.least_missed.extend(aside);
        found.or(at_worst)
    }

    /// Drops what is queued of sessions that ended, once it is more than of those that are there.
    fn drop_stale(&mut self, config: &Config) {
        let most = 2 * self.table.len() + STALE_MAX;
        if self.by_age.len() > most {
            let table = &self.table;
            self.by_age.retain(|(_, index)| table.get(index).is_some());
        }
        if self.least_missed.len() > most {
            let ranked = self.table.iter().map(|(index, one)| Reverse((rank(config, one), *index)));
            self.least_missed = ranked.collect();
        }
    }
}

fn rank<A>(config: &Config, session: &Session<A>) -> Rank {
    (config.standing(&session.pair.peer), session.confirmed, session.last_heard)
}

/// The first bytes of a key, which hardly two peers share.
fn beginning(key: &PublicKey) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = key.0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
impl<A> Sessions<A> {
    pub(crate) fn first_mut(&mut self) -> Option<&mut Session<A>> {
        self.table.iter_mut().next().map(|(_, session)| &mut **session)
    }

    /// The one that was opened last.
    pub(crate) fn last(&self) -> Option<&Session<A>> {
        self.by_age.back().and_then(|(_, index)| self.get(*index))
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Session<A>> {
        let (_, index) = *self.by_age.back()?;
        self.get_mut(index)
    }
}

#[cfg(test)]
mod tests;
