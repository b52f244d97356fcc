//! Deletions by time: each is counted in the audit log, in one entry for all rows of an owner.

use tenure_wire::printable::counted;

use super::audit;
use super::sql::{self, Connection, ToSql};

/// The rows of a table that are over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over<'a> {
    pub(crate) table: &'a str,
    /// The column of their owner.
    pub(crate) owner: &'a str,
    /// The condition, of parameters.
    pub(crate) condition: &'a str,
    /// The word for one of them in the audit log.
    pub(crate) one: &'a str,
}

/// Deletes them, at the moment `unix_s`.
///
/// # Errors
/// The database fails.
pub(crate) fn forget(
    connection: &Connection,
    over: &Over<'_>,
    parameters: &[&dyn ToSql],
    unix_s: u64,
) -> Result<(), sql::Error> {
    let Over { table, owner, condition, one } = over;
    // As a rule there is none, which an index tells; counting by owner would read the whole table.
    let first = format!("SELECT {owner} FROM {table} WHERE {condition} LIMIT 1");
    let first: Vec<String> =
        connection.statement(&first).query_map(parameters, |row| row.get(0))?;
    if first.is_empty() {
        return Ok(());
    }
    let count = format!(
        "SELECT {owner}, count(*) FROM {table} WHERE {condition} GROUP BY {owner} ORDER BY {owner}"
    );
    let row = |row: &sql::Row<'_>| Ok((row.get::<String>(0)?, row.get::<i64>(1)?));
    let counts: Vec<(String, i64)> = connection.statement(&count).query_map(parameters, row)?;
    let delete = format!("DELETE FROM {table} WHERE {condition}");
    connection.statement(&delete).execute(parameters)?;
    for (owner, count) in counts {
        let detail = counted(count.unsigned_abs(), one);
        let (who, by, action, subject) = ("hub", "", "forgotten, as it was over", "");
        let (detail, owner) = (detail.as_str(), owner.as_str());
        audit::append(
            connection,
            &audit::Event { unix_s, who, by, action, subject, detail, owner },
        )?;
    }
    Ok(())
}
