//! A guest among neighbours that makes mutated host calls, for as long as it is let: `hostile_guest
//! SECONDS [SEED]`. Each seed is a device of its own with three tenants (see the guest's tests in
//! `crates/node`); a failure says which.
//!
//! It isn't driven by coverage: the cryptography of a whole device makes that too slow to get anywhere.
//!
//! `hostile_guest planted` reads one byte behind the end of an allocation. Whoever runs this does that
//! first: where it goes unseen, the sanitizer sees nothing else either.
#![deny(unsafe_code)]

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

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hostile_guest::{Room, Tally, run};

/// How many scripts a device is made to run.
const SCRIPTS: u32 = 40;
/// How many calls there are between two lines about them.
const CALLS_A_LINE: u64 = 100_000;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("planted") {
        return read_out_of_bounds();
    }
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>());
    let (Some(Ok(seconds)), first) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: hostile_guest SECONDS [SEED]");
        return ExitCode::FAILURE;
    };
    let (begun, mut tally) = (Instant::now(), Tally::new());
    let (mut seed, mut said) = (first.and_then(Result::ok).unwrap_or(1), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let room = if seed.is_multiple_of(2) { Room::Enough } else { Room::Scarce };
        let Ok(counted) = catch_unwind(move || {
            run(&[], seed, room, SCRIPTS, &mut tally);
            tally
        }) else {
            eprintln!("seed {seed} fails");
            return ExitCode::FAILURE;
        };
        tally = counted;
        if tally.made() / CALLS_A_LINE > said {
            said = tally.made() / CALLS_A_LINE;
            println!("{tally}");
        }
        seed += 1;
    }
    println!("{tally}; the next seed is {seed}");
    ExitCode::SUCCESS
}

/// Reads the byte behind an allocation.
#[allow(unsafe_code)]
fn read_out_of_bounds() -> ExitCode {
    let bytes = std::hint::black_box(vec![0_u8; 64]);
    // SAFETY: none: this is the fault that the sanitizer is to see, and the process ends with it.
    let behind = unsafe { std::ptr::read_volatile(bytes.as_ptr().add(bytes.len())) };
    eprintln!("read {behind} out of bounds, unseen");
    ExitCode::SUCCESS
}
