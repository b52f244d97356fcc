//! The sources that a session shows: a package's debug module names them, and its author may be anybody.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::whole_file;

/// The most bytes of a source.
const SOURCE_BYTES_MAX: u64 = 16 << 20;

/// Which files a session shows as sources.
#[derive(Clone, Debug)]
pub(super) enum Sources {
    /// All that the user may read, who alone sees them.
    All,
    /// Those below these folders, wherever links lead.
    Below(Vec<PathBuf>),
}

impl Sources {
    /// Those below the folders of packages, which their projects lie in.
    pub(super) fn of(packages: &[PathBuf]) -> Self {
        let folder = |package: &PathBuf| Some(package.canonicalize().ok()?.parent()?.to_path_buf());
        Self::Below(packages.iter().filter_map(folder).collect())
    }

    /// Reads a source.
    ///
    /// # Errors
    /// It isn't shown, is no file, is too long, or can't be read.
    pub(super) fn read(&self, file: &Path) -> anyhow::Result<String> {
        let failed = || format!("can't read {}", file.display());
        if let Self::Below(folders) = self {
            let place = file.canonicalize().with_context(failed)?;
            let is_shown = folders.iter().any(|folder| place.starts_with(folder));
            ensure!(is_shown, "{} isn't below a package's folder", file.display());
        }
        whole_file::read_text(file, SOURCE_BYTES_MAX).with_context(failed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn source_from_outside_the_packages_folders_is_not_shown() {
        // B-3: a debug module says that its code is line 1 of a key.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("project/src")).unwrap();
        for file in ["key", "project/m.tenure", "project/src/main.c"] {
            fs::write(at(file), file).unwrap();
        }
        symlink(at("key"), at("project/src/link.c")).unwrap();
        let sources = Sources::of(&[at("project/m.tenure")]);
        assert_eq!(sources.read(&at("project/src/main.c")).unwrap(), "project/src/main.c");
        for file in ["key", "project/../key", "project/src/link.c"] {
            let error = sources.read(&at(file)).unwrap_err().to_string();
            assert!(error.contains("isn't below a package's folder"), "{file}: {error}");
        }
        assert!(Sources::of(&[]).read(&at("project/src/main.c")).is_err());
        assert!(Sources::All.read(&at("key")).is_ok());
        assert!(Sources::All.read(Path::new("/dev/zero")).is_err());
    }
}
