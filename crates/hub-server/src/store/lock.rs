//! The files of a database: its lock, and the rights with which they are made.
//!
//! Invariant: a file that SQLite may have open in this process is opened by SQLite alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::error::DatabaseError;

/// The words in a lock beside which there is a database.
const NOTE: &[u8] = b"a hub's database is beside this\n";

/// The lock beside a database.
pub(super) struct Lock(File);

impl Lock {
    /// Whether a database was made beside it before.
    pub(super) fn has_database(&self) -> bool {
        self.0.metadata().is_ok_and(|seen| seen.len() > 0)
    }

    /// Notes that a database is beside it, so that one which is gone isn't taken for one that never was. A disk without room
    /// for the note goes without it.
    pub(super) fn note_database(&self) {
        if !self.has_database() {
            let mut file = &self.0;
            let _ = file.write_all(NOTE).and_then(|()| file.sync_data());
        }
    }

    /// Notes that the database was taken away in order.
    pub(super) fn forget_database(&self) -> Result<(), std::io::Error> {
        self.0.set_len(0)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing isn't enough: a process that is being started holds the file until it has become another program.
        // A lock that can't be let go of ends when both have closed it.
        let _ = self.0.unlock();
    }
}

/// Takes the lock beside the database at `path`.
pub(super) fn lock(path: &Path) -> Result<Lock, DatabaseError> {
    let beside = path.with_extension("lock");
    let file = private().write(true).create(true).truncate(false).open(&beside);
    let file = file.map_err(failed("open", &beside))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(DatabaseError::InUse(path.to_path_buf())),
        Err(TryLockError::Error(source)) => Err(failed("lock", &beside)(source)),
    }
}

/// Waits until the names in the folder of the file at `path` are on the disk: a file that was made, renamed or deleted isn't
/// so for good before.
pub(super) fn sync_folder(path: &Path) -> Result<(), DatabaseError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
}

/// Makes the file, readable by its user alone, before SQLite would with the usual rights. One that is there isn't opened:
/// a process that closes any descriptor of a file loses all its locks on it (POSIX.1 fcntl; "How To Corrupt An SQLite
/// Database File" §2.2).
pub(super) fn create_private(path: &Path) -> Result<(), DatabaseError> {
    match private().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => {
            made.map(drop).map_err(failed("make", path))?;
            // SQLite waits for the names in the folder with its first commit; the folder may be new itself.
            if let Some(folder) = path.parent().filter(|folder| folder.parent().is_some()) {
                let _ = sync_folder(folder);
            }
            Ok(())
        }
    }
}

pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub(super) fn failed(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> DatabaseError {
    let path = path.to_path_buf();
    move |source| DatabaseError::File { action, path, source }
}
