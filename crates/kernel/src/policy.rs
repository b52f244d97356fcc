//! Policies: whose turn it is, and for how long.
//!
//! Invariants:
//! - A policy is plain data: it knows slots, shares, fuel and time, and no machine.
//! - It works without timers: whoever is ready runs, so that the device never idles while a machine
//!   wants to run.
//! - It sees at the beginning of a turn who has become ready since the last one: nothing pre-empts a
//!   turn, whose length is bounded by its fuel and the longest host call.
//! - [`Policy::wait_fuel_max`] is a promise, which the simulator holds it to.

mod earliest_deadline;
mod preemptive;
mod round_robin;
mod weighted_fair;

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use tenure_hal::Instant;
use tenure_wire::Share;

pub use earliest_deadline::{EarliestDeadline, RESERVABLE_PERMILLE};
pub use preemptive::Preemptive;
pub use round_robin::RoundRobin;
pub use weighted_fair::WeightedFair;

/// The most slots that a policy can tell apart.
pub const SLOTS_MAX: usize = 32;

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots(u32);

impl Slots {
    /// Adds a slot below [`SLOTS_MAX`].
    pub fn insert(&mut self, slot: usize) {
        self.0 |= bit(slot);
    }

    /// Takes a slot out.
    pub fn remove(&mut self, slot: usize) {
        self.0 &= !bit(slot);
    }

    /// Whether the slot is in it.
    pub fn contains(self, slot: usize) -> bool {
        self.0 & bit(slot) != 0
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many are in it.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Those that are in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those that are in it and not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The slots in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let slot = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (slot < SLOTS_MAX).then_some(slot)
        })
    }

    /// The first slot after `slot`, going round.
    pub fn next_after(self, slot: usize) -> Option<usize> {
        let beyond = self.0 & u32::MAX.checked_shl(slot as u32 + 1).unwrap_or(0);
        let next = if beyond == 0 { self.0 } else { beyond };
        (next != 0).then_some(next.trailing_zeros() as usize)
    }
}

fn bit(slot: usize) -> u32 {
    1_u32.checked_shl(slot as u32).unwrap_or(0)
}

impl FromIterator<usize> for Slots {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Self {
        let mut set = Self::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

/// A turn that a machine is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose.
    pub slot: usize,
    /// The fuel it may use.
    pub fuel: u64,
}

/// Fuel that machines have used beyond their turns, for policies whose turns are all the same length.
#[derive(Debug)]
struct Debts([u64; SLOTS_MAX]);

impl Debts {
    const fn none() -> Self {
        Self([0; SLOTS_MAX])
    }

    /// The fuel of the next turn of `slot`, or `None` if it pays with the whole of it.
    fn turn_fuel(&mut self, slot: usize, slice_fuel: u64) -> Option<u64> {
        let owed = self.0.get_mut(slot)?;
        let paid = slice_fuel.min(*owed);
        *owed -= paid;
        (paid < slice_fuel).then(|| slice_fuel - paid)
    }

    /// A turn has used more than it had.
    fn ran(&mut self, turn: Turn, fuel_used: u64) {
        if let Some(owed) = self.0.get_mut(turn.slot) {
            *owed = owed.saturating_add(fuel_used.saturating_sub(turn.fuel));
        }
    }

    fn forget(&mut self, slot: usize) {
        if let Some(owed) = self.0.get_mut(slot) {
            *owed = 0;
        }
    }
}

/// The machine that runs next.
pub trait Policy: Send {
    /// Takes a machine in, or gives it another share.
    ///
    /// # Errors
    /// [`Overbooked`] if what others have reserved leaves too little; nothing has changed then.
    fn admit(&mut self, slot: usize, share: &Share) -> Result<(), Overbooked>;

    /// Forgets a machine.
    fn leave(&mut self, slot: usize);

    /// Whose turn it is, of those that are `ready`; `None` if nobody is.
    fn pick(&mut self, now: Instant, ready: Slots) -> Option<Turn>;

    /// Says what the turn picked last has used. It may be more than was given: a turn ends after a
    /// host call, whatever that cost.
    fn ran(&mut self, turn: Turn, fuel_used: u64);

    /// Gives a machine another tier for the time being. Policies without tiers don't care.
    fn set_tier(&mut self, _slot: usize, _tier: u16) {}

    /// Says how much fuel the device burns in a second. Policies that don't reserve time don't care.
    fn calibrate(&mut self, _fuel_per_second: u64) {}

    /// Whether a turn ends when a task does, though the machine has another.
    fn ends_turn_with_task(&self) -> bool;

    /// The most fuel that is burnt between a machine's being ready and its turn, if no turn uses more
    /// than `turn_fuel_max` and those admitted are all there are. What a machine has used beyond its
    /// reservation counts against itself.
    fn wait_fuel_max(&self, slot: usize, turn_fuel_max: u64) -> u64;
}

/// The policies there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// Each in its turn, a whole slice each.
    #[default]
    RoundRobin,
    /// In the order in which they became ready; a turn ends with the task.
    Preemptive,
    /// In proportion to their tiers.
    WeightedFair,
    /// By deadline, each within its reservation.
    EarliestDeadline,
}

impl PolicyKind {
    /// Every policy.
    pub const ALL: [Self; 4] =
        [Self::RoundRobin, Self::Preemptive, Self::WeightedFair, Self::EarliestDeadline];

    /// The policy's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::Preemptive => "preemptive",
            Self::WeightedFair => "weighted-fair",
            Self::EarliestDeadline => "earliest-deadline",
        }
    }

    /// A policy of this kind that knows no machine yet and gives turns of `slice_fuel`, on a device
    /// that burns about `fuel_per_second`.
    pub fn build(self, slice_fuel: u64, fuel_per_second: u64) -> Box<dyn Policy> {
        match self {
            Self::RoundRobin => Box::new(RoundRobin::new(slice_fuel)),
            Self::Preemptive => Box::new(Preemptive::new(slice_fuel)),
            Self::WeightedFair => Box::new(WeightedFair::new(slice_fuel)),
            Self::EarliestDeadline => Box::new(EarliestDeadline::new(slice_fuel, fuel_per_second)),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownPolicy)
    }
}

/// A name that no policy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such policy; there are")?;
        PolicyKind::ALL.iter().try_for_each(|kind| write!(f, " {kind}"))
    }
}

impl core::error::Error for UnknownPolicy {}

/// More is reserved than the device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overbooked;

#[cfg(test)]
mod tests;
