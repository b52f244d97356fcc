//! Randomness: the chip's generator, which is one as long as the radio is on (ESP32-C3 technical
//! reference manual, 24.3; ESP32-C6's, 26.3).

use esp_hal::rng::Trng;
use tenure_hal::{Entropy, EntropyError};

/// The generator, with the radio as its source.
pub(crate) struct RadioEntropy(Trng);

impl RadioEntropy {
    /// `None` while the radio is off.
    pub(crate) fn new() -> Option<Self> {
        Trng::try_new().ok().map(Self)
    }
}

impl Entropy for RadioEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        self.0.read(bytes);
        Ok(())
    }
}
