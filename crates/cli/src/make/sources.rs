//! The source files of a project that it doesn't name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::make::fence;

/// The deepest that folders of sources lie in one another.
const DEPTH_MAX: usize = 16;

/// The files in `below` of `folder` and in the folders in it that are sources, in order; each with its path from `folder` on.
///
/// # Errors
/// A folder can't be read, or lies too deep; a source is no file of the project's folder.
pub(super) fn gather(
    folder: &Path,
    below: &Path,
    is_source: impl Fn(&Path) -> bool,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if below != Path::new("") {
        fence::inside(folder, below)?;
    }
    look(folder, below, DEPTH_MAX, &is_source, &mut found)?;
    found.iter().try_for_each(|path| fence::file(folder, path).map(drop))?;
    found.sort();
    Ok(found)
}

fn look(
    folder: &Path,
    below: &Path,
    depth: usize,
    is_source: &impl Fn(&Path) -> bool,
    found: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let place = folder.join(below);
    if depth == 0 {
        bail!("{} lies too deep", place.display());
    }
    for entry in fs::read_dir(&place).with_context(|| format!("can't read {}", place.display()))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            look(folder, &path, depth - 1, is_source, found)?;
        } else if is_source(&path) {
            found.push(path);
        }
    }
    Ok(())
}
