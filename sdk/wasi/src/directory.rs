//! `fd_readdir`: the names in a folder.
//!
//! A cookie is a place in the row of names: 0 is `.`, 1 is `..`, then come the others in their order. So that a program may
//! remove what it was told of while it reads on, a descriptor knows how many names before its place came or went since.

use crate::descriptor::{Form, file_type};
use crate::errno::Errno;
use crate::files::Files;
use crate::node::{Kind, Node};
use crate::nodes::Nodes;
use crate::path::{BESIDES, PATH_BYTES_MAX, TreePath, decoded};
use crate::tree;
use crate::user::Range;

/// A `dirent`: the next cookie, the file's number, the length of its name, its type.
const ENTRY_BYTES: usize = 24;
/// How many entries come before the names.
const DOTS: u32 = 2;

impl Files {
    /// Writes entries from `cookie` on, the last of them cut where the room ends; returns how many bytes.
    pub(crate) fn read_names(
        &mut self,
        fd: u32,
        into: u32,
        room: u32,
        cookie: u64,
    ) -> Result<u32, Errno> {
        let folder = self.folder_of(fd)?;
        let path = self.nodes.node(folder)?.path;
        let room = Range::new(into, room)?;
        let descriptor = self.descriptor(fd)?;
        let mut next = u32::try_from(cookie).map_err(|_| Errno::INVAL)?;
        if next <= DOTS {
            (descriptor.names_seen, descriptor.names_shift) = (0, 0);
        }
        let shift = descriptor.names_shift;
        let list = self.nodes.list(&path)?;
        let mut used = 0;
        let mut seen = 0;
        while used < room.length() {
            let entry = match next {
                0 => Entry::new(b".", path.hash(), Kind::Folder),
                1 => Entry::new(b"..", path.split().0.hash(), Kind::Folder),
                _ => {
                    let place = (next - DOTS).checked_add_signed(shift).ok_or(Errno::INVAL)?;
                    let data = self.nodes.data.as_flattened().get(..list).unwrap_or_default();
                    let Some(name) = name_at(data, place) else { break };
                    seen = place;
                    Entry::of(&self.nodes, &path, name)?
                }
            };
            next += 1;
            let left = room.part(used, u32::MAX);
            used += entry.write(left, next.into());
            if used < room.length() {
                // It was told of as a whole.
                seen += 1;
            }
        }
        self.descriptor(fd)?.names_seen = seen;
        Ok(used)
    }

    /// A name came (1) or goes (-1): descriptors that read its folder hear of it.
    pub(crate) fn note_name(&mut self, path: &TreePath, by: i32) -> Result<(), Errno> {
        let (parent, name) = path.split();
        let Some(folder) = self.nodes.open_node(&parent) else { return Ok(()) };
        let reads = |files: &Self| {
            files.descriptors.iter().any(|it| {
                it.form == Form::Node && usize::from(it.node) == folder && it.names_seen > 0
            })
        };
        if !reads(self) {
            return Ok(());
        }
        let length = self.nodes.list(&parent)?;
        let data = self.nodes.data.as_flattened().get(..length).unwrap_or_default();
        let place =
            tree::names(data).filter(|it| *it != BESIDES).take_while(|it| *it < name).count();
        for descriptor in &mut self.descriptors {
            let is_it = descriptor.form == Form::Node && usize::from(descriptor.node) == folder;
            if is_it && (place as u32) < descriptor.names_seen {
                descriptor.names_shift += by;
                descriptor.names_seen = descriptor.names_seen.saturating_add_signed(by);
            }
        }
        Ok(())
    }
}

impl Nodes {
    /// Lists the names below `path` in the pages; returns how many bytes they take.
    pub(crate) fn list(&mut self, path: &TreePath) -> Result<usize, Errno> {
        let pages = self.all_pages()?;
        let length = tree::list(path, pages)?;
        if length > pages.len() { Err(Errno::OVERFLOW) } else { Ok(length) }
    }
}

/// A name, with those of the tree's own left out.
pub(crate) fn name_at(list: &[u8], place: u32) -> Option<&[u8]> {
    tree::names(list).filter(|name| *name != BESIDES).nth(place as usize)
}

/// An entry of a folder.
pub(crate) struct Entry {
    number: u64,
    pub(crate) kind: Kind,
    length: usize,
    name: [u8; PATH_BYTES_MAX],
}

impl Entry {
    fn new(name: &[u8], number: u64, kind: Kind) -> Self {
        let mut entry = Self { number, kind, length: 0, name: [0; PATH_BYTES_MAX] };
        decoded(name, |byte| {
            if let Some(place) = entry.name.get_mut(entry.length) {
                *place = byte;
                entry.length += 1;
            }
        });
        entry
    }

    pub(crate) fn of(nodes: &Nodes, parent: &TreePath, name: &[u8]) -> Result<Self, Errno> {
        let mut path = *parent;
        path.push(name)?;
        let kind = match nodes.open_node(&path).and_then(|number| nodes.all.get(number)) {
            Some(node) => node.kind,
            None => Node::read(&path)?.kind,
        };
        Ok(Self::new(name, path.hash(), kind))
    }

    /// The name, as a program knows it.
    pub(crate) fn name(&self) -> &[u8] {
        self.name.get(..self.length).unwrap_or_default()
    }

    /// Writes as much of the entry as fits; returns how many bytes.
    fn write(&self, room: Range, next: u64) -> u32 {
        let mut head = [0; ENTRY_BYTES];
        head[..8].copy_from_slice(&next.to_le_bytes());
        head[8..16].copy_from_slice(&self.number.to_le_bytes());
        head[16..20].copy_from_slice(&(self.length as u32).to_le_bytes());
        head[20] = file_type(self.kind);
        let written = room.write(&head);
        written + room.part(written, u32::MAX).write(self.name())
    }
}
