//! What machines spend their fuel on: each run of a program is repeated on a copy, an instruction at a time.
//!
//! Invariants:
//! - What is told of a machine adds up to what its turns took, and to what its program still owes.
//! - The machine itself runs as it would without anybody who asks.

use alloc::boxed::Box;

use litemap::LiteMap;
use tenure_hal::Flash;
use tenure_vm::{Frame, Image, Instance};
use tenure_wire::MachineId;

use crate::machine::Machine;
use crate::parts::Parts;
use crate::program::Program;
use crate::record::MachineRecord;
use crate::slot::Slot;

/// How many steps in a row may take nothing: memory that is committed at the first access to it is such a case.
const STANDING_MAX: u32 = 8;

/// A leg of a program's way: from where a turn or a host call let it go on to where it stopped next.
pub struct Leg<'a> {
    /// The machine.
    pub machine: &'a MachineRecord,
    /// The function that its task calls, if one is under way.
    pub function: Option<&'a str>,
    /// Its code.
    pub image: &'a Image<'a>,
    /// The program at the leg's beginning.
    pub before: &'a Instance,
    /// The program at its end.
    pub after: &'a Instance,
    /// The fuel that it had, in units.
    pub fuel: u64,
    /// The part of that which it paid, in units.
    pub paid: u64,
}

/// Somebody who is told what machines do, and what they spend their fuel on.
pub trait Profiler: Send {
    /// A machine's program ran; returns whether what it spent is to be told by instructions, too.
    fn ran(&mut self, leg: &Leg<'_>) -> bool {
        let _ = leg;
        true
    }

    /// A machine has spent so many units on an instruction or a host call, where these calls led, innermost first: of
    /// each the function and an offset in its image code, which in the innermost is the instruction's and in others
    /// lies behind the call. No calls stand for what its turns and tasks cost beside.
    fn spent(&mut self, machine: &MachineRecord, calls: &[Frame], units: u64);
}

/// The profiler, if there is one, and what it was told.
#[derive(Default)]
pub(crate) struct Profile {
    pub(crate) profiler: Option<Box<dyn Profiler>>,
    /// Of the turn under way, in units that were paid.
    told: u64,
    /// What was told of each machine and isn't paid yet.
    owed: LiteMap<MachineId, u64>,
}

impl Profile {
    /// A copy of a program that is about to run, if somebody wants to know what it does.
    pub(crate) fn copy(&self, program: &Program) -> Option<Instance> {
        match program {
            Program::Image(instance) if self.profiler.is_some() => Some(Instance::clone(instance)),
            _ => None,
        }
    }

    /// The program ran from where its `copy` is, with so much fuel, of which so much is `left`, in units.
    pub(crate) fn ran(
        &mut self,
        machine: &Machine,
        image: Option<&Image<'_>>,
        (copy, program): (Option<Instance>, &Program),
        (fuel, left): (u64, u64),
    ) {
        let (Some(profiler), Some(mut copy), Program::Image(now), Some(image)) =
            (&mut self.profiler, copy, program, image)
        else {
            return;
        };
        let units = fuel - left;
        let leg = Leg {
            machine: &machine.record,
            function: machine.current.as_ref().map(|running| running.task.function.as_str()),
            image,
            before: &copy,
            after: now,
            fuel,
            paid: units,
        };
        if !profiler.ran(&leg) {
            return;
        }
        self.told += units;
        let told_before = self.owed.remove(&machine.id).unwrap_or(0).min(copy.owed());
        self.owed.insert(machine.id, now.owed());
        let mut untold = (units + now.owed()).saturating_sub(told_before);
        let (mut is_first, mut standing) = (true, 0);
        while untold > 0 {
            let calls = copy.backtrace(image);
            let (took, outcome) = copy.step(image);
            let took =
                if core::mem::take(&mut is_first) { took - told_before.min(took) } else { took };
            standing = if took == 0 { standing + 1 } else { 0 };
            let is_last = outcome.is_some() || standing > STANDING_MAX;
            let took = if is_last { untold } else { took.min(untold) };
            if took > 0 {
                profiler.spent(&machine.record, &calls, took);
            }
            untold -= took;
        }
    }

    /// The host call at which the program waits took so many units.
    fn called(
        &mut self,
        machine: &Machine,
        image: Option<&Image<'_>>,
        program: &Program,
        units: u64,
    ) {
        let Some(profiler) = &mut self.profiler else { return };
        let calls = match (program, image) {
            (Program::Image(instance), Some(image)) => instance.backtrace(image),
            _ => return,
        };
        self.told += units;
        profiler.spent(&machine.record, &calls, units);
    }

    /// A turn is over that took so many units in all, of the machine if it is still there.
    fn turn_ended(&mut self, machine: Option<&Machine>, units: u64) {
        let rest = units.saturating_sub(core::mem::take(&mut self.told));
        if let (Some(profiler), Some(machine)) = (&mut self.profiler, machine)
            && rest > 0
        {
            profiler.spent(&machine.record, &[], rest);
        }
    }
}

impl<F: Flash> Parts<F> {
    /// Tells of the host call at which a program waits, which took so many units.
    pub(crate) fn profile_call(&mut self, machine: &Machine, program: &Program, units: u64) {
        let Self { storage, processors, .. } = self;
        processors.profile.called(machine, storage.image(machine).as_ref(), program, units);
    }

    /// Tells of the rest of a turn, which took so many units in all.
    pub(crate) fn profile_turn(&mut self, slot: Slot, units: u64) {
        self.processors.profile.turn_ended(self.machines.known(slot), units);
    }
}
