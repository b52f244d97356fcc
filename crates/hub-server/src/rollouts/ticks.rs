//! The clock's tick: rollouts take the steps that are due though nobody asks.

use super::{advance, find, work};
use crate::store::sql::{self, Connection};

/// The most rollouts that one tick steps; the others have their turn at the next ones.
const AT_ONCE: i64 = 16;

/// The rollouts that are under way behind the number `after`, with their owners; from the first one on if there is
/// none behind.
///
/// # Errors
/// The database fails.
pub(crate) fn open_after(
    connection: &Connection,
    after: i64,
) -> Result<Vec<(String, i64)>, sql::Error> {
    let query = "SELECT who, id FROM rollouts WHERE state IN ('running', 'paused', 'rolling back') AND id > ?1 \
         ORDER BY id LIMIT ?2";
    let statement = connection.statement(query);
    let behind = |after: i64| -> Result<Vec<(String, i64)>, sql::Error> {
        statement.query_map([after, AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?)))
    };
    let found = behind(after)?;
    if found.is_empty() && after > 0 { behind(0) } else { Ok(found) }
}

/// Takes the steps that are due in those rollouts.
///
/// # Errors
/// The database fails.
pub(crate) fn tick(
    connection: &Connection,
    open: &[(String, i64)],
    unix_s: u64,
    hub_hears_since_unix_s: u64,
) -> Result<(), sql::Error> {
    for (who, id) in open {
        let exchange = work::exchange_of(who, unix_s, hub_hears_since_unix_s);
        if let Some(rollout) = find(connection, who, *id)? {
            advance::advance(connection, &exchange, &rollout)?;
        }
    }
    Ok(())
}
