//! Folders and links made, and all kinds of nodes removed.

use crate::errno::Errno;
use crate::files::Files;
use crate::node::{Kind, LINK_BYTES_MAX, Node, make_folder, make_link, read_link, remove};
use crate::nodes::{Nodes, orphan};
use crate::path::{BESIDES, TreePath};
use crate::resolve::Target;
use crate::tree;
use crate::user::{Range, put_word};

impl Files {
    pub(crate) fn make_folder_at(
        &mut self,
        fd: u32,
        address: u32,
        length: u32,
    ) -> Result<(), Errno> {
        let target = self.resolve(fd, address, length, false)?;
        self.nodes.make_way(&target)?;
        make_folder(&target.path)?;
        self.note_name(&target.path, 1)
    }

    pub(crate) fn make_link_at(
        &mut self,
        text: u32,
        text_length: u32,
        fd: u32,
        address: u32,
        length: u32,
    ) -> Result<(), Errno> {
        let target = self.resolve(fd, address, length, false)?;
        let text = Range::new(text, text_length)?.bytes();
        match text {
            [] => return Err(Errno::NOENT),
            [b'/', ..] => return Err(Errno::NOTCAPABLE),
            text if text.len() > LINK_BYTES_MAX => return Err(Errno::NAMETOOLONG),
            _ => {}
        }
        if target.is_folder {
            let (kind, _) = self.nodes.look(&target)?;
            return Err(if kind == Kind::Missing { Errno::NOENT } else { Errno::EXIST });
        }
        self.nodes.make_way(&target)?;
        self.note_links()?;
        make_link(&target.path, text)?;
        self.note_name(&target.path, 1)
    }

    pub(crate) fn read_link_at(
        &mut self,
        fd: u32,
        address: u32,
        length: u32,
        into: u32,
        room: u32,
        used: u32,
    ) -> Result<(), Errno> {
        let link = self.link_at(fd, address, length)?;
        put_word(used, Range::new(into, room)?.write(link))
    }

    /// Where a link leads.
    pub(crate) fn link_at(&mut self, fd: u32, address: u32, length: u32) -> Result<&[u8], Errno> {
        let target = self.resolve(fd, address, length, false)?;
        let (kind, _) = self.nodes.look(&target)?;
        target.check(kind)?;
        read_link(&target.path, &mut self.link)?.ok_or(Errno::INVAL)
    }

    /// Removes a file or a link. A file that is open is moved out of sight until it is closed.
    pub(crate) fn remove_file(&mut self, fd: u32, address: u32, length: u32) -> Result<(), Errno> {
        let target = self.resolve(fd, address, length, false)?;
        let (kind, found) = self.nodes.look(&target)?;
        target.check(kind)?;
        if kind == Kind::Folder {
            return Err(Errno::ISDIR);
        }
        self.note_name(&target.path, -1)?;
        match found {
            Some(node) => remove(&node)?,
            None => self.nodes.hide(&target.path)?,
        }
        keep_folder(&target.path.split().0)
    }

    pub(crate) fn remove_folder(
        &mut self,
        fd: u32,
        address: u32,
        length: u32,
    ) -> Result<(), Errno> {
        let target = self.resolve(fd, address, length, false)?;
        let (kind, _) = self.nodes.look(&target)?;
        match kind {
            Kind::Missing => return Err(Errno::NOENT),
            Kind::Folder => {}
            _ => return Err(Errno::NOTDIR),
        }
        if target.path.is_root() {
            return Err(Errno::INVAL);
        }
        if !is_empty(&target.path)? {
            return Err(Errno::NOTEMPTY);
        }
        self.note_name(&target.path, -1)?;
        tree::delete(&target.path)?;
        if let Some(number) = self.nodes.open_node(&target.path) {
            let to = orphan(number)?;
            let node = self.nodes.node(number)?;
            (node.path, node.is_orphan) = (to, true);
        }
        keep_folder(&target.path.split().0)
    }
}

impl Nodes {
    /// Sees that there is nothing at a place, and a folder to hold it.
    fn make_way(&mut self, target: &Target) -> Result<(), Errno> {
        let (kind, found) = self.look(target)?;
        if kind != Kind::Missing {
            return Err(Errno::EXIST);
        }
        self.check_parent(&target.path)?;
        found.map_or(Ok(()), |rest| remove(&rest))
    }

    /// Moves an open node to the orphans.
    pub(crate) fn hide(&mut self, path: &TreePath) -> Result<(), Errno> {
        let number = self.open_node(path).ok_or(Errno::NOENT)?;
        self.commit(number)?;
        let to = orphan(number)?;
        self.copy(path, &to)?;
        remove(self.node(number)?)?;
        let node = self.node(number)?;
        (node.path, node.is_orphan) = (to, true);
        Ok(())
    }
}

/// Whether nothing is in a folder.
pub(crate) fn is_empty(path: &TreePath) -> Result<bool, Errno> {
    let mut list = [0; 4];
    let length = tree::list(path, &mut list)?;
    Ok(length == 0 || (length == BESIDES.len() + 1 && list.starts_with(BESIDES)))
}

/// Keeps a folder that has lost its last name: it is there still.
pub(crate) fn keep_folder(path: &TreePath) -> Result<(), Errno> {
    if !path.is_root() && Node::read(path)?.kind == Kind::Missing {
        make_folder(path)?;
    }
    Ok(())
}
