//! The taking up of a database's file: whose it is and what is beside it, before anything of it is changed.
//!
//! Invariants:
//! - A file that is no hub's, or a newer hub's, is left byte for byte as it is.
//! - Where a hub's records were and are gone, no new hub begins by itself.
//! - The log beside a file is never folded into a copy that was put into its place.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::error::DatabaseError;
use super::lock::{Lock, failed};
use super::migrations::{Whose, look, migrate, unmark};
use super::{reserve, sqlite};

/// Takes up the database at `path`, or makes one, and brings it to this program's version. A full disk has it give up the
/// reserve.
///
/// # Errors
/// It isn't a hub's that can be taken up, or the file system or SQLite refuses.
pub(super) fn take_up(path: &Path, lock: &Lock) -> Result<Connection, DatabaseError> {
    match try_to_take_up(path, lock) {
        Err(DatabaseError::Sql(error)) if error.is_full() && reserve::give_up(path) => {
            try_to_take_up(path, lock)
        }
        taken => taken,
    }
}

fn try_to_take_up(path: &Path, lock: &Lock) -> Result<Connection, DatabaseError> {
    let bytes = match fs::metadata(path) {
        Ok(seen) => seen.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(failed("look at", path)(error)),
    };
    let has_log = has_log(path);
    if bytes > 0 {
        check(path, has_log)?;
    } else if lock.has_database() || has_log {
        return Err(DatabaseError::Gone(path.to_path_buf()));
    }
    let mut connection = sqlite::open_or_make(path)?;
    migrate(&mut connection)?;
    lock.note_database();
    Ok(connection)
}

/// Checks whose it is, by the file alone.
fn check(path: &Path, has_log: bool) -> Result<(), DatabaseError> {
    match whose(path) {
        Ok(Whose::Copy) if has_log => Err(DatabaseError::CopyBesideLog(path.to_path_buf())),
        Ok(Whose::Copy) => unmark(path),
        Ok(Whose::Hub | Whose::Blank) => Ok(()),
        // A file that is whole only together with its log.
        Err(DatabaseError::Sql(_)) if has_log => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whose the file is, without its log, and without another file that SQLite would make beside it.
pub(super) fn whose(path: &Path) -> Result<Whose, DatabaseError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    look(&Connection::open_with_flags(immutable(path), flags)?)
}

/// The address of a file that SQLite takes for one that nobody changes (sqlite.org/uri.html).
fn immutable(path: &Path) -> String {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            // Writing to a string doesn't fail.
            byte => drop(write!(address, "%{byte:02X}")),
        }
    }
    address + "?immutable=1"
}

/// Whether a log with something in it is beside the file.
fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|seen| seen.len() > 0)
}

/// The files that SQLite has beside a database.
pub(super) fn all_beside(path: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|suffix| beside(path, suffix))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
