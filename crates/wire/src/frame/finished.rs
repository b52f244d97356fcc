//! Calls by number, and which of them their caller has done with.

use serde::{Deserialize, Serialize};

/// The number of a call: unique among the calls of one incarnation, and growing by one from call to
/// call of the same pair of machines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CallNumber(pub u64);

/// The calls that their caller has done with: all below a floor, and some of the [`Self::WINDOW`]
/// that follow it. They may be forgotten, and are never executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    floor: CallNumber,
    /// Bit `i`: the call `floor` + 1 + `i`.
    beyond: u64,
}

impl Finished {
    /// By how much the number of a call may exceed that of the oldest unfinished one.
    pub const WINDOW: u64 = 64;
    /// How long it is on the wire.
    pub const BYTES: usize = 16;

    /// All calls below `floor`, and no other.
    pub const fn below(floor: CallNumber) -> Self {
        Self { floor, beyond: 0 }
    }

    /// The lowest number that isn't finished.
    pub const fn floor(&self) -> CallNumber {
        self.floor
    }

    /// Whether the caller has done with that call.
    pub const fn contains(&self, number: CallNumber) -> bool {
        match number.0.checked_sub(self.floor.0) {
            None => true,
            Some(ahead) => 1 <= ahead && ahead <= 64 && self.beyond >> (ahead - 1) & 1 == 1,
        }
    }

    /// Adds a call; one beyond the window is ignored.
    pub fn insert(&mut self, number: CallNumber) {
        match number.0.checked_sub(self.floor.0) {
            None => {}
            Some(0) => self.raise(CallNumber(self.floor.0.saturating_add(1))),
            Some(ahead @ 1..=64) => self.beyond |= 1 << (ahead - 1),
            Some(_) => {}
        }
    }

    /// Adds all calls that are in `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut other = *other;
        // Raising one moves on over what is finished in it, and may pass the other in its turn.
        while self.floor != other.floor {
            let floor = self.floor.max(other.floor);
            self.raise(floor);
            other.raise(floor);
        }
        self.beyond |= other.beyond;
    }

    /// Adds all calls below `floor`, then moves on over those that were finished before.
    fn raise(&mut self, floor: CallNumber) {
        let Some(step) = floor.0.checked_sub(self.floor.0).filter(|step| *step > 0) else { return };
        let at_floor = 1..=Self::WINDOW;
        let floor_finished = at_floor.contains(&step) && self.beyond >> (step - 1) & 1 == 1;
        self.beyond =
            u32::try_from(step).ok().and_then(|step| self.beyond.checked_shr(step)).unwrap_or(0);
        self.floor = floor;
        if floor_finished {
            self.raise(CallNumber(floor.0.saturating_add(1)));
        }
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.floor.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.beyond.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (floor, rest) = bytes.split_first_chunk()?;
        let floor = CallNumber(u64::from_le_bytes(*floor));
        Some(Self { floor, beyond: u64::from_le_bytes(*rest.first_chunk()?) })
    }
}
