//! Brings a database to the version of this program, forward only.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::DatabaseError;
use super::schema;

/// The number that tells a hub's database from any other SQLite file: "TnHb".
const APPLICATION_ID: i64 = 0x546E_4862;

/// The steps from each version to the next.
const STEPS: [&str; 16] = [
    include_str!("../../migrations/1.sql"),
    include_str!("../../migrations/2.sql"),
    include_str!("../../migrations/3.sql"),
    include_str!("../../migrations/4.sql"),
    include_str!("../../migrations/5.sql"),
    include_str!("../../migrations/6.sql"),
    include_str!("../../migrations/7.sql"),
    include_str!("../../migrations/8.sql"),
    include_str!("../../migrations/9.sql"),
    include_str!("../../migrations/10.sql"),
    include_str!("../../migrations/11.sql"),
    include_str!("../../migrations/12.sql"),
    include_str!("../../migrations/13.sql"),
    include_str!("../../migrations/14.sql"),
    include_str!("../../migrations/15.sql"),
    include_str!("../../migrations/16.sql"),
];

/// The same of a copy that nothing was written to since: "TnHc".
const COPY_ID: i64 = 0x546E_4863;

/// Whose a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A hub's.
    Hub,
    /// A copy of a hub's.
    Copy,
    /// Nobody's yet.
    Blank,
}

/// Looks whose database it is.
///
/// # Errors
/// It is another program's, or a newer version's, or SQLite fails.
pub(super) fn look(connection: &Connection) -> Result<Whose, DatabaseError> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let whose = match number(connection, "application_id")? {
        APPLICATION_ID => Whose::Hub,
        COPY_ID => Whose::Copy,
        0 if tables == 0 => Whose::Blank,
        _ => return Err(DatabaseError::Foreign),
    };
    let (version, known) = (number(connection, "user_version")?, STEPS.len() as i64);
    match version {
        0.. if version <= known => Ok(whose),
        0.. => Err(DatabaseError::Newer { version, known }),
        _ => Err(DatabaseError::Foreign),
    }
}

fn number(connection: &Connection, pragma: &str) -> Result<i64, rusqlite::Error> {
    connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
}

/// Marks a database as a copy.
///
/// # Errors
/// SQLite fails.
pub(super) fn mark(copy: &Connection) -> Result<(), rusqlite::Error> {
    copy.pragma_update(None, "application_id", COPY_ID)
}

/// Makes a copy a hub's database, before it has a log: one that is killed after that leaves none beside a copy.
///
/// # Errors
/// SQLite fails.
pub(super) fn unmark(path: &Path) -> Result<(), DatabaseError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copy = Connection::open_with_flags(path, flags)?;
    Ok(copy.pragma_update(None, "application_id", APPLICATION_ID)?)
}

/// Checks whose database it is, and brings it to this program's version in one transaction. Where nothing is due, nothing is
/// written: a hub whose disk is full is to start again.
///
/// # Errors
/// It is another program's, or a newer version's, or SQLite fails; nothing was changed.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), DatabaseError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let whose = look(&transaction)?;
    let done = number(&transaction, "user_version")?;
    let done = usize::try_from(done).map_err(|_| DatabaseError::Foreign)?;
    schema::check(&transaction, STEPS.get(..done).unwrap_or(&STEPS))?;
    if whose == Whose::Hub && done == STEPS.len() {
        return Ok(());
    }
    for step in STEPS.get(done..).unwrap_or_default() {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", STEPS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}

/// Checks that a file is a hub's or a copy of one, of a version that this program knows, with the schema of that version.
///
/// # Errors
/// It isn't, or SQLite fails.
pub(super) fn check(connection: &Connection) -> Result<(), DatabaseError> {
    if look(connection)? == Whose::Blank {
        return Err(DatabaseError::Foreign);
    }
    let done = usize::try_from(number(connection, "user_version")?);
    let done = done.map_err(|_| DatabaseError::Foreign)?;
    schema::check(connection, STEPS.get(..done).unwrap_or(&STEPS))
}
