//! Copies of the database while a hub runs on it, and their way back.
//!
//! Invariant: a copy is marked until a hub takes it up, so that the log of other records is never folded into it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::Database;
use super::error::DatabaseError;
use super::lock::{failed, lock, private, sync_folder};
use super::migrations::{Whose, look, mark};
use super::opening::all_beside;
use super::sqlite::open_to_read;

/// How many pages a backup copies at a time.
const PAGES: i32 = 256;

impl Database {
    /// Copies the database at `from` to the new file `to` while a hub may run on it: the copy is of one
    /// moment. The copy holds the hub's seed, and is readable by its user alone.
    ///
    /// # Errors
    /// There is no database, `to` exists, or the disk is full; no half copy is left.
    pub fn back_up(from: &Path, to: &Path) -> Result<(), DatabaseError> {
        let mut source = open_to_read(from)?;
        make(&mut source, from, to)
    }

    /// Puts a copy in the place of the database at `to`, on which no hub runs. What was there is gone then.
    ///
    /// # Errors
    /// `from` is no hub's database, or damaged; a hub runs there; or the file system refuses. The database at `to` is as it
    /// was before, unless the error says that files beside it can't be deleted: the same command goes on then.
    pub fn restore(from: &Path, to: &Path) -> Result<(), DatabaseError> {
        let lock = lock(to)?;
        let mut source = open_to_read(from)?;
        if look(&source)? == Whose::Blank {
            return Err(DatabaseError::Foreign);
        }
        let copy = to.with_extension("restored");
        delete(&copy)?;
        make(&mut source, from, &copy)?;
        // The mark keeps a hub from starting on it until what is beside it is gone.
        fs::rename(&copy, to).map_err(failed("replace", to))?;
        // A power cut that kept what follows, and not that, would leave the database of before without its log.
        sync_folder(to)?;
        all_beside(to).iter().try_for_each(|path| delete(path))?;
        sync_folder(to)?;
        lock.note_database();
        Ok(())
    }
}

fn delete(path: &Path) -> Result<(), DatabaseError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("delete", path)(error)),
        _ => Ok(()),
    }
}

/// Makes the new file `to`, or nothing.
fn make(source: &mut Connection, from: &Path, to: &Path) -> Result<(), DatabaseError> {
    let file = private().write(true).create_new(true).open(to);
    drop(file.map_err(failed("make", to))?);
    // What is beside a file that wasn't there belongs to another one that was.
    let copied = all_beside(to).iter().try_for_each(|path| delete(path));
    let copied = copied.and_then(|()| copy(source, from, to));
    if copied.is_err() {
        let _ = fs::remove_file(to);
        for path in all_beside(to) {
            let _ = fs::remove_file(path);
        }
    }
    copied
}

fn copy(source: &mut Connection, from: &Path, to: &Path) -> Result<(), DatabaseError> {
    let mut target = Connection::open(to)?;
    target.pragma_update(None, "synchronous", "FULL")?;
    // A backup begins anew when another connection has written between two of its steps, so that one beside a
    // steady writer would never end. Its first read holds the snapshot; writers go on in the log meanwhile.
    let snapshot = source.transaction()?;
    snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Backup::new(&snapshot, &mut target)?.run_to_completion(PAGES, Duration::ZERO, None)?;
    drop(snapshot);
    let verdict: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(DatabaseError::Damaged(from.to_path_buf()));
    }
    // A copy is one file; whoever opens it as a hub's turns the log on again.
    target.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    Ok(mark(&target)?)
}
