//! SSE2: four blocks at a time, a vector per word of the state.

use core::arch::x86_64::*;

use super::super::Backend;
use super::super::portable::Portable;
use crate::accumulator::PolyState;
use crate::chacha::{Block, State};
use crate::operations::Operations;

/// Every x86-64 processor.
#[derive(Clone, Copy, Debug)]
pub struct Sse2;

const LANES: usize = 4;

impl Operations for Sse2 {
    fn name(&self) -> &'static str {
        "sse2"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        let (groups, rest) = data.as_chunks_mut::<LANES>();
        let mut counter = state.counter();
        for group in groups {
            // SAFETY: SSE2 is part of x86-64.
            unsafe { four_blocks(state, counter, double_rounds, group) };
            counter = counter.wrapping_add(LANES as u32);
        }
        // Two blocks one after the other take less time than four at once.
        if rest.len() <= 2 {
            let mut state = state.clone();
            state.set_counter(counter);
            Portable.xor(&state, double_rounds, rest);
        } else {
            let mut copy = [[0; 64]; LANES];
            copy[..rest.len()].copy_from_slice(rest);
            // SAFETY: SSE2 is part of x86-64.
            unsafe { four_blocks(state, counter, double_rounds, &mut copy) };
            rest.copy_from_slice(&copy[..rest.len()]);
            super::super::wipe::wipe(copy.as_flattened_mut());
        }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        Portable.absorb(state, data, top);
    }
}

impl Backend for Sse2 {}

macro_rules! rotate {
    ($x:expr, $n:literal) => {
        _mm_or_si128(_mm_slli_epi32::<$n>($x), _mm_srli_epi32::<{ 32 - $n }>($x))
    };
}

macro_rules! quarter {
    ($x:ident, $a:literal, $b:literal, $c:literal, $d:literal) => {
        $x[$a] = _mm_add_epi32($x[$a], $x[$b]);
        $x[$d] = rotate!(_mm_xor_si128($x[$d], $x[$a]), 16);
        $x[$c] = _mm_add_epi32($x[$c], $x[$d]);
        $x[$b] = rotate!(_mm_xor_si128($x[$b], $x[$c]), 12);
        $x[$a] = _mm_add_epi32($x[$a], $x[$b]);
        $x[$d] = rotate!(_mm_xor_si128($x[$d], $x[$a]), 8);
        $x[$c] = _mm_add_epi32($x[$c], $x[$d]);
        $x[$b] = rotate!(_mm_xor_si128($x[$b], $x[$c]), 7);
    };
}

#[target_feature(enable = "sse2")]
fn four_blocks(state: &State, counter: u32, double_rounds: usize, data: &mut [Block; LANES]) {
    let mut input = [_mm_setzero_si128(); 16];
    for (lanes, word) in input.iter_mut().zip(&state.0) {
        *lanes = _mm_set1_epi32(*word as i32);
    }
    input[12] = _mm_add_epi32(_mm_set1_epi32(counter as i32), _mm_setr_epi32(0, 1, 2, 3));
    let mut x = input;
    for _ in 0..double_rounds {
        quarter!(x, 0, 4, 8, 12);
        quarter!(x, 1, 5, 9, 13);
        quarter!(x, 2, 6, 10, 14);
        quarter!(x, 3, 7, 11, 15);
        quarter!(x, 0, 5, 10, 15);
        quarter!(x, 1, 6, 11, 12);
        quarter!(x, 2, 7, 8, 13);
        quarter!(x, 3, 4, 9, 14);
    }
    for row in 0..4 {
        let word = |i: usize| _mm_add_epi32(x[4 * row + i], input[4 * row + i]);
        let low = [_mm_unpacklo_epi32(word(0), word(1)), _mm_unpacklo_epi32(word(2), word(3))];
        let high = [_mm_unpackhi_epi32(word(0), word(1)), _mm_unpackhi_epi32(word(2), word(3))];
        let key = [
            _mm_unpacklo_epi64(low[0], low[1]),
            _mm_unpackhi_epi64(low[0], low[1]),
            _mm_unpacklo_epi64(high[0], high[1]),
            _mm_unpackhi_epi64(high[0], high[1]),
        ];
        for (block, key) in data.iter_mut().zip(key) {
            let place = block[16 * row..][..16].as_mut_ptr().cast();
            // SAFETY: 16 bytes of the block, at any alignment.
            unsafe { _mm_storeu_si128(place, _mm_xor_si128(_mm_loadu_si128(place), key)) };
        }
    }
}
