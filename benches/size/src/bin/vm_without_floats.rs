//! The engine without floats: as `vm`, built with another set of features.
#![no_std]
#![no_main]

use tenure_size::{engine, probe, unknown_bytes};

probe!({ engine::use_whole(unknown_bytes()) });
