//! Playing a journal: the machine runs as far as the next record, and is told what that says.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use tenure_hal::{Entropy, EntropyError, Flash, Instant};
use tenure_journal::{Mark, Record, Why, Woken as WokenRecord};
use tenure_store::ValueKind;
use tenure_wire::{MachineId, NoResult};
use zeroize::Zeroizing;

use super::script::{Difference, Diverged};
use crate::calls::CallId;
use crate::conduct::Conduct;
use crate::cost;
use crate::fault::{Fault, FaultKind};
use crate::kernel::Kernel;
use crate::lifecycle::{Event, State};
use crate::machine::{Machine, Wait, Woken};
use crate::parts::Parts;
use crate::program::Program;
use crate::slot::Slot;
use crate::task::Task;
use crate::turn::World;

/// Fuel that a turn has beyond what the machine needs up to a stop of its own.
const BEYOND_STOP: u64 = 1_000;
/// How near to a point at which the machine has to stand a turn with plenty of fuel may come: it goes too far by less than
/// the window between two looks at the fuel, which is 128 units ([`Instance::run`](tenure_vm::Instance::run)).
const NEAR: u64 = 256;
/// From there on it has less fuel than a window, and stops at the first instruction for which there is none.
const STEP: u64 = 64;

/// One step of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The machine had a turn.
    Ran,
    /// This happened to the machine. Records that answer host calls are taken while it runs.
    Took(Record),
    /// There are no more records.
    End,
}

/// Why a journal can't be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplayable {
    /// There is no such machine.
    NoMachine,
    /// The state at the journal's beginning isn't one of this code, or doesn't fit its budget.
    State,
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMachine => "there is no such machine",
            Self::State => {
                "the machine's state at the journal's beginning isn't one of this package's code and this build"
            }
        })
    }
}

impl core::error::Error for Unplayable {}

/// A source that has nothing: random bytes come from the journal.
struct Nothing;

impl Entropy for Nothing {
    fn fill(&mut self, _: &mut [u8]) -> Result<(), EntropyError> {
        Err(EntropyError)
    }
}

/// The fuel that so many turns cost beside what machines do in them.
pub const fn fuel_of_turns(turns: u64) -> u64 {
    turns.saturating_mul(cost::TURN)
}

/// The fuel of a turn by which the machine comes nearer to a point that is `left` units of fuel away, and doesn't pass it.
fn towards(left: u64, slice_fuel: u64) -> u64 {
    match left.checked_sub(NEAR) {
        Some(far @ 1..) => far.min(slice_fuel),
        _ => left.min(STEP),
    }
}

/// The way to the next record.
enum Due {
    /// It happens now.
    Now,
    /// The machine has to run before, with so much fuel at most.
    Run(u64),
}

/// A kernel whose only machine does again what its journal says.
pub struct Player<F> {
    kernel: Kernel<F>,
    id: MachineId,
}

impl<F: Flash> Player<F> {
    /// Makes the only machine of `kernel`, which was just installed, one whose journal is played, from that state on.
    ///
    /// # Errors
    /// As [`Unplayable`] says.
    pub fn begin(mut kernel: Kernel<F>, id: MachineId, state: &[u8]) -> Result<Self, Unplayable> {
        let slot = kernel.parts.machines.with_id(id).ok_or(Unplayable::NoMachine)?.slot;
        kernel.parts.script = Some(Box::default());
        kernel.parts.take_up_state(slot, state).ok_or(Unplayable::State)?;
        if let Some(machine) = kernel.parts.machines.get_mut(slot) {
            machine.timers.clear();
        }
        Ok(Self { kernel, id })
    }

    /// The kernel with the machine.
    pub fn kernel(&self) -> &Kernel<F> {
        &self.kernel
    }

    /// The kernel with the machine, to be used beside what the journal says.
    pub fn kernel_mut(&mut self) -> &mut Kernel<F> {
        &mut self.kernel
    }

    /// The id of the machine.
    pub fn machine(&self) -> MachineId {
        self.id
    }

    /// Adds records to what is played.
    pub fn add(&mut self, records: Vec<Record>) {
        self.kernel.parts.script.get_or_insert_default().add(records);
    }

    /// The fuel that the machine has used since [`Player::begin`], without what its turns cost.
    pub fn fuel(&self) -> u64 {
        let paid = self.kernel.parts.script.as_ref().map_or(0, |script| script.total);
        let owed: u64 = self.kernel.parts.machines.iter().map(Machine::owed).sum();
        paid.saturating_add(owed)
    }

    /// Does the next thing of the journal: lets the machine run, with `slice_fuel` at most, or has the next record happen
    /// to it. Log lines of the machine wait as effects.
    ///
    /// # Errors
    /// [`Diverged`]; nothing that follows means anything then.
    pub fn step(&mut self, slice_fuel: u64) -> Result<Step, Diverged> {
        let Some(slot) = self.kernel.parts.machines.with_id(self.id).map(|machine| machine.slot)
        else {
            return Err(self.diverged(None, Difference::Impossible));
        };
        self.kernel.parts.revive(slot);
        let due = self.kernel.parts.due(slot, slice_fuel.max(1));
        match due.map_err(|difference| self.diverged(Some(slot), difference))? {
            None => Ok(Step::End),
            Some(Due::Run(fuel)) => self.run(slot, fuel).map(|()| Step::Ran),
            Some(Due::Now) => {
                let script = self.kernel.parts.script.as_mut();
                let Some(record) = script.and_then(|script| script.take()) else {
                    return Ok(Step::End);
                };
                let applied = self.apply(slot, &record);
                applied.map_err(|difference| self.diverged(Some(slot), difference))?;
                Ok(Step::Took(record))
            }
        }
    }

    /// Gives the machine a turn.
    fn run(&mut self, slot: Slot, fuel: u64) -> Result<(), Diverged> {
        let owed = self.kernel.parts.machines.get(slot).map_or(0, Machine::owed);
        if let Some(script) = &mut self.kernel.parts.script {
            script.turn_fuel = Some(fuel.saturating_add(owed).saturating_add(cost::TURN));
        }
        let mut world = World { now: Instant::BOOT, unix_time: None, entropy: &mut Nothing };
        let ran = self.kernel.scheduler.run_turn(&mut self.kernel.parts, &mut world);
        let used = self.kernel.scheduler.last_turn.filter(|_| ran).map_or(0, |turn| turn.fuel);
        let difference = self.kernel.parts.script.as_mut().and_then(|script| {
            script.total = script.total.saturating_add(used.saturating_sub(cost::TURN));
            script.difference.take()
        });
        match difference {
            Some(difference) => Err(self.diverged(Some(slot), difference)),
            None if !ran => Err(self.diverged(Some(slot), Difference::Endless)),
            None => Ok(()),
        }
    }

    /// Has a record happen to the machine.
    fn apply(&mut self, slot: Slot, record: &Record) -> Result<(), Difference> {
        match record {
            Record::Task(task) => {
                let event = task.event.clone();
                let parameter = event.as_ref().map(|event| event.payload.clone());
                let function = task.function.clone();
                let queued = Task {
                    caller: task.caller,
                    callback_of: task.callback_of.map(CallId),
                    ..Task::of_kernel(function, parameter.or_else(|| task.parameter.clone()))
                };
                if let Some(script) = &mut self.kernel.parts.script
                    && event.is_some()
                {
                    (script.event, script.handles) = (event, true);
                }
                if let Some(machine) = self.kernel.parts.machines.get_mut(slot) {
                    machine.enqueue(queued);
                }
                Ok(())
            }
            Record::Woken(woken) => {
                self.kernel.parts.wake_played(slot, woken);
                Ok(())
            }
            Record::Suspended { .. } => {
                self.kernel.parts.forget_dead_slots(slot);
                Ok(())
            }
            Record::Stopped { why, .. } => {
                self.kernel.parts.stop_played(slot, *why);
                Ok(())
            }
            Record::Amended { path, value, .. } => {
                let name = self
                    .kernel
                    .parts
                    .machines
                    .known(slot)
                    .map(|machine| machine.record.name.clone());
                let name = name.ok_or(Difference::Impossible)?;
                let mut tenancy = self.kernel.tenancy(Instant::BOOT);
                let amended = match value {
                    None => tenancy.delete_values(&name, path).map(drop),
                    Some((is_text, bytes)) => {
                        let kind = if *is_text { ValueKind::Text } else { ValueKind::Bytes };
                        tenancy.set_value(&name, path, kind, bytes)
                    }
                };
                amended.map_err(|_| Difference::Impossible)
            }
            Record::Charged { flash_bytes, .. } => {
                if let Some(machine) = self.kernel.parts.machines.get_mut(slot) {
                    let usage = &mut machine.usage;
                    usage.flash_writes += 1;
                    usage.flash_bytes = usage.flash_bytes.saturating_add(*flash_bytes);
                }
                Ok(())
            }
            Record::Mark(mark) => {
                let found = self.fuel().saturating_add(fuel_of_turns(mark.turns));
                if found == mark.total {
                    Ok(())
                } else {
                    Err(Difference::Total { recorded: mark.total, found })
                }
            }
            // These are taken by host calls alone.
            _ => Err(Difference::Impossible),
        }
    }

    /// A difference, with the place in which the machine is.
    fn diverged(&self, slot: Option<Slot>, difference: Difference) -> Diverged {
        let machine = slot.and_then(|slot| self.kernel.parts.machines.get(slot));
        let place = machine.and_then(|machine| match &machine.instance {
            Some(Program::Image(instance)) => {
                let image = self.kernel.parts.storage.image(machine)?;
                let host = usize::from(instance.is_in_host_call());
                let frame = instance.innermost(&image, host + 1).into_iter().nth(host)?;
                Some((frame.function, frame.offset))
            }
            // A difference in a host call stops the machine.
            _ => {
                let fault = machine.last_fault?;
                Some((fault.function?, fault.offset?))
            }
        });
        let records = self.kernel.parts.script.as_ref().map_or(0, |script| script.taken);
        Diverged { difference, records, place }
    }
}

impl<F: Flash> Parts<F> {
    /// Lets a machine that was stopped begin anew at once: its next task says when it did.
    fn revive(&mut self, slot: Slot) {
        let Some(machine) = self.machines.get_mut(slot) else { return };
        if matches!(machine.state, State::BackedOff | State::Banned) {
            machine.conduct = Conduct::default();
            machine.restart_at = None;
            machine.queue.clear();
            machine.step(Event::Restarted);
            machine.settle_queue();
        }
    }

    /// The way to the next record, if there is one.
    fn due(&self, slot: Slot, slice_fuel: u64) -> Result<Option<Due>, Difference> {
        let Some(machine) = self.machines.get(slot) else { return Err(Difference::Impossible) };
        let Some(next) = self.script.as_ref().and_then(|script| script.next()) else {
            return Ok(None);
        };
        let (state, used) = (machine.state, machine.task_fuel());
        let is_ready = state == State::Ready;
        let nothing_begun = machine.current.is_none();
        let order = Difference::Order { next: next.kind(), state: state.as_str() };
        // A point of the task under way, or 0 for none.
        let at = |fuel: u64| match fuel {
            0 if is_ready => Ok(Due::Run(slice_fuel)),
            0 if nothing_begun => Ok(Due::Now),
            0 => Err(order),
            _ if used == fuel => Ok(Due::Now),
            _ if is_ready && used < fuel => Ok(Due::Run(towards(fuel - used, slice_fuel))),
            _ => Err(Difference::TaskFuel { recorded: fuel, found: used }),
        };
        let due = match next {
            Record::Task(_) if state == State::Idle => Ok(Due::Now),
            Record::Woken(_) if state == State::Waiting => Ok(Due::Now),
            Record::Amended { fuel, .. }
            | Record::Charged { fuel, .. }
            | Record::Suspended { fuel }
            | Record::Mark(Mark { fuel, .. }) => at(*fuel),
            // Its program couldn't be made or brought back.
            Record::Stopped {
                fuel: 0,
                why: Why::Memory | Why::Image | Why::Suspended | Why::Place,
            } if nothing_begun => Ok(Due::Now),
            Record::Stopped { fuel, why } if !why.is_computed() => at(*fuel),
            Record::Stopped { fuel, .. } if is_ready && used <= *fuel => {
                Ok(Due::Run((fuel - used).saturating_add(BEYOND_STOP).min(slice_fuel)))
            }
            Record::Stopped { fuel, .. } if is_ready => {
                Err(Difference::TaskFuel { recorded: *fuel, found: used })
            }
            _ if is_ready => Ok(Due::Run(slice_fuel)),
            _ => Err(order),
        };
        due.map(Some)
    }

    /// Answers the host call that the machine waits in.
    fn wake_played(&mut self, slot: Slot, record: &WokenRecord) {
        let Self { machines, script, .. } = self;
        let Some(machine) = machines.get_mut(slot) else { return };
        let status = record.status;
        let bytes = record.bytes.clone();
        let copy = match machine.wait {
            Some(Wait::Keys(_, into) | Wait::Secret(_, into))
                if status.is_some_and(|status| status >= 0) =>
            {
                bytes.map(|bytes| (into, Zeroizing::new(bytes)))
            }
            _ => {
                if let Some(bytes) = bytes {
                    machine.call_result = bytes;
                }
                None
            }
        };
        if let (Some(script), Some(event)) = (script, &record.event) {
            script.event = Some(event.clone());
        }
        machine.wake(Woken { status, copy });
    }

    /// Stops the machine for a reason that lies outside it.
    fn stop_played(&mut self, slot: Slot, why: Why) {
        let kind = match why {
            Why::Ended => {
                self.lose_owed(slot);
                self.end(Instant::BOOT, slot, Event::Ended, NoResult::LeaseOver);
                if let Some(machine) = self.machines.get_mut(slot) {
                    machine.renew();
                }
                None
            }
            Why::TaskFuel => Some(FaultKind::TaskFuel),
            Why::Memory => Some(FaultKind::Memory),
            Why::Suspended => Some(FaultKind::Suspended),
            Why::Place => Some(FaultKind::Place),
            Why::Watchdog => Some(FaultKind::Watchdog),
            _ => Some(FaultKind::Image),
        };
        if let Some(script) = &mut self.script {
            (script.event, script.handles) = (None, false);
            script.stops = kind.is_some();
        }
        if let Some(kind) = kind {
            self.fault(Instant::BOOT, slot, Fault::of(kind));
        }
    }
}

impl<F: Flash> Parts<F> {
    /// The machine in `slot` is stopped by a fault: that is written down, or held against what was.
    pub(crate) fn journal_fault(&mut self, slot: Slot, kind: FaultKind) {
        let Some(machine) = self.machines.get_mut(slot) else { return };
        let (fuel, why) = (machine.task_fuel(), super::why(kind));
        match &mut self.script {
            None => machine.note_stop(why),
            Some(script) => {
                script.stopped(fuel, why);
                (script.event, script.handles) = (None, false);
            }
        }
        self.lose_owed(slot);
    }

    /// Counts what the machine in `slot` owes, which goes with its memory, if a journal is played.
    fn lose_owed(&mut self, slot: Slot) {
        let owed = self.machines.get(slot).map_or(0, Machine::owed);
        if let Some(script) = &mut self.script {
            script.total = script.total.saturating_add(owed);
        }
    }

    /// The fuel of a turn: the script's, if a journal is played.
    pub(crate) fn turn_fuel(&mut self, fuel: u64) -> u64 {
        let script = self.script.as_mut();
        script.and_then(|script| script.turn_fuel.take()).unwrap_or(fuel)
    }
}
