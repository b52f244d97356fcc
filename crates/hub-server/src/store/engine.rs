//! What a database must do to keep a hub's records: the one trait that SQLite and PostgreSQL implement.

use std::borrow::Cow;

use super::sql::{Error, Row, Value};

/// The SQL that an engine speaks beyond what all of them do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A piece of SQL, as each engine has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    sqlite: &'static str,
    postgres: &'static str,
}

impl Words {
    /// A piece that reads alike in both.
    pub(crate) const fn alike(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }

    /// A piece that differs.
    pub(crate) const fn each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }

    pub(crate) fn of(self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// It reads alone, and sees the database as it is at one moment.
    ToRead,
    /// It writes, as if no other transaction ran meanwhile.
    ToWrite,
}

/// Whether another row is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Row,
    Enough,
}

/// The room that a database takes, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) used: i64,
    pub(super) most: i64,
    pub(super) page_bytes: i64,
}

/// A database on one connection.
///
/// Invariants that the tests of `tests/database` hold each engine to:
/// - What was committed is there after the process, the connection or the server was killed.
/// - A transaction counts whole or not at all. Once a statement of it failed, [`Engine::commit`] fails, too.
/// - A connection that broke is made anew by the next statement that is in no transaction; until then everything
///   fails with [`Error::Away`], and nothing is answered as if it were empty.
pub(super) trait Engine: Send {
    fn dialect(&self) -> Dialect;

    /// A text as it is stored.
    fn storable<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(text)
    }

    /// Runs a statement; returns how many rows it changed.
    fn execute(&self, text: &str, values: &[Value<'_>]) -> Result<usize, Error>;

    /// Shows `see` the rows of a statement, one after the other, until it has seen enough.
    fn query(
        &self,
        text: &str,
        values: &[Value<'_>],
        see: &mut dyn FnMut(&Row<'_>) -> Result<Next, Error>,
    ) -> Result<(), Error>;

    /// Whether a statement finds a row.
    fn exists(&self, text: &str, values: &[Value<'_>]) -> Result<bool, Error>;

    fn begin(&self, how: Begin) -> Result<(), Error>;

    /// Returns once everything that the transaction wrote is safe from a power cut.
    fn commit(&self) -> Result<(), Error>;

    fn roll_back(&self) -> Result<(), Error>;

    fn is_in_transaction(&self) -> bool;

    /// The number of the connection, which is another one each time that it is made anew.
    fn number(&self) -> u64 {
        0
    }

    /// Fails where the database isn't any longer where it was opened.
    fn check_place(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Makes room on a disk that is full, for what matters most; returns whether there may be some now.
    fn make_room(&self) -> bool {
        false
    }

    /// Keeps room back for that, if there is some.
    fn keep_reserve(&self) {}

    /// Whether nothing new can be kept.
    fn lacks_room(&self) -> Result<bool, Error> {
        Ok(false)
    }

    fn room(&self) -> Result<Room, Error>;

    /// Limits the database to `pages` pages of 4 KiB; `None` takes the limit away.
    fn limit_pages(&self, pages: Option<u32>) -> Result<(), Error>;

    #[cfg(test)]
    fn sqlite(&self) -> Option<&rusqlite::Connection> {
        None
    }
}
