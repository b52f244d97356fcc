//! Token buckets: budgets by the second and by the day.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::{Instant, micros_of, proportion};
use tenure_wire::Budget;

/// The burst of what is counted by the second, in seconds.
const BURST_SECONDS: u64 = 2;
const DAY_S: u32 = 24 * 60 * 60;
/// The longest wait that is told: nobody will see its end.
const WAIT_MAX: Duration = Duration::from_secs(DAY_S as u64 * 10_000);
/// The part of a day's flash writes that can be made at once.
const DAY_BURSTS: u64 = 4;
/// The part of that which there is at boot.
const BOOT_PART: i64 = 16;

/// Something that a machine may spend `rate` of in each span, evenly filled up to `capacity`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Bucket {
    rate: u64,
    span_s: u32,
    capacity: i64,
    /// The content; negative after [`Bucket::charge`] with more than there was.
    level: i64,
    /// Until when it was filled.
    #[serde(with = "crate::moment")]
    filled: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rate: u64, span_s: u32, capacity: u64, now: Instant) -> Self {
        let capacity = i64::try_from(capacity).unwrap_or(i64::MAX);
        Self { rate, span_s, capacity, level: capacity, filled: now }
    }

    /// A bucket of what is counted by the day, as it is after a boot: restarts don't refill it.
    pub(crate) fn of_day(rate: u64, now: Instant) -> Self {
        let mut bucket = Self::new(rate, DAY_S, rate / DAY_BURSTS, now);
        bucket.level = bucket.capacity / BOOT_PART;
        bucket
    }

    /// How much it holds when it is full.
    #[cfg(feature = "journal")]
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity.max(0) as u64
    }

    fn span_us(&self) -> u64 {
        u64::from(self.span_s) * 1_000_000
    }

    /// The content now.
    pub(crate) fn level(&mut self, now: Instant) -> i64 {
        let elapsed_us = micros_of(now.since(self.filled));
        let gained = proportion(elapsed_us, self.rate, self.span_us());
        let gained = i64::try_from(gained).unwrap_or(i64::MAX);
        if self.level.saturating_add(gained) >= self.capacity {
            self.level = self.capacity;
            self.filled = now;
        } else if gained > 0 {
            self.level += gained;
            // Only as far as whole units go, so that no part of one is lost.
            self.filled = self.filled + self.time_for(gained);
        }
        self.level
    }

    /// Takes `cost`, or nothing if there is less.
    pub(crate) fn take(&mut self, now: Instant, cost: u64) -> bool {
        let cost = i64::try_from(cost).unwrap_or(i64::MAX);
        let enough = self.level(now) >= cost;
        if enough {
            self.level -= cost;
        }
        enough
    }

    /// Takes `cost` whatever there is.
    pub(crate) fn charge(&mut self, now: Instant, cost: u64) {
        let cost = i64::try_from(cost).unwrap_or(i64::MAX);
        self.level = self.level(now).saturating_sub(cost);
    }

    /// When at least `wanted` (or all that it holds) will be there.
    pub(crate) fn full_enough_at(&self, wanted: u64) -> Instant {
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX).min(self.capacity);
        match wanted.saturating_sub(self.level) {
            ..=0 => self.filled,
            missing => self.filled + self.time_for(missing) + Duration::from_micros(1),
        }
    }

    /// How long it takes to gain `units`; for ever, as far as anybody will see, at no rate.
    fn time_for(&self, units: i64) -> Duration {
        let micros = proportion(units.unsigned_abs(), self.span_us(), self.rate);
        Duration::from_micros(micros).min(WAIT_MAX)
    }
}

/// The rest of a machine's budgets by time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Meters {
    /// Absent if only its share limits it.
    pub(crate) fuel: Option<Bucket>,
    pub(crate) flash: Bucket,
    pub(crate) messages: Bucket,
    pub(crate) message_bytes: Bucket,
    /// Whether its fuel is spent, and it waits until there is a turn's worth again.
    pub(crate) is_throttled: bool,
}

impl Meters {
    /// All that `budget` grants, unspent.
    pub(crate) fn new(budget: &Budget, now: Instant) -> Self {
        let by_second = |rate: u64| {
            let burst = rate.saturating_mul(BURST_SECONDS);
            Bucket::new(rate, 1, burst, now)
        };
        let flash = u64::from(budget.flash_bytes_per_day);
        Self {
            fuel: (budget.fuel_per_second > 0).then(|| by_second(budget.fuel_per_second)),
            flash: Bucket::new(flash, DAY_S, flash / DAY_BURSTS, now),
            messages: by_second(budget.messages_per_second.into()),
            message_bytes: by_second(budget.message_bytes_per_second.into()),
            is_throttled: false,
        }
    }

    /// The budgets of a machine after its device has booted, as long as nobody says what it wrote before: of
    /// what is counted by the day a part only, so that restarts don't refill it.
    pub(crate) fn at_boot(mut self) -> Self {
        self.flash.level = self.flash.capacity / BOOT_PART;
        self
    }

    /// The budgets of a machine after a boot if it is known to have written so many bytes in its period.
    pub(crate) fn recall_flash(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.flash.level = self.flash.level.max(self.flash.capacity.saturating_sub(bytes));
    }

    /// Takes one message of `bytes`, or nothing if either is spent.
    pub(crate) fn take_message(&mut self, now: Instant, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.messages.level(now) >= 1
            && self.message_bytes.take(now, bytes)
            && self.messages.take(now, 1)
    }

    /// Whether the machine must not run because its fuel is spent; it may again once there is
    /// `turn_fuel`, so that it doesn't stutter.
    pub(crate) fn throttles(&mut self, now: Instant, turn_fuel: u64) -> bool {
        let Some(fuel) = &mut self.fuel else { return false };
        let level = fuel.level(now);
        let turn_fuel = i64::try_from(turn_fuel).unwrap_or(i64::MAX).min(fuel.capacity);
        self.is_throttled = level <= 0 || (self.is_throttled && level < turn_fuel);
        self.is_throttled
    }

    /// When a machine that is throttled may run again.
    pub(crate) fn unthrottled_at(&self, turn_fuel: u64) -> Option<Instant> {
        let fuel = self.fuel.as_ref().filter(|_| self.is_throttled)?;
        Some(fuel.full_enough_at(turn_fuel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(10, 1, 20, at(0));
        assert!(bucket.take(at(0), 20) && !bucket.take(at(0), 1));
        assert!(!bucket.take(at(99), 1) && bucket.take(at(100), 1));
        let taken = (0..100_000).filter(|step| bucket.take(at(100 + step), 1)).count();
        assert!((999..=1001).contains(&taken), "{taken} in 100 s");
        assert!(
            bucket.take(at(1_000_000), 20) && !bucket.take(at(1_000_000), 1),
            "no more is kept"
        );
    }

    #[test]
    fn a_bucket_says_when_there_is_enough() {
        let mut bucket = Bucket::new(3, 1, 6, at(0));
        bucket.charge(at(0), 10);
        let enough = bucket.full_enough_at(2);
        assert!(!bucket.take(enough - Duration::from_micros(2), 2) && bucket.take(enough, 2));
        bucket.charge(at(60_000), 6);
        assert_eq!(bucket.full_enough_at(1_000), bucket.full_enough_at(6), "it holds no more");
    }

    #[test]
    fn what_has_no_rate_is_never_there() {
        let mut bucket = Bucket::new(0, DAY_S, 0, at(0));
        assert!(!bucket.take(at(1_000_000_000), 1));
        assert!(bucket.full_enough_at(1) <= at(1_000_000_000));
    }
}
