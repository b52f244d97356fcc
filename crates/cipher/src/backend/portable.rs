//! The reference: plain Rust, any machine.

use super::Backend;
use crate::chacha::{Block, State, permute};
use crate::poly1305::PolyState;

mod poly32;
mod poly64;

/// Plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Backend for Portable {
    fn name(&self) -> &'static str {
        "portable"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        let mut input = state.clone();
        for block in data {
            let mut output = input.0;
            permute(&mut output, double_rounds);
            for ((bytes, word), input) in
                block.as_chunks_mut::<4>().0.iter_mut().zip(output).zip(input.0)
            {
                *bytes = (u32::from_le_bytes(*bytes) ^ word.wrapping_add(input)).to_le_bytes();
            }
            input.0[12] = input.0[12].wrapping_add(1);
        }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        if cfg!(target_pointer_width = "64") {
            poly64::absorb(state, data, top);
        } else {
            poly32::absorb(state, data, top);
        }
    }
}
