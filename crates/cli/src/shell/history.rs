//! The lines that a user typed before: `shell_history`, in the folder of keys, readable by the user alone.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::home::Home;
use crate::private_file;

/// The most lines that are remembered.
const LINES_MAX: usize = 1000;
/// The file, in the folder of keys.
const FILE: &str = "shell_history";

/// The history of all of a user's shells.
pub(super) struct History {
    path: PathBuf,
    lines: Vec<String>,
}

impl History {
    /// Reads the user's history, and drops its oldest lines where there are too many.
    ///
    /// # Errors
    /// The file can't be read or written.
    pub(super) fn of(home: &Home) -> anyhow::Result<Self> {
        let path = home.folder().join(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("can't read {}", path.display()));
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let too_many = lines.len().saturating_sub(LINES_MAX);
        let lines = lines[too_many..].to_vec();
        if too_many > 0 || bytes.is_empty() {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            private_file::replace(&path, text.as_bytes())?;
        }
        Ok(Self { path, lines })
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
        let file = std::fs::OpenOptions::new().append(true).open(&self.path);
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
}
