//! The files of the repository, without what builds leave behind.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders that hold no source: build products and what tools keep for themselves.
const SKIPPED_FOLDERS: [&str; 2] = ["target", "node_modules"];

/// All files below `folder` whose name ends in one of `endings`, sorted.
pub(crate) fn with_ending(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot list the folder {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED_FOLDERS.contains(&&*name) {
                folders.push(entry.path());
            } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// `file` as one would name it standing in `root`.
pub(crate) fn shown<'a>(file: &'a Path, root: &Path) -> std::path::Display<'a> {
    file.strip_prefix(root).unwrap_or(file).display()
}
