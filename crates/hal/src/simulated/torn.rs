//! What cuts left between two states: cells that read now as before the operation, now as after it, now as
//! neither, each time that the device starts, until a 0 is programmed over them or their sector is erased.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::Random;

/// All such places of a device.
#[derive(Clone, Debug)]
pub(super) struct Torn {
    places: Vec<Place>,
    generator: Random,
}

/// A program unit whose programming was cut, or a sector whose erasure was.
#[derive(Clone, Debug)]
struct Place {
    start: usize,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Bits that are surely 1, and those that are surely 0: of a sector whose erasure was cut there are none.
    ones: Vec<u8>,
    zeros: Vec<u8>,
}

impl Default for Torn {
    fn default() -> Self {
        Self { places: Vec::new(), generator: Random::new(0) }
    }
}

impl Torn {
    /// Takes over the generator of a cut.
    pub(super) fn seed(&mut self, generator: Random) {
        self.generator = generator;
    }

    /// Decides what each place reads as until the next start.
    pub(super) fn draw(&mut self, stored: &mut [u8]) {
        for place in &self.places {
            place.draw(&mut self.generator, &mut stored[place.range()]);
        }
    }

    /// Programs `bytes` as a whole: their zeros are firm from now on.
    pub(super) fn program(&mut self, stored: &mut [u8], start: usize, bytes: &[u8]) {
        let range = start..start + bytes.len();
        stored[range.clone()].iter_mut().zip(bytes).for_each(|(stored, byte)| *stored &= byte);
        for place in &mut self.places {
            let (begin, end) = (place.start, place.range().end);
            for at in range.start.max(begin)..range.end.min(end) {
                let (byte, at) = (bytes[at - start], at - begin);
                place.before[at] &= byte;
                place.after[at] &= byte;
                place.ones[at] &= byte;
                place.zeros[at] |= !byte;
            }
        }
    }

    /// Leaves one unit between what it is and what `bytes` would make of it.
    pub(super) fn tear_program(&mut self, stored: &[u8], start: usize, bytes: &[u8]) {
        let old = &stored[start..start + bytes.len()];
        if !bytes.is_empty() && self.place_at(start).is_none() {
            let zeros = old.iter().map(|byte| !byte).collect();
            let (before, after, ones) = (old.to_vec(), old.to_vec(), old.to_vec());
            self.places.push(Place { start, before, after, ones, zeros });
        }
        if let Some((place, at)) = self.place_at(start) {
            for (at, byte) in (at..).zip(bytes) {
                place.after[at] &= byte;
                place.ones[at] &= byte;
            }
        }
    }

    /// Erases a sector as a whole: nothing in it is torn any more.
    pub(super) fn erase(&mut self, sector: &Range<usize>) {
        self.places.retain(|place| !sector.contains(&place.start));
    }

    /// Leaves a sector as it may be: devices program a sector before they erase it, so it may read as anything.
    pub(super) fn tear_erase(&mut self, stored: &[u8], sector: Range<usize>) {
        self.erase(&sector);
        let length = sector.len();
        let (ones, zeros) = (vec![0; length], vec![0; length]);
        let before = stored[sector.clone()].to_vec();
        self.places.push(Place {
            start: sector.start,
            before,
            after: vec![0xFF; length],
            ones,
            zeros,
        });
    }

    /// The place around `at`, and where in it that is.
    fn place_at(&mut self, at: usize) -> Option<(&mut Place, usize)> {
        let place = self.places.iter_mut().find(|place| place.range().contains(&at))?;
        let start = place.start;
        Some((place, at - start))
    }
}

impl Place {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.before.len()
    }

    fn draw(&self, generator: &mut Random, into: &mut [u8]) {
        let cut = generator.below(into.len() as u64 + 1) as usize;
        into.copy_from_slice(&self.before);
        match generator.below(6) {
            0 => {}
            1 => into.copy_from_slice(&self.after),
            2 => into[..cut].copy_from_slice(&self.after[..cut]),
            3 => into[cut..].copy_from_slice(&self.after[cut..]),
            4 => {
                for ((byte, before), after) in into.iter_mut().zip(&self.before).zip(&self.after) {
                    let noise = generator.number() as u8;
                    *byte = (before & noise) | (after & !noise);
                }
            }
            _ => {
                for ((byte, ones), zeros) in into.iter_mut().zip(&self.ones).zip(&self.zeros) {
                    *byte = (generator.number() as u8 | ones) & !zeros;
                }
            }
        }
    }
}
