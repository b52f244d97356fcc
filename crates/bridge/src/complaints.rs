//! Complaints that may come without end, told once a minute at most.

use std::time::Duration;

use tenure_hal::Instant;

/// How long nothing further is told.
const PAUSE: Duration = Duration::from_secs(60);

/// Complaints of one kind.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    told_at: Option<Instant>,
    /// How many weren't told.
    untold: u64,
}

impl Complaints {
    /// The line to log for another complaint, if it is time for one.
    pub(crate) fn line(
        &mut self,
        now: Instant,
        complaint: impl FnOnce() -> String,
    ) -> Option<String> {
        if self.told_at.is_some_and(|at| now < at + PAUSE) {
            self.untold += 1;
            return None;
        }
        self.told_at = Some(now);
        let untold = std::mem::take(&mut self.untold);
        let more = if untold > 0 { format!(" ({untold} more before)") } else { String::new() };
        Some(complaint() + &more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_one_kind_are_told_once_a_minute_with_how_many_there_were() {
        let mut complaints = Complaints::default();
        let mut at = |seconds| {
            complaints.line(Instant::BOOT + Duration::from_secs(seconds), || "refused".into())
        };
        assert_eq!(at(1).as_deref(), Some("refused"));
        assert_eq!([at(2), at(60)], [None, None]);
        assert_eq!(at(61).as_deref(), Some("refused (2 more before)"));
    }
}
