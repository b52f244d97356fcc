//! Why a call has no result, and when another one is worth trying.

use core::fmt;
use core::time::Duration;

use tenure_wire::host_call::HostError;

use crate::kernel::DeliverError;

/// What whoever made a call is told in place of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub error: HostError,
    /// How long to wait before another call, where that is known.
    pub again_in: Option<Duration>,
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Self {
        Self { error, again_in: None }
    }
}

impl From<DeliverError> for Failed {
    fn from(error: DeliverError) -> Self {
        match error {
            DeliverError::NoSuchMachine | DeliverError::NoSuchFunction => HostError::NotFound,
            DeliverError::Denied => HostError::Denied,
            DeliverError::Banned => HostError::Banned,
            DeliverError::Stopped { restarts_in } => {
                return Self { error: HostError::Stopped, again_in: Some(restarts_in) };
            }
            DeliverError::LeaseOver => HostError::LeaseOver,
            DeliverError::Busy => HostError::Full,
            DeliverError::TooLong => HostError::TooLong,
        }
        .into()
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        match self.again_in {
            Some(wait) => write!(f, ", {} ms more", wait.as_millis()),
            None => Ok(()),
        }
    }
}
