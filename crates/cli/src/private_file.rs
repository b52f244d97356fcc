//! Files that hold what is nobody else's business: keys, what machines store, what a user knows.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;

/// Writes `bytes` to `path`, readable by this user alone. What was there before is replaced as a whole
/// once all is on disk: a full disk, or an end in between, leaves it as it was. A pipe or a device is
/// written to.
///
/// # Errors
/// The file system refuses.
pub fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("can't write {}", path.display());
    let is_else = |metadata: fs::Metadata| !metadata.is_file();
    if fs::metadata(path).is_ok_and(is_else) {
        return fs::write(path, bytes).with_context(failed);
    }
    // Where a link leads, and not the link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut draft = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    draft.write_all(bytes).with_context(failed)?;
    draft.as_file().sync_all().with_context(failed)?;
    // A draft has mode 0600, which the file keeps.
    draft.persist(path).map_err(|error| error.error).with_context(failed)?;
    fs::File::open(folder).and_then(|folder| folder.sync_all()).with_context(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn file_that_is_replaced_is_private_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        fs::write(&path, "a longer text").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = replace(&folder.path().join("missing/kept"), b"x").unwrap_err().to_string();
        assert!(error.contains("missing/kept"), "{error}");
    }
}
