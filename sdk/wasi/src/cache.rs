//! Pages that hold parts of open files: what is read comes through them, and what is written gathers in them.

use crate::errno::Errno;
use crate::node::{PART_BYTES, set_bit};
use crate::nodes::Nodes;
use crate::tree;

/// How many parts are held at once.
pub(crate) const PAGES_MAX: usize = 8;

/// A page: whose part it holds.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    /// The node's number and one; 0 for none.
    owner: u16,
    part: u16,
    pub(crate) is_dirty: bool,
    /// When it was used last.
    used: u32,
}

impl Page {
    const EMPTY: Self = Self { owner: 0, part: 0, is_dirty: false, used: 0 };

    pub(crate) fn is_of(&self, node: usize) -> bool {
        usize::from(self.owner) == node + 1
    }
}

impl Nodes {
    /// The page with a part of a file. What the file doesn't have of it is zeros.
    pub(crate) fn page(&mut self, node: usize, part: u32) -> Result<usize, Errno> {
        self.uses = self.uses.wrapping_add(1);
        let uses = self.uses;
        let is_it = |page: &Page| page.is_of(node) && u32::from(page.part) == part;
        let found = self.pages.iter().position(is_it);
        let number = match found {
            Some(number) => number,
            None => {
                let number = self.free_page()?;
                self.load(number, node, part)?;
                number
            }
        };
        if let Some(page) = self.pages.get_mut(number) {
            page.used = uses;
        }
        Ok(number)
    }

    /// A page without content: one that is free, or the one that wasn't used for the longest time.
    fn free_page(&mut self) -> Result<usize, Errno> {
        let age = |page: &Page| match page.owner {
            0 => u32::MAX,
            _ => self.uses.wrapping_sub(page.used),
        };
        let ages = self.pages.iter().map(age).enumerate();
        let number = ages.max_by_key(|(_, age)| *age).map_or(0, |(number, _)| number);
        self.write_out(number)?;
        if let Some(page) = self.pages.get_mut(number) {
            *page = Page::EMPTY;
        }
        Ok(number)
    }

    fn load(&mut self, number: usize, node: usize, part: u32) -> Result<(), Errno> {
        let owner = self.node(node)?;
        let place = match part * PART_BYTES < owner.length {
            true => owner.place(part)?,
            false => None,
        };
        let data = self.data.get_mut(number).ok_or(Errno::IO)?;
        let length = match place {
            Some(place) => tree::get(&place, data)?.unwrap_or(0),
            None => 0,
        };
        data.get_mut(length..).unwrap_or_default().fill(0);
        if let Some(page) = self.pages.get_mut(number) {
            *page = Page { owner: node as u16 + 1, part: part as u16, ..Page::EMPTY };
        }
        Ok(())
    }

    /// Writes a page that was changed to the part's other slot, where it doesn't count yet.
    pub(crate) fn write_out(&mut self, number: usize) -> Result<(), Errno> {
        let Some(page) = self.pages.get(number).copied().filter(|page| page.is_dirty) else {
            return Ok(());
        };
        let (node, part) = (usize::from(page.owner) - 1, u32::from(page.part));
        let owner = self.all.get_mut(node).ok_or(Errno::IO)?;
        let length = owner.length.saturating_sub(part * PART_BYTES).min(PART_BYTES);
        let data = self.data.get(number).and_then(|data| data.get(..length as usize));
        tree::set_bytes(&owner.other_slot(part)?, data.ok_or(Errno::IO)?)?;
        set_bit(&mut owner.changed, part);
        owner.has_slots = true;
        self.clean(number);
        Ok(())
    }

    /// Writes all pages of a node out that were changed.
    pub(crate) fn write_out_all(&mut self, node: usize) -> Result<(), Errno> {
        for number in 0..PAGES_MAX {
            if self.pages.get(number).is_some_and(|page| page.is_of(node)) {
                self.write_out(number)?;
            }
        }
        Ok(())
    }

    pub(crate) fn soil(&mut self, number: usize) {
        if let Some(page) = self.pages.get_mut(number) {
            page.is_dirty = true;
        }
    }

    pub(crate) fn clean(&mut self, number: usize) {
        if let Some(page) = self.pages.get_mut(number) {
            page.is_dirty = false;
        }
    }

    /// Drops the pages of a node, whatever they hold.
    pub(crate) fn forget_pages(&mut self, node: usize) {
        self.forget_pages_from(node, 0);
    }

    /// Drops the pages of a node's parts from `first` on.
    pub(crate) fn forget_pages_from(&mut self, node: usize, first: u32) {
        for page in &mut self.pages {
            if page.is_of(node) && u32::from(page.part) >= first {
                *page = Page::EMPTY;
            }
        }
    }

    /// Makes room for a list of names: all pages, whose content is written out before.
    pub(crate) fn all_pages(&mut self) -> Result<&mut [u8], Errno> {
        for number in 0..PAGES_MAX {
            self.write_out(number)?;
            if let Some(page) = self.pages.get_mut(number) {
                *page = Page::EMPTY;
            }
        }
        Ok(self.data.as_flattened_mut())
    }
}
