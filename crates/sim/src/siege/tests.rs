//! A few sieges; the hunt (`cargo xtask sim -- --only siege`) runs many.

use super::*;

#[test]
fn a_handful_of_sieges_break_no_promise() {
    for seed in 1..=3 {
        let tally = run(seed, Cast::Drawn, None);
        let tally = tally.unwrap_or_else(|what| panic!("siege {seed} breaks: {what}"));
        assert!(tally.hostile_datagrams > 100, "siege {seed}: {tally}");
    }
}

/// Each promise holds while all attack in all ways, the owner's calls within their bound among them.
#[test]
fn the_owner_installs_and_lists_while_every_flood_is_on_at_once() {
    let tally = run(8, Cast::Everybody, None).unwrap_or_else(|what| panic!("{what}"));
    assert!(tally.installed >= 3 && tally.listed >= 3 && tally.owner_served >= 50, "{tally:?}");
    assert!(tally.hostile_datagrams > 10_000 && tally.frames > 500, "{tally:?}");
}
