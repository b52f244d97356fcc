//! Code compiled from an image, in turns with the interpreter.

use crate::interpreter::IMPOSSIBLE;
use crate::wall::{Breach, Entry, Stay, Wall, flow, word};

/// A [`Wall`] that runs code compiled from the machine's image (`tenure-compile`) where there is some, and
/// the interpreter where there isn't. Both work on the same words and frames, so that execution goes from one
/// to the other wherever compiled code may stop: nothing but time depends on which of them runs.
///
/// An image and its code belong together; the caller keeps them so. Behind a board's wall, code that isn't
/// what the image says harms its machine alone.
pub struct Compiled<'w> {
    /// The wall that both run behind.
    wall: &'w mut dyn Wall,
    code: &'w [u8],
    at: usize,
}

impl core::fmt::Debug for Compiled<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

impl<'w> Compiled<'w> {
    /// Runs compiled code, which is entered at the offset `at`, behind `wall`.
    pub fn new(wall: &'w mut dyn Wall, code: &'w [u8], at: usize) -> Compiled<'w> {
        Compiled { wall, code, at }
    }
}

impl Wall for Compiled<'_> {
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach> {
        let Stay { readable, writable: [globals, stack, memory], words, enter: interpreter } = stay;
        // A single instruction apart from the image.
        if readable[2].is_empty() {
            let writable = [&mut *globals, &mut *stack, &mut *memory];
            let enter = Entry::Compiled { code: self.code, at: self.at };
            self.wall.confine(Stay { readable, writable, words, enter })?;
            match words.get(word::FLOW) {
                Some(&flow::INTERPRET) => {}
                // It has fuel left: it could have itself called again and again.
                Some(&flow::CHECK) if left(words) >= 0 => return Err(IMPOSSIBLE),
                _ => return Ok(()),
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

/// Bytes of code that the fuel of a stay still pays for; below zero if it is used up.
fn left(words: &[usize]) -> isize {
    match [words.get(word::PC), words.get(word::LIMIT)] {
        [Some(pc), Some(limit)] => limit.wrapping_sub(*pc).cast_signed(),
        _ => 0,
    }
}
