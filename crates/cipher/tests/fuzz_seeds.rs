//! Replays the fuzz target's seeds: `fuzz/seeds/cipher`.
#![cfg(feature = "rustcrypto")]

use std::path::Path;

mod differential;

#[test]
fn seeds_of_the_fuzz_target_agree_with_rustcrypto() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/cipher");
    let mut seeds: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(seeds.len() > 20, "only {} seeds", seeds.len());
    for seed in seeds {
        println!("{}", seed.display());
        differential::check(&std::fs::read(&seed).unwrap());
    }
}
