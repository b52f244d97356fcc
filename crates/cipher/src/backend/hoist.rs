//! The work that the blocks of one message share: the part of the first double round that the counter does
//! not reach.

use super::wipe::wipe;
use crate::chacha::{State, quarter_round};

/// The input of a kernel for a small core. Wiped when dropped.
#[repr(C)]
pub(super) struct Plan {
    /// The words with which a block starts, beside its counter:
    /// columns 1, 2 and 3 of the first round are done; and so are `x0 += x4` of its column 0,
    /// `x1 += x6`, `x2 += x7` and `x13 = (x13 ^ x2) <<< 16` of its diagonals.
    pub(super) start: [u32; 16],
    /// The input of the first block, which the last step adds.
    pub(super) input: [u32; 16],
    /// Passes of the kernel's loop.
    pub(super) passes: i32,
}

impl Plan {
    /// The plan of the blocks from `state` on.
    pub(super) fn new(state: &State, passes: i32) -> Self {
        let mut start = state.0;
        quarter_round(&mut start, 1, 5, 9, 13);
        quarter_round(&mut start, 2, 6, 10, 14);
        quarter_round(&mut start, 3, 7, 11, 15);
        start[0] = start[0].wrapping_add(start[4]);
        start[1] = start[1].wrapping_add(start[6]);
        start[2] = start[2].wrapping_add(start[7]);
        start[13] = (start[13] ^ start[2]).rotate_left(16);
        Self { start, input: state.0, passes }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        wipe(&mut self.start);
        wipe(&mut self.input);
    }
}
