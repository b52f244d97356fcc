//! Ends of sessions: by their age, to make room for others, and with the memory of a caller.

use alloc::vec::Vec;

use tenure_hal::{Entropy, Instant};
use tenure_wire::datagram::SessionIndex;

use super::Endpoint;
use super::called::Incoming;
use super::calling::Outgoing;
use super::station::Station;
use crate::callers::Forgotten;
use crate::config::Standing;
use crate::places::Ends;
use crate::session::{Pair, Session};
use crate::{Config, PeerAddress};

/// Sessions of one pair and one incarnation of the peer; a successor, and one that the other end opened at the
/// same time.
const SESSIONS_PER_CALLER_MAX: usize = 3;
/// The share of all sessions that one pair may have, whatever its incarnations: one part in so many. A user's
/// commands are incarnations of one peer, and several may run at once.
const SHARE_OF_PAIR: usize = 3;
/// The most of them, so that a step looks through few.
const SESSIONS_PER_PAIR_MAX: usize = 64;

impl<A: PeerAddress> Endpoint<A> {
    /// Sees to it that there is room for one more session, by ending others if need be: those that
    /// are over, one of the pair if that has its share, half-open ones, and then the one that was
    /// silent for longest among those that no call uses. For a session of the owner's, or one that this end
    /// opens (`opened_here`), a stranger's ends even if calls use it: its opener can open another,
    /// and finds its calls there. The owner's end last, and a stranger ends none of a favoured peer.
    pub(super) fn make_room_for_session(
        &mut self,
        now: Instant,
        pair: &Pair,
        incarnation: u64,
        opened_here: bool,
    ) -> bool {
        while let Some((index, _)) = self.station.sessions.end_one_over(&self.station.config, now) {
            self.outgoing.let_go(index);
        }
        if let Some(index) = surplus_of_pair(self, pair, incarnation) {
            self.end_session(index);
        }
        let standing =
            if opened_here { Standing::Owner } else { self.station.config.standing(&pair.peer) };
        if !opened_here {
            match self.station.sessions.surplus_half_open(&self.station.config, standing) {
                None => {}
                Some(Ok(index)) => self.end_session(index),
                Some(Err(())) => {
                    self.sessions_full += 1;
                    return false;
                }
            }
        }
        if self.station.sessions.len() < self.station.config.sessions_max {
            return true;
        }
        self.sessions_full += 1;
        let has_precedence = standing == Standing::Owner;
        let Self { station: Station { config, sessions, .. }, outgoing, incoming, .. } = self;
        let least_missed = sessions.least_missed(config, standing, |session| {
            match is_in_use(outgoing, incoming, session) {
                false => Ends::Yes,
                true if has_precedence && !session.opened_here => Ends::AtWorst,
                true => Ends::No,
            }
        });
        match least_missed {
            Some(index) => {
                self.end_session(index);
                true
            }
            None => false,
        }
    }

    /// Ends a session; calls that were sent over it wait for another.
    pub(super) fn end_session(&mut self, index: SessionIndex) {
        self.station.sessions.remove(index);
        self.outgoing.let_go(index);
    }

    /// Ends sessions that are too old, and opens others where calls wait.
    pub(super) fn poll_sessions(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        while let Some((index, pair)) =
            self.station.sessions.end_one_over(&self.station.config, now)
        {
            self.outgoing.let_go(index);
            let mut means = self.means(now, entropy);
            self.outgoing.advance(&mut self.station, &mut means, &pair);
        }
    }

    /// Ends the sessions of a caller that was forgotten, and sees to it that no initiation of its
    /// is accepted any more that may carry a call it made before.
    pub(super) fn after_forgetting(&mut self, now: Instant, forgotten: Forgotten) {
        self.station.gate.forgot(now, forgotten.last_call);
        let Forgotten { pair, incarnation, .. } = forgotten;
        let of_pair = self.station.sessions.of_pair(&pair);
        let of_caller = of_pair.filter(|one| one.incarnation == incarnation);
        let of_caller: Vec<SessionIndex> = of_caller.map(|one| one.index).collect();
        of_caller.into_iter().for_each(|index| self.end_session(index));
        // An initiation under way tells of this end's memory as it no longer is.
        self.outgoing.recall_initiation(&mut self.station, now, &pair);
    }
}

/// The session of the pair that makes room for one more of the incarnation, if the pair has its share.
fn surplus_of_pair<A: PeerAddress>(
    endpoint: &Endpoint<A>,
    pair: &Pair,
    incarnation: u64,
) -> Option<SessionIndex> {
    let of_pair = || endpoint.station.sessions.of_pair(pair);
    let of_caller = || of_pair().filter(|session| session.incarnation == incarnation);
    let surplus = if of_caller().count() >= SESSIONS_PER_CALLER_MAX {
        of_caller().min_by_key(|session| (session.confirmed, session.created))
    } else if of_pair().count() >= of_pair_max(&endpoint.station.config) {
        let is_in_use =
            |session: &Session<A>| is_in_use(&endpoint.outgoing, &endpoint.incoming, session);
        of_pair().min_by_key(|session| (is_in_use(session), session.last_heard))
    } else {
        None
    };
    surplus.map(|session| session.index)
}

/// How many sessions one pair may have.
fn of_pair_max(config: &Config) -> usize {
    let share = config.sessions_max / SHARE_OF_PAIR;
    share.clamp(SESSIONS_PER_CALLER_MAX, SESSIONS_PER_PAIR_MAX)
}

/// Whether a call, in either direction, depends on a session.
fn is_in_use<A: PeerAddress>(
    outgoing: &Outgoing<A>,
    incoming: &Incoming,
    session: &Session<A>,
) -> bool {
    outgoing.depends_on(session.index)
        || incoming.callers.is_running(&session.pair, session.incarnation)
}
