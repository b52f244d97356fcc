//! Randomness from the host's generator, by semihosting; the machine has none of its own.

use tenure_hal::{Entropy, EntropyError};

/// The host's `/dev/urandom`.
pub(crate) struct HostEntropy;

impl Entropy for HostEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        semihosting::experimental::random::fill_bytes(bytes).map_err(|_| EntropyError)
    }
}
