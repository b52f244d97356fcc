//! Statements and rows as the rooms above have them, whichever engine runs them.
//!
//! A statement is text with parameters `?1`, `?2`, … in the SQL that both engines read; where they differ it is
//! [`Words`], one text for each. Texts compare by their bytes, integers have 64 bits, and `NULL` comes before all else.
//!
//! Invariant: while the rows of one statement are read, no other runs on the same connection.

mod values;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use tenure_hub::Failure;

use super::engine::{Begin, Engine, Room};

pub(crate) use super::engine::{Dialect, Next, Words};

pub(in crate::store) use values::Columns;
pub(crate) use values::{FromSql, Params, Row, ToSql, Value, params};

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// SQLite refused.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL refused, in its own words.
    #[error("{0}")]
    Postgres(String),
    /// The server of the database isn't there, or doesn't take the connection: whoever asks tries again.
    #[error("it can't be reached now, try again: {0}")]
    Away(String),
    /// The disk of the database's server is full: nothing of the transaction counts, and the connection lives.
    #[error("the disk of its server is full, try again: {0}")]
    Full(String),
    /// Another one has had a lock for too long: whoever asks tries again.
    #[error("another one is in the way for too long, try again: {0}")]
    Locked(String),
    /// The server went away in the middle of a commit.
    #[error("it went away while it was to keep what was asked, which may have been done: {0}")]
    Unsure(String),
    /// Another transaction came between, or the connection broke within this one: whoever asks tries again.
    #[error("another transaction came between, or the connection broke: try again")]
    Conflict,
    /// The limit of the disk leaves no room for more of that kind.
    #[error("the database is as full as it may be with more of that")]
    NoRoom,
    /// Hubs run on this database, which somebody wants for himself.
    #[error("another process runs the hub of this database")]
    InUse,
    /// Somebody has this database for himself.
    #[error(
        "another process has this database for itself: it moves the records, or runs an earlier version's hub"
    )]
    Taken,
    /// The records of this database were moved to another one while this process was without a connection.
    #[error("the records of this database were moved to another one")]
    Moved,
    /// A statement before it failed in the same transaction, of which nothing counts.
    #[error("a statement before it failed")]
    Failed,
    /// Somebody took the file away, or put another one in its place.
    #[error(
        "{0} isn't the file any more that the hub has open: end the hub before its database is moved, and start it again"
    )]
    Replaced(PathBuf),
    /// There is no such row.
    #[error("there is no such row")]
    NoRow,
    /// A value isn't what it must be.
    #[error("column {column} holds another value than it may: {reason}")]
    Column {
        /// The column, from 0 on.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// A statement ran while the rows of another were read.
    #[error("the rows of another statement are being read")]
    Reading,
}

impl Error {
    /// The meaning of it for the transaction that was under way.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Away(_) | Self::Full(_) | Self::Locked(_) | Self::InUse | Self::Taken => {
                Failure::Away
            }
            Self::Conflict => Failure::Conflict,
            Self::Unsure(_) => Failure::Unsure,
            _ => Failure::Refused,
        }
    }

    /// Whether the disk is full, or the database as large as it may be.
    pub(super) fn is_full(&self) -> bool {
        let Self::Sqlite(rusqlite::Error::SqliteFailure(error, _)) = self else {
            return matches!(self, Self::Full(_));
        };
        // The memory that connections share is a file, too.
        error.code == ErrorCode::DiskFull || error.extended_code == SQLITE_IOERR_SHMSIZE
    }

    /// Whether the same may succeed when it is tried again.
    pub(crate) fn is_passing(&self) -> bool {
        self.failure() != Failure::Refused
    }

    /// The error of a commit: who was away then may have kept everything.
    pub(crate) fn of_commit(self) -> Self {
        match self {
            Self::Away(reason) => Self::Unsure(reason),
            error => error,
        }
    }
}

/// A connection to a database.
pub(crate) struct Connection {
    engine: Box<dyn Engine>,
    is_reading: Cell<bool>,
}

/// A statement that runs as often as it is told to.
pub(crate) struct Statement<'s> {
    connection: &'s Connection,
    text: &'s str,
}

impl Connection {
    pub(super) fn on(engine: impl Engine + 'static) -> Self {
        Self { engine: Box::new(engine), is_reading: Cell::new(false) }
    }

    /// The SQL that its engine speaks.
    pub(crate) fn dialect(&self) -> Dialect {
        self.engine.dialect()
    }

    /// Whether other hubs may write to the same database.
    pub(crate) fn is_shared(&self) -> bool {
        self.dialect() == Dialect::Postgres
    }

    /// The statement of that text, which the engine keeps prepared.
    pub(crate) fn statement<'s>(&'s self, text: &'s str) -> Statement<'s> {
        Statement { connection: self, text }
    }

    /// A text as it is stored.
    pub(super) fn storable<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.engine.storable(text)
    }

    /// Begins a transaction.
    pub(super) fn begin(&self, how: Begin) -> Result<(), Error> {
        self.engine.begin(how)
    }

    /// Commits the transaction that is under way.
    pub(super) fn commit(&self) -> Result<(), Error> {
        self.engine.commit()
    }

    /// Takes back the transaction that is under way, if there is one.
    pub(super) fn roll_back(&self) {
        if self.is_in_transaction() {
            // A transaction that can't be rolled back ends with the connection.
            let _ = self.engine.roll_back();
        }
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.engine.is_in_transaction()
    }

    /// The number of the connection, which is another one each time that it is made anew.
    pub(super) fn number(&self) -> u64 {
        self.engine.number()
    }

    pub(super) fn check_place(&self) -> Result<(), Error> {
        self.engine.check_place()
    }

    pub(super) fn make_room(&self) -> bool {
        self.engine.make_room()
    }

    pub(super) fn keep_reserve(&self) {
        self.engine.keep_reserve();
    }

    pub(super) fn lacks_room(&self) -> Result<bool, Error> {
        self.engine.lacks_room()
    }

    pub(super) fn room(&self) -> Result<Room, Error> {
        self.engine.room()
    }

    pub(super) fn limit_pages(&self, pages: Option<u32>) -> Result<(), Error> {
        self.engine.limit_pages(pages)
    }

    /// The connection of SQLite below it, which tests look into.
    #[cfg(test)]
    pub(crate) fn sqlite(&self) -> &rusqlite::Connection {
        self.engine.sqlite().expect("a database of SQLite")
    }

    fn alone<T>(&self, action: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.is_reading.replace(true) {
            return Err(Error::Reading);
        }
        let done = action();
        self.is_reading.set(false);
        done
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("dialect", &self.dialect()).finish_non_exhaustive()
    }
}

impl Statement<'_> {
    /// Runs it; returns how many rows it changed.
    ///
    /// # Errors
    /// The engine refuses.
    pub(crate) fn execute(&self, parameters: impl Params) -> Result<usize, Error> {
        let Self { connection, text } = self;
        parameters.with(|values| connection.alone(|| connection.engine.execute(text, values)))
    }

    /// Whether it finds a row.
    ///
    /// # Errors
    /// The engine refuses.
    pub(crate) fn exists(&self, parameters: impl Params) -> Result<bool, Error> {
        let Self { connection, text } = self;
        parameters.with(|values| connection.alone(|| connection.engine.exists(text, values)))
    }

    /// Shows `see` row after row until it has seen enough.
    ///
    /// # Errors
    /// The engine refuses, or `see` does.
    pub(crate) fn each(
        &self,
        parameters: impl Params,
        mut see: impl FnMut(&Row<'_>) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        let Self { connection, text } = self;
        parameters
            .with(|values| connection.alone(|| connection.engine.query(text, values, &mut see)))
    }

    /// What `read` makes of each row.
    ///
    /// # Errors
    /// The engine refuses, or `read` does.
    pub(crate) fn query_map<T>(
        &self,
        parameters: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut rows = Vec::new();
        self.each(parameters, |row| {
            rows.push(read(row)?);
            Ok(Next::Row)
        })?;
        Ok(rows)
    }

    /// What `read` makes of the first row.
    ///
    /// # Errors
    /// There is none; or the engine refuses, or `read` does.
    pub(crate) fn query_row<T>(
        &self,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut read, mut found) = (Some(read), None);
        self.each(parameters, |row| {
            if let Some(read) = read.take() {
                found = Some(read(row)?);
            }
            Ok(Next::Enough)
        })?;
        found.ok_or(Error::NoRow)
    }
}

/// A row that may be missing.
pub(crate) trait OptionalExtension<T> {
    /// `None` if there is no such row.
    fn optional(self) -> Result<Option<T>, Error>;
}

impl<T> OptionalExtension<T> for Result<T, Error> {
    fn optional(self) -> Result<Option<T>, Error> {
        match self {
            Ok(found) => Ok(Some(found)),
            Err(Error::NoRow) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
