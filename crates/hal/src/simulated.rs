//! Devices made of memory, for tests and the simulator: a NOR flash whose power can be cut,
//! peripherals that follow a script, addresses of a simulated network, and randomness that is none.
//!
//! Invariants:
//! - [`RamFlash`] refuses what the contract of [`Flash`] refuses, tears what the contract says may be
//!   torn, and reads what was torn otherwise at each start; so what works on it builds on nothing else.
//! - The same calls with the same seed do the same, bit for bit.

use alloc::vec;
use alloc::vec::Vec;

use crate::{Entropy, EntropyError, Flash, FlashError, FlashGeometry};

mod peripherals;
mod place;
mod random;
#[cfg(test)]
mod tests;
mod torn;

pub use peripherals::{Button, Camera, Lamp, Point, Thermometer};
pub use place::{place_at, socket_at};
pub use random::Random;

use torn::Torn;

/// Bytes that pass for random and are the same in every run: Knuth's linear congruential generator.
#[derive(Clone, Debug)]
pub struct Sequence(pub u64);

impl Entropy for Sequence {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
        Ok(())
    }
}

/// A NOR flash in RAM that counts what is done to it and whose power can be cut at any operation.
#[derive(Clone, Debug)]
pub struct RamFlash {
    geometry: FlashGeometry,
    bytes: Vec<u8>,
    counters: FlashCounters,
    power: Power,
    torn: Torn,
}

/// Operations on a [`RamFlash`] since it was made or since its counters were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounters {
    /// Calls of `read`.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Calls of `program`.
    pub programs: u64,
    /// Bytes that they programmed.
    pub program_bytes: u64,
    /// Calls of `erase`.
    pub erases: u64,
}

#[derive(Clone, Debug)]
enum Power {
    On,
    /// Fails in the middle of the operation that comes after `operations` more.
    FailsAfter {
        operations: u64,
        seed: u64,
    },
    Off,
}

impl RamFlash {
    /// An erased device.
    pub fn new(geometry: FlashGeometry) -> Self {
        Self::with_bytes(geometry, vec![0xFF; geometry.bytes() as usize])
    }

    /// A device that holds `bytes`; what they lack to the size of the device is erased, and what
    /// they have too much is cut off.
    pub fn with_bytes(geometry: FlashGeometry, mut bytes: Vec<u8>) -> Self {
        bytes.resize(geometry.bytes() as usize, 0xFF);
        let counters = FlashCounters::default();
        Self { geometry, bytes, counters, power: Power::On, torn: Torn::default() }
    }

    /// Lets `operations` more programs and erases succeed and tears the one after; from then on
    /// every call fails until [`RamFlash::restore_power`]. `seed` says how it is torn.
    pub fn cut_power_after(&mut self, operations: u64, seed: u64) {
        self.power = Power::FailsAfter { operations, seed };
    }

    /// Whether the power has been cut.
    pub fn is_off(&self) -> bool {
        matches!(self.power, Power::Off)
    }

    /// Takes away the power at once.
    pub fn cut_power(&mut self) {
        self.power = Power::Off;
    }

    /// Gives the power back, and forgets a cut that was planned. If it was gone, what cuts left between
    /// two states reads as it happens to from now on.
    pub fn restore_power(&mut self) {
        if self.is_off() {
            self.torn.draw(&mut self.bytes);
        }
        self.power = Power::On;
    }

    /// The operations so far.
    pub fn counters(&self) -> FlashCounters {
        self.counters
    }

    /// Starts counting from zero.
    pub fn reset_counters(&mut self) {
        self.counters = FlashCounters::default();
    }

    /// Everything the device holds.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Everything the device holds, to be corrupted.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn range(&self, offset: u32, length: usize) -> Result<core::ops::Range<usize>, FlashError> {
        let start = offset as usize;
        let end = start.checked_add(length).filter(|end| *end <= self.bytes.len());
        Ok(start..end.ok_or(FlashError::OutOfRange)?)
    }

    /// How the next program or erase goes: whole (`None`) or torn as the generator says.
    fn draw_power(&mut self) -> Result<Option<Random>, FlashError> {
        match &mut self.power {
            Power::On => Ok(None),
            Power::Off => Err(FlashError::Hardware),
            Power::FailsAfter { operations: 0, seed } => {
                let generator = Random::new(*seed);
                self.power = Power::Off;
                Ok(Some(generator))
            }
            Power::FailsAfter { operations, .. } => {
                *operations -= 1;
                Ok(None)
            }
        }
    }
}

impl Flash for RamFlash {
    fn geometry(&self) -> FlashGeometry {
        self.geometry
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        let range = self.range(offset, into.len())?;
        if self.is_off() {
            return Err(FlashError::Hardware);
        }
        self.counters.reads += 1;
        self.counters.read_bytes += into.len() as u64;
        into.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let range = self.range(offset, bytes.len())?;
        let unit = self.geometry.program_bytes as usize;
        if !range.start.is_multiple_of(unit) || !bytes.len().is_multiple_of(unit) {
            return Err(FlashError::Misaligned);
        }
        let sets_a_bit = |(old, new): (&u8, &u8)| !old & new != 0;
        if self.bytes[range.clone()].iter().zip(bytes).any(sets_a_bit) {
            return Err(FlashError::NotErased);
        }
        let torn = self.draw_power()?;
        self.counters.programs += 1;
        self.counters.program_bytes += bytes.len() as u64;
        let Some(mut generator) = torn else {
            self.torn.program(&mut self.bytes, range.start, bytes);
            return Ok(());
        };
        // A prefix is programmed, and the unit at its end is left between what it was and what it should be.
        let whole = generator.below((bytes.len() / unit) as u64 + 1) as usize * unit;
        self.torn.program(&mut self.bytes, range.start, &bytes[..whole]);
        let end = (whole + unit).min(bytes.len());
        self.torn.tear_program(&self.bytes, range.start + whole, &bytes[whole..end]);
        self.torn.seed(generator);
        self.torn.draw(&mut self.bytes);
        Err(FlashError::Hardware)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        if sector >= self.geometry.sector_count {
            return Err(FlashError::OutOfRange);
        }
        let sector_bytes = self.geometry.sector_bytes;
        let range = self.range(sector * sector_bytes, sector_bytes as usize)?;
        let torn = self.draw_power()?;
        self.counters.erases += 1;
        let Some(generator) = torn else {
            self.torn.erase(&range);
            self.bytes[range].fill(0xFF);
            return Ok(());
        };
        self.torn.tear_erase(&self.bytes, range);
        self.torn.seed(generator);
        self.torn.draw(&mut self.bytes);
        Err(FlashError::Hardware)
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}
