//! Pre-emptive with yield: in the order in which machines became ready.
//!
//! A turn ends when its fuel is used up, and early when the machine yields, waits or has done its
//! task; it queues up again behind all who were ready by then. A machine that is ready waits for one
//! turn of each other at most. What a turn used beyond its fuel is taken from the machine's next ones.

use alloc::collections::VecDeque;

use tenure_hal::Instant;
use tenure_wire::Share;

use super::{Debts, Overbooked, Policy, Slots, Turn};

/// First come, first served, with a bounded turn.
#[derive(Debug)]
pub struct Preemptive {
    slice_fuel: u64,
    admitted: Slots,
    /// The ready machines, in the order in which they were seen to be.
    queue: VecDeque<usize>,
    queued: Slots,
    /// The machine that had the last turn, and comes after those that became ready during it.
    last: Option<usize>,
    debts: Debts,
}

impl Preemptive {
    /// A policy that knows no machine yet.
    pub fn new(slice_fuel: u64) -> Self {
        Self {
            slice_fuel: slice_fuel.max(1),
            admitted: Slots::default(),
            queue: VecDeque::new(),
            queued: Slots::default(),
            last: None,
            debts: Debts::none(),
        }
    }

    fn queue_up(&mut self, slot: usize) {
        self.queue.push_back(slot);
        self.queued.insert(slot);
    }
}

impl Policy for Preemptive {
    fn admit(&mut self, slot: usize, _share: &Share) -> Result<(), Overbooked> {
        self.admitted.insert(slot);
        Ok(())
    }

    fn leave(&mut self, slot: usize) {
        self.admitted.remove(slot);
        self.debts.forget(slot);
    }

    fn pick(&mut self, _now: Instant, ready: Slots) -> Option<Turn> {
        if !self.queued.without(ready).is_empty() {
            self.queue.retain(|slot| ready.contains(*slot));
            self.queued = self.queued.and(ready);
        }
        let last = self.last.take().filter(|last| ready.contains(*last));
        let new = ready.without(self.queued);
        for slot in new.iter().filter(|slot| Some(*slot) != last) {
            self.queue_up(slot);
        }
        if let Some(last) = last {
            self.queue_up(last);
        }
        loop {
            let slot = self.queue.pop_front()?;
            if let Some(fuel) = self.debts.turn_fuel(slot, self.slice_fuel) {
                self.queued.remove(slot);
                self.last = Some(slot);
                return Some(Turn { slot, fuel });
            }
            self.queue.push_back(slot);
        }
    }

    fn ran(&mut self, turn: Turn, fuel_used: u64) {
        self.debts.ran(turn, fuel_used);
    }

    fn ends_turn_with_task(&self) -> bool {
        true
    }

    fn wait_fuel_max(&self, _slot: usize, turn_fuel_max: u64) -> u64 {
        // The machine that has the turn when it becomes ready queues up behind it.
        self.admitted.len().saturating_sub(1) as u64 * turn_fuel_max
    }
}
