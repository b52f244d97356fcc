//! Worlds of a handful of seeds.

use super::*;

#[test]
fn leases_end_and_begin_again_secrets_change_and_sums_are_exact_whatever_fails() {
    let mut total = Tally::default();
    for seed in 1..=6 {
        let tally = run(seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        total = total.and(&tally);
    }
    let Tally { reads, absent, changes, renewals, ends, receipts, cuts, sleeps, acts } = total;
    assert!(reads > 300 && absent > 30 && changes > 60, "{total}");
    assert!(renewals > 20 && ends > 10 && receipts > 100, "{total}");
    assert!(cuts > 10 && sleeps > 10 && acts > 50, "{total}");
}

#[test]
#[ignore = "takes minutes: run it with --release"]
fn so_they_do_with_hundreds_of_seeds() {
    for seed in 1_000..1_300 {
        run(seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}
