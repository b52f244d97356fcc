//! Why a hub doesn't start.

use core::fmt;

use tenure_rpc::EndpointError;

use crate::storage::StorageError;

/// Why a hub doesn't start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The storage can't be read or written.
    Storage(StorageError),
    /// No randomness for an identity or a store.
    Entropy,
    /// The session limits don't fit one another, or there is no randomness for them.
    Endpoint(EndpointError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(error) => write!(f, "{error}"),
            Self::Entropy => f.write_str("there is no randomness for an identity or a store"),
            Self::Endpoint(error) => write!(f, "sessions: {error}"),
        }
    }
}

impl From<StorageError> for OpenError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl core::error::Error for OpenError {}
