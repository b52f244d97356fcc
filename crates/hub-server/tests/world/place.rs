//! Where a test's hub keeps its database: in a folder, or on a server of PostgreSQL in the suites of `on_postgres`; in those
//! below `shaken` by a way on which statements fail and connections break.
//!
//! Where there is no PostgreSQL, those suites run in a folder, and each test that asked for one counts as skipped.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::fmt::Display;

use tenure_hub::{Failure, StorageError};
use tenure_hub_server::{Location, Server};
use tenure_testbed::{Cluster, Shaken};

/// The test program whose hubs are on PostgreSQL, and its module of those that are disturbed.
const ON_POSTGRES: &str = "on_postgres";
const SHAKEN: &str = "::shaken::";

pub(crate) enum Place {
    Folder(tempfile::TempDir),
    Server { cluster: &'static Cluster, database: String, way: Option<Shaken> },
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = match env!("CARGO_CRATE_NAME") == ON_POSTGRES {
            true if module_path!().contains(SHAKEN) => Self::shaken_by(Shaken::to),
            true => Self::on_a_server(),
            false => None,
        };
        place.unwrap_or_else(Self::in_a_folder)
    }

    pub(crate) fn in_a_folder() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    /// A database of its own on the server that the tests share, if there is PostgreSQL.
    pub(crate) fn on_a_server() -> Option<Self> {
        let cluster = Cluster::shared()?;
        Some(Self::Server { cluster, database: cluster.database(), way: None })
    }

    /// The same by a way on which statements fail and connections break.
    pub(crate) fn shaken_by(way: fn(&Cluster) -> Shaken) -> Option<Self> {
        let cluster = Cluster::shared()?;
        Some(Self::Server { cluster, database: cluster.database(), way: Some(way(cluster)) })
    }

    /// The way on which statements fail, if there is one.
    pub(crate) fn way(&self) -> Option<&Shaken> {
        match self {
            Self::Server { way, .. } => way.as_ref(),
            Self::Folder(_) => None,
        }
    }

    /// The same database on a server, for a hub beside the one here.
    pub(crate) fn beside(&self) -> Self {
        match self {
            Self::Server { cluster, database, way: None } => {
                Self::Server { cluster, database: database.clone(), way: None }
            }
            _ => unreachable!("a calm place on a server"),
        }
    }

    /// Lets whoever asked try again, if only that can have been in the way which may be here: another hub at a server, or a
    /// busy computer, and on a way on which connections break anything that passes.
    ///
    /// # Panics
    /// It is something else.
    #[track_caller]
    pub(crate) fn put_off(&self, error: &StorageError) {
        let is_put_off = match self {
            Self::Folder(_) => false,
            Self::Server { way: None, .. } => {
                matches!(error.failure, Failure::Conflict | Failure::Away)
            }
            Self::Server { way: Some(_), .. } => error.failure != Failure::Refused,
        };
        assert!(is_put_off, "{error}");
    }

    /// Reads until nothing is in the way any more.
    ///
    /// # Panics
    /// It fails although nothing is in the way.
    #[track_caller]
    pub(crate) fn read<T, E: Display>(&self, mut read: impl FnMut() -> Result<T, E>) -> T {
        match self.way() {
            Some(_) => tenure_testbed::wait_until(read),
            None => read().unwrap_or_else(|error| panic!("{error}")),
        }
    }

    pub(crate) fn location(&self) -> Location {
        match self {
            Self::Folder(folder) => folder.path().join("hub.sqlite").into(),
            Self::Server { .. } => Location::server(Server::at(&self.address(), None).unwrap()),
        }
    }

    /// The path or the address, as one gives it to another process.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Folder(folder) => folder.path().join("hub.sqlite").display().to_string(),
            Self::Server { way: Some(way), database, .. } => way.address(database),
            Self::Server { cluster, database, .. } => cluster.address(database),
        }
    }

    /// Changes the database behind the hub's back, by a statement of SQLite.
    pub(crate) fn write_by_hand(&self, statement: &str) {
        match self {
            Self::Folder(folder) => {
                let path = folder.path().join("hub.sqlite");
                rusqlite::Connection::open(path).unwrap().execute(statement, []).unwrap();
            }
            Self::Server { cluster, database, .. } => {
                cluster.sql(database, &of_postgres(statement));
            }
        }
    }

    /// Rows of the database, each as text with a space between two values.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        let Self::Folder(folder) = self else { return self.rows_of_server(query) };
        let database = rusqlite::Connection::open(folder.path().join("hub.sqlite")).unwrap();
        let mut statement = database.prepare(query).unwrap();
        let columns = statement.column_count();
        let cell = |row: &rusqlite::Row<'_>, index| match row.get(index).unwrap() {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        let row = |row: &rusqlite::Row<'_>| {
            Ok((0..columns).map(|index| cell(row, index)).collect::<Vec<_>>().join(" "))
        };
        statement.query_map([], row).unwrap().map(Result::unwrap).collect()
    }

    fn rows_of_server(&self, query: &str) -> Vec<String> {
        let Self::Server { cluster, database, .. } = self else { return Vec::new() };
        let cell = |text: &str| match text {
            "t" => "1".to_string(),
            "f" => "0".to_string(),
            text => text.to_string(),
        };
        let row = |line: &str| line.split('\t').map(cell).collect::<Vec<_>>().join(" ");
        cluster.sql(database, query).lines().map(row).collect()
    }
}

/// A statement of SQLite as PostgreSQL reads it.
fn of_postgres(statement: &str) -> String {
    let mut parts = statement.split("zeroblob(");
    let mut translated = parts.next().unwrap().to_string();
    for part in parts {
        let (bytes, rest) = part.split_once(')').unwrap();
        translated += &format!("decode(repeat('00', {bytes}), 'hex'){rest}");
    }
    translated.replace("x''", "''").replace("AS BLOB", "AS BYTEA")
}
