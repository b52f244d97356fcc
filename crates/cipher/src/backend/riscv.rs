//! RISC-V, with the whole state in registers.
//!
//! [`Scalar`] runs on every RV32IM and RV64IM core; [`Rotate`] needs Zbb or Zbkb, whose `rori`
//! does in one instruction what otherwise takes three.
#![allow(unsafe_code)]

use core::arch::global_asm;

use super::Backend;
use super::aligned::for_each_aligned;
#[cfg(target_arch = "riscv32")]
use super::aligned::for_each_aligned_chunk;
use super::hoist::Plan;
use super::portable::Portable;
use crate::chacha::{Block, State};
use crate::poly1305::PolyState;

#[cfg(target_arch = "riscv32")]
pub mod xpulp;

/// The assembler is not told which extensions the target has. In one call, so that the macros
/// and options of a file reach the next.
macro_rules! kernels {
    ($compressed:literal, $($kernels:literal),*) => {
        global_asm!(
            ".option push",
            $compressed,
            include_str!("riscv/registers.s"),
            include_str!("riscv/chacha.s"),
            include_str!("riscv/poly1305.s"),
            $(include_str!($kernels),)*
            ".option pop",
            options(raw)
        );
    };
}
#[cfg(all(target_arch = "riscv32", target_feature = "c"))]
kernels!(".option arch, +c", "riscv/kernels32.s", "riscv/xpulp.s");
#[cfg(all(target_arch = "riscv32", not(target_feature = "c")))]
kernels!("", "riscv/kernels32.s", "riscv/xpulp.s");
#[cfg(all(target_arch = "riscv64", target_feature = "c"))]
kernels!(".option arch, +c", "riscv/kernels64.s");
#[cfg(all(target_arch = "riscv64", not(target_feature = "c")))]
kernels!("", "riscv/kernels64.s");

/// A kernel under `riscv/`: data, end of data, plan.
type Kernel = unsafe extern "C" fn(*mut u8, *const u8, *const Plan);

unsafe extern "C" {
    fn tenure_chacha_scalar(data: *mut u8, end: *const u8, plan: *const Plan);
    fn tenure_chacha_rotate(data: *mut u8, end: *const u8, plan: *const Plan);
    #[cfg(target_arch = "riscv32")]
    fn tenure_poly1305_rv32(state: *mut PolyState, data: *const u8, end: *const u8, top: u32);
}

/// RV32IM or RV64IM.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl Backend for Scalar {
    fn name(&self) -> &'static str {
        if cfg!(target_arch = "riscv32") { "rv32im" } else { "rv64im" }
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        if double_rounds < 2 {
            return Portable.xor(state, double_rounds, data);
        }
        let plan = Plan::new(state, double_rounds as i32 - 1);
        // SAFETY: the kernel uses base instructions alone.
        unsafe { run(tenure_chacha_scalar, plan, data) }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        absorb(state, data, top);
    }
}

/// A core with Zbb or Zbkb.
#[derive(Clone, Copy, Debug)]
pub struct Rotate(());

impl Rotate {
    /// # Safety
    /// The core must implement Zbb or Zbkb.
    pub const unsafe fn assume_present() -> Self {
        Self(())
    }

    /// The compiler was told that the core has the instructions.
    #[cfg(any(target_feature = "zbb", target_feature = "zbkb"))]
    pub const fn by_target_feature() -> Self {
        Self(())
    }
}

impl Backend for Rotate {
    fn name(&self) -> &'static str {
        if cfg!(target_arch = "riscv32") { "rv32+zbb" } else { "rv64+zbb" }
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        // The kernel's loop does three double rounds a pass and may enter the first pass after
        // one of them, which serves all standard variants: 3, 5 and 9 after the peeled one.
        let passes = match (double_rounds.wrapping_sub(1) / 3, double_rounds % 3) {
            (whole @ 1..1000, 1) => whole as i32,
            (whole @ 1..1000, 0) => -(whole as i32 + 1),
            _ => return Scalar.xor(state, double_rounds, data),
        };
        let plan = Plan::new(state, passes);
        // SAFETY: a `Rotate` exists only where the instructions do.
        unsafe { run(tenure_chacha_rotate, plan, data) }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        absorb(state, data, top);
    }
}

/// # Safety
/// The core must have the kernel's instructions.
unsafe fn run(kernel: Kernel, mut plan: Plan, data: &mut [Block]) {
    if data.is_empty() {
        return;
    }
    let first = plan.input[12];
    for_each_aligned(data, |blocks, before| {
        plan.input[12] = first.wrapping_add(before);
        let data = blocks.as_flattened_mut().as_mut_ptr_range();
        // SAFETY: the range is the exclusively borrowed, word-aligned, not empty blocks; the
        // kernel writes nowhere else.
        unsafe { kernel(data.start, data.end, &plan) }
    });
}

#[cfg(target_arch = "riscv32")]
fn absorb(state: &mut PolyState, data: &[[u8; 16]], top: u32) {
    if data.is_empty() {
        return;
    }
    for_each_aligned_chunk(data, |blocks| {
        let data = blocks.as_flattened().as_ptr_range();
        // SAFETY: the range is the borrowed, word-aligned, not empty blocks; the kernel writes to
        // the state alone, whose layout is C's.
        unsafe { tenure_poly1305_rv32(state, data.start, data.end, top) }
    });
}

#[cfg(target_arch = "riscv64")]
fn absorb(state: &mut PolyState, data: &[[u8; 16]], top: u32) {
    Portable.absorb(state, data, top);
}
