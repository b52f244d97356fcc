//! Copies of the database while a hub runs on it.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::Database;
use super::error::DatabaseError;
use super::lock::{failed, private};
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
        let file = private().write(true).create_new(true).open(to);
        drop(file.map_err(failed("make", to))?);
        let copied = copy(&mut source, to);
        if copied.is_err() {
            let _ = std::fs::remove_file(to);
        }
        copied
    }
}

fn copy(source: &mut Connection, to: &Path) -> Result<(), DatabaseError> {
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
        return Err(DatabaseError::Foreign);
    }
    // A copy is one file; whoever opens it as a hub's turns the log on again.
    target.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    Ok(())
}
