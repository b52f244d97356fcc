//! Nothing: what every probe costs.
#![no_std]
#![no_main]

use tenure_size::{keep, probe, unknown_bytes};

probe!({
    extern crate alloc;
    keep(alloc::vec::Vec::from(unknown_bytes()));
});
