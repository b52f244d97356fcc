//! Why a database can't be used.

use std::path::PathBuf;

use tenure_hub::StorageError;

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Another process runs this hub.
    #[error("{0} is in use by another process: stop that one, or use another data folder")]
    InUse(PathBuf),
    /// It is no hub's.
    #[error("the file is no hub's database")]
    Foreign,
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
    /// SQLite refused.
    #[error("the hub's database: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// An error of SQLite as the directory has it.
pub(crate) fn failed(error: rusqlite::Error) -> StorageError {
    StorageError(format!("the hub's database: {error}"))
}
