//! Earliest deadline first, with a constant-bandwidth server per reservation (Abeni and Buttazzo,
//! *Integrating Multimedia Applications in Hard Real-Time Systems*, RTSS 1998, §3), so that a machine
//! which wants more than it reserved misses its own deadlines only.
//!
//! A server has a budget `Q` of fuel for each period `T`, what is left of it, `c`, and a deadline `d`:
//! - A machine becomes ready at `r`: if `c >= (d - r) U`, where `U = Q / T`, then `d = r + T` and
//!   `c = Q`; else it goes on with `c` and `d` (§3, rule 5).
//! - Its turns are taken from `c`. When that is used up, it gets the next `Q` at `d`, and then
//!   `d = d + T` (the *hard* variant, as Rajkumar's resource kernels and Linux's `SCHED_DEADLINE` have
//!   it: with the original rule, which replenishes at once, a machine that used idle time would pay for
//!   it by waiting many periods).
//! - Machines without a reservation share a server of their own, in turn, which has what nobody
//!   reserved: a tenth at least.
//! - When no ready machine has fuel left in its server, all ready ones go round in turn. What they use
//!   then is taken from nobody.

use core::time::Duration;

use tenure_hal::{Instant, micros_of, proportion};
use tenure_wire::Share;

use super::{Overbooked, Policy, SLOTS_MAX, Slots, Turn};

/// How much can be reserved in all, in thousandths.
pub const RESERVABLE_PERMILLE: u16 = 900;
/// The period of the server that machines without a reservation share.
const COMMON_PERIOD: Duration = Duration::from_millis(100);

/// Servers by slot, and one for all the rest.
#[derive(Debug)]
pub struct EarliestDeadline {
    slice_fuel: u64,
    fuel_per_second: u64,
    admitted: Slots,
    reserved: Slots,
    ready: Slots,
    servers: [Server; SLOTS_MAX],
    common: Server,
    /// The machine without a reservation that had the last turn.
    common_last: usize,
    /// The machine that had the last turn that was taken from nobody's budget.
    spare_last: usize,
    /// From whom the turn under way is taken.
    paying: Paying,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paying {
    Own,
    Common,
    Nobody,
}

/// A constant-bandwidth server.
#[derive(Clone, Copy, Debug)]
struct Server {
    period: Duration,
    permille: u16,
    /// The fuel it has in each period.
    budget: i64,
    /// The rest of it; negative if the last turn took more.
    left: i64,
    deadline: Instant,
}

impl Server {
    const NONE: Self =
        Self { period: Duration::ZERO, permille: 0, budget: 0, left: 0, deadline: Instant::BOOT };

    fn new(period: Duration, permille: u16, fuel_per_second: u64) -> Self {
        let mut server = Self { period, permille, ..Self::NONE };
        server.calibrate(fuel_per_second);
        server
    }

    fn calibrate(&mut self, fuel_per_second: u64) {
        let share = proportion(fuel_per_second, self.permille.into(), 1000);
        let budget = proportion(share, micros_of(self.period), 1_000_000);
        self.budget = i64::try_from(budget).unwrap_or(i64::MAX).max(1);
        self.left = self.left.min(self.budget);
    }

    /// Its machine has become ready.
    fn arrive(&mut self, now: Instant) {
        // c >= (d - r) U, with U = Q / T.
        let span = self.deadline.since(now).as_micros();
        let passed = self.deadline <= now && self.left >= 0;
        let ample = i128::from(self.left) * self.period.as_micros() as i128
            >= span as i128 * i128::from(self.budget);
        if passed || (self.left > 0 && ample) {
            self.left = self.budget;
            self.deadline = now + self.period;
        }
    }

    /// Gives the budget of the next period once this one's is used up and over.
    fn replenish(&mut self, now: Instant) {
        if self.left > 0 || self.deadline > now {
            return;
        }
        let overdrawn = self.left.unsigned_abs() / self.budget.unsigned_abs() + 1;
        let periods = u32::try_from(overdrawn).unwrap_or(u32::MAX);
        self.left += self.budget.saturating_mul(i64::from(periods));
        // Budget that passed while nobody needed it isn't owed.
        let from = if self.deadline + self.period < now { now } else { self.deadline };
        self.deadline = from + self.period.saturating_mul(periods);
    }
}

impl EarliestDeadline {
    /// A policy that knows no machine yet, on a device that burns about `fuel_per_second`.
    pub fn new(slice_fuel: u64, fuel_per_second: u64) -> Self {
        Self {
            slice_fuel,
            fuel_per_second,
            admitted: Slots::default(),
            reserved: Slots::default(),
            ready: Slots::default(),
            servers: [Server::NONE; SLOTS_MAX],
            common: Server::new(COMMON_PERIOD, 1000, fuel_per_second),
            common_last: 0,
            spare_last: 0,
            paying: Paying::Nobody,
        }
    }

    fn reserved_permille(&self) -> u16 {
        self.reserved.iter().map(|slot| self.servers[slot].permille).sum()
    }

    /// Gives the common server what is left.
    fn rebalance(&mut self) {
        self.common.permille = 1000 - self.reserved_permille().min(RESERVABLE_PERMILLE);
        self.common.calibrate(self.fuel_per_second);
    }

    fn take_note(&mut self, now: Instant, ready: Slots) {
        let new = ready.without(self.ready);
        for slot in new.and(self.reserved).iter() {
            self.servers[slot].arrive(now);
        }
        let was_idle = self.ready.without(self.reserved).is_empty();
        if was_idle && !new.without(self.reserved).is_empty() {
            self.common.arrive(now);
        }
        self.ready = ready;
        for slot in ready.and(self.reserved).iter() {
            self.servers[slot].replenish(now);
        }
        self.common.replenish(now);
    }
}

impl Policy for EarliestDeadline {
    fn admit(&mut self, slot: usize, share: &Share) -> Result<(), Overbooked> {
        if slot >= SLOTS_MAX {
            return Err(Overbooked);
        }
        let others = self.reserved_permille() - self.servers[slot].permille;
        if share.is_reserved() {
            if others.saturating_add(share.bandwidth_permille) > RESERVABLE_PERMILLE {
                return Err(Overbooked);
            }
            let period = Duration::from_millis(u64::from(share.period_ms));
            let server = Server::new(period, share.bandwidth_permille, self.fuel_per_second);
            self.servers[slot] = server;
            self.reserved.insert(slot);
        } else {
            self.servers[slot] = Server::NONE;
            self.reserved.remove(slot);
        }
        self.admitted.insert(slot);
        self.ready.remove(slot);
        self.rebalance();
        Ok(())
    }

    fn leave(&mut self, slot: usize) {
        self.admitted.remove(slot);
        self.reserved.remove(slot);
        self.ready.remove(slot);
        if let Some(server) = self.servers.get_mut(slot) {
            *server = Server::NONE;
        }
        self.rebalance();
    }

    fn pick(&mut self, now: Instant, ready: Slots) -> Option<Turn> {
        self.take_note(now, ready);
        let able = ready.and(self.reserved).iter().filter(|slot| self.servers[*slot].left > 0);
        let first = able.min_by_key(|slot| self.servers[*slot].deadline);
        let common = ready.without(self.reserved).next_after(self.common_last);
        let common = common.filter(|_| self.common.left > 0);
        let (slot, left) = match (first, common) {
            (Some(own), common)
                if common.is_none() || self.servers[own].deadline <= self.common.deadline =>
            {
                self.paying = Paying::Own;
                (own, self.servers[own].left)
            }
            (_, Some(slot)) => {
                self.paying = Paying::Common;
                self.common_last = slot;
                (slot, self.common.left)
            }
            _ => {
                self.paying = Paying::Nobody;
                self.spare_last = ready.next_after(self.spare_last)?;
                (self.spare_last, i64::MAX)
            }
        };
        Some(Turn { slot, fuel: self.slice_fuel.min(left.unsigned_abs()) })
    }

    fn ran(&mut self, turn: Turn, fuel_used: u64) {
        let used = i64::try_from(fuel_used).unwrap_or(i64::MAX);
        match self.paying {
            Paying::Own => {
                let server = &mut self.servers[turn.slot];
                server.left = server.left.saturating_sub(used);
            }
            Paying::Common => self.common.left = self.common.left.saturating_sub(used),
            Paying::Nobody => {}
        }
    }

    fn calibrate(&mut self, fuel_per_second: u64) {
        self.fuel_per_second = fuel_per_second;
        for slot in self.reserved.iter() {
            self.servers[slot].calibrate(fuel_per_second);
        }
        self.common.calibrate(fuel_per_second);
    }

    fn ends_turn_with_task(&self) -> bool {
        false
    }

    fn wait_fuel_max(&self, slot: usize, turn_fuel_max: u64) -> u64 {
        // Within what is reserved every server has its budget by its deadline, later by one turn at
        // most because turns aren't pre-empted. The last period's budget may be used up, and then the
        // next one begins at the deadline. What a turn took too much makes either period longer.
        let fuel_in =
            |server: &Server| proportion(self.fuel_per_second, micros_of(server.period), 1_000_000);
        let (server, turns) = if self.reserved.contains(slot) {
            (&self.servers[slot], 0)
        } else {
            // The others without a reservation come before it, one turn each.
            (&self.common, self.admitted.without(self.reserved).len() as u64)
        };
        let budget = server.budget.unsigned_abs();
        let periods =
            2 + 2 * (turn_fuel_max / budget) + turns.saturating_mul(turn_fuel_max).div_ceil(budget);
        // And who becomes ready during a turn is seen at its end.
        let turns = 2 * turn_fuel_max;
        periods.saturating_mul(fuel_in(server)).saturating_add(turns)
    }
}
