//! Files that are written whole, and read with a bound.
//!
//! A file lies beside its goal while it is written, and takes its name when it is whole. So a reader never sees half of it, and
//! where the name is a link, or one of several names of a file (a hard link), the name is replaced and what it led to
//! stays as it is: a project or a folder that a stranger has made decides nowhere which file is overwritten.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// The mode of a file before the user's umask.
const MODE: u32 = 0o666;

/// Writes `bytes` to `path`. A pipe or device that is named is written to.
///
/// # Errors
/// The file system refuses; what was there before is there still.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    draft(path, bytes.as_ref(), MODE, |_| Ok(()))
}

/// As [`write`], to a file that its user alone may read, and that is safe when this returns.
///
/// # Errors
/// As [`write`].
pub(crate) fn write_private(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    draft(path, bytes.as_ref(), MODE & 0o600, fs::File::sync_all)
}

/// As [`write_private`], where nothing has that name yet.
///
/// # Errors
/// Something has it, or the file system refuses.
pub(crate) fn write_new_private(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let draft = drafted(path, bytes.as_ref(), MODE & 0o600)?;
    draft.as_file().sync_all()?;
    draft.persist_noclobber(path).map_err(|error| error.error)?;
    // The name, too, waits for the disk.
    fs::File::open(folder_of(path))?.sync_all()
}

fn draft(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    keep: impl FnOnce(&fs::File) -> io::Result<()>,
) -> io::Result<()> {
    if is_stream(path) {
        return fs::write(path, bytes);
    }
    let draft = drafted(path, bytes, mode)?;
    keep(draft.as_file())?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A file with `bytes` beside `path`, which goes unless it is given a name.
fn drafted(path: &Path, bytes: &[u8], mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let mut draft = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder_of(path))
        .map_err(plain)?;
    draft.as_file_mut().write_all(bytes)?;
    Ok(draft)
}

/// The system's error alone, without the name of a draft that nobody knows, which `tempfile` puts behind it.
pub(crate) fn plain(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((cause, _)) => io::Error::new(error.kind(), cause),
        None => error,
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a path is a pipe, a terminal or the like by its own name, such as `/dev/stdout`, and no file to replace. A link
/// elsewhere that leads to one counts as a link.
fn is_stream(path: &Path) -> bool {
    let is_systems = path.starts_with("/dev") || path.starts_with("/proc");
    let is_special = |metadata: fs::Metadata| {
        let kind = metadata.file_type();
        kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket()
    };
    is_systems || path.symlink_metadata().is_ok_and(is_special)
}

/// Makes a folder for the time being that nobody else looks into, whatever the user's umask.
///
/// # Errors
/// The file system refuses.
pub(crate) fn private_folder() -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir()
}

/// Opens a file to continue it, or makes it: never one that a link leads to, nor one that has another name, nor a pipe.
///
/// # Errors
/// It is none of these, or the file system refuses.
pub(crate) fn open_to_continue(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || std::os::unix::fs::MetadataExt::nlink(&metadata) > 1 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no file of its own (a pipe, or a file with further names); remove it",
        ));
    }
    Ok(file)
}

/// Reads a file of `bytes_max` bytes at most. A pipe, a device or a folder is no file; nothing waits for one.
///
/// # Errors
/// It isn't one, is longer, or can't be read.
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut options = fs::OpenOptions::new();
    // A pipe that nobody writes to would block even the opening.
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no file, but a folder, a pipe or a device",
        ));
    }
    bounded(file, bytes_max)
}

/// Reads what the user has named: a file, or a pipe such as `/dev/stdin`, of `bytes_max` bytes at most.
///
/// # Errors
/// It is longer, or can't be read.
pub(crate) fn read_named(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    bounded(fs::File::open(path)?, bytes_max)
}

fn bounded(file: fs::File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let why = format!("it is longer than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// As [`read`], of a text in UTF-8.
///
/// # Errors
/// As [`read`], or it is no text.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(read(path, bytes_max)?).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn name_that_is_a_link_is_replaced_and_what_it_led_to_stays() {
        // B-1: symbolic links, hard links, and links to nothing.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "keys").unwrap();
        symlink(at("precious"), at("link")).unwrap();
        fs::hard_link(at("precious"), at("other-name")).unwrap();
        symlink(at("planted"), at("dangling")).unwrap();
        for name in ["link", "other-name", "dangling", "new"] {
            write(&at(name), "made").unwrap();
            assert!(at(name).symlink_metadata().unwrap().is_file(), "{name}");
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "made");
        }
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "keys");
        assert!(!at("planted").exists());
        write_private(&at("link"), "made").unwrap();
        assert_eq!(at("link").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "no draft is left");
        write(Path::new("/dev/null"), "made").unwrap();
        assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    }

    #[test]
    fn new_file_is_private_and_takes_no_name_that_something_has() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_new_private(&at("new"), "made").unwrap();
        assert_eq!(at("new").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        symlink(at("planted"), at("dangling")).unwrap();
        for name in ["new", "dangling"] {
            let refused = write_new_private(&at(name), "other").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "made");
        assert!(!at("planted").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no draft is left");
    }

    #[test]
    fn file_in_a_folder_that_is_missing_is_refused_without_the_name_of_its_draft() {
        let folder = tempfile::tempdir().unwrap();
        let refused = write(&folder.path().join("missing/file"), "made").unwrap_err();
        assert_eq!(refused.to_string(), "No such file or directory (os error 2)");
    }

    #[test]
    fn file_that_is_continued_is_nobody_elses() {
        // B-1: `pull` continues X.part.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "keys").unwrap();
        symlink(at("precious"), at("link")).unwrap();
        fs::hard_link(at("precious"), at("other-name")).unwrap();
        for name in ["link", "other-name"] {
            open_to_continue(&at(name)).unwrap_err();
        }
        open_to_continue(&at("new")).unwrap();
        open_to_continue(&at("new")).unwrap();
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "keys");
    }

    #[test]
    fn what_has_no_end_or_is_no_file_is_not_read() {
        // B-7: a device without end, a pipe that nobody writes to, a long file.
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for place in [Path::new("/dev/zero"), &pipe, folder.path()] {
            assert!(read(place, 100).unwrap_err().to_string().contains("no file"));
        }
        let file = folder.path().join("file");
        fs::write(&file, [b'a'; 101]).unwrap();
        assert!(read(&file, 100).unwrap_err().to_string().contains("longer than 100 bytes"));
        assert_eq!(read(&file, 101).unwrap().len(), 101);
        assert!(read_named(Path::new("/dev/zero"), 100).is_err());
    }
}
