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
use crate::accumulator::PolyState;
use crate::chacha::{Block, State};
use crate::operations::Operations;

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
    fn tenure_chacha_rotate_small(data: *mut u8, end: *const u8, plan: *const Plan);
    #[cfg(target_arch = "riscv32")]
    fn tenure_poly1305_rv32(state: *mut PolyState, data: *const u8, end: *const u8, top: u32);
}

/// RV32IM or RV64IM.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl Operations for Scalar {
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

impl Backend for Scalar {}

/// A core with Zbb or Zbkb.
#[derive(Clone, Copy, Debug)]
pub struct Rotate(Loop);

/// The work of the kernel in a pass of its inner loop.
#[derive(Clone, Copy, Debug)]
enum Loop {
    /// Three double rounds in 870 bytes: the fewest instructions.
    Three,
    /// One in 294, for an instruction cache that three would not fit: 0.18 instructions a byte more.
    One,
}

impl Rotate {
    /// # Safety
    /// The core must implement Zbb or Zbkb.
    pub const unsafe fn assume_present() -> Self {
        Self(Loop::Three)
    }

    /// The same with an inner loop a third as long, for cores with an instruction cache of less
    /// than 2 KiB.
    ///
    /// # Safety
    /// The core must implement Zbb or Zbkb.
    pub const unsafe fn assume_present_with_small_loop() -> Self {
        Self(Loop::One)
    }

    /// The compiler was told that the core has the instructions; `--cfg tenure_small_loop` says
    /// which loop suits it.
    #[cfg(any(target_feature = "zbb", target_feature = "zbkb"))]
    pub const fn by_target_feature() -> Self {
        Self(if cfg!(tenure_small_loop) { Loop::One } else { Loop::Three })
    }
}

impl Operations for Rotate {
    fn name(&self) -> &'static str {
        match (cfg!(target_arch = "riscv32"), self.0) {
            (true, Loop::Three) => "rv32+zbb",
            (true, Loop::One) => "rv32+zbb-small-loop",
            (false, Loop::Three) => "rv64+zbb",
            (false, Loop::One) => "rv64+zbb-small-loop",
        }
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        // A loop of three double rounds may be entered after one of them, which serves all standard
        // variants: 3, 5 and 9 after the peeled one.
        let passes = match (self.0, double_rounds.wrapping_sub(1) / 3, double_rounds % 3) {
            (Loop::Three, whole @ 1..1000, 1) => whole as i32,
            (Loop::Three, whole @ 1..1000, 0) => -(whole as i32 + 1),
            (Loop::One, ..) if double_rounds >= 2 => double_rounds as i32 - 1,
            _ => return Scalar.xor(state, double_rounds, data),
        };
        let kernel: Kernel = match self.0 {
            Loop::Three => tenure_chacha_rotate,
            Loop::One => tenure_chacha_rotate_small,
        };
        // SAFETY: a `Rotate` exists only where the instructions do.
        unsafe { run(kernel, Plan::new(state, passes), data) }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        absorb(state, data, top);
    }
}

impl Backend for Rotate {}

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
