//! Where a hub's database is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::postgres::Server;

/// Where a hub's database is. Clones are the same place.
#[derive(Clone, Debug)]
pub struct Location(Arc<Place>);

#[derive(Debug)]
pub(super) enum Place {
    /// A file of SQLite.
    File(PathBuf),
    /// A server of PostgreSQL.
    Server(Box<Server>),
}

impl Location {
    /// The database on a server of PostgreSQL.
    pub fn server(server: Server) -> Self {
        Self(Arc::new(Place::Server(Box::new(server))))
    }

    /// Whether there is something: a file, or a server, of which nobody knows before it was asked.
    pub(super) fn exists(&self) -> bool {
        match self.place() {
            Place::File(path) => path.exists(),
            Place::Server(_) => true,
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.0
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Place::File(path) => path.display().fmt(f),
            Place::Server(server) => server.fmt(f),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self(Arc::new(Place::File(path)))
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        path.clone().into()
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        path.to_path_buf().into()
    }
}

impl From<&Self> for Location {
    fn from(location: &Self) -> Self {
        location.clone()
    }
}
