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

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_store::{SEAL_BYTES, ValueKind};
use tenure_wire::host_call::{GuestBytes, GuestText, HostError};
use tenure_wire::{Digest, MachineId};

use crate::host::{Status, Stop, function_name, read_parameter};
use crate::kernel::{KERNEL_TREE, Kernel};
use crate::lifecycle::State;
use crate::program::Program;
use crate::task::Task;

/// The most timers of one machine.
pub(crate) const TIMERS_MAX: usize = 8;
/// The longest parameter of a timer, in bytes.
const PARAMETER_MAX: usize = 64;
/// The shortest time between two calls of one timer, in milliseconds.
const PERIOD_MS_MIN: u32 = 10;
/// How much later than its time a timer fires, at most.
const SLACK_MAX: Duration = Duration::from_secs(1);
/// The part of a timer's wait by which it may fire late.
const SLACK_PART: u32 = 10;
/// The path in the kernel's tree below which timers are kept, by slot.
const TIMERS_PATH: &str = "timers";

/// When a timer fires first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum First {
    /// After so many milliseconds.
    After(u32),
    /// At that time of day, in seconds since 1970.
    At(u32),
}

/// A function that is to be called at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Timer {
    function: String,
    parameter: Option<Vec<u8>>,
    first: First,
    /// The time between two calls in milliseconds; 0 if there is one.
    period_ms: u32,
    /// When it fires next, if that is known.
    #[serde(with = "crate::moment::optional")]
    due: Option<Instant>,
}

impl Timer {
    /// Whether setting `other` would change nothing.
    fn is_same(&self, other: &Self) -> bool {
        self.period_ms > 0
            && (&self.function, &self.parameter, self.first, self.period_ms)
                == (&other.function, &other.parameter, other.first, other.period_ms)
    }

    fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms.into())
    }

    /// When the device has to be awake for it.
    fn wakes_at(&self) -> Option<Instant> {
        let wait_ms = match (self.period_ms, self.first) {
            (0, First::After(ms)) => ms,
            (0, First::At(_)) => 0,
            (period_ms, _) => period_ms,
        };
        let slack = Duration::from_millis((wait_ms / SLACK_PART).into()).min(SLACK_MAX);
        self.due.map(|due| due + slack)
    }

    /// Begins its wait `now`, when the time of day is `unix_us`, if that is known.
    fn begin(&mut self, now: Instant, unix_us: Option<u64>) {
        self.due = match self.first {
            First::After(_) if self.period_ms > 0 && self.due.is_none() => {
                Some(now + self.period())
            }
            First::After(ms) => Some(now + Duration::from_millis(ms.into())),
            First::At(unix_s) => unix_us.map(|unix_us| {
                let at_us = u64::from(unix_s) * 1_000_000;
                let period_us = u64::from(self.period_ms) * 1_000;
                let missed_us = unix_us.saturating_sub(at_us);
                let wait_us = match missed_us.checked_rem(period_us) {
                    // Its next time, if it is past the first.
                    Some(rest) if missed_us > 0 => period_us - rest,
                    _ => at_us.saturating_sub(unix_us),
                };
                now + Duration::from_micros(wait_us)
            }),
        };
    }

    /// Sets it to its next time after `now`; returns whether it has one.
    fn advance(&mut self, now: Instant) -> bool {
        let period = self.period();
        let Some(due) = self.due.filter(|_| !period.is_zero()) else { return false };
        let missed = now.since(due).as_micros() / period.as_micros();
        let periods = u32::try_from(missed + 1).unwrap_or(u32::MAX);
        self.due = Some(due + period * periods);
        true
    }

    fn task(&self) -> Task {
        Task::of_kernel(self.function.clone(), self.parameter.clone())
    }
}

/// When the first of `timers` needs the device to be awake.
pub(crate) fn wakes_at(timers: &[Timer]) -> Option<Instant> {
    timers.iter().filter_map(Timer::wakes_at).min()
}

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
