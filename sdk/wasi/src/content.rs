//! The bytes of a node's file, and how many they are.

use crate::errno::Errno;
use crate::node::{FILE_BYTES_MAX, PART_BYTES, set_bit};
use crate::nodes::Nodes;
use crate::tree;
use crate::user::Range;

impl Nodes {
    pub(crate) fn read_range(
        &mut self,
        node: usize,
        range: Range,
        offset: u64,
    ) -> Result<u32, Errno> {
        let mut done = 0;
        while done < range.length() {
            let length = self.node(node)?.length;
            let at = u32::try_from(offset + u64::from(done)).unwrap_or(u32::MAX);
            if at >= length {
                break;
            }
            let (part, skipped) = (at / PART_BYTES, at % PART_BYTES);
            let page = self.page(node, part)?;
            let end = (length - part * PART_BYTES).min(PART_BYTES);
            let data =
                self.data.get(page).and_then(|data| data.get(skipped as usize..end as usize));
            done += range.part(done, u32::MAX).write(data.ok_or(Errno::IO)?);
        }
        Ok(done)
    }

    pub(crate) fn write_range(
        &mut self,
        node: usize,
        range: Range,
        offset: u64,
    ) -> Result<u32, Errno> {
        let mut done = 0;
        while done < range.length() {
            let at = u32::try_from(offset + u64::from(done)).unwrap_or(u32::MAX);
            if at >= FILE_BYTES_MAX {
                return if done > 0 { Ok(done) } else { Err(Errno::FBIG) };
            }
            let (part, skipped) = (at / PART_BYTES, at % PART_BYTES);
            let page = match self.page(node, part) {
                Ok(page) => page,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let piece = range.part(done, PART_BYTES - skipped);
            let data = self.data.get_mut(page).and_then(|data| {
                data.get_mut(skipped as usize..(skipped + piece.length()) as usize)
            });
            data.ok_or(Errno::IO)?.copy_from_slice(piece.bytes());
            self.soil(page);
            done += piece.length();
            let node = self.node(node)?;
            node.length = node.length.max(at + piece.length());
            node.is_dirty = true;
        }
        Ok(done)
    }

    pub(crate) fn set_length(&mut self, number: usize, size: u32) -> Result<(), Errno> {
        let node = self.node(number)?;
        let length = node.length;
        if size == length {
            return Ok(());
        }
        if size < length {
            self.cut(number, size, length)?;
        }
        let node = self.node(number)?;
        node.length = size;
        node.is_dirty = true;
        Ok(())
    }

    /// Makes zeros of all behind `size`.
    fn cut(&mut self, number: usize, size: u32, length: u32) -> Result<(), Errno> {
        let (boundary, kept) = (size / PART_BYTES, size % PART_BYTES);
        let in_parts = self.node(number)?.in_parts;
        // A small file's only part isn't in a slot.
        let first_gone =
            if kept > 0 || (boundary == 0 && !in_parts) { boundary + 1 } else { boundary };
        if first_gone > boundary {
            let page = self.page(number, boundary)?;
            let data = self.data.get_mut(page).and_then(|data| data.get_mut(kept as usize..));
            data.unwrap_or_default().fill(0);
            self.soil(page);
        }
        self.forget_pages_from(number, first_gone);
        for part in first_gone..length.div_ceil(PART_BYTES) {
            let node = self.node(number)?;
            tree::delete(&node.other_slot(part)?)?;
            set_bit(&mut node.changed, part);
        }
        Ok(())
    }
}
