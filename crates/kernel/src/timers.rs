//! Timers: functions that a machine wants called later, or again and again.
//!
//! Invariants:
//! - A machine has [`TIMERS_MAX`] timers at most, one for each function; a timer has at most one call in
//!   its machine's queue, beyond the queue's length.
//! - Timers stand in the store before they are set, so that they outlast a restart of the device. A
//!   timer that fires again and again costs no write when it fires.
//! - A timer fires at its time or up to a tenth of its wait later, one second at most: timers that are due
//!   within that span share one wake-up.
//!
//! A wait counts from when the timer was set, and from the start after a restart of the device. A time
//! of day counts as soon as the device knows it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_store::{SEAL_BYTES, ValueKind};
use tenure_wire::host_call::{GuestBytes, GuestText, HostError};
use tenure_wire::{Digest, MachineId};

use crate::host::{Status, Stop, function_name, read_parameter};
use crate::kernel::{KERNEL_TREE, Kernel};
use crate::lifecycle::State;
use crate::program::Program;
use crate::timer::{First, Timer};

/// The most timers of one machine.
pub(crate) const TIMERS_MAX: usize = 8;
/// The longest parameter of a timer, in bytes.
const PARAMETER_MAX: usize = 64;
/// The shortest time between two calls of one timer, in milliseconds.
const PERIOD_MS_MIN: u32 = 10;
/// The path in the kernel's tree below which timers are kept, by slot.
const TIMERS_PATH: &str = "timers";

impl<F: Flash> Kernel<F> {
    pub(crate) fn host_timer_set(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        (function, parameter): (GuestText, Option<GuestBytes>),
        (first, period_ms): (First, u32),
    ) -> Status {
        let function = function_name(instance, function)?.to_string();
        if parameter.is_some_and(|parameter| parameter.length() > PARAMETER_MAX) {
            return Err(HostError::TooLong.into());
        }
        let parameter = read_parameter(instance, parameter)?;
        if period_ms > 0 && period_ms < PERIOD_MS_MIN {
            return Err(HostError::Invalid.into());
        }
        if !self.has_function(slot, &function) {
            return Err(HostError::NotFound.into());
        }
        let mut timer = Timer { function, parameter, first, period_ms, due: None };
        match first {
            First::After(ms) => timer.due = Some(now + Duration::from_millis(ms.into())),
            First::At(_) => timer.begin(now, self.unix_us(now)),
        }
        let machine = self.machine(slot).ok_or(HostError::NotFound)?;
        let mut timers = machine.timers.clone();
        match timers.iter().position(|known| known.function == timer.function) {
            Some(position) if timers[position].is_same(&timer) => return Ok(0),
            Some(position) => timers[position] = timer,
            None if timers.len() >= TIMERS_MAX => return Err(HostError::Full.into()),
            None => timers.push(timer),
        }
        self.check_flash(slot, now)?;
        self.keep_timers(slot, now, timers)?;
        Ok(0)
    }

    pub(crate) fn host_timer_cancel(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        function: GuestText,
    ) -> Status {
        let function = function_name(instance, function)?;
        let machine = self.machine(slot).ok_or(HostError::NotFound)?;
        let mut timers = machine.timers.clone();
        let position = timers.iter().position(|timer| timer.function == function);
        timers.remove(position.ok_or(HostError::NotFound)?);
        self.check_flash(slot, now)?;
        self.keep_timers(slot, now, timers)?;
        Ok(0)
    }

    /// Writes down the timers of a machine, then takes them into use.
    fn keep_timers(&mut self, slot: usize, now: Instant, timers: Vec<Timer>) -> Result<(), Stop> {
        let machine = self.machine(slot).ok_or(HostError::NotFound)?;
        let bytes = postcard::to_allocvec(&(machine.id, machine.record.package, &timers))
            .map_err(|_| HostError::Device)?;
        debug_assert!(bytes.len() + SEAL_BYTES <= self.store.value_bytes_max());
        let path = timers_path(slot);
        let appended = self.store.record_bytes(KERNEL_TREE, &path, &bytes);
        self.store.set(KERNEL_TREE, &path, ValueKind::Bytes, &bytes)?;
        self.charge_flash(slot, now, appended);
        self.no_timer_before = None;
        if let Some(machine) = self.machine_mut(slot) {
            machine.timers = timers;
        }
        Ok(())
    }

    /// Takes up the timers that the machine in `slot` had set, if it is the same and of the same package.
    pub(crate) fn recall_timers(&mut self, slot: usize, now: Instant) {
        let unix_us = self.unix_us(now);
        let value = self.store.get(KERNEL_TREE, &timers_path(slot)).ok().flatten();
        let known: Option<(MachineId, Digest, Vec<Timer>)> =
            value.and_then(|value| postcard::from_bytes(&value.bytes).ok());
        let Some(machine) = self.machine_mut(slot) else { return };
        let Some((id, package, mut timers)) = known else { return };
        if (id, package) != (machine.id, machine.record.package) {
            return;
        }
        for timer in &mut timers {
            timer.due = None;
            timer.begin(now, unix_us);
        }
        machine.timers = timers;
    }

    /// Hears the time of day; timers that fire by it begin to count, or change when it was set.
    pub(crate) fn hear_time_of_day(&mut self, now: Instant, unix_s: Option<u64>) {
        let Some(unix_us) = unix_s.and_then(|seconds| seconds.checked_mul(1_000_000)) else {
            return;
        };
        let known = self.unix_us(now);
        if known.is_some_and(|known| known.abs_diff(unix_us) <= 2_000_000) {
            return;
        }
        self.booted_unix_us = Some(unix_us.saturating_sub(now.as_micros()));
        for machine in self.machines.iter_mut().flatten() {
            for timer in &mut machine.timers {
                if matches!(timer.first, First::At(_)) {
                    timer.begin(now, Some(unix_us));
                }
            }
        }
        self.no_timer_before = None;
    }

    /// Queues a call for each timer of the machine in `slot` that is due.
    pub(crate) fn fire_timers(&mut self, slot: usize, now: Instant) {
        let is_due = |timer: &Timer| timer.due.is_some_and(|due| due <= now);
        while let Some(machine) = self.machine_mut(slot) {
            let Some(position) = machine.timers.iter().position(is_due) else { return };
            let timer = &mut machine.timers[position];
            let task = timer.task();
            let again = timer.advance(now);
            if !again {
                let mut timers = machine.timers.clone();
                timers.remove(position);
                if self.keep_timers(slot, now, timers.clone()).is_err()
                    && let Some(machine) = self.machine_mut(slot)
                {
                    // It fires again after a restart of the device.
                    machine.timers = timers;
                }
            }
            let Some(machine) = self.machine_mut(slot) else { return };
            let waits = machine.queue.iter().any(|waiting| waiting.is_same_call(&task));
            if !waits && !matches!(machine.state, State::Banned | State::Over) {
                machine.enqueue(task);
            }
        }
    }

    /// The time of day in microseconds since 1970, if the device has been told.
    fn unix_us(&self, now: Instant) -> Option<u64> {
        self.booted_unix_us.map(|booted| booted.saturating_add(now.as_micros()))
    }
}

fn timers_path(slot: usize) -> String {
    alloc::format!("{TIMERS_PATH}.{slot}")
}
