//! How long after each fault every pair of nodes is served again that was served before it.
//!
//! A pair's time runs from the fault, or from the first datagram that it sends after it if it hadn't sent in the second
//! before it, until one arrives that it sent after it. Only what can be served counts: both ends are on, and a chain of
//! stations in range leads from one to the other. Traffic of other pairs says nothing about it.

use std::collections::{BTreeMap, BTreeSet};

/// A pair that sent so long before a fault at most is in the middle of it.
const UNDER_WAY_US: u64 = 1_000_000;

/// Sender and receiver.
type Pair = (u32, u32);

/// The faults of a run, and who waits for the end of each.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// When a datagram of each pair arrived first.
    first_served_us: BTreeMap<Pair, u64>,
    /// When each of these sent last.
    sent_us: BTreeMap<Pair, u64>,
    faults: Vec<Fault>,
}

/// A fault that has occurred.
#[derive(Debug)]
struct Fault {
    at_us: u64,
    /// Pairs that have sent since, and of which nothing has arrived.
    waiting: BTreeMap<Pair, Waiting>,
    /// Pairs that were served since.
    served: BTreeSet<Pair>,
    /// The longest that one of these had to wait.
    longest_us: u64,
}

/// A pair that waits to be served again.
#[derive(Debug)]
struct Waiting {
    since_us: u64,
    /// How many datagrams it has sent since the fault.
    tries: u32,
}

impl Recovery {
    /// Something fails, or is whole again. Pairs wait no longer for the faults before it that `can_be_served` says nothing
    /// can arrive of now.
    pub(super) fn fault(&mut self, now_us: u64, can_be_served: impl Fn(Pair) -> bool) {
        for fault in &mut self.faults {
            fault.waiting.retain(|pair, _| can_be_served(*pair));
        }
        self.faults.push(Fault {
            at_us: now_us,
            waiting: BTreeMap::new(),
            served: BTreeSet::new(),
            longest_us: 0,
        });
    }

    /// A node is off: nobody waits for it, nor does it.
    pub(super) fn gone(&mut self, number: u32) {
        for fault in &mut self.faults {
            fault.waiting.retain(|(from, to), _| *from != number && *to != number);
        }
    }

    /// A pair sends something.
    pub(super) fn sent(&mut self, now_us: u64, pair: Pair, can_be_served: impl Fn(Pair) -> bool) {
        let Some(first_us) = self.first_served_us.get(&pair) else { return };
        let before_us = self.sent_us.insert(pair, now_us);
        for fault in &mut self.faults {
            if *first_us >= fault.at_us || fault.served.contains(&pair) {
                continue;
            }
            if let Some(waiting) = fault.waiting.get_mut(&pair) {
                waiting.tries += 1;
            } else if can_be_served(pair) {
                let before = fault.at_us.saturating_sub(UNDER_WAY_US)..fault.at_us;
                let is_under_way = before_us.is_some_and(|at_us| before.contains(&at_us));
                let since_us = if is_under_way { fault.at_us } else { now_us };
                fault.waiting.insert(pair, Waiting { since_us, tries: 1 });
            }
        }
    }

    /// What a pair sent at `sent_us` has arrived.
    pub(super) fn arrived(&mut self, now_us: u64, pair: Pair, sent_us: u64) {
        self.first_served_us.entry(pair).or_insert(now_us);
        for fault in &mut self.faults {
            if sent_us < fault.at_us {
                continue;
            }
            if let Some(Waiting { since_us, .. }) = fault.waiting.remove(&pair) {
                fault.longest_us = fault.longest_us.max(now_us - since_us);
                fault.served.insert(pair);
            }
        }
    }

    /// For each fault, the longest that a pair had to wait, in seconds; `None` if one waits in vain, or none was there.
    /// A pair that tried but once shows nothing: a link may lose any datagram.
    pub(super) fn seconds(&self) -> Vec<Option<f64>> {
        let seconds = |fault: &Fault| {
            let waits_in_vain = fault.waiting.values().any(|waiting| waiting.tries > 1);
            let is_over = !fault.served.is_empty() && !waits_in_vain;
            is_over.then_some(fault.longest_us as f64 / 1e6)
        };
        self.faults.iter().map(seconds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Pair = (0, 1);
    const OTHER: Pair = (2, 3);

    fn always(_: Pair) -> bool {
        true
    }

    /// Both pairs were served before a fault at 10 s.
    fn after_a_fault() -> Recovery {
        let mut recovery = Recovery::default();
        recovery.arrived(5_000_000, ONE, 4_900_000);
        recovery.arrived(5_000_000, OTHER, 4_900_000);
        recovery.fault(10_000_000, always);
        recovery
    }

    #[test]
    fn traffic_of_another_pair_ends_no_pairs_wait() {
        let mut recovery = after_a_fault();
        recovery.sent(11_000_000, ONE, always);
        recovery.sent(11_000_000, OTHER, always);
        recovery.arrived(11_100_000, OTHER, 11_000_000);
        recovery.sent(12_000_000, ONE, always);
        assert_eq!(recovery.seconds(), [None]);
        recovery.arrived(14_000_000, ONE, 12_000_000);
        assert_eq!(recovery.seconds(), [Some(3.0)]);
    }

    #[test]
    fn what_was_sent_before_the_fault_ends_no_wait() {
        let mut recovery = after_a_fault();
        recovery.sent(11_000_000, ONE, always);
        recovery.arrived(11_500_000, ONE, 9_900_000);
        recovery.arrived(13_000_000, ONE, 11_000_000);
        assert_eq!(recovery.seconds(), [Some(2.0)]);
    }

    #[test]
    fn a_pair_of_which_one_is_off_isnt_waited_for() {
        let mut recovery = after_a_fault();
        let is_on = |pair: Pair| pair != ONE;
        for at_s in 11..15 {
            recovery.sent(at_s * 1_000_000, ONE, is_on);
            recovery.sent(at_s * 1_000_000, OTHER, is_on);
        }
        assert_eq!(recovery.seconds(), [None]);
        recovery.arrived(15_000_000, OTHER, 14_000_000);
        assert_eq!(recovery.seconds(), [Some(4.0)]);
        // The second fault switches the other off as well, which waits for nothing any more.
        let mut recovery = after_a_fault();
        recovery.sent(11_000_000, ONE, always);
        recovery.sent(12_000_000, ONE, always);
        recovery.sent(12_000_000, OTHER, always);
        recovery.arrived(12_500_000, OTHER, 12_000_000);
        recovery.fault(13_000_000, is_on);
        assert_eq!(recovery.seconds(), [Some(0.5), None]);
    }

    #[test]
    fn a_pair_of_which_one_goes_off_waits_anew_when_it_is_back() {
        let mut recovery = after_a_fault();
        recovery.sent(11_000_000, ONE, always);
        recovery.gone(1);
        recovery.sent(40_000_000, ONE, always);
        recovery.arrived(41_000_000, ONE, 40_000_000);
        assert_eq!(recovery.seconds(), [Some(1.0)]);
    }

    #[test]
    fn a_pair_that_was_sending_waits_from_the_fault_on() {
        let mut recovery = Recovery::default();
        recovery.arrived(5_000_000, ONE, 4_900_000);
        recovery.sent(9_950_000, ONE, always);
        recovery.fault(10_000_000, always);
        recovery.sent(10_050_000, ONE, always);
        recovery.sent(10_150_000, ONE, always);
        recovery.arrived(10_200_000, ONE, 10_150_000);
        assert_eq!(recovery.seconds(), [Some(0.2)]);
    }

    #[test]
    fn a_pair_that_was_never_served_before_the_fault_doesnt_count() {
        let mut recovery = Recovery::default();
        recovery.fault(10_000_000, always);
        recovery.sent(11_000_000, ONE, always);
        recovery.arrived(30_000_000, ONE, 29_000_000);
        assert_eq!(recovery.seconds(), [None]);
    }
}
