//! The reasons for which a node doesn't start, or isn't enrolled.

use core::fmt;

use tenure_rpc::EndpointError;
use tenure_store::{MountError, ReadError, SetError};

/// Why a node doesn't start, or isn't enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The store's flash holds no store that can be taken up.
    Mount(MountError),
    /// The node's own values can't be read.
    Read(ReadError),
    /// The node's own values can't be written.
    Write(SetError),
    /// The stored identity is damaged, or missing where other values are there.
    Identity,
    /// No randomness for an identity or a store.
    Entropy,
    /// The session limits don't fit one another, or there is no randomness for them.
    Endpoint(EndpointError),
    /// The enrolment is for another device or name, or isn't signed by the owner.
    Enrolment,
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount(error) => write!(f, "the store can't be taken up: {error}"),
            Self::Read(error) => write!(f, "the node's own values can't be read: {error}"),
            Self::Write(error) => write!(f, "the node's own values can't be written: {error}"),
            Self::Identity => f.write_str(
                "the stored identity is damaged or missing, and nothing was changed; put back a copy of the flash, \
                 or erase it to begin a new device",
            ),
            Self::Entropy => f.write_str("there is no randomness for an identity or a store"),
            Self::Endpoint(error) => write!(f, "sessions: {error}"),
            Self::Enrolment => f.write_str("the enrolment isn't this owner's for this device"),
        }
    }
}

impl core::error::Error for BootError {}
