//! A guest among neighbours that makes whatever host calls the input makes up.
//!
//! Each input is a device of its own, with three tenants (see the guest's tests in `crates/node`). How
//! many calls there were is said now and then.
#![no_main]
#![forbid(unsafe_code)]

#[path = "../../crates/node/tests/node/hostile_calls.rs"]
mod hostile_calls;
#[path = "../../crates/node/tests/node/hostile_guest.rs"]
mod hostile_guest;
// The node's other tests use more of these two.
#[allow(dead_code)]
#[path = "../../crates/node/tests/node/leases.rs"]
mod leases;
#[allow(dead_code)]
#[path = "../../crates/node/tests/node/world.rs"]
mod world;

use std::sync::Mutex;

use hostile_guest::{Room, Tally, run};
use libfuzzer_sys::fuzz_target;

/// Scripts for each input: what the input doesn't say of them follows from it.
const SCRIPTS: u32 = 8;
/// How many calls there are between two lines about them.
const CALLS_A_LINE: u64 = 100_000;

static TALLY: Mutex<Tally> = Mutex::new(Tally::new());

fuzz_target!(|bytes: &[u8]| {
    let seed = bytes.iter().fold(0, |seed: u64, byte| seed.rotate_left(8) ^ u64::from(*byte));
    let room = if bytes.len() % 2 == 0 { Room::Enough } else { Room::Scarce };
    let Ok(mut tally) = TALLY.lock() else { return };
    let before = tally.made();
    run(bytes, seed, room, SCRIPTS, &mut tally);
    if tally.made() / CALLS_A_LINE > before / CALLS_A_LINE {
        eprintln!("{tally}");
    }
});
