//! From what a program writes as a path to a place in the tree.
//!
//! A path begins at an open folder and leads nowhere above it: neither by `..`, nor from `/`, nor by a link.

use crate::errno::Errno;
use crate::files::{Files, WRITTEN_BYTES_MAX};
use crate::node::{Kind, Node, read_link};
use crate::nodes::Nodes;
use crate::path::TreePath;
use crate::user::Range;

/// How many links are followed for one path.
const LINKS_MAX: u32 = 8;
/// The bit of `lookupflags`: a link at the end is followed.
pub(crate) const FOLLOW: u32 = 1;

/// A place that a path leads to.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) path: TreePath,
    /// Whether only a folder is meant: a slash or a dot stands last.
    pub(crate) is_folder: bool,
}

impl Target {
    /// Refuses what isn't there, and what should be a folder and isn't.
    pub(crate) fn check(&self, kind: Kind) -> Result<(), Errno> {
        match kind {
            Kind::Missing => Err(Errno::NOENT),
            Kind::File | Kind::Link if self.is_folder => Err(Errno::NOTDIR),
            _ => Ok(()),
        }
    }
}

impl Files {
    /// The place that the path of `length` bytes at `address` leads to.
    pub(crate) fn resolve(
        &mut self,
        fd: u32,
        address: u32,
        length: u32,
        follows: bool,
    ) -> Result<Target, Errno> {
        let folder = self.folder_of(fd)?;
        let top = self.nodes.node(folder)?.path;
        let range = Range::new(address, length)?;
        let written = self.written.get_mut(..length as usize).ok_or(Errno::NAMETOOLONG)?;
        written.copy_from_slice(range.bytes());
        match written {
            [] => return Err(Errno::NOENT),
            [b'/', ..] => return Err(Errno::NOTCAPABLE),
            written if written.contains(&0) => return Err(Errno::INVAL),
            _ => {}
        }
        self.walk(top, length as usize, follows)
    }

    /// Walks along the first `length` bytes of what was written.
    fn walk(&mut self, top: TreePath, length: usize, follows: bool) -> Result<Target, Errno> {
        let mut target = Target { path: top, is_folder: true };
        let (mut at, mut length, mut links) = (0, length, 0);
        loop {
            let rest = self.written.get(at..length).unwrap_or_default();
            let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
            let rest = rest.get(slashes..).unwrap_or_default();
            if rest.is_empty() {
                target.is_folder |= slashes > 0;
                return Ok(target);
            }
            let name_length = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let (name, behind) = rest.split_at_checked(name_length).ok_or(Errno::IO)?;
            at += slashes + name_length;
            target.is_folder = true;
            match name {
                b"." => {}
                b".." if target.path == top => return Err(Errno::NOTCAPABLE),
                b".." => target.path = target.path.split().0,
                name => {
                    target.is_folder = false;
                    target.path.push_name(name)?;
                    if self.has_links && (follows || !behind.is_empty()) {
                        let replaced = self.follow(&target.path, at, length)?;
                        if let Some(replaced) = replaced {
                            links += 1;
                            if links > LINKS_MAX {
                                return Err(Errno::LOOP);
                            }
                            target.path = target.path.split().0;
                            (at, length) = (0, replaced);
                        }
                    }
                }
            }
        }
    }

    /// If there is a link at `path`, puts what it stands for before the rest of what was written, from `at` to `length`;
    /// returns how long that is.
    fn follow(
        &mut self,
        path: &TreePath,
        at: usize,
        length: usize,
    ) -> Result<Option<usize>, Errno> {
        let Some(link) = read_link(path, &mut self.link)? else { return Ok(None) };
        if link.first() == Some(&b'/') {
            return Err(Errno::NOTCAPABLE);
        }
        let replaced = link.len() + length - at;
        if replaced > WRITTEN_BYTES_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        self.written.copy_within(at..length, link.len());
        self.written.get_mut(..link.len()).unwrap_or_default().copy_from_slice(link);
        Ok(Some(replaced))
    }
}

impl Nodes {
    /// The kind of the node at a place, and the node, unless it is open.
    pub(crate) fn look(&mut self, target: &Target) -> Result<(Kind, Option<Node>), Errno> {
        if let Some(number) = self.open_node(&target.path) {
            return Ok((self.node(number)?.kind, None));
        }
        let node = Node::read(&target.path)?;
        Ok((node.kind, Some(node)))
    }

    /// Refuses a place whose folder isn't there.
    pub(crate) fn check_parent(&mut self, path: &TreePath) -> Result<(), Errno> {
        match self.kind_at(&path.split().0)? {
            Kind::Folder => Ok(()),
            Kind::Missing => Err(Errno::NOENT),
            _ => Err(Errno::NOTDIR),
        }
    }
}
