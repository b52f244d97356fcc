//! Parts of a flash file as memory.

use std::io;

use memmap2::{Mmap, MmapOptions};

use super::LockedFile;

/// Maps `bytes` of the file from `base` on, for reading: what is written to the file later is seen there,
/// as Linux keeps both in one page cache.
///
/// # Errors
/// The file system maps no files, or the process may map no more.
pub(super) fn map(file: &LockedFile, base: u64, bytes: usize) -> io::Result<Mmap> {
    // SAFETY: the bytes change by `FileFlash::store` alone, which has its part to itself, so that nobody holds a reference
    // into this mapping meanwhile; parts don't overlap, and other processes of ours are kept out by the file's lock. Where
    // somebody else cuts the file short, the process ends with `SIGBUS` before it reads anything else's bytes.
    unsafe { MmapOptions::new().offset(base).len(bytes).map(&file.0) }
}
