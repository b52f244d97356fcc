//! The open nodes, and the pages that hold parts of their files.

use crate::cache::{PAGES_MAX, Page};
use crate::errno::Errno;
use crate::node::{Kind, Node, PART_BYTES};
use crate::path::TreePath;
use crate::tree;

/// The most nodes that are open at once.
pub(crate) const NODES_MAX: usize = 16;

/// The names below `%` at the tree's root: all that this module keeps there.
pub(crate) const MOVING: &[u8] = b"moving";
pub(crate) const LINKS: &[u8] = b"links";
pub(crate) const ORPHANS: &[u8] = b"orphans";

/// The open nodes. Zero bytes are a state of them: none is open.
pub(crate) struct Nodes {
    pub(crate) all: [Node; NODES_MAX],
    pub(crate) pages: [Page; PAGES_MAX],
    pub(crate) data: [[u8; PART_BYTES as usize]; PAGES_MAX],
    /// How often a page was used.
    pub(crate) uses: u32,
}

impl Nodes {
    pub(crate) fn node(&mut self, number: usize) -> Result<&mut Node, Errno> {
        self.all.get_mut(number).ok_or(Errno::BADF)
    }

    /// Where a node is.
    pub(crate) fn path_of(&self, number: usize) -> &[u8] {
        self.all.get(number).map_or(&[], |node| node.path.as_bytes())
    }

    /// The open node at `path`.
    pub(crate) fn open_node(&self, path: &TreePath) -> Option<usize> {
        self.all.iter().position(|node| node.users > 0 && !node.is_orphan && node.path == *path)
    }

    /// The kind of the node at `path`, whether it is open or not.
    pub(crate) fn kind_at(&self, path: &TreePath) -> Result<Kind, Errno> {
        match self.open_node(path).and_then(|number| self.all.get(number)) {
            Some(node) => Ok(node.kind),
            None => Ok(Node::read(path)?.kind),
        }
    }

    /// Takes the node at `path` up for one more descriptor; `node` is what the tree says of it.
    pub(crate) fn take_up(&mut self, path: &TreePath, node: Option<Node>) -> Result<usize, Errno> {
        if let Some(number) = self.open_node(path) {
            self.node(number)?.users += 1;
            return Ok(number);
        }
        let number = self.all.iter().position(|node| node.users == 0).ok_or(Errno::NFILE)?;
        let node = match node {
            Some(node) => node,
            None => Node::read(path)?,
        };
        *self.node(number)? = Node { users: 1, ..node };
        Ok(number)
    }

    /// Lets a node go that a descriptor had.
    pub(crate) fn let_go(&mut self, number: usize) -> Result<(), Errno> {
        let node = self.node(number)?;
        if node.users > 1 {
            node.users -= 1;
            return Ok(());
        }
        let result = if node.is_orphan { tree::delete(&node.path) } else { self.commit(number) };
        self.forget_pages(number);
        self.node(number)?.users = 0;
        result
    }

    /// Keeps all that is open; returns the first that can't be.
    pub(crate) fn keep_all(&mut self) -> Option<usize> {
        let mut failed = None;
        for number in 0..NODES_MAX {
            let Some(node) = self.all.get(number).filter(|node| node.users > 0) else { continue };
            let result = match node.is_orphan {
                true => tree::delete(&node.path),
                false => self.commit(number),
            };
            if result.is_err() && failed.is_none() {
                failed = Some(number);
            }
        }
        failed
    }
}

/// A place of this module's own at the tree's root.
pub(crate) fn own(name: &[u8]) -> Result<TreePath, Errno> {
    let mut path = TreePath::ROOT.besides()?;
    path.push(name)?;
    Ok(path)
}

/// Where it stands what is being renamed.
pub(crate) fn moving() -> Result<TreePath, Errno> {
    own(MOVING)
}

/// Where an open node lies that was removed.
pub(crate) fn orphan(number: usize) -> Result<TreePath, Errno> {
    let mut path = own(ORPHANS)?;
    path.push_number(number as u32)?;
    Ok(path)
}
