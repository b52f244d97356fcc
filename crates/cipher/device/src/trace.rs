//! The trace that the timing model of the Cortex-M cores follows, instruction by instruction: one message of
//! 4 KiB each by ChaCha20, Poly1305 and the AEAD. `tests/machines/cortex.rs` finds the functions by
//! their names.
#![no_std]
#![no_main]

use core::hint::black_box;

use tenure_cipher::backend::Backend;
use tenure_cipher::{Form, Ietf, PolyState};

// The timing model counts; the image itself doesn't.
#[allow(dead_code)]
#[path = "arm.rs"]
mod machine;

/// Bytes of the message: `cortex.rs` has the same.
const LEN: usize = 4096;

#[repr(align(16))]
struct Memory([u8; LEN]);

fn run() -> Result<(), &'static str> {
    let mut memory = Memory([0; LEN]);
    let [backend] = machine::backends();
    trace_chacha20(backend, &mut memory.0);
    trace_end();
    trace_poly1305(backend, &memory.0);
    trace_end();
    trace_aead(backend, &mut memory.0);
    trace_end();
    Ok(())
}

#[unsafe(no_mangle)]
#[inline(never)]
fn trace_chacha20(backend: &dyn Backend, data: &mut [u8; LEN]) {
    let state = Ietf::state::<10>(black_box(&[1; 32]), black_box(&[2; 12]));
    backend.xor(&state, 10, data.as_chunks_mut().0);
}

#[unsafe(no_mangle)]
#[inline(never)]
fn trace_poly1305(backend: &dyn Backend, data: &[u8; LEN]) {
    let mut poly = PolyState::new(black_box(&[3; 16]));
    backend.absorb(&mut poly, data.as_chunks().0, 1);
    black_box(poly.reduced());
}

#[unsafe(no_mangle)]
#[inline(never)]
fn trace_aead(backend: &dyn Backend, data: &mut [u8; LEN]) {
    let state = Ietf::state::<10>(black_box(&[1; 32]), black_box(&[2; 12]));
    black_box(backend.seal(&state, &[], data));
}

/// Marks the end of each.
#[unsafe(no_mangle)]
#[inline(never)]
fn trace_end() {
    black_box(());
}

/// Ends the run, with the reason if it failed.
fn finish(result: Result<(), &'static str>) -> ! {
    if let Err(reason) = result {
        machine::write(reason.as_bytes());
    }
    machine::exit(result.is_ok())
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    finish(Err("panicked"))
}
