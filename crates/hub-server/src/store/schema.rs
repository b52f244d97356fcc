//! What a database in a file may bring along: the schema of its version, and no row beyond a length. Whoever wrote the file, or
//! made the backup that is restored, may have meant harm: a view computes in the place of a table, a trigger beside each write.
//!
//! Tables and indexes that somebody added stay as they are: they compute nothing by themselves.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use tenure_wire::printable::printable;

use super::error::DatabaseError;

/// The longest value and the longest row of a database that is written to, in bytes: far more than a package has.
const BYTES_MAX: i32 = 32 << 20;
/// The same of one that is read alone, of whose audit log and records each row is short.
const BYTES_READ_MAX: i32 = 1 << 20;
/// The longest name that an error shows, in characters.
const NAME_CHARS_MAX: usize = 64;

/// An object of a schema.
#[derive(Debug, PartialEq, Eq)]
struct Object {
    kind: String,
    table: String,
    sql: Option<String>,
}

/// Bounds what a connection takes of a file.
///
/// # Errors
/// SQLite refuses.
pub(super) fn confine(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, BYTES_MAX)?;
    connection.pragma_update(None, "trusted_schema", false)
}

/// Bounds what a connection takes that reads alone: it needs no view and no trigger.
///
/// # Errors
/// SQLite refuses.
pub(super) fn confine_to_read(connection: &Connection) -> Result<(), rusqlite::Error> {
    confine(connection)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, BYTES_READ_MAX)?;
    for config in [DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER]
    {
        connection.set_db_config(config, false)?;
    }
    Ok(())
}

/// Checks that what computes in a file, and what is called as an object of ours, is as these steps make it.
///
/// # Errors
/// It isn't, or SQLite fails.
pub(super) fn check(connection: &Connection, steps: &[&str]) -> Result<(), DatabaseError> {
    let ours = Connection::open_in_memory()?;
    for step in steps {
        ours.execute_batch(step)?;
    }
    let ours = objects(&ours)?;
    for (name, object) in objects(connection)? {
        let is_good = match ours.get(&name) {
            Some(known) => *known == object,
            None => !object.computes(),
        };
        if !is_good {
            let name: String = printable(&name).chars().take(NAME_CHARS_MAX).collect();
            return Err(DatabaseError::Schema(name));
        }
    }
    Ok(())
}

impl Object {
    /// Whether it does something where a table is read or written.
    fn computes(&self) -> bool {
        let words = self.sql.as_deref().unwrap_or("").split_whitespace();
        let is_virtual = words.take(2).any(|word| word.eq_ignore_ascii_case("virtual"));
        !matches!(&*self.kind, "table" | "index") || is_virtual
    }
}

fn objects(connection: &Connection) -> Result<BTreeMap<String, Object>, rusqlite::Error> {
    let mut statement =
        connection.prepare("SELECT name, type, tbl_name, sql FROM main.sqlite_schema")?;
    let object = |row: &rusqlite::Row<'_>| {
        let object = Object { kind: row.get(1)?, table: row.get(2)?, sql: row.get(3)? };
        Ok((row.get(0)?, object))
    };
    statement.query_map([], object)?.collect()
}
