//! Errors of PostgreSQL: which of them are over when one tries again.

use std::error::Error as _;
use std::io;

use tokio_postgres::error::SqlState;

use crate::store::sql::Error;

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(told) = error.as_db_error() else {
            let text = in_words(&error);
            let is_io = error.source().is_some_and(|source| source.is::<io::Error>());
            return if error.is_closed() || is_io {
                Self::Away(text)
            } else {
                Self::Postgres(text)
            };
        };
        let text = told.message().to_string();
        let code = told.code();
        if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
            Self::Conflict
        } else if *code == SqlState::LOCK_NOT_AVAILABLE {
            Self::Locked(text)
        } else if *code == SqlState::DISK_FULL {
            Self::Full(text)
        } else if is_passing(code) {
            Self::Away(text)
        } else {
            Self::Postgres(text)
        }
    }
}

/// Whether a server that says so will be there again: it stops, starts, is another's standby now, has no place for
/// another connection or no memory, or was too slow.
fn is_passing(code: &SqlState) -> bool {
    let read_only = *code == SqlState::READ_ONLY_SQL_TRANSACTION;
    read_only || ["08", "53", "55", "57"].iter().any(|class| code.code().starts_with(class))
}

/// An error with what lies below it.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        let words = source.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        below = source.source();
    }
    text
}
