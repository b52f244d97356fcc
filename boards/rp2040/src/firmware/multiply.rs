//! The product of 64-bit numbers, which keys and signatures are made of: a Cortex-M0+ multiplies 32 bits and keeps
//! the lower half, so that the compiler calls this function for anything longer.
//!
//! In place of the one in Rust's `compiler_builtins`, whose 41 instructions with their detours by the stack were half
//! of all that a boot and a handshake execute; these are 25. They take the same time whatever the numbers are.

use core::arch::global_asm;

// `r1:r0` times `r3:r2`, into `r1:r0` (Run-time ABI for the Arm architecture, 4.2). With a and b the lower words and
// indices their halves: a0·b0 + (a0·b1 + a1·b0)·2^16 + (a1·b1 + the products with upper words)·2^32.
global_asm!(
    ".section .text.__aeabi_lmul, \"ax\", %progbits",
    ".global __aeabi_lmul",
    ".type __aeabi_lmul, %function",
    ".thumb_func",
    "__aeabi_lmul:",
    "push {{r4}}",
    "muls r1, r2, r1",
    "muls r3, r0, r3",
    "adds r4, r1, r3",
    "mov r12, r4",
    "uxth r3, r0",      // a0
    "lsrs r0, r0, #16", // a1
    "lsrs r1, r2, #16", // b1
    "uxth r2, r2",      // b0
    "mov r4, r0",
    "muls r4, r1, r4",
    "add r4, r12",
    "muls r1, r3, r1",
    "muls r3, r2, r3",
    "muls r0, r2, r0",
    "lsls r2, r1, #16",
    "lsrs r1, r1, #16",
    "adds r3, r3, r2",
    "adcs r4, r1",
    "lsls r2, r0, #16",
    "lsrs r1, r0, #16",
    "adds r0, r3, r2",
    "adcs r1, r4",
    "pop {{r4}}",
    "bx lr",
    ".size __aeabi_lmul, . - __aeabi_lmul",
);
