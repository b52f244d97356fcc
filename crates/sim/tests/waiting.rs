//! Under every policy each machine has its turn within the promised time, whatever the others do.

use std::time::Duration;

use tenure_kernel::policy::PolicyKind;
use tenure_sim::waiting::{Fared, Habit, run};

#[track_caller]
fn check(policy: PolicyKind, seed: u64) -> Vec<Fared> {
    let fared = run(policy, seed, Duration::from_secs(4));
    for (slot, machine) in fared.iter().enumerate() {
        let Fared { habit, bound, waits, .. } = machine;
        let longest = waits.iter().max().expect("it had a turn");
        assert!(longest <= bound, "{policy}, seed {seed}, {slot} {habit:?}: {longest:?}/{bound:?}");
        assert!(waits.len() > 10, "{policy}, seed {seed}, {slot} {habit:?}: {} turns", waits.len());
    }
    fared
}

#[test]
fn nobody_waits_longer_than_each_policy_promises() {
    for policy in PolicyKind::ALL {
        for seed in 1..=2 {
            check(policy, seed);
        }
    }
}

#[test]
fn hogs_share_by_tier_what_the_others_leave() {
    let fared = check(PolicyKind::WeightedFair, 7);
    let per_tier = |machine: &&Fared| machine.fuel / u64::from(machine.share.tier);
    let hogs: Vec<u64> =
        fared.iter().filter(|one| !one.habit.is_modest()).map(|one| per_tier(&one)).collect();
    let (least, most) = (hogs.iter().min().unwrap(), hogs.iter().max().unwrap());
    assert!(most - least < most / 20, "{hogs:?}");
}

#[test]
fn a_reservation_is_kept_beside_hogs() {
    let fared = check(PolicyKind::EarliestDeadline, 7);
    let modest = fared.iter().filter(|one| one.habit == Habit::Sleeps && one.share.is_reserved());
    for machine in modest {
        let period = Duration::from_millis(machine.share.period_ms.into());
        // Its work is at times more than it reserved.
        let late = machine.waits.iter().filter(|wait| **wait > period).count();
        assert!(late * 20 < machine.waits.len(), "{late} of {} late", machine.waits.len());
    }
}
