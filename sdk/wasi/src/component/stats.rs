//! What is told of a file or folder, as a value.

use crate::errno::Errno;
use crate::files::Files;
use crate::node::{Kind, Node};
use crate::resolve::FOLLOW;

/// What a node is, how long, and its times.
#[derive(Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) kind: Kind,
    /// A number of its own.
    pub(crate) number: u64,
    pub(crate) length: u32,
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
}

impl Stat {
    fn of(node: &Node) -> Self {
        Self {
            kind: node.kind,
            number: node.path.hash(),
            length: node.length,
            accessed: node.accessed,
            modified: node.modified,
        }
    }
}

impl Files {
    /// What is told of an open file or folder.
    pub(crate) fn state_open(&mut self, fd: u32) -> Result<Stat, Errno> {
        let (node, _) = self.node_of(fd)?;
        Ok(Stat::of(self.nodes.node(node)?))
    }

    /// What is told of what a path leads to.
    pub(crate) fn state_at(
        &mut self,
        fd: u32,
        lookup: u32,
        address: u32,
        length: u32,
    ) -> Result<Stat, Errno> {
        let target = self.resolve(fd, address, length, lookup & FOLLOW != 0)?;
        let (kind, found) = self.nodes.look(&target)?;
        target.check(kind)?;
        match (found, self.nodes.open_node(&target.path)) {
            (Some(node), _) => Ok(Stat::of(&node)),
            (None, Some(number)) => Ok(Stat::of(self.nodes.node(number)?)),
            (None, None) => Err(Errno::NOENT),
        }
    }
}
