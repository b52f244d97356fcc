//! A node: a file, folder or link in the tree, how it lies there, and what is known of an open one.
//!
//! | in the tree | is |
//! |---|---|
//! | a value at `p` | a file of 2,048 bytes at most |
//! | `p.%` begins with 1 | a file in parts: how long it is, its times, and for each part, in which of two slots it lies |
//! | `p.%.7.0`, `p.%.7.1` | the slots of part 7, 2,048 bytes at most |
//! | `p.%` begins with 2 | a folder; a node with others below it is one without that, too |
//! | `p.%` begins with 3 | a link: behind that stands where it leads |
//! | `p.%` begins with 0 | a file in parts that is being removed |
//!
//! A part that changes is written to its other slot. One value, the header at `p.%`, then says which slots count: until it is
//! written the file is as it was, and from then on as it is. What lies in slots that don't count is nobody's.

use crate::errno::Errno;
use crate::path::TreePath;
use crate::tree;

/// Bytes of a part of a file: the longest value.
pub(crate) const PART_BYTES: u32 = 2048;
/// The most parts of a file.
pub(crate) const PARTS_MAX: u32 = 512;
/// The longest file.
pub(crate) const FILE_BYTES_MAX: u32 = PART_BYTES * PARTS_MAX;

/// The first byte of what stands besides.
const REMOVED: u8 = 0;
const IN_PARTS: u8 = 1;
const FOLDER: u8 = 2;
const LINK: u8 = 3;

/// The header: its kind, three zero bytes, the length, the times of access and change, a bit for each part.
const HEADER_BYTES: usize = 24 + SLOTS_BYTES;
const SLOTS_BYTES: usize = PARTS_MAX as usize / 8;
/// The longest text of a link.
pub(crate) const LINK_BYTES_MAX: usize = 255;

/// A bit for each part of a file.
pub(crate) type PartBits = [u8; SLOTS_BYTES];

/// The bit of a part.
pub(crate) fn bit(bits: &PartBits, part: u32) -> bool {
    bits.get(part as usize / 8).is_some_and(|byte| byte >> (part % 8) & 1 == 1)
}

pub(crate) fn set_bit(bits: &mut PartBits, part: u32) {
    if let Some(byte) = bits.get_mut(part as usize / 8) {
        *byte |= 1 << (part % 8);
    }
}

/// The kinds of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Missing,
    File,
    Folder,
    Link,
}

/// A node that is open, by one descriptor or several.
pub(crate) struct Node {
    /// How many descriptors it has; 0 where there is no node.
    pub(crate) users: u16,
    pub(crate) kind: Kind,
    pub(crate) path: TreePath,
    /// Whether it was removed, and lies among the orphans until it is closed.
    pub(crate) is_orphan: bool,
    /// Whether it lies in parts.
    pub(crate) in_parts: bool,
    /// Whether it isn't in the tree as it is here.
    pub(crate) is_dirty: bool,
    /// Whether slots were written that don't count yet.
    pub(crate) has_slots: bool,
    /// Whether its times are known, and to be kept.
    pub(crate) has_times: bool,
    pub(crate) length: u32,
    /// How long it is in the tree.
    pub(crate) kept_length: u32,
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
    /// In which slot each part lies.
    pub(crate) slots: PartBits,
    /// Which parts lie in their other slot, or, where there is none, are zeros.
    pub(crate) changed: PartBits,
}

impl Node {
    /// The node at `path`, as the tree has it.
    pub(crate) fn read(path: &TreePath) -> Result<Self, Errno> {
        let mut node = Self {
            users: 0,
            kind: Kind::Folder,
            path: *path,
            is_orphan: false,
            in_parts: false,
            is_dirty: false,
            has_slots: false,
            has_times: false,
            length: 0,
            kept_length: 0,
            accessed: 0,
            modified: 0,
            slots: [0; SLOTS_BYTES],
            changed: [0; SLOTS_BYTES],
        };
        if path.is_root() {
            return Ok(node);
        }
        let mut header = [0; HEADER_BYTES];
        let length = tree::get(&path.besides()?, &mut header)?.unwrap_or(0).min(HEADER_BYTES);
        match header.get(..length).unwrap_or_default() {
            [IN_PARTS, _, _, _, rest @ ..] => {
                node.kind = Kind::File;
                node.in_parts = true;
                node.read_header(rest)?;
            }
            [FOLDER, ..] => {}
            [LINK, ..] => {
                node.kind = Kind::Link;
                node.length = (length - 1) as u32;
            }
            _ => node.read_plain(length > 0)?,
        }
        node.kept_length = node.length;
        Ok(node)
    }

    /// Of a node without a header, or with that of a removed one.
    fn read_plain(&mut self, is_removed: bool) -> Result<(), Errno> {
        if let Some(length) = tree::get(&self.path, &mut [])?
            && !is_removed
        {
            self.kind = Kind::File;
            self.length = length as u32;
            return Ok(());
        }
        // All that has another name below it than that for what it has besides is a folder.
        let mut list = [0; 4];
        let length = tree::list(&self.path, &mut list)?;
        let besides_alone = length == 2 && list.first() == Some(&b'%');
        self.kind = if length == 0 || besides_alone { Kind::Missing } else { Kind::Folder };
        Ok(())
    }

    fn read_header(&mut self, rest: &[u8]) -> Result<(), Errno> {
        let (length, rest) = rest.split_first_chunk().ok_or(Errno::IO)?;
        let (accessed, rest) = rest.split_first_chunk().ok_or(Errno::IO)?;
        let (modified, slots) = rest.split_first_chunk().ok_or(Errno::IO)?;
        self.length = u32::from_le_bytes(*length);
        self.accessed = u64::from_le_bytes(*accessed);
        self.modified = u64::from_le_bytes(*modified);
        self.has_times = self.modified != 0;
        for (bits, kept) in self.slots.iter_mut().zip(slots) {
            *bits = *kept;
        }
        if self.length > FILE_BYTES_MAX { Err(Errno::IO) } else { Ok(()) }
    }

    /// Writes the header of a file in parts: from then on that is the file.
    pub(crate) fn write_header(&self, slots: &PartBits) -> Result<(), Errno> {
        let mut header = [0; HEADER_BYTES];
        let used = slots.iter().rposition(|bits| *bits != 0).map_or(0, |last| last + 1);
        let length = HEADER_BYTES - SLOTS_BYTES + used;
        let parts: [&[u8]; 5] = [
            &[IN_PARTS, 0, 0, 0],
            &self.length.to_le_bytes(),
            &self.accessed.to_le_bytes(),
            &self.modified.to_le_bytes(),
            slots,
        ];
        for (place, byte) in header.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        tree::set_bytes(&self.path.besides()?, header.get(..length).unwrap_or_default())
    }

    /// Where a slot of a part is.
    pub(crate) fn slot(&self, part: u32, slot: bool) -> Result<TreePath, Errno> {
        let mut path = self.path.besides()?;
        path.push_number(part)?;
        path.push_number(slot.into())?;
        Ok(path)
    }

    /// Where a part lies now; nowhere if it is zeros.
    pub(crate) fn place(&self, part: u32) -> Result<Option<TreePath>, Errno> {
        let (slot, is_changed) = (bit(&self.slots, part), bit(&self.changed, part));
        match (is_changed, self.in_parts) {
            (true, _) => self.slot(part, !slot).map(Some),
            (false, true) => self.slot(part, slot).map(Some),
            (false, false) if part == 0 => Ok(Some(self.path)),
            (false, false) => Ok(None),
        }
    }

    /// The slot of a part that doesn't count.
    pub(crate) fn other_slot(&self, part: u32) -> Result<TreePath, Errno> {
        self.slot(part, !bit(&self.slots, part))
    }
}

/// Makes an empty folder.
pub(crate) fn make_folder(path: &TreePath) -> Result<(), Errno> {
    tree::set_bytes(&path.besides()?, &[FOLDER])
}

/// Makes a link.
pub(crate) fn make_link(path: &TreePath, target: &[u8]) -> Result<(), Errno> {
    let mut value = [LINK; 1 + LINK_BYTES_MAX];
    let room = value.get_mut(1..1 + target.len()).ok_or(Errno::NAMETOOLONG)?;
    room.copy_from_slice(target);
    tree::set_bytes(&path.besides()?, value.get(..1 + target.len()).unwrap_or_default())
}

/// Where a link leads; nothing if there is none at `path`. The text is put behind the first byte of `into`.
pub(crate) fn read_link<'a>(
    path: &TreePath,
    into: &'a mut [u8; 1 + LINK_BYTES_MAX],
) -> Result<Option<&'a [u8]>, Errno> {
    let length = tree::get(&path.besides()?, into)?.unwrap_or(0);
    Ok(match into.get(..length) {
        Some([LINK, target @ ..]) => Some(target),
        _ => None,
    })
}

/// Removes a file, folder or link with all that it has. A file in parts is gone with the first write.
pub(crate) fn remove(node: &Node) -> Result<(), Errno> {
    if node.in_parts {
        tree::set_bytes(&node.path.besides()?, &[REMOVED])?;
    }
    tree::delete(&node.path)
}
