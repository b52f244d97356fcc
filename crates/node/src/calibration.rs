//! How fast the device burns fuel, measured between polls.
//!
//! A node knows time only as it is told it at each poll. After a turn it asks to be polled at once, so
//! that the span to the next poll is the turn's, with the node's and the board's own work around it.
//! Spans in which something else was done don't count.

use core::time::Duration;

use tenure_hal::{Instant, micros_of, proportion};

/// How long turns have to take together before they say something.
const WINDOW: Duration = Duration::from_millis(20);
/// The weight of what was known before against a new window, in eighths.
const KEPT_EIGHTHS: u64 = 7;

/// The speed of the device, so far.
#[derive(Debug)]
pub(crate) struct Calibration {
    fuel_per_second: u64,
    is_measured: bool,
    /// The turn that may be under way, and what it burnt.
    turn: Option<(Instant, u64)>,
    window_fuel: u64,
    window: Duration,
}

impl Calibration {
    /// A guess.
    pub(crate) fn new(fuel_per_second: u64) -> Self {
        let (turn, window_fuel, window) = (None, 0, Duration::ZERO);
        Self { fuel_per_second, is_measured: false, turn, window_fuel, window }
    }

    /// The fuel that the device burns in a second.
    pub(crate) fn fuel_per_second(&self) -> u64 {
        self.fuel_per_second
    }

    /// How long `fuel` takes.
    pub(crate) fn time_of(&self, fuel: u64) -> Duration {
        Duration::from_micros(proportion(fuel, 1_000_000, self.fuel_per_second.max(1)))
    }

    /// Something else takes time: the turn before can't be measured any more.
    pub(crate) fn disturb(&mut self) {
        self.turn = None;
    }

    /// A turn has begun at `now`, and burnt `fuel`.
    pub(crate) fn turn(&mut self, now: Instant, fuel: u64) {
        self.turn = Some((now, fuel));
    }

    /// It is `now`, and nothing was done since the last turn. Gives the device's speed if it is known
    /// better than before.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<u64> {
        let (begun, fuel) = self.turn.take()?;
        self.window += now.since(begun);
        self.window_fuel = self.window_fuel.saturating_add(fuel);
        if self.window < WINDOW {
            return None;
        }
        let seen = proportion(self.window_fuel, 1_000_000, micros_of(self.window)).max(1);
        (self.window, self.window_fuel) = (Duration::ZERO, 0);
        self.fuel_per_second = match self.is_measured {
            true => self.fuel_per_second / 8 * KEPT_EIGHTHS + seen / 8,
            false => seen,
        };
        self.is_measured = true;
        Some(self.fuel_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls a device that burns `rate`, in turns of a millisecond.
    fn settle(calibration: &mut Calibration, now: &mut Instant, rate: u64) {
        for _ in 0..2_000 {
            calibration.turn(*now, rate / 1_000);
            *now = *now + Duration::from_millis(1);
            calibration.poll(*now);
        }
    }

    #[test]
    fn the_speed_is_found_and_followed() {
        let (mut calibration, mut now) = (Calibration::new(1), Instant::BOOT);
        for rate in [10_000_000, 250_000, 400_000_000] {
            settle(&mut calibration, &mut now, rate);
            let seen = calibration.fuel_per_second();
            assert!(seen.abs_diff(rate) < rate / 100, "{seen} for {rate}");
        }
        assert_eq!(calibration.time_of(calibration.fuel_per_second()), Duration::from_secs(1));
    }

    #[test]
    fn what_happens_between_turns_is_not_counted() {
        let (mut calibration, mut now) = (Calibration::new(1), Instant::BOOT);
        settle(&mut calibration, &mut now, 1_000_000);
        for _ in 0..100 {
            calibration.turn(now, 1_000);
            now = now + Duration::from_secs(1);
            calibration.disturb();
            assert_eq!(calibration.poll(now), None);
        }
        assert!(calibration.fuel_per_second().abs_diff(1_000_000) < 10_000);
    }
}
