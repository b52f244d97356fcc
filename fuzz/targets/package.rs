//! Packages and placements from anybody.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_package::{Package, Placement};
use tenure_wire::VerifyingKey;

fuzz_target!(|bytes: &[u8]| {
    let _ = Placement::verify(bytes, &VerifyingKey([7; 32]));
    let Ok(package) = Package::parse(bytes) else { return };
    package.manifest().check().expect("a package that parses has a valid manifest");
    let paths: Vec<_> = package.tree().entries().map(|entry| entry.path).collect();
    assert!(paths.is_sorted(), "a tree has one order");
    assert!(package.code_bytes() < bytes.len());
    let _ = package.verify();
});
