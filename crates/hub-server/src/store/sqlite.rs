//! SQLite as a hub's database: one file, and nothing to install.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, params_from_iter};

use super::engine::{Begin, Dialect, Engine, Next, Room};
use super::error::DatabaseError;
use super::lock::{create_private, failed};
use super::reserve;
use super::schema;
use super::sql::{Columns, Error, Row, Value};

/// How long a write waits for that of another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The pages below its limit at which a database counts as full.
const PAGES_LEFT: i64 = 16;

/// A connection to the file.
pub(super) struct Sqlite {
    connection: Connection,
    /// The file that it writes to; none if it reads alone.
    file: Option<OpenFile>,
}

/// A file that is open, and where it was.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Opens the file at `path`, or makes one that its user alone reads. No connection to it is open in this process.
///
/// # Errors
/// The file system or SQLite refuses.
pub(super) fn open_or_make(path: &Path) -> Result<Connection, DatabaseError> {
    create_private(path)?;
    open(path)
}

/// Opens the file at `path`, which is there.
///
/// # Errors
/// SQLite refuses, or there is none.
pub(super) fn open(path: &Path) -> Result<Connection, DatabaseError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    schema::confine(&connection)?;
    // The answer is the new mode; a file system without shared memory keeps the old one, which is as safe.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Opens the file at `path` to read alone.
///
/// # Errors
/// SQLite refuses, or there is none.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    schema::confine_to_read(&connection)?;
    Ok(connection)
}

impl OpenFile {
    /// The file at `path`, which a connection has open.
    ///
    /// # Errors
    /// It can't be looked at.
    pub(super) fn at(path: &Path) -> Result<Self, DatabaseError> {
        let seen = fs::metadata(path).map_err(failed("look at", path))?;
        Ok(Self { path: path.to_path_buf(), device: seen.dev(), inode: seen.ino() })
    }

    /// Whether it is still there. It isn't opened for that: the locks of this process would be gone.
    fn is_in_place(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(seen) => (seen.dev(), seen.ino()) == (self.device, self.inode),
            // A file system that fails says so to whoever reads or writes there.
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

impl Sqlite {
    /// A connection that reads alone.
    pub(super) fn to_read(connection: Connection) -> Self {
        Self { connection, file: None }
    }

    /// A connection that writes to `file`.
    pub(super) fn on(connection: Connection, file: OpenFile) -> Self {
        Self { connection, file: Some(file) }
    }

    fn pragma(&self, name: &str) -> Result<i64, Error> {
        Ok(self.connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
    }

    fn batch(&self, text: &str) -> Result<(), Error> {
        Ok(self.connection.execute_batch(text)?)
    }
}

impl Engine for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn execute(&self, text: &str, values: &[Value<'_>]) -> Result<usize, Error> {
        Ok(self.connection.prepare_cached(text)?.execute(params_from_iter(values))?)
    }

    fn query(
        &self,
        text: &str,
        values: &[Value<'_>],
        see: &mut dyn FnMut(&Row<'_>) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached(text)?;
        each(&mut statement, values, see)
    }

    fn exists(&self, text: &str, values: &[Value<'_>]) -> Result<bool, Error> {
        Ok(self.connection.prepare_cached(text)?.exists(params_from_iter(values))?)
    }

    fn begin(&self, how: Begin) -> Result<(), Error> {
        self.batch(match how {
            Begin::ToRead => "BEGIN DEFERRED",
            // Another process that writes, as a restore might, is waited for by SQLite.
            Begin::ToWrite => "BEGIN IMMEDIATE",
        })
    }

    /// What goes to a file that nobody finds again isn't kept.
    fn commit(&self) -> Result<(), Error> {
        self.check_place()?;
        self.batch("COMMIT")
    }

    fn check_place(&self) -> Result<(), Error> {
        match &self.file {
            Some(file) if !file.is_in_place() => Err(Error::Replaced(file.path.clone())),
            _ => Ok(()),
        }
    }

    fn roll_back(&self) -> Result<(), Error> {
        self.batch("ROLLBACK")
    }

    fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// What the log holds goes to its places in the file, and the log is written again from its beginning: a record that is
    /// renewed needs no room then.
    fn make_room(&self) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_at_its_limit()) else {
            return false;
        };
        let is_given_up = reserve::give_up(&file.path);
        let folded = "PRAGMA wal_checkpoint(PASSIVE)";
        let folded = self
            .connection
            .query_row(folded, [], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
        is_given_up || folded.is_ok_and(|(log, folded)| log > 0 && log == folded)
    }

    fn keep_reserve(&self) {
        if let Some(file) = &self.file {
            reserve::keep(&file.path);
        }
    }

    fn lacks_room(&self) -> Result<bool, Error> {
        Ok(self.has_no_reserve() || self.is_at_its_limit())
    }

    /// Without its reserve it has no room for what people push and devices tell of their past.
    fn room(&self) -> Result<Room, Error> {
        let room = self.pages()?;
        Ok(if self.has_no_reserve() { Room { used: room.most, ..room } } else { room })
    }

    /// `max_page_count` is a connection's own.
    fn limit_pages(&self, pages: Option<u32>) -> Result<(), Error> {
        let pages = pages.map_or(i64::from(u32::MAX) - 1, i64::from);
        self.pragma(&format!("max_page_count = {pages}")).map(drop)
    }

    #[cfg(test)]
    fn sqlite(&self) -> Option<&Connection> {
        Some(&self.connection)
    }
}

impl Sqlite {
    fn has_no_reserve(&self) -> bool {
        self.file.as_ref().is_some_and(|file| reserve::is_given_up(&file.path))
    }

    fn is_at_its_limit(&self) -> bool {
        self.pages().is_ok_and(|Room { used, most, .. }| used + PAGES_LEFT > most)
    }

    fn pages(&self) -> Result<Room, Error> {
        let (most, page_bytes) = (self.pragma("max_page_count")?, self.pragma("page_size")?);
        let used = self.pragma("page_count")? - self.pragma("freelist_count")?;
        Ok(Room { used, most, page_bytes })
    }
}

fn each(
    statement: &mut Statement<'_>,
    values: &[Value<'_>],
    see: &mut dyn FnMut(&Row<'_>) -> Result<Next, Error>,
) -> Result<(), Error> {
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        if see(&Row::of(row))? == Next::Enough {
            break;
        }
    }
    Ok(())
}

impl Columns for rusqlite::Row<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, Error> {
        let text = |bytes| {
            std::str::from_utf8(bytes)
                .map_err(|error| Error::Column { column, reason: error.to_string() })
        };
        Ok(match self.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(bytes) => Value::Text(text(bytes)?),
            ValueRef::Blob(bytes) => Value::Blob(bytes),
        })
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>, rusqlite::Error> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Array(_) => {
                let reason = "SQLite takes no lists".into();
                return Err(rusqlite::Error::ToSqlConversionFailure(reason));
            }
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(number),
            Value::Real(number) => ValueRef::Real(number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
