//! Global variables and the stack of frames: one list of slots, globals first.
//!
//! Invariants:
//! - Once allocated, there are no fewer slots than globals.
//! - A frame is entered only where all of it has room.
//! - The slots are wiped when they go, as secrets pass through them.

use alloc::collections::TryReserveError;

use zeroize::Zeroize as _;

use crate::{image::FunctionEntry, memory::Lined};

/// Bytes of a slot.
const SLOT_BYTES: usize = 8;

#[cfg_attr(feature = "profile", derive(Clone))]
pub(crate) struct Stack {
    slots: Lined<u64>,
    globals: usize,
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.slots.zeroize();
    }
}

impl Stack {
    /// So many globals, and no slots yet.
    pub(super) fn new(globals: usize) -> Stack {
        Stack { slots: Lined::new(), globals }
    }

    /// Allocates globals, and frames of so many bytes: all of them zero.
    pub(super) fn allocate(&mut self, frames_bytes: usize) -> Result<(), TryReserveError> {
        self.slots = Lined::zeroed(self.globals + frames_bytes / SLOT_BYTES)?;
        Ok(())
    }

    /// Globals and frames; nothing before they are allocated.
    #[inline(always)]
    pub(super) fn split(&mut self) -> Option<(&mut [u64], &mut [u64])> {
        self.slots.split_at_mut_checked(self.globals)
    }

    pub(super) fn globals(&self) -> &[u64] {
        &self.slots[..self.globals]
    }

    pub(super) fn globals_mut(&mut self) -> &mut [u64] {
        &mut self.slots[..self.globals]
    }

    /// Globals and frames, whether in use or not.
    #[cfg(feature = "profile")]
    pub(super) fn all(&self) -> &[u64] {
        &self.slots
    }

    /// As `all`, to be written to.
    #[cfg(feature = "profile")]
    pub(super) fn all_mut(&mut self) -> &mut [u64] {
        &mut self.slots
    }

    /// The frames from that at an offset on.
    #[inline(always)]
    pub(crate) fn frames_from(&self, frame: u32) -> &[u64] {
        self.slots.get(self.index(frame, 0)..).unwrap_or(&[])
    }

    #[inline(always)]
    pub(super) fn frames_from_mut(&mut self, frame: u32) -> &mut [u64] {
        let from = self.index(frame, 0);
        self.slots.get_mut(from..).unwrap_or(&mut [])
    }

    /// The offset of a frame that is counted from the first of the globals.
    #[inline(always)]
    pub(super) fn frame_at(&self, from_globals: u32) -> u32 {
        from_globals - (self.globals * SLOT_BYTES) as u32
    }

    /// The low half of a slot of a frame; zero if there is no such slot.
    pub(super) fn read(&self, frame: u32, offset: u16) -> u32 {
        self.slots.get(self.index(frame, offset)).map_or(0, |&slot| slot as u32)
    }

    /// Writes the low half of a slot, as the interpreter does.
    pub(super) fn write(&mut self, frame: u32, offset: u16, value: u32) {
        let index = self.index(frame, offset);
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = *slot >> 32 << 32 | value as u64;
        }
    }

    /// Makes a frame of a function: with a link to where it returns, and zeroed locals. `None` if there is
    /// no room, and nothing is changed.
    #[inline(always)]
    pub(super) fn enter(&mut self, frame: u32, entry: &FunctionEntry, link: u32) -> Option<()> {
        let from = self.index(frame, 0);
        let slots = self.slots.get_mut(from..from + entry.frame_bytes as usize / SLOT_BYTES)?;
        let after = slots.get_mut(entry.link as usize / SLOT_BYTES..)?;
        let (slot, locals) = after.split_first_mut()?;
        *slot = link as u64;
        if entry.zeros > 0 {
            locals.iter_mut().take(entry.zeros as usize).for_each(|local| *local = 0);
        }
        Some(())
    }

    /// Moves `count` slots from an offset in a frame down to its beginning, if the frame has room for a
    /// function: before it is given up, so that a backtrace can be made.
    pub(super) fn replace(
        &mut self,
        frame: u32,
        entry: &FunctionEntry,
        from: u16,
        count: usize,
    ) -> Option<()> {
        let (to, from) = (self.index(frame, 0), self.index(frame, from));
        if to + entry.frame_bytes as usize / SLOT_BYTES > self.slots.len() {
            return None;
        }
        // They come from above, so that ascending order is safe.
        for index in 0..count {
            let argument = *self.slots.get(from + index)?;
            *self.slots.get_mut(to + index)? = argument;
        }
        Some(())
    }

    /// Globals, and frames up to so many bytes.
    pub(crate) fn in_use(&self, frames_bytes: usize) -> &[u64] {
        let end = (self.globals + frames_bytes / SLOT_BYTES).min(self.slots.len());
        &self.slots[..end]
    }

    /// Zeroes all slots but the first ones.
    pub(crate) fn wipe_from(&mut self, slots: usize) {
        if let Some(rest) = self.slots.get_mut(slots..) {
            rest.fill(0);
        }
    }

    /// Whether so many slots hold all globals.
    pub(crate) fn holds_globals(&self, slots: usize) -> bool {
        slots >= self.globals
    }

    /// Takes the first slots over from little-endian bytes; `None` if there is no room.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let slots = self.slots.get_mut(..bytes.len() / SLOT_BYTES)?;
        for (slot, bytes) in slots.iter_mut().zip(bytes.chunks_exact(SLOT_BYTES)) {
            *slot = bytes.first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes));
        }
        Some(())
    }

    #[inline(always)]
    fn index(&self, frame: u32, offset: u16) -> usize {
        self.globals + (frame as usize + offset as usize) / SLOT_BYTES
    }
}
