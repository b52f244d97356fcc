//! Draws of tests and of the simulator: everything left to chance in a run comes from here.

use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use crate::{Entropy, EntropyError, SplitMix64};

/// Draws that a seed decides. Nothing here is secret: a run has to be repeatable.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream that belongs to `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A stream of its own for one part of a run, so that parts don't shift one another's draws.
    #[must_use]
    pub fn branch(&mut self) -> Self {
        Self::new(self.number())
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// A number below `bound`; 0 if that is 0. The bias of the remainder doesn't matter for choosing what to
    /// test.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// A number in `range`.
    pub fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        let span = (range.end() - range.start()).wrapping_add(1);
        let drawn = self.number();
        range.start() + if span == 0 { drawn } else { drawn % span }
    }

    /// Whether something happens that happens `permille` times in a thousand.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// Whether something happens that happens `threshold` times in 2^32.
    pub fn loses(&mut self, threshold: u32) -> bool {
        threshold != 0 && ((self.number() >> 32) as u32) < threshold
    }

    /// A share from 0 up to, but not, 1.
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A span in `range`, in milliseconds.
    pub fn millis(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_micros(self.between(range.start() * 1000..=range.end() * 1000))
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// A length below `2^bits_max`, short ones as likely as long ones.
    pub fn length(&mut self, bits_max: u64) -> usize {
        let end = 1 << self.below(bits_max + 1);
        self.below(end) as usize
    }

    /// That many bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.number() as u8).collect()
    }
}

impl Entropy for Random {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
