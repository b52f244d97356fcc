//! Packages and placements, parsed and verified.
#![no_std]
#![no_main]

use tenure_package::{Package, Placement};
use tenure_size::{keep, probe, unknown, unknown_bytes};
use tenure_wire::VerifyingKey;

probe!({
    let bytes = unknown_bytes();
    if let Ok(package) = Package::parse(bytes) {
        keep(package.verify());
        keep(package.tree().entries().count());
        keep(package.manifest());
    }
    keep(Placement::verify(bytes, &VerifyingKey(unknown())));
});
