//! NEON: four blocks at a time, a vector per word of the state. Every AArch64 core has it.
#![allow(unsafe_code)]

use core::arch::aarch64::*;

use super::Backend;
use super::portable::Portable;
use super::wipe::wipe;
use crate::accumulator::PolyState;
use crate::chacha::{Block, State};
use crate::operations::Operations;

/// An AArch64 core.
#[derive(Clone, Copy, Debug)]
pub struct Neon;

const LANES: usize = 4;

impl Operations for Neon {
    fn name(&self) -> &'static str {
        "neon"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        let (groups, rest) = data.as_chunks_mut::<LANES>();
        let mut counter = state.counter();
        for group in groups {
            // SAFETY: NEON is part of AArch64's Rust targets.
            unsafe { four_blocks(state, counter, double_rounds, group) };
            counter = counter.wrapping_add(LANES as u32);
        }
        if !rest.is_empty() {
            let mut copy = [[0; 64]; LANES];
            copy.iter_mut().zip(&*rest).for_each(|(to, from)| *to = *from);
            // SAFETY: NEON is part of AArch64's Rust targets.
            unsafe { four_blocks(state, counter, double_rounds, &mut copy) };
            rest.iter_mut().zip(&copy).for_each(|(to, from)| *to = *from);
            wipe(copy.as_flattened_mut());
        }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        Portable.absorb(state, data, top);
    }
}

impl Backend for Neon {}

macro_rules! rotate {
    ($x:expr, 16) => {
        vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32($x)))
    };
    ($x:expr, $n:literal) => {{
        let x = $x;
        vsriq_n_u32::<{ 32 - $n }>(vshlq_n_u32::<$n>(x), x)
    }};
}

/// Four quarter rounds step by step, so that each instruction has three independent neighbours.
macro_rules! quarters {
    ($x:ident, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        $($x[$a] = vaddq_u32($x[$a], $x[$b]);)*
        $($x[$d] = rotate!(veorq_u32($x[$d], $x[$a]), 16);)*
        $($x[$c] = vaddq_u32($x[$c], $x[$d]);)*
        $($x[$b] = rotate!(veorq_u32($x[$b], $x[$c]), 12);)*
        $($x[$a] = vaddq_u32($x[$a], $x[$b]);)*
        $($x[$d] = rotate!(veorq_u32($x[$d], $x[$a]), 8);)*
        $($x[$c] = vaddq_u32($x[$c], $x[$d]);)*
        $($x[$b] = rotate!(veorq_u32($x[$b], $x[$c]), 7);)*
    };
}

#[target_feature(enable = "neon")]
fn four_blocks(state: &State, counter: u32, double_rounds: usize, data: &mut [Block; LANES]) {
    let mut input = [vdupq_n_u32(0); 16];
    for (lanes, word) in input.iter_mut().zip(&state.0) {
        *lanes = vdupq_n_u32(*word);
    }
    let lanes = [0, 1, 2, 3];
    // SAFETY: four words are borrowed.
    let lanes = unsafe { vld1q_u32(lanes.as_ptr()) };
    input[12] = vaddq_u32(vdupq_n_u32(counter), lanes);
    let mut x = input;
    for _ in 0..double_rounds {
        quarters!(x, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
        quarters!(x, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
    }
    for row in 0..4 {
        let word = |i: usize| vaddq_u32(x[4 * row + i], input[4 * row + i]);
        let wide = |x: uint32x4_t| vreinterpretq_u64_u32(x);
        let [low, high] = [(word(0), word(1)), (word(2), word(3))]
            .map(|(a, b)| (wide(vtrn1q_u32(a, b)), wide(vtrn2q_u32(a, b))));
        let key = [
            vtrn1q_u64(low.0, high.0),
            vtrn1q_u64(low.1, high.1),
            vtrn2q_u64(low.0, high.0),
            vtrn2q_u64(low.1, high.1),
        ];
        for (block, key) in data.iter_mut().zip(key) {
            let place = block[16 * row..][..16].as_mut_ptr();
            // SAFETY: 16 bytes of the block, at any alignment.
            unsafe { vst1q_u8(place, veorq_u8(vld1q_u8(place), vreinterpretq_u8_u64(key))) };
        }
    }
}
