//! Why a call has no result, and when another one is worth trying.

use core::fmt;
use core::time::Duration;

use tenure_wire::host_call::HostError;

/// The failure that a caller is told in place of a result.
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
            DeliverError::Halted => HostError::Halted,
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

/// Why a call was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliverError {
    /// No machine with that id here.
    NoSuchMachine,
    /// The machine doesn't offer that function.
    NoSuchFunction,
    /// The machine doesn't let this caller call it.
    Denied,
    /// The machine is banned and serves nobody.
    Banned,
    /// The machine was stopped for a fault and starts again after the call's deadline.
    Stopped {
        /// How long until then.
        restarts_in: Duration,
    },
    /// Its lease is over.
    LeaseOver,
    /// Its owner stopped it.
    Halted,
    /// The machine's queue is full.
    Busy,
    /// Function name or parameter are over the limit.
    TooLong,
}
