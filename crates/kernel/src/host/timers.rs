//! Host calls that set and cancel timers: functions that a machine wants called later, or again and again.
//!
//! Invariants:
//! - A machine has [`TIMERS_MAX`] timers at most, one for each function; a timer has at most one call in
//!   its machine's queue, beyond the queue's length.
//! - Timers stand in the store before they are set, so that they outlast a restart of the device. A
//!   timer that fires again and again costs no write when it fires.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Flash;
use tenure_wire::host_call::{GuestBytes, GuestText, HostError};
use tenure_wire::limits::TIMERS_MAX;
use tenure_wire::timer::{PERIOD_MS_MIN, SCHEDULE_BYTES_MAX, When};

use super::Question;
use super::{Status, Stop, check_flash, function_name, read_parameter, text};
use crate::storage::KeepTimersError;
use crate::timer::{First, Timer};
use crate::turn::Turn;

/// The longest parameter of a timer, in bytes.
const PARAMETER_MAX: usize = 64;

impl From<KeepTimersError> for Stop {
    fn from(error: KeepTimersError) -> Self {
        match error {
            KeepTimersError::Format => HostError::Device.into(),
            KeepTimersError::Store(error) => error.into(),
        }
    }
}

impl<F: Flash> Turn<'_, '_, F> {
    pub(super) fn timer_set(
        &mut self,
        (function, parameter): (GuestText, Option<GuestBytes>),
        (first, period_ms): (First, u32),
    ) -> Status {
        let now = self.now();
        let function = function_name(&self.program, function)?.to_string();
        if parameter.is_some_and(|parameter| parameter.length() > PARAMETER_MAX) {
            return Err(HostError::TooLong.into());
        }
        let parameter = read_parameter(&self.program, parameter)?;
        if period_ms > 0 && period_ms < PERIOD_MS_MIN {
            return Err(HostError::Invalid.into());
        }
        if !self.parts.storage.has_function(&self.machine, &function) {
            return Err(HostError::NotFound.into());
        }
        self.door().ask(Question::STATUS)?;
        let mut timer = Timer::new((function, parameter), (first, period_ms));
        match first {
            First::After(ms) => timer.due = Some(now + Duration::from_millis(ms.into())),
            _ => timer.begin(now, self.parts.clock.unix_us(now)),
        }
        let mut timers = self.machine.timers.clone();
        match timers.iter().position(|known| known.function == timer.function) {
            Some(position) if timers[position].is_same(&timer) => return Ok(0),
            Some(position) => timers[position] = timer,
            None if timers.len() >= TIMERS_MAX => return Err(HostError::Full.into()),
            None => timers.push(timer),
        }
        self.keep_timers(timers)
    }

    pub(super) fn timer_schedule(
        &mut self,
        called: (GuestText, Option<GuestBytes>),
        schedule: GuestText,
    ) -> Status {
        let schedule = text(&self.program, schedule, SCHEDULE_BYTES_MAX)?;
        let when = When::at(schedule).map_err(|_| HostError::Invalid)?;
        self.timer_set(called, First::of(when))
    }

    pub(super) fn timer_cancel(&mut self, function: GuestText) -> Status {
        let function = function_name(&self.program, function)?;
        let mut timers = self.machine.timers.clone();
        let position = timers.iter().position(|timer| timer.function == function);
        self.door().ask(Question::STATUS)?;
        timers.remove(position.ok_or(HostError::NotFound)?);
        self.keep_timers(timers)
    }

    /// Writes down the machine's timers, then takes them into use.
    fn keep_timers(&mut self, timers: Vec<Timer>) -> Status {
        let now = self.now();
        let (storage, machine) = (&mut self.parts.storage, &mut *self.machine);
        check_flash(storage, machine, now)?;
        storage.keep_timers(machine, now, &timers)?;
        machine.timers = timers;
        self.parts.clock.timers_changed();
        Ok(0)
    }
}
