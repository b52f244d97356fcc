//! Files that hold what is nobody else's business: keys, what machines store, what a user knows.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use zeroize::Zeroizing;

use crate::whole_file;

/// The longest file that holds nothing but a secret, in bytes.
const SECRET_BYTES_MAX: u64 = 1 << 20;

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
    let draft = tempfile::NamedTempFile::new_in(folder).map_err(whole_file::plain);
    let mut draft = draft.with_context(failed)?;
    draft.as_file_mut().write_all(bytes).with_context(failed)?;
    draft.as_file().sync_all().with_context(failed)?;
    // A draft has mode 0600, which the file keeps.
    draft.persist(path).map_err(|error| error.error).with_context(failed)?;
    sync_folder_of(path).with_context(failed)
}

/// Whether others than its user may read or change an open file.
///
/// # Errors
/// The file system refuses.
pub fn is_exposed(file: &fs::File) -> std::io::Result<bool> {
    Ok(file.metadata()?.mode() & 0o077 != 0)
}

/// Reads a file that holds a secret, unless others may read it, too.
///
/// # Errors
/// There is none, others may read it, or the file system refuses.
pub fn read_secret(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let failed = || format!("can't read {}", path.display());
    let mut file = fs::File::open(path).with_context(failed)?;
    ensure!(!is_exposed(&file).with_context(failed)?, "{}", exposed(path));
    let mut bytes = Zeroizing::new(Vec::new());
    Read::by_ref(&mut file).take(SECRET_BYTES_MAX).read_to_end(&mut bytes).with_context(failed)?;
    Ok(bytes)
}

/// What is said of a file with a secret that others may read.
pub fn exposed(path: &Path) -> String {
    let path = path.display();
    format!("others may read {path}, which holds a secret; let its user alone: chmod 600 {path}")
}

/// Adds a line to `path`, readable by this user alone, in one write. The line has no end of its own inside.
///
/// # Errors
/// The file system refuses.
pub fn append_line(path: &Path, line: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.create(true).append(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Adds to a file of lines those of `lines` that it doesn't have, and waits until all are safe: the bytes, and for a
/// new file its name. Other commands that add to the same file wait meanwhile. A line without an end, which a full
/// disk or a loss of power broke off, is cut off before.
///
/// # Errors
/// The file system refuses; the file then has none of the lines.
pub fn add_lines(path: &Path, lines: &[String]) -> anyhow::Result<()> {
    let failed = || format!("can't write {}", path.display());
    let mut options = fs::OpenOptions::new();
    let options = options.create(true).truncate(false).read(true).write(true);
    let mut file = options.open(path).with_context(failed)?;
    file.lock().with_context(failed)?;
    let mut known = Vec::new();
    file.read_to_end(&mut known).with_context(|| format!("can't read {}", path.display()))?;
    known.truncate(known.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    let present: BTreeSet<&[u8]> = known.split(|byte| *byte == b'\n').collect();
    let new = lines.iter().filter(|line| !present.contains(line.as_bytes()));
    let text: String = new.map(|line| format!("{line}\n")).collect();
    append(&mut file, known.len() as u64, text.as_bytes()).with_context(failed)?;
    sync_folder_of(path).with_context(failed)
}

/// Writes at `end` of a file and waits until all is safe; what couldn't be written whole is cut off again.
fn append(file: &mut fs::File, end: u64, bytes: &[u8]) -> std::io::Result<()> {
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        file.set_len(end)?;
    }
    written
}

/// Waits until the name of a file is safe.
fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
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

    #[test]
    fn line_that_a_full_disk_broke_off_is_cut_off_before_the_next_are_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.receipts");
        let lines = ["010203", "040506"].map(str::to_string);
        add_lines(&path, &lines[..1]).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, whole + "0405").unwrap();
        add_lines(&path, &lines).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "010203\n040506\n");
    }

    #[test]
    fn file_that_many_add_to_at_once_keeps_what_each_of_them_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.receipts");
        // A long file makes the time between reading and writing long.
        let old: Vec<String> = (0..20_000).map(|line| format!("{line:0200}")).collect();
        add_lines(&path, &old).unwrap();
        let new = |writer: usize| (0..8).map(move |line| format!("{writer} {line}"));
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for line in new(writer) {
                        add_lines(path, &[line]).unwrap();
                    }
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        let lines: BTreeSet<&str> = text.lines().collect();
        assert!(old.iter().all(|line| lines.contains(line.as_str())));
        assert!((0..4).flat_map(new).all(|line| lines.contains(line.as_str())));
        assert_eq!(text.lines().count(), old.len() + 32);
    }
}
