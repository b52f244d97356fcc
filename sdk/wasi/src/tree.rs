//! The machine's tree, as host calls show it.

use crate::errno::Errno;
use crate::host;
use crate::path::TreePath;

/// The kinds of values.
const BYTES: u32 = 0;
const TEXT: u32 = 1;

/// Copies as much of the value at `path` as fits; returns its length, or nothing where there is none.
pub(crate) fn get(path: &TreePath, into: &mut [u8]) -> Result<Option<usize>, Errno> {
    let path = path.as_bytes();
    // SAFETY: path and room are there.
    let code = unsafe { host::tree_get(path.as_ptr(), path.len(), into.as_mut_ptr(), into.len()) };
    match length(code) {
        Err(Errno::NOENT) => Ok(None),
        length => length.map(Some),
    }
}

/// Stores a value, as text where it is one, so that the owner reads it as that.
pub(crate) fn set(path: &TreePath, value: &[u8]) -> Result<(), Errno> {
    match set_as(TEXT, path, value) {
        Err(Errno::ILSEQ) => set_as(BYTES, path, value),
        result => result,
    }
}

/// Stores bytes.
pub(crate) fn set_bytes(path: &TreePath, value: &[u8]) -> Result<(), Errno> {
    set_as(BYTES, path, value)
}

fn set_as(kind: u32, path: &TreePath, value: &[u8]) -> Result<(), Errno> {
    let path = path.as_bytes();
    // SAFETY: path and value are there.
    let code =
        unsafe { host::tree_set(path.as_ptr(), path.len(), kind, value.as_ptr(), value.len()) };
    length(code).map(drop)
}

/// Deletes the value at `path` and all below it, if there is any.
pub(crate) fn delete(path: &TreePath) -> Result<(), Errno> {
    let path = path.as_bytes();
    // SAFETY: the path is there.
    match length(unsafe { host::tree_delete(path.as_ptr(), path.len()) }) {
        Err(Errno::NOENT) => Ok(()),
        result => result.map(drop),
    }
}

/// Copies as much as fits of the names below `path`, each with a zero byte behind it and in order; returns the length of
/// all.
pub(crate) fn list(path: &TreePath, into: &mut [u8]) -> Result<usize, Errno> {
    let path = path.as_bytes();
    // SAFETY: path and room are there.
    let code = unsafe { host::tree_list(path.as_ptr(), path.len(), into.as_mut_ptr(), into.len()) };
    match length(code) {
        Err(Errno::NOENT) => Ok(0),
        length => length,
    }
}

fn length(code: i32) -> Result<usize, Errno> {
    usize::try_from(code).map_err(|_| Errno::of_host(code))
}

/// The names in a list of [`list`].
pub(crate) fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}
