//! Packages and placements, parsed and verified.
#![no_std]
#![no_main]

use tenure_size::{probe, take_package, unknown_bytes};

probe!({
    take_package(unknown_bytes());
});
