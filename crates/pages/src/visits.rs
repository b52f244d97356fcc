//! The calls that visitors make, as who serves pages lends them.

use std::time::{Duration, Instant};

use http::StatusCode;
use tenure_wire::{Name, NoResult, Target};

/// Calls machines for visitors. Copies make the same calls.
pub trait Visits: Clone + Send + Sync + 'static {
    /// Calls the function `http` of `machine` with `request`, and waits for its result until `end`.
    ///
    /// # Errors
    /// There is no result.
    fn call(
        &self,
        machine: Target,
        request: Vec<u8>,
        end: Instant,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, NoPage>> + Send;

    /// The machines with pages that a visitor is shown.
    ///
    /// # Errors
    /// They can't be had now.
    fn entries(&self) -> impl Future<Output = Result<Vec<Entry>, NoPage>> + Send;
}

/// A machine with pages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its device.
    pub device: Name,
    /// Its name there.
    pub machine: Name,
}

/// Why a visitor gets no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPage {
    /// Nobody knows such a machine.
    Unknown,
    /// The machine gave no result.
    Failed(NoResult),
    /// Its device can't be asked.
    Away,
}

impl NoPage {
    /// The status that a visitor gets, in what words, and when another visit is worth it.
    pub(crate) fn told(self) -> (StatusCode, &'static str, Option<Duration>) {
        const MISSING: &str = "no machine of that name has a page here";
        const AWAY: &str = "the device can't be reached";
        let reason = match self {
            Self::Unknown => return (StatusCode::NOT_FOUND, MISSING, None),
            Self::Away => return (StatusCode::BAD_GATEWAY, AWAY, Some(AGAIN)),
            Self::Failed(reason) => reason,
        };
        let again = reason.again_in().or(Some(AGAIN));
        match reason {
            NoResult::NoSuchMachine | NoResult::NoSuchFunction | NoResult::NotFound => {
                (StatusCode::NOT_FOUND, MISSING, None)
            }
            NoResult::Denied => (
                StatusCode::FORBIDDEN,
                "this machine has no page of its own, or its lease grants these pages no call",
                None,
            ),
            NoResult::Execution | NoResult::Overspent => {
                (StatusCode::INTERNAL_SERVER_ERROR, "the machine failed; its log says why", None)
            }
            NoResult::TooLong => {
                (StatusCode::BAD_GATEWAY, "the machine's answer is too long", None)
            }
            NoResult::Busy => (StatusCode::SERVICE_UNAVAILABLE, "the machine is busy", again),
            NoResult::Deadline => (StatusCode::GATEWAY_TIMEOUT, "the machine took too long", again),
            NoResult::Unreachable | NoResult::AllegedlyGone | NoResult::Deferred { .. } => {
                (StatusCode::BAD_GATEWAY, AWAY, again)
            }
            NoResult::Stopped { .. } | NoResult::Asleep { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "the machine is stopped or asleep for now", again)
            }
            _ => (StatusCode::SERVICE_UNAVAILABLE, "the machine can't be called now", None),
        }
    }
}

/// When another visit is worth it, if nobody knows better.
const AGAIN: Duration = Duration::from_secs(2);
