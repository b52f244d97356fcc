//! Round robin: slot after slot, a whole slice each.
//!
//! A machine that is ready waits for one turn of each other at most. What a turn used beyond its fuel
//! is taken from the machine's next ones.

use tenure_hal::Instant;
use tenure_wire::Share;

use super::{Debts, Overbooked, Policy, Slots, Turn};

/// Each ready machine in the order of the slots.
#[derive(Debug)]
pub struct RoundRobin {
    slice_fuel: u64,
    admitted: Slots,
    /// The slot that had the last turn.
    last: usize,
    debts: Debts,
}

impl RoundRobin {
    /// A policy that knows no machine yet.
    pub fn new(slice_fuel: u64) -> Self {
        let slice_fuel = slice_fuel.max(1);
        Self { slice_fuel, admitted: Slots::default(), last: 0, debts: Debts::none() }
    }
}

impl Policy for RoundRobin {
    fn admit(&mut self, slot: usize, _share: &Share) -> Result<(), Overbooked> {
        self.admitted.insert(slot);
        Ok(())
    }

    fn leave(&mut self, slot: usize) {
        self.admitted.remove(slot);
        self.debts.forget(slot);
    }

    fn pick(&mut self, _now: Instant, ready: Slots) -> Option<Turn> {
        loop {
            self.last = ready.next_after(self.last)?;
            if let Some(fuel) = self.debts.turn_fuel(self.last, self.slice_fuel) {
                return Some(Turn { slot: self.last, fuel });
            }
        }
    }

    fn ran(&mut self, turn: Turn, fuel_used: u64) {
        self.debts.ran(turn, fuel_used);
    }

    fn ends_turn_with_task(&self) -> bool {
        false
    }

    fn wait_fuel_max(&self, _slot: usize, turn_fuel_max: u64) -> u64 {
        // The turn under way counts as one of them.
        self.admitted.len().saturating_sub(1) as u64 * turn_fuel_max
    }
}
