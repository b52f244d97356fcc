//! Seeded randomness: whatever is left to chance in a run is drawn from here.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenure_hal::{Entropy, EntropyError};

/// A stream of numbers that a seed decides (SplitMix64, Steele, Lea and Flood 2014). Nothing here
/// is secret: a run has to be repeatable.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream that belongs to `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for one part of a run, so that parts don't shift one another's draws.
    pub(crate) fn branch(&mut self) -> Self {
        Self(self.number())
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in `range`. The bias of the remainder doesn't matter for choosing what to test.
    pub(crate) fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        let span = (range.end() - range.start()).wrapping_add(1);
        let drawn = self.number();
        range.start() + if span == 0 { drawn } else { drawn % span }
    }

    /// Whether something happens that happens `permille` times in a thousand.
    pub(crate) fn chance(&mut self, permille: u64) -> bool {
        self.between(0..=999) < permille
    }

    /// Whether something happens that happens `threshold` times in 2^32.
    pub(crate) fn loses(&mut self, threshold: u32) -> bool {
        threshold != 0 && ((self.number() >> 32) as u32) < threshold
    }

    /// A share from 0 up to, but not, 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A span in `range`, in milliseconds.
    pub(crate) fn millis(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_micros(self.between(range.start() * 1000..=range.end() * 1000))
    }

    /// One of `choices`, which must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.between(0..=choices.len() as u64 - 1) as usize]
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
