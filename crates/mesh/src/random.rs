//! Numbers to choose by: repeatable from a seed, and not secret.

use tenure_hal::SplitMix64;

/// A stream of numbers that a seed decides.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream that belongs to `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply and shift (Lemire 2019): its bias is below 2⁻³² for the small bounds of a mesh.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// A span from zero up to, but not including, `span`.
    pub fn below_span(&mut self, span: core::time::Duration) -> core::time::Duration {
        core::time::Duration::from_micros(self.below(span.as_micros() as u64))
    }

    /// A span between three quarters and five quarters of `span`, so that neighbours that started
    /// together don't go on in step.
    pub fn around(&mut self, span: core::time::Duration) -> core::time::Duration {
        span * 3 / 4 + self.below_span(span / 2)
    }

    /// Whether something happens that happens `permille` times in a thousand.
    pub fn chance(&mut self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }
}
