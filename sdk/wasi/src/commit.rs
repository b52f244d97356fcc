//! How an open file's new content becomes the file: by one write to the tree.

use crate::clock;
use crate::errno::Errno;
use crate::node::{Kind, Node, PART_BYTES, PARTS_MAX, bit};
use crate::nodes::Nodes;
use crate::tree;

impl Nodes {
    /// Brings a node's new content into force, if it has any.
    pub(crate) fn commit(&mut self, number: usize) -> Result<(), Errno> {
        let node = self.node(number)?;
        if node.kind != Kind::File || !node.is_dirty || node.is_orphan {
            return Ok(());
        }
        let is_small = !node.in_parts && node.length <= PART_BYTES && !node.has_times;
        if is_small { self.commit_value(number) } else { self.commit_parts(number) }
    }

    /// A small file is one value.
    fn commit_value(&mut self, number: usize) -> Result<(), Errno> {
        let page = self.page(number, 0)?;
        let node = self.all.get(number).ok_or(Errno::IO)?;
        let content = self.data.get(page).and_then(|data| data.get(..node.length as usize));
        tree::set(&node.path, content.ok_or(Errno::IO)?)?;
        self.clean(page);
        let node = self.node(number)?;
        (node.is_dirty, node.kept_length) = (false, node.length);
        node.changed.fill(0);
        if core::mem::take(&mut node.has_slots) {
            tree::delete(&node.path.besides()?)?;
        }
        Ok(())
    }

    /// A larger one is its parts, and the header that says which of their slots count.
    fn commit_parts(&mut self, number: usize) -> Result<(), Errno> {
        let node = self.node(number)?;
        if !node.in_parts && node.length > 0 && !bit(&node.changed, 0) {
            // The value that it was becomes the first part.
            let page = self.page(number, 0)?;
            self.soil(page);
        }
        self.write_out_all(number)?;
        let node = self.node(number)?;
        if let (true, Some(now)) = (node.has_times, clock::unix_time())
            && node.has_slots
        {
            node.modified = now;
        }
        let mut slots = node.slots;
        for (slots, changed) in slots.iter_mut().zip(&node.changed) {
            *slots ^= changed;
        }
        node.write_header(&slots)?;
        let (was_value, kept_length) = (!node.in_parts, node.kept_length);
        let changed = core::mem::replace(&mut node.changed, [0; _]);
        (node.slots, node.in_parts) = (slots, true);
        (node.is_dirty, node.has_slots, node.kept_length) = (false, false, node.length);
        // Slots that don't count any more take room, and nothing else: an error here is none of the file's.
        let _ = discard(node, &changed, was_value, kept_length);
        Ok(())
    }
}

/// Deletes what counted before.
fn discard(
    node: &Node,
    changed: &crate::node::PartBits,
    was_value: bool,
    kept_length: u32,
) -> Result<(), Errno> {
    if was_value {
        return if kept_length > 0 { tree::set_bytes(&node.path, &[]) } else { Ok(()) };
    }
    for part in 0..kept_length.div_ceil(PART_BYTES).min(PARTS_MAX) {
        if bit(changed, part) {
            tree::delete(&node.other_slot(part)?)?;
        }
    }
    Ok(())
}
