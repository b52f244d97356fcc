//! The operations that an instruction set has to provide: keystream and multiplication.

use crate::accumulator::PolyState;
use crate::chacha::{Block, State};

/// The operations of an instruction set. Implementations agree bit for bit.
pub trait Operations: Sync {
    /// A short name, for tables and test messages.
    fn name(&self) -> &'static str;

    /// Exclusive-ors keystream blocks `state.counter()`, `state.counter() + 1`, … into `data`.
    ///
    /// The counter's low word must not run past its end: `state.counter() + data.len() <= 2^32`.
    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]);

    /// For each block `m`, least significant byte first: `h = (h + m + top * 2^128) * r`, reduced
    /// until `h[4]` is at most 4. `top` is 1 for whole blocks and 0 for one that carries its own
    /// end mark.
    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32);
}
