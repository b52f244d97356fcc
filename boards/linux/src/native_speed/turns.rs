//! Whose module the compiler takes next: tenants have turns by the effort of what they bring.
//!
//! Invariants (start-time fair queueing; Goyal, Vin and Cheng 1996):
//! - Between the question of a tenant who had nothing waiting and owes nothing, and its turn, each other tenant has one turn
//!   at most, however much waits.
//! - Of two tenants who both wait, neither is served more than the other by more than two modules.
//! - Who rested has saved nothing up.

use std::collections::{BTreeMap, VecDeque};

/// A tenant, by its key.
pub(super) type Tenant = [u8; 32];

/// The modules that wait, each with its effort.
pub(super) struct Turns<T> {
    /// Those with modules that wait, or who were served ahead of the others.
    tenants: BTreeMap<Tenant, Account<T>>,
    /// The effort after which the last turn came.
    clock: u64,
    /// How many modules have come.
    arrivals: u64,
}

struct Account<T> {
    /// The effort after which its next turn comes.
    starts: u64,
    /// Its modules in the order in which they came.
    waiting: VecDeque<Waiting<T>>,
}

struct Waiting<T> {
    arrival: u64,
    effort: u64,
    item: T,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { tenants: BTreeMap::new(), clock: 0, arrivals: 0 }
    }
}

impl<T> Turns<T> {
    /// Puts a module behind those of the same tenant.
    pub(super) fn push(&mut self, tenant: Tenant, effort: u64, item: T) {
        self.arrivals += 1;
        let new = Account { starts: self.clock, waiting: VecDeque::new() };
        let account = self.tenants.entry(tenant).or_insert(new);
        if account.waiting.is_empty() {
            account.starts = account.starts.max(self.clock);
        }
        account.waiting.push_back(Waiting { arrival: self.arrivals, effort, item });
    }

    /// Takes the module whose turn it is. Where nothing waits, all tenants are equal again.
    pub(super) fn pop(&mut self) -> Option<T> {
        let turn = |account: &Account<T>| Some((account.starts, account.waiting.front()?.arrival));
        let turns =
            self.tenants.iter().filter_map(|(tenant, account)| Some((turn(account)?, *tenant)));
        let Some((_, tenant)) = turns.min() else {
            (self.tenants, self.clock) = (BTreeMap::new(), 0);
            return None;
        };
        let account = self.tenants.get_mut(&tenant)?;
        let Waiting { effort, item, .. } = account.waiting.pop_front()?;
        self.clock = account.starts;
        account.starts = account.starts.saturating_add(effort.max(1));
        Some(item)
    }

    /// Takes back the module of `tenant` that came last.
    pub(super) fn withdraw(&mut self, tenant: &Tenant) -> Option<T> {
        self.tenants.get_mut(tenant)?.waiting.pop_back().map(|waiting| waiting.item)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tenure_hal::simulated::Random;

    use super::*;

    const DEAREST: u64 = 1_000;

    fn tenant(number: u64) -> Tenant {
        [number as u8; 32]
    }

    /// A module that waits, as the test sees it.
    struct Asked {
        tenant: u64,
        effort: u64,
        /// Those who had a turn since, if its tenant had nothing waiting and owed nothing.
        since: Option<Vec<u64>>,
    }

    #[test]
    fn greedy_tenants_leave_each_other_one_its_turn_and_its_share() {
        // B-9. Tenant 0 asks as often as it can, for the dearest; the others as they please.
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let tenants = 2 + random.below(5);
            let mut turns = Turns::default();
            let mut asked: Vec<Asked> = Vec::new();
            let mut owes = BTreeSet::new();
            for step in 0..120 {
                for number in 0..tenants {
                    let is_greedy = number == 0;
                    if !is_greedy && random.below(3) > 0 {
                        continue;
                    }
                    let effort = if is_greedy { DEAREST } else { 1 + random.below(DEAREST) };
                    let rests = asked.iter().all(|one| one.effort == 0 || one.tenant != number);
                    let since = (rests && !owes.contains(&number)).then(Vec::new);
                    turns.push(tenant(number), effort, asked.len());
                    asked.push(Asked { tenant: number, effort, since });
                }
                for _ in 0..random.below(3) {
                    let Some(at) = turns.pop() else {
                        owes.clear();
                        break;
                    };
                    let Asked { tenant: served, since, .. } = &asked[at];
                    let served = *served;
                    for other in since.iter().flatten().collect::<BTreeSet<_>>() {
                        let times = since.iter().flatten().filter(|one| *one == other).count();
                        assert_eq!(times, 1, "seed {seed}, step {step}: {other} before {served}");
                    }
                    asked[at].effort = 0;
                    owes.insert(served);
                    for one in &mut asked {
                        if one.effort > 0
                            && let Some(since) = &mut one.since
                        {
                            since.push(served);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn tenants_who_all_wait_are_served_alike_each_in_its_own_order() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let tenants = 2 + random.below(5);
            let mut turns = Turns::default();
            for number in 0..tenants {
                // One brings many small ones, another few large ones.
                let most = 1 + random.below(DEAREST);
                for order in 0..20 * DEAREST / most {
                    let effort = 1 + random.below(most);
                    turns.push(tenant(number), effort, (number, order, effort));
                }
            }
            let mut served = vec![(0, 0); tenants as usize];
            while served.iter().all(|(_, effort)| *effort < 3 * DEAREST) {
                let (number, order, effort) = turns.pop().unwrap();
                let (next, sum) = &mut served[number as usize];
                assert_eq!(*next, order, "seed {seed}");
                (*next, *sum) = (*next + 1, *sum + effort);
                let sums = || served.iter().map(|(_, sum)| *sum);
                let lead = sums().max().unwrap() - sums().min().unwrap();
                assert!(lead <= 2 * DEAREST, "seed {seed}: {lead}");
            }
        }
    }

    #[test]
    fn module_that_is_taken_back_has_no_turn_and_the_others_do() {
        let mut turns = Turns::default();
        turns.push(tenant(1), 5, "first");
        turns.push(tenant(1), 5, "second");
        turns.push(tenant(2), 5, "other");
        assert_eq!(turns.withdraw(&tenant(1)), Some("second"));
        assert_eq!(turns.withdraw(&tenant(3)), None);
        assert_eq!([turns.pop(), turns.pop(), turns.pop()], [Some("first"), Some("other"), None]);
        // All are equal again, and who comes first is first.
        turns.push(tenant(2), 5, "late");
        turns.push(tenant(1), 5, "later");
        assert_eq!([turns.pop(), turns.pop()], [Some("late"), Some("later")]);
    }
}
