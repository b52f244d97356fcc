//! Why a flash file can't be used.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::SECTOR_BYTES;

/// A flash file could not be opened or made.
#[derive(Debug)]
pub struct OpenError {
    /// Which file.
    pub path: PathBuf,
    /// The fault of the file.
    pub problem: OpenProblem,
}

/// The fault of a flash file.
#[derive(Debug)]
pub enum OpenProblem {
    /// Another process has it open.
    InUse,
    /// It is there and has another size than was asked for.
    WrongSize {
        /// Its size in bytes.
        bytes: u64,
        /// The size that was asked for.
        asked: u64,
    },
    /// That can't be the size of a flash: not a positive multiple of [`SECTOR_BYTES`].
    BadSize {
        /// The size in bytes.
        bytes: u64,
    },
    /// The folder that it should be in doesn't exist.
    NoFolder,
    /// There is no such file.
    NotFound,
    /// It is a folder.
    IsFolder,
    /// This user may not read and write it, or the file system is read-only.
    NotWritable,
    /// Other users may read or write it.
    Exposed,
    /// There is no room for it on the disk.
    DiskFull,
    /// Its file system can't show it as memory, or the system has no room for that.
    Unmapped(io::Error),
    /// The system says this.
    Io(io::Error),
}

impl OpenProblem {
    pub(super) fn of_open(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                if folder.is_some_and(|folder| !folder.is_dir()) {
                    Self::NoFolder
                } else {
                    Self::NotFound
                }
            }
            io::ErrorKind::NotADirectory => Self::NoFolder,
            io::ErrorKind::IsADirectory => Self::IsFolder,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable
            }
            _ => Self::from(error),
        }
    }
}

impl From<io::Error> for OpenProblem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            OpenProblem::InUse => write!(
                f,
                "{path} is in use by another process: stop that one, or use another data folder"
            ),
            OpenProblem::WrongSize { bytes, asked } => write!(
                f,
                "{path} has {bytes} bytes and not {asked}: it is no flash file, or one of another \
                 size; ask for {bytes} bytes, or use another data folder"
            ),
            OpenProblem::BadSize { bytes } => write!(
                f,
                "{path}: a flash can't have {bytes} bytes, only a multiple of {SECTOR_BYTES}"
            ),
            OpenProblem::NoFolder => {
                write!(f, "{path} can't be made: its folder doesn't exist; make it first")
            }
            OpenProblem::NotFound => write!(f, "{path} doesn't exist"),
            OpenProblem::IsFolder => write!(f, "{path} is a folder, not a flash file"),
            OpenProblem::NotWritable => write!(
                f,
                "{path} can't be written: check who owns it, and that its disk isn't read-only"
            ),
            OpenProblem::Exposed => write!(
                f,
                "{path} can be used by other users, and holds keys; make it yours alone with: chmod \
                 600 {path}"
            ),
            OpenProblem::DiskFull => write!(f, "{path} can't be made: the disk is full"),
            OpenProblem::Unmapped(error) => write!(
                f,
                "{path} can't be mapped into memory: {error}; use a data folder on another file system"
            ),
            OpenProblem::Io(error) => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            OpenProblem::Io(error) | OpenProblem::Unmapped(error) => Some(error),
            _ => None,
        }
    }
}

/// A flash can't be cut into those parts.
#[derive(Debug)]
pub enum SplitError {
    /// It has fewer sectors than its parts should have together.
    TooFewSectors {
        /// Sectors of all parts.
        asked: u64,
        /// Sectors of the flash.
        present: u32,
    },
    /// The system maps no more memory.
    Unmapped(io::Error),
}

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewSectors { asked, present } => {
                write!(f, "{asked} sectors were asked for, and the flash has {present}")
            }
            Self::Unmapped(error) => write!(f, "a part of the flash can't be mapped: {error}"),
        }
    }
}

impl std::error::Error for SplitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unmapped(error) => Some(error),
            Self::TooFewSectors { .. } => None,
        }
    }
}
