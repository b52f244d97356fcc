//! Why a database can't be used.

use std::path::PathBuf;

use tenure_hub::StorageError;

use super::postgres::LocationError;
use super::sql;

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Another process runs this hub.
    #[error("{0} is in use by another process: stop that one, or use another data folder")]
    InUse(PathBuf),
    /// It is no hub's.
    #[error("the file is no hub's database")]
    Foreign,
    /// Something in it computes that no hub made, or isn't as hubs make it.
    #[error(
        "`{0}` in the database isn't as a hub makes it: somebody else changed it; use a backup that is whole"
    )]
    Schema(String),
    /// There were records of a hub.
    #[error(
        "{0} is gone or empty, and a hub's records were there: put a copy back with `tenure hub restore`, or delete all of \
         the hub's folder to begin another hub, with another key"
    )]
    Gone(PathBuf),
    /// A copy was put into its place, beside a log of other records.
    #[error(
        "{0} is a copy, and the log of the records of before is beside it: put the copy back with `tenure hub restore`"
    )]
    CopyBesideLog(PathBuf),
    /// A copy isn't whole.
    #[error("{0} is damaged, and nothing was changed")]
    Damaged(PathBuf),
    /// Its records were moved to another database.
    #[error("the records of this database were moved to another one: use that")]
    Moved,
    /// A newer program wrote it.
    #[error(
        "the database has version {version} and this program knows up to {known}: use the newer program, or a \
         backup that was made before"
    )]
    Newer {
        /// The database's version.
        version: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The file system refused.
    #[error("can't {action} {path}: {source}")]
    File {
        /// The action that was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The records of a hub's flash can't be taken over.
    #[error("the records of before can't be taken over: {0}")]
    Import(#[from] StorageError),
    /// Others write, and have not come to an end.
    #[error("others write to the database for too long")]
    Busy,
    /// The place of the database can't be read, or isn't safe.
    #[error("the hub's database: {0}")]
    Location(#[from] LocationError),
    /// The engine refused.
    #[error("the hub's database: {0}")]
    Sql(#[from] sql::Error),
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error.into())
    }
}

/// An error of the database as the directory has it.
pub(crate) fn failed(error: sql::Error) -> StorageError {
    let failure = error.failure();
    StorageError { reason: format!("the hub's database: {error}"), failure }
}
