//! The window against a set of everything that was seen.

extern crate std;

use std::collections::BTreeSet;

use super::*;

#[test]
fn counter_is_accepted_once() {
    let mut window = ReplayWindow::default();
    for counter in [0, 1, 5, 3, 70, 64, 63, 400, 399, 1 << 40] {
        assert!(window.is_new(counter), "{counter}");
        window.record(counter);
        assert!(!window.is_new(counter), "{counter} again");
    }
}

#[test]
fn counter_far_behind_is_refused() {
    let mut window = ReplayWindow::default();
    window.record(1_000);
    assert!(window.is_new(1_001 - WINDOW));
    assert!(!window.is_new(1_000 - WINDOW));
    assert!(!window.is_new(0));
}

#[test]
fn window_agrees_with_a_set() {
    let mut random = 1_u64;
    for round in 0..200 {
        let mut window = ReplayWindow::default();
        let mut seen = BTreeSet::new();
        let mut highest = 0;
        for _ in 0..300 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let reach = if random >> 60 == 0 { 1_000 } else { 40 };
            let counter = (highest + (random >> 33) % reach).saturating_sub((random >> 20) % 300);
            let within = seen.last().is_none_or(|last: &u64| counter + WINDOW > *last);
            let expected = within && !seen.contains(&counter);
            assert_eq!(window.is_new(counter), expected, "round {round}, counter {counter}");
            if expected {
                window.record(counter);
                seen.insert(counter);
                highest = highest.max(counter);
            }
        }
    }
}
