//! A layer: files in an archive of tar, which has nothing of the computer that wrote it.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// The number that says of a compressed stream that nobody knows by which system it was written (RFC 1952 §2.3.1).
const UNKNOWN_SYSTEM: u8 = 255;

/// A file or a folder of an image.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// From the root on, without a slash before it.
    path: String,
    mode: u32,
    /// Its user and group.
    owner: u32,
    /// Its bytes, if it is a file.
    bytes: Option<Vec<u8>>,
}

impl Entry {
    pub(super) fn folder(path: &str, mode: u32, owner: u32) -> Self {
        Self { path: path.into(), mode, owner, bytes: None }
    }

    /// A file of root's.
    pub(super) fn file(path: &str, mode: u32, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), mode, owner: 0, bytes: Some(bytes) }
    }
}

/// The archive of `entries`, all of that time, sorted by their paths, so that a folder comes before what is in it.
pub(super) fn archive(entries: &[Entry], unix_s: u64) -> Result<Vec<u8>> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    let mut archive = Builder::new(Vec::new());
    for Entry { path, mode, owner, bytes } in sorted {
        let mut header = Header::new_ustar();
        header.set_entry_type(if bytes.is_some() {
            EntryType::Regular
        } else {
            EntryType::Directory
        });
        header.set_mode(*mode);
        header.set_uid((*owner).into());
        header.set_gid((*owner).into());
        header.set_mtime(unix_s);
        let bytes = bytes.as_deref().unwrap_or_default();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, bytes)?;
    }
    Ok(archive.into_inner()?)
}

/// The same bytes compressed; without a time or a name.
pub(super) fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let builder = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
    let mut encoder = builder.write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
