//! Weaknesses that an audit found, planted again: a siege must find each by the promise that it breaks.
//!
//! Run by `cargo xtask test`, which compiles the weaknesses in: no product can have them.
#![cfg(planted)]

use tenure_sim::siege::{self, Cast, weakness};
use tenure_sim::tenancy;

/// Each weakness with the seed from which on a few sieges find it soon, and the promise that breaks.
const FOUND: [(&str, u64, &str); 13] = [
    ("h1", 12, "no machine is lost"),
    ("h2", 8, "the owner is served"),
    ("h3", 1, "no more than thrice the bytes"),
    ("m1", 8, "the owner is served"),
    ("m2", 8, "signatures are"),
    ("m3", 8, "secrets wear flash within their number"),
    ("m4", 8, "the owner's calls run beside those of others"),
    ("m5", 8, "no text is read beyond its limit"),
    ("m7", 8, "a machine logs within its budget"),
    ("m8", 8, "no machine's log is drowned"),
    ("m9", 8, "no frame number is used twice"),
    ("m12", 4, "no call runs long after its caller gave up"),
    ("m15", 8, "strangers don't set the pace of registrations"),
];
const SEEDS: u64 = 8;

#[test]
fn weaknesses_that_were_mended_and_are_planted_again_are_found_by_what_they_break() {
    for (name, from, promise) in FOUND {
        let planted = weakness(name).expect("this build can plant it");
        let mut seeds = from..from + SEEDS;
        let broken = seeds.find_map(|seed| siege::run(seed, Cast::of(seed), Some(planted)).err());
        let broken = broken.unwrap_or_else(|| panic!("{name} is not found from seed {from} on"));
        assert!(broken.starts_with(promise), "{name}: {broken}");
    }
}

#[test]
fn restore_that_forgets_what_was_used_is_found_by_the_sums_of_receipts() {
    let planted = weakness("restore").expect("this build can plant it");
    let broken = (1..=SEEDS).find_map(|seed| tenancy::run(seed, Some(planted)).err());
    let broken = broken.expect("it is found");
    assert!(broken.contains("reads billed of"), "{broken}");
}
