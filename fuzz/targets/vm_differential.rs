//! Modules that wasm-smith makes of the input do the same here, in wasmtime and in wasmi.
#![no_main]
#![forbid(unsafe_code)]

mod common {
    pub(crate) use tenure_hal::simulated::Random;
}
#[path = "../../crates/vm/tests/differential/compare.rs"]
mod compare;
#[path = "../../crates/vm/tests/differential/wasmi_peer.rs"]
mod wasmi_peer;
#[path = "vm_differential/wasmtime_peer.rs"]
mod wasmtime_peer;

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    // wasmi's NaNs are the processor's.
    let floats = bytes.first().is_some_and(|how| how & 0x80 != 0);
    let peers: &[compare::StartPeer] =
        if floats { &[wasmtime_peer::start] } else { &[wasmtime_peer::start, wasmi_peer::start] };
    if compare::input(bytes, peers) { Corpus::Keep } else { Corpus::Reject }
});
