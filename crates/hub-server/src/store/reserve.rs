//! Room that is kept back beside a database, for the moment at which its disk is full: a file that is emptied then.
//!
//! Invariant: an empty file says that the disk was full and that there was no room for the reserve since.

use std::fs::{self, File};
use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};

use super::lock::private;

/// The room that is kept back, in bytes. As much has to be left when it is made.
const BYTES: usize = 1 << 20;

fn beside(database: &Path) -> PathBuf {
    database.with_extension("reserve")
}

/// Whether the reserve was given up.
pub(super) fn is_given_up(database: &Path) -> bool {
    fs::metadata(beside(database)).is_ok_and(|seen| seen.len() == 0)
}

/// Gives the reserve up; returns whether there was one.
pub(super) fn give_up(database: &Path) -> bool {
    let path = beside(database);
    let is_there = fs::metadata(&path).is_ok_and(|seen| seen.len() > 0);
    is_there && emptied(&path).is_ok()
}

/// Makes the reserve, if there is room and it isn't there.
pub(super) fn keep(database: &Path) {
    let path = beside(database);
    if fs::metadata(&path).is_ok_and(|seen| seen.len() > 0) {
        return;
    }
    if let Ok(mut file) = emptied(&path) {
        // Without room it stays empty.
        if fill(&mut file).is_err() {
            let _ = file.set_len(0);
        }
    }
}

fn emptied(path: &Path) -> Result<File, Error> {
    private().write(true).create(true).truncate(true).open(path)
}

fn fill(file: &mut File) -> Result<(), Error> {
    // What a file system can't compress.
    let mut bytes = vec![0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| Error::other("no randomness"))?;
    file.write_all(&bytes)?;
    file.write_all(&bytes)?;
    file.sync_data()?;
    file.set_len(BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_is_there_until_it_is_given_up_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("hub.sqlite");
        assert!(!is_given_up(&database) && !give_up(&database), "none was made yet");
        keep(&database);
        assert!(!is_given_up(&database) && give_up(&database) && is_given_up(&database));
        assert!(!give_up(&database), "once");
        keep(&database);
        assert!(!is_given_up(&database));
    }
}
