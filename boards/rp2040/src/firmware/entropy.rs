//! Randomness: the jitter of the ring oscillator, conditioned with SHA-256, and refused where it fails its health tests.
//!
//! The data sheet (2.17.5) promises no more of the random bit than that it is random as long as nobody disturbs the
//! oscillator. So each block of 32 bytes that leaves here is a hash of 2,048 fresh bits and of all that came before,
//! which asks for an eighth of a bit of entropy in each; and both continuous health tests of NIST SP 800-90B (4.4) look
//! at every bit, with bounds for that much.

use rp2040_hal::pac;
use tenure_crypto::Sha256;
use tenure_hal::{Entropy, EntropyError};

/// Raw bits for each block of 32 bytes.
const BITS_PER_BLOCK: usize = 2048;
/// Processor cycles between two bits, so that the oscillator's jitter adds up.
const CYCLES_BETWEEN: u32 = 48;
/// Repetition count test (4.4.1): 1 + 30 / H for a false alarm of 2^-30 and H = 1/8.
const REPEATS_MAX: u32 = 241;
/// Adaptive proportion test (4.4.2): its window for bits, and how often the window's first bit may be in it, for a
/// false alarm of 2^-30 and H = 1/8: the critical binomial value for p = 2^(-1/8).
const WINDOW_BITS: u32 = 1024;
const SAME_IN_WINDOW_MAX: u32 = 987;

/// The ring oscillator as a source of randomness.
pub(super) struct RingOscillator {
    state: [u8; 32],
    repetition: (bool, u32),
    proportion: (bool, u32, u32),
}

impl RingOscillator {
    /// The oscillator runs since reset: the boot ROM starts by it.
    pub(super) fn new() -> Self {
        Self { state: [0; 32], repetition: (false, 0), proportion: (false, 0, 0) }
    }

    fn raw_bit(&mut self) -> Result<bool, EntropyError> {
        cortex_m::asm::delay(CYCLES_BETWEEN);
        // SAFETY: a register of the chip for good, which is only read.
        let bit = unsafe { (*pac::ROSC::ptr()).randombit().read().randombit().bit() };
        self.check(bit)
    }

    /// Both health tests, at each bit.
    fn check(&mut self, bit: bool) -> Result<bool, EntropyError> {
        let (last, repeats) = self.repetition;
        let repeats = if bit == last { repeats + 1 } else { 1 };
        self.repetition = (bit, repeats);
        let (first, same, seen) = self.proportion;
        self.proportion = match seen {
            0 | WINDOW_BITS => (bit, 1, 1),
            _ => (first, same + u32::from(bit == first), seen + 1),
        };
        if repeats > REPEATS_MAX || self.proportion.1 > SAME_IN_WINDOW_MAX {
            return Err(EntropyError);
        }
        Ok(bit)
    }

    fn block(&mut self) -> Result<[u8; 32], EntropyError> {
        let mut hash = Sha256::new();
        hash.update(&self.state);
        for _ in 0..BITS_PER_BLOCK / 8 {
            let mut byte = 0;
            for _ in 0..8 {
                byte = byte << 1 | u8::from(self.raw_bit()?);
            }
            hash.update(&[byte]);
        }
        let digest = hash.finish();
        // The block that leaves doesn't tell the state that goes on.
        self.state = labelled(b"state", &digest.0);
        Ok(labelled(b"block", &digest.0))
    }
}

fn labelled(label: &[u8], digest: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(label);
    hash.update(digest);
    hash.finish().0
}

impl Entropy for RingOscillator {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for part in bytes.chunks_mut(32) {
            let block = self.block()?;
            part.copy_from_slice(&block[..part.len()]);
        }
        Ok(())
    }
}
