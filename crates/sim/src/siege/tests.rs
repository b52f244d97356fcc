//! A few sieges; the hunt (`cargo xtask sim -- --only siege`) runs many.

use super::*;

#[test]
fn a_handful_of_sieges_break_no_promise() {
    for seed in 1..=3 {
        let tally = run(seed, None).unwrap_or_else(|what| panic!("siege {seed} breaks: {what}"));
        assert!(tally.hostile_datagrams > 100, "siege {seed}: {tally}");
    }
}
