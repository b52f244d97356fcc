//! `wasi:filesystem/types` and `wasi:filesystem/preopens`: descriptors of preview 1 as resources.

use super::clocks::{put_time, time_of};
use super::lower::{
    allocate, behind, descriptor, handle, must, put_byte, put_bytes, put_list, put_long, put_word,
    settle,
};
use super::stats::Stat;
use crate::descriptor::{
    DESCRIPTORS_MAX, FLAG_APPEND, FLAG_DATA_SYNC, FLAG_SYNC, RIGHT_READ, RIGHT_WRITE,
};
use crate::errno::Errno;
use crate::files::Files;
use crate::node::Kind;
use crate::open::Manner;
use crate::stat::{ACCESSED, ACCESSED_NOW, FILES_DEVICE, MODIFIED, MODIFIED_NOW, Times};
use crate::user::{Range, item};

/// The bits of `descriptor-flags`.
const READ: u32 = 1;
const WRITE: u32 = 2;
const FILE_SYNC: u32 = 4;
const DATA_SYNC: u32 = 8;
const MUTATE_DIRECTORY: u32 = 32;

/// The cases of `descriptor-type`.
fn kind_of(kind: Kind) -> u8 {
    match kind {
        Kind::Missing => 0,
        Kind::Folder => 3,
        Kind::Link => 5,
        Kind::File => 6,
    }
}

/// A place in the program's memory that has a path, and how long it is.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

/// `get-directories`: `list<tuple<descriptor, string>>`.
pub(crate) fn folders(files: &mut Files, into: u32) {
    const PAIR_BYTES: u32 = 12;
    let given = |files: &mut Files, fd: u32| files.given_name(fd).ok();
    let all = 0..DESCRIPTORS_MAX as u32;
    let count = all.clone().filter(|fd| given(files, *fd).is_some()).count() as u32;
    let list = allocate(count * PAIR_BYTES, 4);
    let mut index = 0;
    for fd in all {
        if let Some(name) = given(files, fd) {
            let pair = must(item(list, index, PAIR_BYTES));
            put_word(pair, handle(fd));
            put_bytes(behind(pair, 4), name);
            index += 1;
        }
    }
    put_list(into, list, count);
}

/// `read-via-stream`, `write-via-stream` and `append-via-stream`: `result<own<…>, error-code>`. A stream is a descriptor of its
/// own.
pub(crate) fn stream(files: &mut Files, of: u32, offset: u64, flags: u16, into: u32) {
    let opened = files.file_of(descriptor(of)).and_then(|_| files.duplicate(descriptor(of)));
    let placed = opened.and_then(|fd| {
        let stream = files.descriptor(fd)?;
        stream.offset = offset;
        // Where a stream is to write is said by what opened it, and not by how its file was opened.
        stream.flags = stream.flags & !FLAG_APPEND | flags;
        Ok(fd)
    });
    settle(into, 4, placed.map(|fd| put_word(behind(into, 4), handle(fd))));
}

/// `get-flags`: `result<descriptor-flags, error-code>`.
pub(crate) fn flags(files: &mut Files, of: u32, into: u32) {
    let flags = files.node_of(descriptor(of)).and_then(|(_, kind)| {
        let descriptor = files.descriptor(descriptor(of))?;
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let syncs = u32::from(descriptor.flags);
        Ok(match kind {
            Kind::Folder => READ | MUTATE_DIRECTORY,
            _ => {
                bit(descriptor.may_read, READ)
                    | bit(descriptor.may_write, WRITE)
                    | bit(syncs & u32::from(FLAG_SYNC) != 0, FILE_SYNC)
                    | bit(syncs & u32::from(FLAG_DATA_SYNC) != 0, DATA_SYNC)
            }
        })
    });
    settle(into, 1, flags.map(|flags| put_byte(behind(into, 1), flags as u8)));
}

/// `get-type`: `result<descriptor-type, error-code>`.
pub(crate) fn kind(files: &mut Files, of: u32, into: u32) {
    let kind = files.node_of(descriptor(of)).map(|(_, kind)| kind_of(kind));
    settle(into, 1, kind.map(|kind| put_byte(behind(into, 1), kind)));
}

/// A `new-timestamp`, flattened: its case, and of the third one seconds and nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct NewTime {
    pub(crate) case: u32,
    pub(crate) seconds: u64,
    pub(crate) nanoseconds: u32,
}

impl NewTime {
    fn flag(self, now: u32, given: u32) -> u32 {
        match self.case {
            0 => 0,
            1 => now,
            _ => given,
        }
    }

    fn time(self) -> u64 {
        time_of(self.seconds, self.nanoseconds)
    }
}

/// The times as preview 1 has them.
pub(crate) fn times(accessed: NewTime, modified: NewTime) -> Times {
    let flags = accessed.flag(ACCESSED_NOW, ACCESSED) | modified.flag(MODIFIED_NOW, MODIFIED);
    Times { accessed: accessed.time(), modified: modified.time(), flags }
}

/// `read`: `result<tuple<list<u8>, bool>, error-code>`; the flag says whether that is the end.
pub(crate) fn read(files: &mut Files, of: u32, length: u64, offset: u64, into: u32) {
    const CHUNK_BYTES: u32 = 65_536;
    let fd = descriptor(of);
    let result = files.file_of(fd).and_then(|node| {
        if !files.descriptor(fd)?.may_read {
            return Err(Errno::BADF);
        }
        let left = u64::from(files.nodes.node(node)?.length).saturating_sub(offset);
        let length = u32::try_from(left.min(length)).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let start = allocate(length, 1);
        let read = files.nodes.read_range(node, must(Range::new(start, length)), offset)?;
        put_list(behind(into, 4), start, read);
        put_byte(behind(into, 12), (u64::from(read) == left).into());
        Ok(())
    });
    settle(into, 4, result);
}

/// `write`: `result<filesize, error-code>`.
pub(crate) fn write(files: &mut Files, of: u32, bytes: Path, offset: u64, into: u32) {
    let fd = descriptor(of);
    let range = must(Range::new(bytes.start, bytes.length));
    let result = files.file_of(fd).and_then(|node| {
        let descriptor = *files.descriptor(fd)?;
        if !descriptor.may_write {
            return Err(Errno::BADF);
        }
        let written = files.nodes.write_range(node, range, offset)?;
        if descriptor.syncs() {
            files.nodes.commit(node)?;
        }
        Ok(written)
    });
    settle(into, 8, result.map(|written| put_long(behind(into, 8), written.into())));
}

/// `read-directory`: `result<own<directory-entry-stream>, error-code>`.
pub(crate) fn read_directory(files: &mut Files, of: u32, into: u32) {
    let opened = files.folder_of(descriptor(of)).and_then(|_| files.duplicate(descriptor(of)));
    settle(into, 4, opened.map(|fd| put_word(behind(into, 4), handle(fd))));
}

/// `read-directory-entry`: `result<option<directory-entry>, error-code>`.
pub(crate) fn next_entry(files: &mut Files, stream: u32, into: u32) {
    let entry = files.next_name(descriptor(stream));
    let result = entry.map(|entry| {
        put_byte(behind(into, 4), entry.is_some().into());
        if let Some(entry) = entry {
            put_byte(behind(into, 8), kind_of(entry.kind));
            put_bytes(behind(into, 12), entry.name());
        }
    });
    settle(into, 4, result);
}

/// `stat` and `stat-at`: `result<descriptor-stat, error-code>`. A time that isn't kept is none.
pub(crate) fn stat(result: Result<Stat, Errno>, into: u32) {
    const AT: u32 = 8;
    let put = |stat: Stat| {
        let at = behind(into, AT);
        put_byte(at, kind_of(stat.kind));
        put_long(behind(at, 8), 1);
        put_long(behind(at, 16), stat.length.into());
        for (offset, time) in [(24, stat.accessed), (48, stat.modified), (72, stat.modified)] {
            put_byte(behind(at, offset), (time != 0).into());
            put_time(behind(at, offset + 8), time);
        }
    };
    settle(into, AT, result.map(put));
}

/// `metadata-hash` and `metadata-hash-at`: `result<metadata-hash-value, error-code>`.
pub(crate) fn hash(result: Result<Stat, Errno>, into: u32) {
    const AT: u32 = 8;
    let put = |stat: Stat| {
        put_long(behind(into, AT), stat.number);
        put_long(behind(into, AT + 8), FILES_DEVICE);
    };
    settle(into, AT, result.map(put));
}

/// `open-at`: `result<own<descriptor>, error-code>`. The bits of `path-flags` and `open-flags` are those of preview 1.
pub(crate) fn open(
    files: &mut Files,
    of: u32,
    lookup: u32,
    path: Path,
    open: u32,
    flags: u32,
    into: u32,
) {
    let right = |bit: u32, right: u64| if flags & bit != 0 { right } else { 0 };
    let sync = |bit: u32, flag: u16| if flags & bit != 0 { flag.into() } else { 0 };
    let manner = Manner {
        lookup,
        open,
        rights: right(READ, RIGHT_READ) | right(WRITE, RIGHT_WRITE),
        flags: sync(FILE_SYNC, FLAG_SYNC) | sync(DATA_SYNC, FLAG_DATA_SYNC),
    };
    let opened = files.open(descriptor(of), path.start, path.length, manner);
    settle(into, 4, opened.map(|fd| put_word(behind(into, 4), handle(fd))));
}

/// `readlink-at`: `result<string, error-code>`.
pub(crate) fn read_link(files: &mut Files, of: u32, path: Path, into: u32) {
    let link = files.link_at(descriptor(of), path.start, path.length);
    settle(into, 4, link.map(|link| put_bytes(behind(into, 4), link)));
}

/// Whether both are of one file or folder.
pub(crate) fn is_same(files: &mut Files, one: u32, other: u32) -> bool {
    let node = |files: &mut Files, of| files.node_of(descriptor(of)).ok().map(|(node, _)| node);
    let one = node(files, one);
    one.is_some() && one == node(files, other)
}
