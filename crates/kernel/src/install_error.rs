//! Why a machine was not installed, removed or renewed.

use core::fmt;

use tenure_store::{BatchError, ReadError};

use crate::code::CodeError;

/// Why a machine was not installed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// No machine of that name.
    NotFound,
    /// The name belongs to a machine of another tenant.
    OtherTenant,
    /// Another machine has that name.
    NameTaken,
    /// A placement with this or a higher number is in force already.
    Stale,
    /// The machine is banned, its lease is over, or its owner stopped it.
    Stopped,
    /// Every slot is taken.
    NoSlot,
    /// The budgets of the machines here leave too little memory for this one's.
    NoMemory,
    /// Reservations of others leave too little of the processor for its own.
    Overbooked,
    /// The store is full.
    StoreFull,
    /// The values take more than the machine's budget has for them.
    StoredBudget,
    /// A path or value of a snapshot is not allowed.
    Values,
    /// The record doesn't fit its format.
    Record,
    /// Code flash.
    Code(CodeError),
    /// The store failed.
    Store,
}

impl From<BatchError> for InstallError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Path { .. } | BatchError::ValueTooLong { .. } => Self::Values,
            BatchError::Full => Self::StoreFull,
            BatchError::Flash(_) => Self::Store,
        }
    }
}

impl From<ReadError> for InstallError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Path(_) => Self::Values,
            _ => Self::Store,
        }
    }
}

impl From<CodeError> for InstallError {
    fn from(error: CodeError) -> Self {
        Self::Code(error)
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no machine of that name"),
            Self::OtherTenant => f.write_str("the name belongs to another tenant's machine"),
            Self::NameTaken => f.write_str("another machine has that name; remove that one first"),
            Self::Stale => f.write_str(
                "the device has a lease with a higher number in force; ask it for that number",
            ),
            Self::Stopped => f.write_str(
                "the machine is banned (`tenure unban`), its lease is over (`tenure renew`), or its owner \
                 stopped it (`tenure start`)",
            ),
            Self::NoSlot => f.write_str("the device has no room for another machine"),
            Self::NoMemory => f.write_str("the device has too little memory left for its budget"),
            Self::Overbooked => {
                f.write_str("the device has too little of the processor left for its reservation")
            }
            Self::StoreFull => f.write_str("the device's store is full"),
            Self::StoredBudget => f.write_str("its budget has too little room for these values"),
            Self::Values => f.write_str("there is a path or value that is not allowed"),
            Self::Record => {
                f.write_str("the machine's exports and grants are too many for its record")
            }
            Self::Code(error) => write!(f, "{error}"),
            Self::Store => f.write_str("the device's store failed"),
        }
    }
}

impl core::error::Error for InstallError {}
