//! Why an operation of the store was not done: one enum per operation.

use core::fmt;

use tenure_hal::FlashError;

use crate::path::PathError;

/// Why a flash can't be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountError {
    /// The flash is erased: no store was ever made on it.
    Blank,
    /// The flash holds something, and that is no store.
    Foreign,
    /// The flash holds a store that was made for another shape of flash.
    Geometry {
        /// Bytes in a sector of that flash.
        sector_bytes: u32,
        /// Sectors of that flash.
        sector_count: u32,
    },
    /// No store fits: it takes at least three sectors of 512 bytes.
    TooSmall,
    /// The flash failed.
    Flash(FlashError),
}

/// Why a flash can't be made a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// No store fits: it takes at least three sectors of 512 bytes.
    TooSmall,
    /// The flash failed.
    Flash(FlashError),
}

/// Why a value was not set. The tree is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError {
    /// The caller's mistake: no path of a value.
    Path(PathError),
    /// The caller's mistake: longer than a record can be.
    ValueTooLong {
        /// The longest value in bytes.
        bytes_max: usize,
    },
    /// There is no room; deleting makes some.
    Full,
    /// The flash failed.
    Flash(FlashError),
}

/// Why nothing was deleted. The tree is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteError {
    /// The caller's mistake: no path of a node.
    Path(PathError),
    /// There is no room for the deletion's own record. A full store keeps room for it; this takes
    /// damage that brought deleted values back.
    Full,
    /// The flash failed.
    Flash(FlashError),
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The caller's mistake: no path.
    Path(PathError),
    /// The value is there and its bytes are damaged. It can be set anew, or deleted.
    Corrupt,
    /// The value is sealed, and its tree was given no seal to open it with.
    Sealed,
    /// The tree is sealed, and the value isn't what was sealed for that place: it was changed,
    /// moved, or put there by somebody else. It can be set anew, or deleted.
    Unsealable,
    /// The flash failed.
    Flash(FlashError),
}

/// Why a batch was not done. The trees are as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// The caller's mistake: the path of change number `change` (from 0).
    Path {
        /// Which change.
        change: usize,
        /// The fault of its path.
        error: PathError,
    },
    /// The caller's mistake: a value longer than a record can be.
    ValueTooLong {
        /// Which change.
        change: usize,
        /// The longest value in bytes.
        bytes_max: usize,
    },
    /// There is no room for the batch beside what it replaces; deleting makes some.
    Full,
    /// The flash failed.
    Flash(FlashError),
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("the flash is blank"),
            Self::Foreign => f.write_str("the flash holds something other than a store"),
            Self::Geometry { sector_bytes, sector_count } => write!(
                f,
                "the store was made for a flash of {sector_count} sectors of {sector_bytes} bytes"
            ),
            Self::TooSmall => FormatError::TooSmall.fmt(f),
            Self::Flash(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall => f.write_str("the flash is too small for a store"),
            Self::Flash(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::ValueTooLong { bytes_max } => {
                write!(f, "the value is longer than {bytes_max} bytes")
            }
            Self::Full => f.write_str("the store is full"),
            Self::Flash(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for DeleteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::Full => f.write_str("the store is full"),
            Self::Flash(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::Corrupt => f.write_str("the stored value is damaged"),
            Self::Sealed => f.write_str("the stored value is sealed, and its key isn't at hand"),
            Self::Unsealable => {
                f.write_str("the stored value isn't what was sealed for that place")
            }
            Self::Flash(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { change, error } => write!(f, "change {change}: {error}"),
            Self::ValueTooLong { change, bytes_max } => {
                write!(f, "change {change}: the value is longer than {bytes_max} bytes")
            }
            Self::Full => f.write_str("the store has no room for the batch"),
            Self::Flash(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MountError {}
impl core::error::Error for FormatError {}
impl core::error::Error for SetError {}
impl core::error::Error for DeleteError {}
impl core::error::Error for ReadError {}
impl core::error::Error for BatchError {}

impl From<FlashError> for MountError {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}

impl From<FormatError> for MountError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::TooSmall => Self::TooSmall,
            FormatError::Flash(error) => Self::Flash(error),
        }
    }
}

impl From<FlashError> for FormatError {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}

impl From<FlashError> for ReadError {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}

/// Why a write found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomError {
    Full,
    Flash(FlashError),
}

impl From<FlashError> for RoomError {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}

impl From<RoomError> for SetError {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::Full => Self::Full,
            RoomError::Flash(error) => Self::Flash(error),
        }
    }
}

impl From<RoomError> for DeleteError {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::Full => Self::Full,
            RoomError::Flash(error) => Self::Flash(error),
        }
    }
}

impl From<RoomError> for BatchError {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::Full => Self::Full,
            RoomError::Flash(error) => Self::Flash(error),
        }
    }
}
