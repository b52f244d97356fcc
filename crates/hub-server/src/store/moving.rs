//! Moves a hub's records from one database to another, whichever engines they are on.
//!
//! Invariants:
//! - No hub runs on either of them meanwhile: both locks are held.
//! - A move that broke off goes on where it stopped: each table is copied in the order of its key, so that the last row
//!   that is there says what comes next.
//! - The old database is retired only after each table of the new one has as many rows and the same digest, and its audit
//!   log ends as the old one's does. It keeps its records; no hub starts on it any more.

mod tables;

use std::fmt;

use tenure_crypto::sha256;

use super::audit;
use super::database::Database;
use super::engine::{Begin, Dialect, Next};
use super::error::DatabaseError;
use super::location::{Location, Place};
use super::lock::{failed as lock_failed, sync_folder};
use super::sql::{self, Connection, OptionalExtension as _, Row, Value};
use tables::{NUMBERED, TABLES, Table};

/// The most rows, and about how many bytes, that are copied in one transaction.
const ROWS_AT_ONCE: i64 = 256;
const BYTES_AT_ONCE: usize = 4 << 20;

/// A table that was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Its name.
    pub table: &'static str,
    /// How many rows it has.
    pub rows: u64,
    /// The digest of all of them.
    pub digest: String,
}

/// Why records can't be moved. Nothing of the old database was changed.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The old database.
    #[error("the database to move from: {0}")]
    From(DatabaseError),
    /// The new database.
    #[error("the database to move to: {0}")]
    To(DatabaseError),
    /// There is no hub in the old database.
    #[error("{0} holds no hub's records")]
    Empty(Location),
    /// The new database has a hub of its own.
    #[error("{0} holds another hub's records, or went on by itself since; name an empty database")]
    Taken(Location),
    /// What arrived isn't what was sent.
    #[error(
        "the table {table} isn't the same in both: {from} there, {to} here; nothing was retired"
    )]
    Differs {
        /// The table.
        table: &'static str,
        /// As it is in the old database.
        from: String,
        /// As it is in the new one.
        to: String,
    },
    /// The audit log is broken, or ends differently.
    #[error("the audit log isn't whole, or doesn't end alike in both; nothing was retired")]
    Audit,
}

/// A row, out of its statement.
struct Owned(Vec<Cell>);

enum Cell {
    Null,
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl Database {
    /// Moves all records from one database to another, empty one, or goes on with a move that broke off. `tell` hears of
    /// each table once it is there.
    ///
    /// # Errors
    /// See [`MoveError`].
    pub fn move_all(
        from: &Location,
        to: &Location,
        tell: &mut dyn FnMut(&Copied),
    ) -> Result<(), MoveError> {
        if !from.exists() {
            return Err(MoveError::Empty(from.clone()));
        }
        let old = Self::open_alone(from).map_err(MoveError::From)?;
        let new = Self::open_alone(to).map_err(MoveError::To)?;
        let (old, new) = (&old.connection, &new.connection);
        check(old, new, from, to)?;
        for table in &TABLES {
            copy(old, new, table)?;
        }
        finish(new).map_err(at_new)?;
        for table in &TABLES {
            let (there, here) =
                (sum(old, table).map_err(at_old)?, sum(new, table).map_err(at_new)?);
            if there != here {
                let (from, to) = (there.to_string(), here.to_string());
                return Err(MoveError::Differs { table: table.name, from, to });
            }
            tell(&here);
        }
        let (there, here) =
            (audit::verify(old).map_err(at_old)?, audit::verify(new).map_err(at_new)?);
        if there.is_err() || there != here {
            return Err(MoveError::Audit);
        }
        Ok(())
    }

    /// Keeps hubs from starting on a database whose records were moved; the records stay there.
    ///
    /// # Errors
    /// The database or the file system refuses, or a hub runs there.
    pub fn retire(location: &Location) -> Result<String, DatabaseError> {
        match location.place() {
            Place::File(path) => {
                let database = Self::open(location)?;
                // A log beside the file, which another one that reads keeps there, would stay under the old name.
                let empty_log = database.connection.statement("PRAGMA wal_checkpoint(TRUNCATE)");
                if empty_log.query_row([], |row| row.get::<bool>(0))? {
                    return Err(DatabaseError::InUse(path.clone()));
                }
                // It holds the lock until all is done.
                let lock = database.into_lock();
                let moved = path.with_extension("sqlite.moved");
                let renamed = std::fs::rename(path, &moved);
                renamed.map_err(|source| DatabaseError::File {
                    action: "rename",
                    path: path.clone(),
                    source,
                })?;
                // A power cut must not bring it back under its name.
                sync_folder(path)?;
                if let Some(lock) = &lock {
                    lock.forget_database().map_err(lock_failed("empty", path))?;
                }
                Ok(moved.display().to_string())
            }
            Place::Server(_) => {
                let database = Self::open_alone(location)?;
                let rename = "ALTER TABLE identity RENAME TO identity_moved";
                database.connection.statement(rename).execute([])?;
                Ok(format!("the table identity_moved of {location}"))
            }
        }
    }
}

/// Whether the new database is empty, or has the beginning of the old one's records.
fn check(
    old: &Connection,
    new: &Connection,
    from: &Location,
    to: &Location,
) -> Result<(), MoveError> {
    let Some(identity) = seed(old).map_err(at_old)? else {
        return Err(MoveError::Empty(from.clone()));
    };
    let taken = || Err(MoveError::Taken(to.clone()));
    match seed(new).map_err(at_new)? {
        Some(known) if known != identity => return taken(),
        Some(_) => {}
        None => {
            let is_empty = |table: &Table| -> Result<bool, sql::Error> {
                Ok(!new.statement(&format!("SELECT 1 FROM {}", table.name)).exists([])?)
            };
            for table in &TABLES {
                if !is_empty(table).map_err(at_new)? {
                    return taken();
                }
            }
        }
    }
    let Some((number, hash)) = last_entry(new).map_err(at_new)? else { return Ok(()) };
    let known = "SELECT hash FROM audit WHERE number = ?1";
    let known: Option<Vec<u8>> =
        old.statement(known).query_row([number], |row| row.get(0)).optional().map_err(at_old)?;
    if known == Some(hash) { Ok(()) } else { taken() }
}

fn seed(connection: &Connection) -> Result<Option<Vec<u8>>, sql::Error> {
    connection
        .statement("SELECT seed FROM identity WHERE id = 1")
        .query_row([], |row| row.get(0))
        .optional()
}

fn last_entry(connection: &Connection) -> Result<Option<(i64, Vec<u8>)>, sql::Error> {
    let last = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";
    connection.statement(last).query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// Reads the first and the last row of each table.
///
/// # Errors
/// One can't be read.
pub(super) fn read_each(connection: &Connection) -> Result<(), sql::Error> {
    for table in &TABLES {
        let first = format!("SELECT {} FROM {} LIMIT 1", table.key_list(), table.name);
        connection.statement(&first).exists([])?;
        last_key(connection, table)?;
    }
    Ok(())
}

/// Copies the rows of a table that aren't in the new database yet.
fn copy(old: &Connection, new: &Connection, table: &Table) -> Result<(), MoveError> {
    let mut last = last_key(new, table).map_err(at_new)?;
    loop {
        let rows = after(old, table, last.as_ref()).map_err(at_old)?;
        let Some(end) = rows.last() else { return Ok(()) };
        let key = Owned(end.0[..table.key].iter().map(Cell::copy).collect());
        insert(new, table, &rows).map_err(at_new)?;
        last = Some(key);
    }
}

/// The key of the last row of a table.
fn last_key(connection: &Connection, table: &Table) -> Result<Option<Owned>, sql::Error> {
    let key = table.key_list();
    let backwards: Vec<String> =
        table.columns().take(table.key).map(|column| format!("{column} DESC")).collect();
    let (name, backwards) = (table.name, backwards.join(", "));
    let query = format!("SELECT {key} FROM {name} ORDER BY {backwards} LIMIT 1");
    connection.statement(&query).query_row([], |row| Owned::read(row, table.key)).optional()
}

/// The next rows of a table behind a key.
fn after(
    connection: &Connection,
    table: &Table,
    last: Option<&Owned>,
) -> Result<Vec<Owned>, sql::Error> {
    let (key, name, list) = (table.key_list(), table.name, table.list());
    let count = table.columns().count();
    let behind = match last {
        Some(_) => format!("WHERE ({key}) > ({})", places(table.key)),
        None => String::new(),
    };
    let query = format!("SELECT {list} FROM {name} {behind} ORDER BY {key} LIMIT {ROWS_AT_ONCE}");
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let values: Vec<Value<'_>> = last.map(Owned::values).unwrap_or_default();
    connection.statement(&query).each(values.as_slice(), |row| {
        let row = Owned::read(row, count)?;
        bytes += row.bytes();
        rows.push(row);
        Ok(if bytes < BYTES_AT_ONCE { Next::Row } else { Next::Enough })
    })?;
    Ok(rows)
}

fn insert(connection: &Connection, table: &Table, rows: &[Owned]) -> Result<(), sql::Error> {
    let (name, list) = (table.name, table.list());
    let places = places(table.columns().count());
    let insert = format!("INSERT INTO {name} ({list}) VALUES ({places})");
    within(connection, || {
        let insert = connection.statement(&insert);
        rows.iter().try_for_each(|row| insert.execute(row.values().as_slice()).map(drop))
    })
}

/// Makes the counts of what was copied anew, and has the database give numbers behind those that were copied.
fn finish(connection: &Connection) -> Result<(), sql::Error> {
    within(connection, || {
        for text in [
            "DELETE FROM rollout_counts",
            "INSERT INTO rollout_counts (rollout, state, devices) \
             SELECT rollout, state, count(*) FROM rollout_devices GROUP BY rollout, state UNION ALL \
             SELECT rollout, 'held', count(*) FROM rollout_devices WHERE held <> '' GROUP BY rollout",
            "DELETE FROM rollout_holds",
            "INSERT INTO rollout_holds (rollout, held, devices) \
             SELECT rollout, held, count(*) FROM rollout_devices WHERE held <> '' GROUP BY rollout, held",
            "UPDATE figures SET value = (SELECT count(*) FROM devices WHERE length(kept) > 0) WHERE name = 'devices'",
        ] {
            connection.statement(text).execute([])?;
        }
        if connection.dialect() == Dialect::Postgres {
            for table in NUMBERED {
                let next = format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', 'id'), coalesce(max(id), 0) + 1, false) FROM {table}"
                );
                connection.statement(&next).query_row([], |row| row.get::<i64>(0))?;
            }
        }
        Ok(())
    })
}

fn within(
    connection: &Connection,
    action: impl FnOnce() -> Result<(), sql::Error>,
) -> Result<(), sql::Error> {
    connection.begin(Begin::ToWrite)?;
    action().and_then(|()| connection.commit()).inspect_err(|_| connection.roll_back())
}

/// How many rows a table has, and their digest: a hash over the hash before and the row, in the order of their keys.
fn sum(connection: &Connection, table: &Table) -> Result<Copied, sql::Error> {
    let (key, name, list) = (table.key_list(), table.name, table.list());
    let count = table.columns().count();
    let query = format!("SELECT {list} FROM {name} ORDER BY {key}");
    let (mut rows, mut digest) = (0, sha256(&[name.as_bytes(), list.as_bytes()]));
    connection.statement(&query).each([], |row| {
        rows += 1;
        digest = sha256(&[&digest.0, &Owned::read(row, count)?.encoded()]);
        Ok(Next::Row)
    })?;
    Ok(Copied { table: table.name, rows, digest: digest.to_string() })
}

fn places(count: usize) -> String {
    (1..=count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}

fn at_old(error: sql::Error) -> MoveError {
    MoveError::From(error.into())
}

fn at_new(error: sql::Error) -> MoveError {
    MoveError::To(error.into())
}

impl Owned {
    fn read(row: &Row<'_>, count: usize) -> Result<Self, sql::Error> {
        let cell = |column| {
            Ok(match row.value(column)? {
                Value::Null => Cell::Null,
                Value::Integer(number) => Cell::Integer(number),
                Value::Text(text) => Cell::Text(text.to_string()),
                Value::Blob(bytes) => Cell::Blob(bytes.to_vec()),
                Value::Real(_) | Value::Array(_) => {
                    let reason = "a fraction or a list".into();
                    return Err(sql::Error::Column { column, reason });
                }
            })
        };
        (0..count).map(cell).collect::<Result<_, _>>().map(Self)
    }

    fn values(&self) -> Vec<Value<'_>> {
        self.0.iter().map(Cell::value).collect()
    }

    fn bytes(&self) -> usize {
        let length = |cell: &Cell| match cell {
            Cell::Null | Cell::Integer(_) => 8,
            Cell::Text(text) => text.len(),
            Cell::Blob(bytes) => bytes.len(),
        };
        self.0.iter().map(length).sum()
    }

    /// Each value with its kind and its length before it.
    fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes() + 9 * self.0.len());
        for cell in &self.0 {
            let number;
            let (kind, content): (u8, &[u8]) = match cell {
                Cell::Null => (0, &[]),
                Cell::Integer(value) => {
                    number = value.to_le_bytes();
                    (1, &number)
                }
                Cell::Text(text) => (2, text.as_bytes()),
                Cell::Blob(content) => (3, content),
            };
            bytes.push(kind);
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content);
        }
        bytes
    }
}

impl Cell {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Integer(number) => Value::Integer(*number),
            Self::Text(text) => Value::Text(text),
            Self::Blob(bytes) => Value::Blob(bytes),
        }
    }

    fn copy(&self) -> Self {
        match self {
            Self::Null => Self::Null,
            Self::Integer(number) => Self::Integer(*number),
            Self::Text(text) => Self::Text(text.clone()),
            Self::Blob(bytes) => Self::Blob(bytes.clone()),
        }
    }
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, rows, digest } = self;
        write!(f, "{table}: {rows} rows, {digest}")
    }
}

#[cfg(test)]
mod tests;
