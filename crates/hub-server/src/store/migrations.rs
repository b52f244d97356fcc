//! Brings a database to the version of this program, forward only.

use rusqlite::{Connection, TransactionBehavior};

use super::error::DatabaseError;

/// The number that tells a hub's database from any other SQLite file: "TnHb".
const APPLICATION_ID: i64 = 0x546E_4862;

/// The steps from each version to the next.
const STEPS: [&str; 12] = [
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
];

/// Checks whose database it is, and brings it to this program's version in one transaction.
///
/// # Errors
/// It is another program's, or a newer version's, or SQLite fails; nothing was changed.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), DatabaseError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |pragma: &str| -> Result<i64, rusqlite::Error> {
        transaction.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
    };
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let (application, version) = (number("application_id")?, number("user_version")?);
    let is_blank = tables == 0 && application == 0;
    if application != APPLICATION_ID && !is_blank {
        return Err(DatabaseError::Foreign);
    }
    let done = usize::try_from(version).map_err(|_| DatabaseError::Foreign)?;
    if done > STEPS.len() {
        return Err(DatabaseError::Newer { version, known: STEPS.len() as i64 });
    }
    for step in &STEPS[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", STEPS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}
