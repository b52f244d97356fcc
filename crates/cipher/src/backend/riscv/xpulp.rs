//! RI5CY and its kin (GAP8): rotations, hardware loops and post-incremented memory accesses.
//!
//! No compiler and no emulator here knows these instructions: the kernel gives their encodings,
//! and `tests/machines/ri5cy.rs` is a model of the core that runs it.

use super::super::Backend;
use super::super::hoist::Plan;
use super::{Scalar, run};
use crate::accumulator::PolyState;
use crate::chacha::{Block, State};
use crate::operations::Operations;

unsafe extern "C" {
    fn tenure_chacha_xpulp(data: *mut u8, end: *const u8, plan: *const Plan);
}

/// A core with the Xpulp extension as RI5CY encodes it (not as CORE-V does).
#[derive(Clone, Copy, Debug)]
pub struct Xpulp(());

impl Xpulp {
    /// # Safety
    /// The core must implement the extension.
    pub const unsafe fn assume_present() -> Self {
        Self(())
    }

    /// The build was told that the core has the extension: `--cfg tenure_xpulp`.
    #[cfg(tenure_xpulp)]
    pub const fn by_build() -> Self {
        Self(())
    }
}

impl Operations for Xpulp {
    fn name(&self) -> &'static str {
        "xpulp"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        if double_rounds < 2 {
            return Scalar.xor(state, double_rounds, data);
        }
        let plan = Plan::new(state, double_rounds as i32 - 1);
        // SAFETY: an `Xpulp` exists only where the instructions do.
        unsafe { run(tenure_chacha_xpulp, plan, data) }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        Scalar.absorb(state, data, top);
    }
}

impl Backend for Xpulp {}
