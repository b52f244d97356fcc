//! The engine whole: validate, translate, run, suspend, resume.
#![no_std]
#![no_main]

use tenure_size::{engine, probe, unknown_bytes};

probe!({ engine::use_whole(unknown_bytes()) });
