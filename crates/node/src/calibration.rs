//! How fast the device burns fuel, measured between polls.
//!
//! A node knows time only as it is told it at each poll. After a turn it asks to be polled at once, so
//! that the span to the next poll is the turn's, with the node's and the board's own work around it.
//! Spans in which something else was done don't count, and neither do turns with host calls, whose
//! price in fuel is an estimate that a machine could play with. The median of the last windows
//! counts, and it moves the speed by less than three times a minute.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Instant, micros_of, proportion};

/// How long turns have to take together before they say something.
const WINDOW: Duration = Duration::from_millis(20);
/// How many windows the median is taken of.
const WINDOWS: usize = 5;
/// The time in which the speed may double or halve at once.
const DOUBLING: Duration = Duration::from_secs(60);

/// The speed of the device, so far.
#[derive(Debug)]
pub(crate) struct Calibration {
    fuel_per_second: u64,
    /// When it was last measured.
    measured_at: Option<Instant>,
    /// The results of the last windows, the oldest first.
    seen: Vec<u64>,
    /// The turn that may be under way, and what it burnt.
    turn: Option<(Instant, u64)>,
    window_fuel: u64,
    window: Duration,
}

impl Calibration {
    /// A guess.
    pub(crate) fn new(fuel_per_second: u64) -> Self {
        let (turn, window_fuel, window) = (None, 0, Duration::ZERO);
        let (measured_at, seen) = (None, Vec::new());
        Self { fuel_per_second, measured_at, seen, turn, window_fuel, window }
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
        if self.seen.len() >= WINDOWS {
            self.seen.remove(0);
        }
        self.seen.push(seen);
        let median = median_of(&self.seen);
        self.fuel_per_second = match self.measured_at.replace(now) {
            None => median,
            Some(before) => {
                let span = micros_of(now.since(before).min(DOUBLING));
                let whole = micros_of(DOUBLING);
                let step = proportion(self.fuel_per_second, span, whole);
                let least = proportion(self.fuel_per_second, whole, whole + span);
                median.clamp(least, self.fuel_per_second.saturating_add(step))
            }
        };
        Some(self.fuel_per_second)
    }
}

fn median_of(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    tenure_hal::sort(&mut sorted);
    sorted.get(sorted.len() / 2).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls a device that burns `rate`, in turns of a millisecond, for `seconds`.
    fn settle(calibration: &mut Calibration, now: &mut Instant, rate: u64, seconds: u64) {
        for _ in 0..seconds * 1_000 {
            calibration.turn(*now, rate / 1_000);
            *now = *now + Duration::from_millis(1);
            calibration.poll(*now);
        }
    }

    #[test]
    fn the_speed_is_found_at_once_and_followed_by_at_most_three_times_a_minute() {
        let (mut calibration, mut now) = (Calibration::new(1), Instant::BOOT);
        settle(&mut calibration, &mut now, 10_000_000, 1);
        let seen = calibration.fuel_per_second();
        assert!(seen.abs_diff(10_000_000) < 100_000, "{seen}");
        assert_eq!(calibration.time_of(calibration.fuel_per_second()), Duration::from_secs(1));
        for (rate, minutes) in [(250_000, 4), (4_000_000, 3)] {
            let before = calibration.fuel_per_second();
            settle(&mut calibration, &mut now, rate, 60);
            let seen = calibration.fuel_per_second();
            assert!(seen >= before / 3 && seen <= before * 3, "{seen} after {before}");
            settle(&mut calibration, &mut now, rate, minutes * 60);
            let seen = calibration.fuel_per_second();
            assert!(seen.abs_diff(rate) < rate / 100, "{seen} for {rate}");
        }
    }

    #[test]
    fn windows_that_stand_out_do_not_count() {
        let (mut calibration, mut now) = (Calibration::new(1), Instant::BOOT);
        settle(&mut calibration, &mut now, 1_000_000, 1);
        for round in 0..100 {
            let rate = if round % 5 < 2 { 1_000 } else { 1_000_000 };
            for _ in 0..20 {
                calibration.turn(now, rate / 1_000);
                now = now + Duration::from_millis(1);
                calibration.poll(now);
            }
        }
        assert!(calibration.fuel_per_second().abs_diff(1_000_000) < 10_000);
    }

    #[test]
    fn what_happens_between_turns_is_not_counted() {
        let (mut calibration, mut now) = (Calibration::new(1), Instant::BOOT);
        settle(&mut calibration, &mut now, 1_000_000, 2);
        for _ in 0..100 {
            calibration.turn(now, 1_000);
            now = now + Duration::from_secs(1);
            calibration.disturb();
            assert_eq!(calibration.poll(now), None);
        }
        assert!(calibration.fuel_per_second().abs_diff(1_000_000) < 10_000);
    }
}
