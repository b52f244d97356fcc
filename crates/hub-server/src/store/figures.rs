//! Figures that the database keeps by triggers, so that nobody counts a table for them.

use rusqlite::Connection;

/// How many devices are listed, whosever they are.
///
/// # Errors
/// SQLite fails.
pub(crate) fn devices(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let value = "SELECT value FROM figures WHERE name = 'devices'";
    connection.prepare_cached(value)?.query_row([], |row| row.get(0))
}
