//! `path_rename`: a node moves with all that is below it.
//!
//! A node that moves is noted first, copied, noted as copied, and removed where it was: a power cut leaves a note, by which the next
//! program's beginning goes on. So a program sees the one name or the other.

use crate::errno::Errno;
use crate::files::Files;
use crate::host;
use crate::node::Kind;
use crate::nodes::{NODES_MAX, Nodes, moving, orphan};
use crate::path::{PATH_BYTES_MAX, TreePath};
use crate::remove::{is_empty, keep_folder};
use crate::tree;

/// The note: how far it is, whence, a zero byte, and whereto.
const NOTE_BYTES: usize = 2 + 2 * PATH_BYTES_MAX;
const COPYING: u8 = b'c';
const COPIED: u8 = b'd';
/// How deep nodes lie in one another.
const DEPTH_MAX: u32 = 16;
/// The budget of stored bytes, as the host call `budget_left` numbers it.
const STORED_BYTES: u32 = 4;

impl Files {
    pub(crate) fn rename(
        &mut self,
        from: (u32, u32, u32),
        to: (u32, u32, u32),
    ) -> Result<(), Errno> {
        let source = self.resolve(from.0, from.1, from.2, false)?;
        let target = self.resolve(to.0, to.1, to.2, false)?;
        let (kind, _) = self.nodes.look(&source)?;
        source.check(kind)?;
        let (replaced, _) = self.nodes.look(&target)?;
        let (from, to) = (source.path, target.path);
        match (kind, replaced) {
            (Kind::Folder, Kind::File | Kind::Link) => return Err(Errno::NOTDIR),
            (Kind::Folder, Kind::Folder) if from == to => return Ok(()),
            (Kind::Folder, Kind::Folder) if !is_empty(&to)? => return Err(Errno::NOTEMPTY),
            (Kind::Folder, _) if to.below(&from).is_some() => return Err(Errno::INVAL),
            (Kind::File | Kind::Link, Kind::Folder) => return Err(Errno::ISDIR),
            (Kind::File | Kind::Link, _) if target.is_folder => return Err(Errno::NOTDIR),
            (Kind::File | Kind::Link, _) if from == to => return Ok(()),
            _ => {}
        }
        if from.is_root() {
            return Err(Errno::INVAL);
        }
        self.nodes.check_parent(&to)?;
        self.nodes.commit_below(&from)?;
        check_room(self.nodes.size_below(&mut { from }, DEPTH_MAX)?)?;
        self.note_name(&from, -1)?;
        self.note_name(&to, if replaced == Kind::Missing { 1 } else { 0 })?;
        self.nodes.hide_replaced(&to)?;
        note(COPYING, &from, &to)?;
        if let Err(error) = self.nodes.replace(&from, &to) {
            // All of it is where it was, but for what was replaced.
            tree::delete(&to)?;
            tree::delete(&moving()?)?;
            return Err(error);
        }
        finish(&from, &to)?;
        for node in &mut self.nodes.all {
            if node.users > 0
                && !node.is_orphan
                && let Some(moved) = node.path.moved(&from, &to)
            {
                node.path = moved;
            }
        }
        Ok(())
    }
}

impl Nodes {
    /// The replaced node may be open.
    fn hide_replaced(&mut self, to: &TreePath) -> Result<(), Errno> {
        let Some(number) = self.open_node(to) else { return Ok(()) };
        match self.node(number)?.kind {
            Kind::File => self.hide(to),
            _ => {
                let place = orphan(number)?;
                let node = self.node(number)?;
                (node.path, node.is_orphan) = (place, true);
                Ok(())
            }
        }
    }

    /// Goes on with what a power cut broke off.
    pub(crate) fn finish_moving(&mut self) -> Result<(), Errno> {
        let mut bytes = [0; NOTE_BYTES];
        let length = tree::get(&moving()?, &mut bytes)?.unwrap_or(0);
        let Some([state, paths @ ..]) = bytes.get(..length) else { return Ok(()) };
        let mut paths = paths.split(|byte| *byte == 0);
        let mut path = || TreePath::new(paths.next().unwrap_or_default());
        let (from, to) = (path()?, path()?);
        if *state == COPYING {
            self.replace(&from, &to)?;
        }
        finish(&from, &to)
    }

    fn replace(&mut self, from: &TreePath, to: &TreePath) -> Result<(), Errno> {
        tree::delete(to)?;
        self.copy(from, to)?;
        note(COPIED, from, to)
    }

    /// Copies a node as it lies in the tree, with all that is below it.
    pub(crate) fn copy(&mut self, from: &TreePath, to: &TreePath) -> Result<(), Errno> {
        self.all_pages()?;
        let (mut from, mut to) = (*from, *to);
        self.copy_below(&mut from, &mut to, DEPTH_MAX)
    }

    /// Leaves both paths as they are.
    fn copy_below(
        &mut self,
        from: &mut TreePath,
        to: &mut TreePath,
        depth: u32,
    ) -> Result<(), Errno> {
        let depth = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        let (from_length, to_length) = (from.length(), to.length());
        let data = self.data.as_flattened_mut();
        if let Some(length) = tree::get(from, data)? {
            tree::set(to, data.get(..length).ok_or(Errno::IO)?)?;
        }
        let mut place = 0;
        while self.push_child(from, Some(to), place)? {
            self.copy_below(from, to, depth)?;
            from.truncate(from_length);
            to.truncate(to_length);
            place += 1;
        }
        Ok(())
    }

    /// Appends the name of the child of that place to both paths, if there is one.
    fn push_child(
        &mut self,
        from: &mut TreePath,
        to: Option<&mut TreePath>,
        place: usize,
    ) -> Result<bool, Errno> {
        let data = self.data.as_flattened_mut();
        let length = tree::list(from, data)?;
        let list = data.get(..length).ok_or(Errno::OVERFLOW)?;
        let Some(name) = tree::names(list).nth(place) else { return Ok(false) };
        from.push(name)?;
        to.map_or(Ok(()), |to| to.push(name))?;
        Ok(true)
    }

    /// How many bytes a copy of a node will take, as far as it can be known, and whether its paths fit.
    fn size_below(&mut self, from: &mut TreePath, depth: u32) -> Result<u32, Errno> {
        const RECORD_BYTES: u32 = 32;
        let depth = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        self.all_pages()?;
        let value = tree::get(from, &mut [])?;
        let path_bytes = from.as_bytes().len() as u32;
        let mut size = value.map_or(0, |length| length as u32 + path_bytes + RECORD_BYTES);
        let mut place = 0;
        let length = from.length();
        while self.push_child(from, None, place)? {
            size = size.saturating_add(self.size_below(from, depth)?);
            from.truncate(length);
            place += 1;
        }
        Ok(size)
    }

    /// Brings all open nodes at `path` and below it into the tree.
    fn commit_below(&mut self, path: &TreePath) -> Result<(), Errno> {
        for number in 0..NODES_MAX {
            let node = self.node(number)?;
            if node.users > 0 && node.path.below(path).is_some() {
                self.commit(number)?;
            }
        }
        Ok(())
    }
}

/// Refuses a copy for which the machine has no room left.
fn check_room(bytes: u32) -> Result<(), Errno> {
    // SAFETY: it takes a number.
    let left = unsafe { host::budget_left(STORED_BYTES) };
    if u32::try_from(left).is_ok_and(|left| left < bytes) { Err(Errno::NOSPC) } else { Ok(()) }
}

fn note(state: u8, from: &TreePath, to: &TreePath) -> Result<(), Errno> {
    let mut bytes = [0; NOTE_BYTES];
    let mut length = 0;
    let parts: [&[u8]; 4] = [&[state], from.as_bytes(), &[0], to.as_bytes()];
    for byte in parts.into_iter().flatten() {
        if let Some(place) = bytes.get_mut(length) {
            *place = *byte;
            length += 1;
        }
    }
    tree::set_bytes(&moving()?, bytes.get(..length).unwrap_or_default())
}

fn finish(from: &TreePath, to: &TreePath) -> Result<(), Errno> {
    tree::delete(from)?;
    tree::delete(&moving()?)?;
    // A folder that is implied by what is in it must not go with its last name.
    keep_folder(&from.split().0)?;
    keep_folder(&to.split().0)
}
