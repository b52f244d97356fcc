//! Code compiled from an image, in turns with the interpreter.

use crate::wall::{Breach, Stay, Wall, flow, word};

/// A [`Wall`] that runs code compiled from the machine's image (`tenure-compile`) where there is some, and
/// the interpreter where there isn't. Both work on the same words and frames, so that execution goes from one
/// to the other wherever compiled code may stop: nothing but time depends on which of them runs.
///
/// An image and its code belong together; the caller keeps them so. Behind a board's wall, code that isn't
/// what the image says harms its machine alone.
pub struct Compiled<'w> {
    /// What both run behind.
    wall: &'w mut dyn Wall,
    enter: unsafe extern "C" fn(*mut usize),
}

impl core::fmt::Debug for Compiled<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

impl<'w> Compiled<'w> {
    /// Runs compiled code behind `wall`.
    ///
    /// # Safety
    /// `enter` is the entry of code that was compiled from the image that instances are run with, or `wall`
    /// keeps whatever it is from harm.
    pub unsafe fn new(
        wall: &'w mut dyn Wall,
        enter: unsafe extern "C" fn(*mut usize),
    ) -> Compiled<'w> {
        Compiled { wall, enter }
    }
}

impl Wall for Compiled<'_> {
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach> {
        let Stay { readable, writable: [globals, stack, memory], words, enter: interpreter } = stay;
        // A single instruction apart from the image.
        if readable[2].is_empty() {
            let writable = [&mut *globals, &mut *stack, &mut *memory];
            self.wall.confine(Stay { readable, writable, words, enter: self.enter })?;
            if words.get(word::FLOW) != Some(&flow::INTERPRET) {
                return Ok(());
            }
        }
        // Until the interpreter looks at the fuel next; at most places where it does, compiled code goes on.
        let [Some(&pc), Some(&limit)] = [words.get(word::PC), words.get(word::LIMIT)] else {
            return Ok(());
        };
        let short = if readable[2].is_empty() { limit.min(pc) } else { limit };
        if let Some(limit) = words.get_mut(word::LIMIT) {
            *limit = short;
        }
        let writable = [globals, stack, memory];
        self.wall.confine(Stay { readable, writable, words, enter: interpreter })?;
        if let Some(moved) = words.get_mut(word::LIMIT) {
            *moved = moved.wrapping_add(limit.wrapping_sub(short));
        }
        Ok(())
    }
}
