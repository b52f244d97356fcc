//! ARMv6-M: few registers, a rotation by register, a multiplication of 32 bits.

use core::arch::global_asm;

use super::super::Backend;
use super::super::aligned::{for_each_aligned, for_each_aligned_chunk};
use super::super::hoist::Plan;
use super::super::portable::Portable;
use super::super::wipe::wipe;
use crate::accumulator::PolyState;
use crate::chacha::{Block, State};
use crate::operations::Operations;

global_asm!(include_str!("chacha_v6m.s"), include_str!("poly1305_v6m.s"), options(raw));

unsafe extern "C" {
    fn tenure_chacha_armv6m(data: *mut u8, end: *const u8, plan: *mut ThumbPlan);
    fn tenure_poly1305_armv6m(work: *mut Limbs, data: *const u8, end: *const u8, top: u32);
}

/// ARMv6-M or ARMv8-M baseline.
#[derive(Clone, Copy, Debug)]
pub struct V6m;

impl Operations for V6m {
    fn name(&self) -> &'static str {
        "armv6m"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        if double_rounds < 2 {
            return Portable.xor(state, double_rounds, data);
        }
        let mut plan = ThumbPlan::new(&Plan::new(state, double_rounds as i32 - 1));
        for_each_aligned(data, |blocks, _| {
            let data = blocks.as_flattened_mut().as_mut_ptr_range();
            if data.start < data.end {
                // SAFETY: the range is the exclusively borrowed, word-aligned, not empty blocks;
                // beside them the kernel writes the plan's counter alone.
                unsafe { tenure_chacha_armv6m(data.start, data.end, &mut plan) }
            }
        });
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        let mut work = Limbs::new(state);
        for_each_aligned_chunk(data, |blocks| {
            let data = blocks.as_flattened().as_ptr_range();
            if data.start < data.end {
                // SAFETY: the range is the borrowed, word-aligned, not empty blocks; the kernel
                // writes to the work area alone, whose layout is C's.
                unsafe { tenure_poly1305_armv6m(&mut work, data.start, data.end, top << 11) }
            }
        });
        state.h = work.words();
    }
}

impl Backend for V6m {}

/// [`Plan`] in the order in which the kernel loads it. Wiped when dropped.
#[repr(C)]
struct ThumbPlan {
    /// The start, diagonal by diagonal. What column 0 of the first round makes is not read.
    diagonals: [u32; 16],
    /// `x0`, `x4`, `x8` and the counter: column 0.
    column: [u32; 4],
    input: [u32; 16],
    passes: i32,
}

impl ThumbPlan {
    fn new(plan: &Plan) -> Self {
        const DIAGONALS: [usize; 16] = [0, 5, 10, 15, 1, 6, 11, 12, 2, 7, 8, 13, 3, 4, 9, 14];
        Self {
            diagonals: DIAGONALS.map(|word| plan.start[word]),
            column: [0, 4, 8, 12].map(|word| plan.start[word]),
            input: plan.input,
            passes: plan.passes,
        }
    }
}

impl Drop for ThumbPlan {
    fn drop(&mut self) {
        wipe(&mut self.diagonals);
        wipe(&mut self.column);
        wipe(&mut self.input);
    }
}

const LIMBS: usize = 10;
const LIMB_BITS: u32 = 13;
const LIMB_MASK: u128 = (1 << LIMB_BITS) - 1;

/// Poly1305's state in limbs of 13 bits. Wiped when dropped.
#[repr(C)]
struct Limbs {
    /// `5 r1 … 5 r9, r0 … r9`: limb `i` of h meets the limbs from place `9 - i` on.
    multipliers: [u32; 2 * LIMBS - 1],
    /// The accumulator, most significant limb first; a limb may hold up to 31 bits.
    h: [u32; LIMBS],
}

impl Limbs {
    fn new(state: &PolyState) -> Self {
        let join = |words: &[u32]| words.iter().rev().fold(0, |sum, w| sum << 32 | u128::from(*w));
        let r = join(&state.r);
        let low = join(&state.h[..4]);
        let mut limbs = Self { multipliers: [0; 2 * LIMBS - 1], h: [0; LIMBS] };
        for i in 0..LIMBS {
            let shift = LIMB_BITS * i as u32;
            let limb = (r >> shift & LIMB_MASK) as u32;
            limbs.multipliers[LIMBS - 1 + i] = limb;
            if i > 0 {
                limbs.multipliers[i - 1] = 5 * limb;
            }
            limbs.h[LIMBS - 1 - i] = (low >> shift & LIMB_MASK) as u32;
        }
        // Limb 9 has the last 11 of the lower 128 bits.
        limbs.h[0] += state.h[4] << 11;
        limbs
    }

    /// The accumulator in words of 32 bits, the uppermost at most 4.
    fn words(&self) -> [u32; 5] {
        let mut carry = 0u64;
        let mut low = 0u128;
        for i in 0..LIMBS - 1 {
            carry += u64::from(self.h[LIMBS - 1 - i]);
            low |= (u128::from(carry) & LIMB_MASK) << (LIMB_BITS * i as u32);
            carry >>= LIMB_BITS;
        }
        // Nine limbs are 117 bits; 2^130 is 5.
        let top = carry + u64::from(self.h[0]);
        let (low, wrapped) = low.overflowing_add(u128::from(top & 0x7ff) << 117);
        let high = (top >> 11) + u64::from(wrapped);
        let (low, wrapped) = low.overflowing_add(u128::from((high >> 2) * 5));
        let high = (high & 3) as u32 + u32::from(wrapped);
        [low as u32, (low >> 32) as u32, (low >> 64) as u32, (low >> 96) as u32, high]
    }
}

impl Drop for Limbs {
    fn drop(&mut self) {
        wipe(&mut self.multipliers);
        wipe(&mut self.h);
    }
}
