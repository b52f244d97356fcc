//! Eight harts of QEMU's `virt` machine as a cluster: one controls, all work.
#![no_std]
#![no_main]

use core::arch::global_asm;

use tenure_cipher::ChaCha20;
use tenure_cipher::cluster::OneCore;
use tenure_cipher::cluster::harts::Harts;

#[path = "riscv_io.rs"]
mod io;

// Every hart comes here at once, each with its own 256 KiB of stack.
global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "csrr a0, mhartid",
    "la sp, stack_top",
    "slli t0, a0, 18",
    "sub sp, sp, t0",
    "call {start}",
    start = sym start,
);

const CLINT: usize = 0x0200_0000;
// SAFETY: the CLINT of this machine starts with its software interrupt registers, and `start`
// makes every other hart serve.
static HARTS: Harts = unsafe { Harts::new(8, CLINT) };

const LEN: usize = 16 * 1024 + 77;

extern "C" fn start(hart: usize) -> ! {
    if hart > 0 {
        HARTS.serve(hart);
    }
    let right = forks_agree() && streams_agree();
    io::write(if right { b"cluster of harts ok\n" } else { b"the harts differ from one core\n" });
    io::exit(right)
}

fn cipher() -> ChaCha20 {
    ChaCha20::with_key(&[1; 32], &[2; 12])
}

fn forks_agree() -> bool {
    (0..200).all(|round| {
        let len = LEN - round * 79;
        let (mut many, mut one) = ([7; LEN], [7; LEN]);
        cipher().xor_on(&HARTS, &mut many[..len]).is_ok()
            && cipher().xor(&mut one[..len]).is_ok()
            && many == one
    })
}

fn streams_agree() -> bool {
    let (mut to, mut one) = ([0; LEN], [7; LEN]);
    let (mut a, mut b, mut c) = ([0; 2048], [0; 2048], [0; 2048]);
    let buffers: [&mut [u8]; 3] = [&mut a, &mut b, &mut c];
    cipher().stream_on(&HARTS, &mut OneCore, &[7; LEN], &mut to, buffers).is_ok()
        && cipher().xor(&mut one).is_ok()
        && to == one
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    io::exit(false)
}
