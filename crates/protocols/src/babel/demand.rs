//! Which destinations are worth asking the network for: those that datagrams go to, and the others as far as
//! a small budget allows.
//!
//! Where nodes move, distances that were told become too good to be true for most destinations most of the
//! time, and only a newer sequence number lets ways be used again. Asking for all of them fills the air that
//! hellos need, which loses links, which makes more of it.

use core::time::Duration;

use litemap::LiteMap;
use tenure_hal::Instant;
use tenure_mesh::NodeId;

/// How long after its last datagram a destination counts as used.
const USED_FOR: Duration = Duration::from_secs(3);
/// The most destinations that count as used.
const USED_MAX: usize = 64;
/// So many destinations that nobody uses may be asked for at once, and one more after so long.
const SPARE_MAX: u32 = 24;
const SPARE_EVERY: Duration = Duration::from_secs(2);

/// The ways that were used lately, and the rest of the budget for others.
#[derive(Debug, Default)]
pub(super) struct Demand {
    used: LiteMap<NodeId, Instant>,
    /// How many were asked for beyond what was used, less what time gave back.
    spent: u32,
    given_back_at: Option<Instant>,
}

impl Demand {
    /// A datagram goes there.
    pub(super) fn note(&mut self, destination: NodeId, now: Instant) {
        if self.used.len() >= USED_MAX && !self.used.contains_key(&destination) {
            self.used.retain(|_, at| now.since(*at) < USED_FOR);
            let oldest = self.used.iter().min_by_key(|(_, at)| **at).map(|(id, _)| *id);
            if let Some(oldest) = oldest.filter(|_| self.used.len() >= USED_MAX) {
                self.used.remove(&oldest);
            }
        }
        self.used.insert(destination, now);
    }

    /// Whether datagrams went there lately.
    pub(super) fn is_used(&self, destination: NodeId, now: Instant) -> bool {
        self.used.get(&destination).is_some_and(|at| now.since(*at) < USED_FOR)
    }

    /// Whether a destination may be asked for. If nobody uses it, it takes `cost` from the budget: more where what each asks
    /// for shares the air with what many ask for.
    pub(super) fn may_ask(&mut self, destination: NodeId, cost: u32, now: Instant) -> bool {
        if self.is_used(destination, now) {
            return true;
        }
        let since = self.given_back_at.map_or(Duration::ZERO, |at| now.since(at));
        let back = (since.as_millis() / SPARE_EVERY.as_millis()) as u32;
        if self.spent == 0 || self.given_back_at.is_none() {
            self.given_back_at = Some(now);
        } else if back > 0 {
            self.spent = self.spent.saturating_sub(back);
            self.given_back_at = self.given_back_at.map(|at| at + SPARE_EVERY * back);
        }
        if self.spent >= SPARE_MAX {
            return false;
        }
        self.spent += cost;
        true
    }
}
