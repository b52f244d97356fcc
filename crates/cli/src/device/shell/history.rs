//! The lines that a user typed before: `shell_history`, in the folder of keys, readable by the user alone.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::home::Home;
use crate::home::private_file;

/// The most lines that are remembered.
const LINES_MAX: usize = 1000;
/// The file, in the folder of keys.
const FILE: &str = "shell_history";

/// The history of all of a user's shells.
pub(super) struct History {
    home: Home,
    path: PathBuf,
    lines: Vec<String>,
}

impl History {
    /// Reads the user's history, and drops its oldest lines where there are too many.
    ///
    /// # Errors
    /// The file can't be read.
    pub(super) fn of(home: &Home) -> anyhow::Result<Self> {
        let path = home.folder().join(FILE);
        let mut lines = read(&path)?;
        if lines.len() > LINES_MAX {
            // A folder that can't be written to keeps all its lines.
            let _ = trim(home, &path);
            lines.drain(..lines.len() - LINES_MAX);
        }
        Ok(Self { home: home.clone(), path, lines })
    }

    /// The lines, oldest first.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Remembers a line, unless it begins with a space; without room for it on the disk, only until the shell
    /// ends.
    pub(super) fn append(&mut self, line: &str) {
        if line.trim().is_empty() || line.starts_with(' ') {
            return;
        }
        if let Ok(_lock) = self.home.lock() {
            let _ = private_file::append_line(&self.path, line);
        }
    }
}

/// Drops the oldest lines of the file, where there are too many by now.
fn trim(home: &Home, path: &Path) -> anyhow::Result<()> {
    let _lock = home.lock()?;
    let lines = read(path)?;
    let kept = &lines[lines.len().saturating_sub(LINES_MAX)..];
    let text: String = kept.iter().map(|line| format!("{line}\n")).collect();
    private_file::replace(path, text.as_bytes())
}

fn read(path: &Path) -> anyhow::Result<Vec<String>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}
