//! Randomness from the host's generator, by semihosting. The chip has none: on hardware a board would seed
//! a generator from the noise of its analogue converter, and must keep its state in flash.

use tenure_hal::{Entropy, EntropyError};

/// The host's `/dev/urandom`.
pub(crate) struct HostEntropy;

impl Entropy for HostEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        semihosting::experimental::random::fill_bytes(bytes).map_err(|_| EntropyError)
    }
}
