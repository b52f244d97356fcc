//! A machine's share of the processor: what the owner grants, and the kernel's policy keeps.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The highest tier that can be granted.
pub const TIER_MAX: u16 = 100;
/// The longest period of a reservation, in milliseconds.
pub const PERIOD_MS_MAX: u32 = 60_000;

/// How much of the processor a machine gets beside the others. What it means depends on the device's
/// scheduling policy: tiers count under weighted fair sharing, reservations under earliest deadline
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Share {
    /// Its weight: a machine of tier 4 gets four times the fuel of one of tier 1 while both want it.
    pub tier: u16,
    /// The tier that it may ask for in a critical section.
    pub tier_max: u16,
    /// The period of its reservation in milliseconds; 0 if it has none.
    pub period_ms: u32,
    /// How much of each period is reserved for it, in thousandths.
    pub bandwidth_permille: u16,
}

impl Share {
    /// Whether its numbers are within their limits and fit each other.
    ///
    /// # Errors
    /// The fault, see [`ShareError`].
    pub fn check(&self) -> Result<(), ShareError> {
        if self.tier == 0 || self.tier_max < self.tier || self.tier_max > TIER_MAX {
            return Err(ShareError::Tier);
        }
        let reserves = self.period_ms > 0;
        if reserves != (self.bandwidth_permille > 0)
            || self.period_ms > PERIOD_MS_MAX
            || self.bandwidth_permille > 1000
        {
            return Err(ShareError::Reservation);
        }
        Ok(())
    }

    /// Whether a part of each period is reserved.
    pub fn is_reserved(&self) -> bool {
        self.period_ms > 0 && self.bandwidth_permille > 0
    }
}

impl Default for Share {
    /// The lowest tier, and nothing reserved.
    fn default() -> Self {
        Self { tier: 1, tier_max: 1, period_ms: 0, bandwidth_permille: 0 }
    }
}

/// The fault of a share. Its grantor is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareError {
    /// The tier isn't 1 to [`TIER_MAX`], or the tier for critical sections is lower.
    Tier,
    /// A period without a bandwidth or the other way round, or one of them over its limit.
    Reservation,
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tier => write!(
                f,
                "a tier is 1 to {TIER_MAX}, and the one for critical sections at least the usual one"
            ),
            Self::Reservation => write!(
                f,
                "a reservation has a period of 1 to {PERIOD_MS_MAX} ms and a bandwidth of 1 to 1000 \
                 thousandths"
            ),
        }
    }
}

impl core::error::Error for ShareError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_and_reservations_are_taken_up_to_their_limits_and_refused_beyond_them() {
        let most = Share {
            tier: TIER_MAX,
            tier_max: TIER_MAX,
            period_ms: PERIOD_MS_MAX,
            bandwidth_permille: 1000,
        };
        assert_eq!(most.check(), Ok(()));
        assert_eq!(Share { tier: 1, ..most }.check(), Ok(()));
        for (tier, tier_max) in [(0, 1), (2, 1), (1, TIER_MAX + 1)] {
            assert_eq!(Share { tier, tier_max, ..most }.check(), Err(ShareError::Tier));
        }
        for (period_ms, bandwidth_permille) in [(0, 1), (1, 0), (PERIOD_MS_MAX + 1, 1), (1, 1001)] {
            let share = Share { period_ms, bandwidth_permille, ..most };
            assert_eq!(share.check(), Err(ShareError::Reservation));
        }
        assert_eq!(Share { period_ms: 0, bandwidth_permille: 0, ..most }.check(), Ok(()));
    }
}
