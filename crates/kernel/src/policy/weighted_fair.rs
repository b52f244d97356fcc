//! Weighted fair: fuel in proportion to tiers, by start-time fair queueing (Goyal, Vin and Cheng,
//! *Start-time Fair Queuing*, SIGCOMM 1996, §2).
//!
//! Each turn has a start tag, `S = max(v, F)`, and a finish tag, `F = S + fuel / tier`; who has the
//! smallest start tag runs, and the virtual time `v` is the start tag of the turn under way. So what
//! one doesn't use goes round among the others, and a machine that slept starts at `v`: it has saved
//! nothing up. The length of a turn needn't be known before it, which is why this and not WFQ.

use tenure_hal::Instant;
use tenure_wire::Share;

use super::{Overbooked, Policy, SLOTS_MAX, Slots, Turn};

/// Virtual time in a unit of fuel at tier 1, so that a tier divides it finely.
const SCALE: u64 = 64;
/// Tags are brought back to small numbers beyond this.
const REBASE_AT: u64 = 1 << 60;

/// Fuel by tier.
#[derive(Debug)]
pub struct WeightedFair {
    slice_fuel: u64,
    admitted: Slots,
    ready: Slots,
    /// The virtual time.
    now: u64,
    flows: [Flow; SLOTS_MAX],
    last: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// The tier it is granted, and the highest one it may have for a while.
    granted: (u16, u16),
    /// The tier in force.
    tier: u16,
    /// The start tag of its next turn, if it is ready.
    start: u64,
    /// The finish tag of its last turn.
    finish: u64,
}

impl WeightedFair {
    /// A policy that knows no machine yet.
    pub fn new(slice_fuel: u64) -> Self {
        let (admitted, ready) = (Slots::default(), Slots::default());
        Self { slice_fuel, admitted, ready, now: 0, flows: [Flow::default(); SLOTS_MAX], last: 0 }
    }

    fn rebase(&mut self) {
        for flow in &mut self.flows {
            flow.start = flow.start.saturating_sub(self.now);
            flow.finish = flow.finish.saturating_sub(self.now);
        }
        self.now = 0;
    }
}

impl Policy for WeightedFair {
    fn admit(&mut self, slot: usize, share: &Share) -> Result<(), Overbooked> {
        let flow = self.flows.get_mut(slot).ok_or(Overbooked)?;
        self.admitted.insert(slot);
        flow.granted = (share.tier.max(1), share.tier_max.max(share.tier).max(1));
        flow.tier = flow.granted.0;
        Ok(())
    }

    fn leave(&mut self, slot: usize) {
        self.admitted.remove(slot);
        self.ready.remove(slot);
        if let Some(flow) = self.flows.get_mut(slot) {
            *flow = Flow::default();
        }
    }

    fn pick(&mut self, _now: Instant, ready: Slots) -> Option<Turn> {
        for slot in ready.without(self.ready).iter() {
            let flow = &mut self.flows[slot];
            flow.start = flow.finish.max(self.now);
        }
        self.ready = ready;
        // Of those with the same tag, the next after the last one, so that nobody is preferred.
        let distance = |slot: &usize| (slot + SLOTS_MAX - self.last - 1) % SLOTS_MAX;
        let slot = ready.iter().min_by_key(|slot| (self.flows[*slot].start, distance(slot)))?;
        self.last = slot;
        self.now = self.flows[slot].start;
        if self.now > REBASE_AT {
            self.rebase();
        }
        Some(Turn { slot, fuel: self.slice_fuel })
    }

    fn ran(&mut self, turn: Turn, fuel_used: u64) {
        let flow = &mut self.flows[turn.slot];
        let span = fuel_used.saturating_mul(SCALE) / u64::from(flow.tier.max(1));
        flow.finish = flow.start.saturating_add(span.max(1));
        flow.start = flow.finish;
    }

    fn set_tier(&mut self, slot: usize, tier: u16) {
        if let Some(flow) = self.flows.get_mut(slot) {
            flow.tier = tier.clamp(1, flow.granted.1.max(1));
        }
    }

    fn ends_turn_with_task(&self) -> bool {
        false
    }

    fn wait_fuel_max(&self, slot: usize, turn_fuel_max: u64) -> u64 {
        // Its start tag is at most one turn's span at its own tier ahead of the virtual time
        // (`S - v <= l / w`), and until `v` gets there each other begins turns of `w' (S - v)` fuel at
        // most, and one more (Goyal et al., theorem 4, with the capacity that fuel counts exactly).
        let own = u64::from(self.flows.get(slot).map_or(1, |flow| flow.granted.0.max(1)));
        let others = self.admitted.iter().filter(|other| *other != slot);
        others
            .map(|other| {
                let weight = u64::from(self.flows[other].granted.1.max(1));
                turn_fuel_max + turn_fuel_max.saturating_mul(weight).div_ceil(own)
            })
            .sum()
    }
}
