//! The kernel's random source.

use tenure_hal::{Entropy, EntropyError};

/// Random bytes by `getrandom(2)`; waits only during early boot, until the kernel's pool is ready.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxEntropy;

impl Entropy for LinuxEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        getrandom::fill(bytes).map_err(|_| EntropyError)
    }
}
