//! `filestat`: what a node is, how long, and its times.

use crate::clock;
use crate::descriptor::{Form, file_type};
use crate::errno::Errno;
use crate::files::Files;
use crate::node::{Kind, Node};
use crate::nodes::Nodes;
use crate::resolve::FOLLOW;
use crate::user::put;

/// The bits of `fstflags`.
pub(crate) const ACCESSED: u32 = 1;
pub(crate) const ACCESSED_NOW: u32 = 2;
pub(crate) const MODIFIED: u32 = 4;
pub(crate) const MODIFIED_NOW: u32 = 8;
/// Files lie on one device, streams on another.
pub(crate) const FILES_DEVICE: u64 = 1;

/// New times of a file.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
    pub(crate) flags: u32,
}

impl Files {
    pub(crate) fn stat_open(&mut self, fd: u32, into: u32) -> Result<(), Errno> {
        let descriptor = *self.descriptor(fd)?;
        if descriptor.form != Form::Node {
            return stat_stream(fd, into);
        }
        put_stat(into, self.nodes.node(descriptor.node.into())?)
    }

    pub(crate) fn stat_path(
        &mut self,
        fd: u32,
        lookup: u32,
        address: u32,
        length: u32,
        into: u32,
    ) -> Result<(), Errno> {
        let target = self.resolve(fd, address, length, lookup & FOLLOW != 0)?;
        let (kind, found) = self.nodes.look(&target)?;
        target.check(kind)?;
        match (found, self.nodes.open_node(&target.path)) {
            (Some(node), _) => put_stat(into, &node),
            (None, Some(number)) => put_stat(into, self.nodes.node(number)?),
            (None, None) => Err(Errno::NOENT),
        }
    }

    pub(crate) fn set_times_open(&mut self, fd: u32, times: Times) -> Result<(), Errno> {
        let (node, _) = self.node_of(fd)?;
        self.nodes.set_times(node, times)
    }

    pub(crate) fn set_times_path(
        &mut self,
        fd: u32,
        lookup: u32,
        address: u32,
        length: u32,
        times: Times,
    ) -> Result<(), Errno> {
        let target = self.resolve(fd, address, length, lookup & FOLLOW != 0)?;
        let (kind, found) = self.nodes.look(&target)?;
        target.check(kind)?;
        let node = self.nodes.take_up(&target.path, found)?;
        let result = self.nodes.set_times(node, times);
        let kept = self.nodes.let_go(node);
        result.and(kept)
    }
}

impl Nodes {
    /// Times are kept of files alone, and from when they are set on.
    fn set_times(&mut self, number: usize, times: Times) -> Result<(), Errno> {
        let has = |flags| times.flags & flags == flags;
        if has(ACCESSED | ACCESSED_NOW) || has(MODIFIED | MODIFIED_NOW) || times.flags > 0xf {
            return Err(Errno::INVAL);
        }
        let now = match times.flags & (ACCESSED_NOW | MODIFIED_NOW) {
            0 => 0,
            _ => clock::unix_time().ok_or(Errno::NOTSUP)?,
        };
        let node = self.node(number)?;
        if node.kind != Kind::File {
            return Err(Errno::NOTSUP);
        }
        if has(ACCESSED) || has(ACCESSED_NOW) {
            node.accessed = if has(ACCESSED) { times.accessed } else { now };
        }
        if has(MODIFIED) || has(MODIFIED_NOW) {
            node.modified = if has(MODIFIED) { times.modified } else { now };
        }
        (node.has_times, node.is_dirty) = (true, true);
        Ok(())
    }
}

/// Writes the `filestat` of a stream.
pub(crate) fn stat_stream(fd: u32, into: u32) -> Result<(), Errno> {
    let mut bytes = [0; 64];
    bytes[8] = fd as u8 + 1;
    bytes[16] = 2;
    bytes[24] = 1;
    put(into, bytes)
}

fn put_stat(into: u32, node: &Node) -> Result<(), Errno> {
    let numbers = [
        FILES_DEVICE,
        node.path.hash(),
        file_type(node.kind).into(),
        1,
        node.length.into(),
        node.accessed,
        node.modified,
        node.modified,
    ];
    let mut bytes = [0; 64];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    put(into, bytes)
}
