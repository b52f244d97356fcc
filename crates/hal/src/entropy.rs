//! Randomness fit for keys.

/// A source of cryptographically secure random bytes.
pub trait Entropy {
    /// Fills `bytes` with random bytes, all of them or none.
    ///
    /// # Errors
    /// [`EntropyError`] when the source fails its health test or isn't ready; a caller must not go
    /// on with what is in `bytes` then.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError>;
}

impl<E: Entropy + ?Sized> Entropy for &mut E {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        (**self).fill(bytes)
    }
}

/// The random source gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntropyError;

impl core::fmt::Display for EntropyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the random source failed or is not ready")
    }
}

impl core::error::Error for EntropyError {}
