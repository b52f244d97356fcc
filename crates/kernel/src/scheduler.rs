//! The scheduler: which machine has its turn, since when each has waited, and what a turn costs its machine.

use alloc::boxed::Box;
use core::time::Duration;

use tenure_hal::{Flash, Instant, Retained};

use crate::breadcrumb::{self, Breadcrumb};
use crate::cost;
use crate::lifecycle::State;
use crate::machine::Machine;
use crate::parts::Parts;
use crate::policy::{Policy, Slots};
use crate::slot::Slot;
use crate::turn::{Meter, World, run_task};

/// The part of its fuel that a machine may use in critical sections, and for how many turns that can
/// be saved up.
const CRITICAL_PART: u64 = 4;
const CRITICAL_TURNS: u64 = 32;

/// How long a machine's start waits for its compiler, at most.
const COMPILER_WAIT_MAX: Duration = Duration::from_secs(10);
/// How often the compiler is asked meanwhile.
const COMPILER_ASKED_EVERY: Duration = Duration::from_millis(20);

/// A turn that a machine had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTurn {
    /// The machine's slot.
    pub slot: Slot,
    /// The fuel it took.
    pub fuel: u64,
    /// Whether all of that was the vm's, for the machine's own instructions: no host call, no engine.
    pub is_plain: bool,
    /// How long the machine had been ready.
    pub waited: Duration,
}

/// The policy, with what it is asked by.
pub(crate) struct Scheduler {
    pub(crate) policy: Box<dyn Policy>,
    slice_fuel: u64,
    pub(crate) last_turn: Option<LastTurn>,
    /// Start of the last turn, if nothing but it has happened since.
    turn_began: Option<Instant>,
    /// Memory that outlasts resets, in which stands who runs.
    pub(crate) retained: Option<Box<dyn Retained>>,
}

impl Scheduler {
    /// A scheduler of `policy`, which gives turns of `slice_fuel`.
    pub(crate) const fn new(policy: Box<dyn Policy>, slice_fuel: u64) -> Self {
        Self { policy, slice_fuel, last_turn: None, turn_began: None, retained: None }
    }

    /// The most fuel that one turn takes.
    pub(crate) const fn turn_fuel_max(&self) -> u64 {
        self.slice_fuel + cost::HOST_CALL_MAX
    }

    /// The most fuel that is burnt between a machine's being ready and its turn.
    pub(crate) fn wait_fuel_max(&self, slot: Slot) -> u64 {
        self.policy.wait_fuel_max(slot.index(), self.turn_fuel_max())
    }

    /// Gives the machine whose turn it is its turn; returns whether there was one.
    pub(crate) fn run_turn<F: Flash>(
        &mut self,
        parts: &mut Parts<F>,
        world: &mut World<'_>,
    ) -> bool {
        let ready = self.ready(parts, world.now);
        let picked = self.policy.pick(world.now, ready);
        let picked = picked.and_then(|share| Some((share, Slot::new(share.slot)?)));
        let Some((share, slot)) = picked else {
            self.turn_began = None;
            return false;
        };
        #[cfg(feature = "journal")]
        parts.begin_journal(slot, world.now);
        let Some(machine) = parts.machines.known_mut(slot) else { return false };
        let waited = begin_turn(machine, world.now);
        let critical = machine.critical;
        if let Some(retained) = &mut self.retained {
            retained.write(&Breadcrumb(machine.id).to_bytes());
        }
        self.turn_began = Some(world.now);
        let fuel = critical.map_or(share.fuel, |(_, left)| share.fuel.min(left));
        #[cfg(feature = "journal")]
        let fuel = parts.turn_fuel(fuel);
        let mut meter = Meter::new(fuel);
        let keeps_turn = !self.policy.ends_turn_with_task();
        while run_task(parts, slot, &mut meter, world) && keeps_turn && meter.left() > 0 {}
        let used = meter.used_of(fuel);
        self.policy.ran(share, used);
        #[cfg(feature = "profile")]
        parts.profile_turn(slot, used);
        if let Some(machine) = parts.machines.known_mut(slot) {
            self.account(machine, world.now, used, critical.is_some());
            machine.count_turn(used);
        }
        #[cfg(feature = "journal")]
        parts.end_turn_of_journal(slot, used);
        if let Some(retained) = &mut self.retained {
            breadcrumb::wipe(&mut **retained);
        }
        self.last_turn = Some(LastTurn { slot, fuel: used, is_plain: meter.is_plain, waited });
        true
    }

    /// Puts the time of the turn before this one down to the machine that had it.
    pub(crate) fn bill_last_turn<F: Flash>(&self, parts: &mut Parts<F>, now: Instant) {
        // No turn has been since the device began, or since it was billed.
        let (Some(began), Some(turn)) = (self.turn_began, self.last_turn) else { return };
        // It may have been removed since.
        if let Some(machine) = parts.machines.get_mut(turn.slot) {
            machine.usage.run_us += now.since(began).as_micros() as u64;
        }
    }

    /// When there is something to do by itself, if no machine is ready.
    pub(crate) fn next_event<F: Flash>(
        &self,
        parts: &mut Parts<F>,
        now: Instant,
    ) -> Option<Instant> {
        let ready = |machine: &&Machine| machine.state == State::Ready;
        let throttled = parts.machines.iter().filter(ready);
        let throttled =
            throttled.filter_map(|machine| machine.meters.unthrottled_at(self.slice_fuel)).min();
        let compiling =
            parts.machines.iter().filter(ready).any(|machine| machine.compiling_since.is_some());
        let compiling = compiling.then(|| now + COMPILER_ASKED_EVERY);
        let slots = parts.machines.iter().filter(ready).map(|machine| machine.slot.index());
        let slots: Slots = slots.collect();
        let residence = parts.residence(now);
        let swapped = slots.iter().filter_map(Slot::new);
        let swapped = swapped.filter_map(|slot| residence.waits_for_ram(slot)).min();
        [throttled, swapped, compiling, parts.next_timer()].into_iter().flatten().min()
    }

    /// The ready machines. A machine that became ready during the last turn is stamped with that turn's
    /// start.
    fn ready<F: Flash>(&self, parts: &mut Parts<F>, now: Instant) -> Slots {
        let mut ready = Slots::default();
        let last = self.last_turn.map(|turn| turn.slot);
        let during_last_turn = self.turn_began.unwrap_or(now);
        for machine in parts.machines.iter_mut().filter(|machine| machine.state == State::Ready) {
            if machine.meters.throttles(now, self.slice_fuel) {
                machine.ready_since = None;
                continue;
            }
            ready.insert(machine.slot.index());
            let since = if last == Some(machine.slot) { now } else { during_last_turn };
            machine.ready_since.get_or_insert(since);
        }
        let waits_for_ram = |parts: &mut Parts<F>, slot| {
            parts.config.swap_bytes_max > 0 && parts.residence(now).waits_for_ram(slot).is_some()
        };
        for slot in ready.iter().filter_map(Slot::new) {
            if waits_for_ram(parts, slot) {
                ready.remove(slot.index());
                if let Some(machine) = parts.machines.known_mut(slot) {
                    machine.ready_since = None;
                }
            } else if waits_for_compiler(parts, slot, now) {
                ready.remove(slot.index());
            }
        }
        ready
    }

    /// Puts the fuel of a turn down to its machine, and gives it the tier of its next turn: a critical
    /// section begins with the turn after the one that asked for it, and ends when its fuel is used.
    fn account(&mut self, machine: &mut Machine, now: Instant, used: u64, was_critical: bool) {
        machine.fuel_used += used;
        if let Some(fuel) = &mut machine.meters.fuel {
            fuel.charge(now, used);
        }
        if was_critical {
            machine.critical_fuel = machine.critical_fuel.saturating_sub(used);
            machine.critical =
                machine.critical.map(|(tier, left)| (tier, left.saturating_sub(used)));
        } else {
            let saved_max = CRITICAL_TURNS * self.slice_fuel;
            machine.critical_fuel = (machine.critical_fuel + used / CRITICAL_PART).min(saved_max);
        }
        machine.critical = machine.critical.filter(|(_, left)| *left > 0);
        let tier = machine.critical.map_or(machine.record.share.tier, |(tier, _)| tier);
        self.policy.set_tier(machine.slot.index(), tier);
    }
}

/// Begins a turn of `machine`; returns how long it has waited for it.
fn begin_turn(machine: &mut Machine, now: Instant) -> Duration {
    let waited = machine.ready_since.take().map_or(Duration::ZERO, |since| now.since(since));
    machine.waited_max = machine.waited_max.max(waited);
    machine.ran_at = now;
    waited
}

/// Whether the machine in `slot` doesn't start yet because the board's engine is being prepared for
/// it. Once that has taken [`COMPILER_WAIT_MAX`], the vm runs the machine.
fn waits_for_compiler<F: Flash>(parts: &mut Parts<F>, slot: Slot, now: Instant) -> bool {
    let is_compiling = parts.residence(now).is_compiling(slot);
    let Some(machine) = parts.machines.known_mut(slot) else { return false };
    if !is_compiling {
        machine.compiling_since = None;
        return false;
    }
    let waits = now.since(*machine.compiling_since.get_or_insert(now)) < COMPILER_WAIT_MAX;
    if waits {
        machine.ready_since = None;
    }
    waits
}
