//! Swapping: machines that don't fit into RAM together take turns there.
//!
//! Invariants:
//! - A machine whose turn it is has all the memory that its budget promises: others go to flash until
//!   it has.
//! - Who came into RAM stays for [`Config::swap_residence`](crate::Config) at least, so that machines
//!   which want the processor in turn don't wear the flash out; who wants in meanwhile waits.
//! - Those that don't want the processor go first, and of them who ran least lately.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_wire::Budget;

use crate::code::CodeError;
use crate::cost;
use crate::effect::LogLevel;
use crate::install::InstallError;
use crate::kernel::Kernel;
use crate::lifecycle::State;
use crate::machine::Machine;
use crate::program::Program;

/// What a suspended machine takes in flash beside its memory and stack, rounding up to sectors aside.
const OVERHEAD: u64 = 1024;
/// How long nobody is swapped, at least, after the flash failed.
const SWAP_PAUSE: Duration = Duration::from_secs(1);

impl<F: Flash> Kernel<F> {
    /// Checks that the device can keep the promise of `budget`, whatever the others use of theirs: in
    /// RAM, or in RAM by turns with what is set aside in flash.
    pub(crate) fn check_memory(&self, slot: usize, budget: &Budget) -> Result<(), InstallError> {
        let others = self.machines.iter().enumerate().filter(|(other, _)| *other != slot);
        let others = others.filter_map(|(_, machine)| machine.as_ref());
        let others = others.filter(|machine| !machine.is_removed);
        let wanted = u64::from(budget.memory_bytes) + u64::from(budget.stack_bytes);
        let promises: Vec<u64> = others.map(|one| one.memory_promised()).chain([wanted]).collect();
        let room = self.config.memory_bytes_max as u64;
        let (sum, largest) =
            promises.iter().fold((0, 0), |(sum, most), one| (sum + one, most.max(*one)));
        if sum <= room {
            return Ok(());
        }
        // While the largest comes in, those that make room for it are in flash with the others.
        let sectors = u64::from(self.code.sector_bytes()) + OVERHEAD;
        let in_flash = sum - room + largest + promises.len() as u64 * sectors;
        let fits = largest <= room && in_flash <= u64::from(self.config.swap_bytes_max);
        if fits { Ok(()) } else { Err(InstallError::NoMemory) }
    }

    /// When the machine in `slot` can be in RAM, if it can't be now.
    pub(crate) fn waits_for_ram(&self, slot: usize, now: Instant) -> Option<Instant> {
        if self.config.swap_bytes_max == 0 {
            return None;
        }
        let mut missing = self.missing(slot)?;
        if self.swap_again_at > now {
            return Some(self.swap_again_at);
        }
        let mut residents: Vec<(Instant, u64)> = self
            .residents(slot)
            .map(|(_, machine)| (self.may_leave_at(machine), machine.memory_promised()))
            .collect();
        residents.sort_unstable();
        for (leaves_at, bytes) in residents {
            missing = missing.saturating_sub(bytes);
            if missing == 0 {
                return (leaves_at > now).then_some(leaves_at);
            }
        }
        // What an engine runs can't be suspended; perhaps it stops.
        Some(now + self.config.swap_residence)
    }

    /// Sends machines to flash until the one in `slot` has room in RAM, and gives whether it has.
    ///
    /// Where the flash fails, whoever wants in isn't to blame: it waits, and tries again later.
    pub(crate) fn make_room(&mut self, slot: usize, now: Instant) -> bool {
        if self.config.swap_bytes_max == 0 {
            return true;
        }
        while self.missing(slot).is_some() {
            let leaving = self
                .residents(slot)
                .filter(|(_, machine)| self.may_leave_at(machine) <= now)
                .min_by_key(|(_, machine)| (machine.state == State::Ready, machine.ran_at))
                .map(|(one, machine)| (one, machine.memory_promised()));
            let Some((leaving, bytes)) = leaving else { return false };
            if let Err(error) = self.suspend(leaving) {
                self.swap_again_at = now + self.config.swap_residence.max(SWAP_PAUSE);
                self.log_failed_swap(leaving, now, error);
                return false;
            }
            // Who comes in pays for it: who has nothing to do can't help it.
            if let Some(machine) = self.machine_mut(slot) {
                machine.usage.flash_writes += 1;
                machine.usage.flash_bytes += bytes;
            }
            self.extra_cost += cost::of_swap(bytes);
        }
        true
    }

    fn log_failed_swap(&mut self, leaving: usize, now: Instant, error: CodeError) {
        let Some(name) = self.machine(leaving).map(|machine| machine.record.name.clone()) else {
            return;
        };
        let message = alloc::format!("can't go to flash to make room for another: {error}");
        self.log(now, name, LogLevel::Warning, message);
    }

    /// How much RAM the machine in `slot` lacks for coming in, if it isn't there and lacks any.
    fn missing(&self, slot: usize) -> Option<u64> {
        let machine = self.machine(slot).filter(|machine| machine.instance.is_none())?;
        let free = self.config.memory_bytes_max.saturating_sub(self.memory_in_use()) as u64;
        machine.memory_promised().checked_sub(free).filter(|missing| *missing > 0)
    }

    /// Machines in RAM that can go to flash, but for the one in `slot`.
    fn residents(&self, slot: usize) -> impl Iterator<Item = (usize, &Machine)> {
        let taken = self.machines.iter().enumerate();
        let taken = taken.filter_map(|(other, machine)| Some((other, machine.as_deref()?)));
        taken.filter(move |(other, machine)| {
            *other != slot && matches!(machine.instance, Some(Program::Image(_)))
        })
    }

    fn may_leave_at(&self, machine: &Machine) -> Instant {
        machine.resident_since + self.config.swap_residence
    }
}
