//! The reference: plain Rust, any machine.

use super::Backend;
use super::aligned::words_mut;
use crate::accumulator::PolyState;
use crate::chacha::{Block, State, permute};
use crate::operations::Operations;

mod poly32;
mod poly64;

/// Plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Operations for Portable {
    fn name(&self) -> &'static str {
        "portable"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        let mut input = state.clone();
        for block in data {
            let mut output = input.0;
            permute(&mut output, double_rounds);
            xor_block(block, &output, &input.0);
            input.0[12] = input.0[12].wrapping_add(1);
        }
    }

    #[inline]
    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        if cfg!(target_pointer_width = "64") {
            poly64::absorb(state, data, top);
        } else {
            poly32::absorb(state, data, top);
        }
    }
}

impl Backend for Portable {}

/// Adds the input to the output and exclusive-ors it into the data.
///
/// Aligned data is taken by words: where memory has no unaligned accesses, the compiler would load
/// the four bytes of each one by one.
#[inline(always)]
fn xor_block(block: &mut Block, output: &[u32; 16], input: &[u32; 16]) {
    let key = |i: usize| output[i].wrapping_add(input[i]).to_le();
    match words_mut(block) {
        Some(words) => (0..16).for_each(|i| words[i] ^= key(i)),
        None => {
            let words = block.as_chunks_mut::<4>().0;
            (0..16).for_each(|i| {
                words[i] = (u32::from_ne_bytes(words[i]) ^ key(i)).to_ne_bytes();
            });
        }
    }
}
