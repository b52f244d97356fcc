//! Names, ids, keys and targets: a text that parses is shown as it was, or as one canonical text.
#![no_main]
#![forbid(unsafe_code)]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use tenure_wire::{MachineId, Name, PublicKey, Target};

fuzz_target!(|text: &str| {
    check::<Name>(text);
    check::<MachineId>(text);
    check::<PublicKey>(text);
    check::<Target>(text);
});

fn check<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let canonical = value.to_string();
        assert_eq!(canonical.parse::<T>().ok(), Some(value), "{canonical:?}");
    }
}
