//! Figures that the database keeps by triggers, so that nobody counts a table for them.

use super::sql::{self, Connection};

/// How many devices are listed, whosever they are.
///
/// # Errors
/// The database fails.
pub(crate) fn devices(connection: &Connection) -> Result<i64, sql::Error> {
    let value = "SELECT value FROM figures WHERE name = 'devices'";
    connection.statement(value).query_row([], |row| row.get(0))
}
