//! The interface to GAP8's runtime with a stand-in for that runtime (`gap8/pmsis.h`): what the model
//! of RI5CY calls.
#![no_std]
#![no_main]

use tenure_cipher::ChaCha20;
use tenure_cipher::cluster::gap8::Gap8;

/// Where a GAP8 has its cluster's memory; the model has some there, too.
const NEAR: *mut u8 = core::ptr::without_provenance_mut(0x1000_0000);
const BUFFER_BYTES: usize = 1024;

/// Streams `len` bytes in far memory through three buffers in near memory; 1 if it could.
#[unsafe(no_mangle)]
extern "C" fn gap8_stream(key: &[u8; 32], from: *const u8, to: *mut u8, len: usize) -> u32 {
    // SAFETY: the model calls this on its only core, and lends all this memory.
    let (cluster, mut engine, from, to) = unsafe {
        let (from, to) =
            (core::slice::from_raw_parts(from, len), core::slice::from_raw_parts_mut(to, len));
        (Gap8::new(), Gap8::new(), from, to)
    };
    let buffers = [0, 1, 2].map(|i| {
        // SAFETY: three parts of the near memory, which nobody else uses.
        unsafe { core::slice::from_raw_parts_mut(NEAR.add(i * BUFFER_BYTES), BUFFER_BYTES) }
    });
    let mut stream = ChaCha20::with_key(key, &[9; 12]);
    u32::from(stream.stream_on(&cluster, &mut engine, from, to, buffers).is_ok())
}

/// Nobody starts this program: its function is called.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    core::hint::black_box(gap8_stream as extern "C" fn(_, _, _, _) -> _);
    loop {}
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
