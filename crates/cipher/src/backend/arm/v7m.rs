//! ARMv7-M: rotations ride on the operands of other instructions, `umlal` carries for nothing.

use core::arch::global_asm;

use super::super::Backend;
use super::super::aligned::{for_each_aligned, for_each_aligned_chunk};
use super::super::hoist::Plan;
use super::super::portable::Portable;
use crate::accumulator::PolyState;
use crate::chacha::{Block, State};
use crate::operations::Operations;

global_asm!(include_str!("chacha_v7m.s"), include_str!("poly1305_v7m.s"), options(raw));

unsafe extern "C" {
    fn tenure_chacha_armv7m(data: *mut u8, end: *const u8, plan: *mut Plan);
    fn tenure_poly1305_armv7m(state: *mut PolyState, data: *const u8, end: *const u8, top: u32);
}

/// ARMv7-M or ARMv8-M mainline.
#[derive(Clone, Copy, Debug)]
pub struct V7m;

impl Operations for V7m {
    fn name(&self) -> &'static str {
        "armv7m"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        if double_rounds < 2 {
            return Portable.xor(state, double_rounds, data);
        }
        let mut plan = Plan::new(state, double_rounds as i32 - 1);
        for_each_aligned(data, |blocks, _| {
            let data = blocks.as_flattened_mut().as_mut_ptr_range();
            if data.start < data.end {
                // SAFETY: the range is the exclusively borrowed, word-aligned, not empty blocks;
                // beside them the kernel writes the plan's counter alone.
                unsafe { tenure_chacha_armv7m(data.start, data.end, &mut plan) }
            }
        });
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        for_each_aligned_chunk(data, |blocks| {
            let data = blocks.as_flattened().as_ptr_range();
            if data.start < data.end {
                // SAFETY: the range is the borrowed, word-aligned, not empty blocks; the kernel
                // writes to the state alone, whose layout is C's.
                unsafe { tenure_poly1305_armv7m(state, data.start, data.end, top) }
            }
        });
    }
}

impl Backend for V7m {}
