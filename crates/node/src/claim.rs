//! A place that one caller at a time uses: others are told to wait, and one who doesn't come back loses it.

use core::time::Duration;

use alloc::string::ToString;

use tenure_hal::Instant;
use tenure_wire::control::ControlError;

/// How long its user may leave a place alone before another takes it: far more than one part takes on its way.
pub(crate) const ALONE_MAX: Duration = Duration::from_secs(20);

/// The peer that brings or fetches a part, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// The number of the caller's incarnation; `None` on the device itself.
    pub(crate) caller: Option<u64>,
    pub(crate) now: Instant,
}

/// Whose place it is, as far as it is in use.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    last: Option<Visit>,
}

impl Claim {
    /// Lets the caller begin, who may begin anew. `is_in_use` says whether what was begun last hasn't ended.
    ///
    /// # Errors
    /// [`ControlError::Busy`]: another caller was here less than [`ALONE_MAX`] ago.
    pub(crate) fn begin(&mut self, visit: Visit, is_in_use: bool) -> Result<(), ControlError> {
        let is_others = self.last.is_some_and(|last| {
            last.caller != visit.caller && visit.now.since(last.now) < ALONE_MAX
        });
        if is_in_use && is_others {
            return Err(ControlError::Busy("another transfer is under way".to_string()));
        }
        self.last = Some(visit);
        Ok(())
    }

    /// Takes note that it goes on.
    pub(crate) fn go_on(&mut self, visit: Visit) {
        self.last = Some(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_its_users_until_that_ends_or_is_away_for_too_long() {
        let visit = |caller, second: u64| Visit {
            caller: Some(caller),
            now: Instant::from_millis(second * 1_000),
        };
        let mut claim = Claim::default();
        assert_eq!(claim.begin(visit(1, 0), false), Ok(()));
        assert!(matches!(claim.begin(visit(2, 1), true), Err(ControlError::Busy(_))));
        assert_eq!(claim.begin(visit(1, 2), true), Ok(()), "it may begin anew");
        claim.go_on(visit(1, 21));
        assert!(matches!(claim.begin(visit(2, 40), true), Err(ControlError::Busy(_))));
        assert_eq!(claim.begin(visit(2, 41), true), Ok(()), "the first is gone");
        assert_eq!(claim.begin(visit(3, 42), false), Ok(()), "the second has ended");
    }
}
