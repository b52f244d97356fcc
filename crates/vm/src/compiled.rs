//! Code compiled from an image, in turns with the interpreter.

use crate::interpreter::IMPOSSIBLE;
use crate::wall::{Breach, Entry, Stay, Wall, flow, word};

/// Bytes of code that are paid for from one entry into compiled code to the next, 256 units: the switch from engine to
/// engine takes some 900 instructions of a small core, whatever is done between.
const STRETCH_BYTES: isize = 512;

/// A [`Wall`] that runs code compiled from the machine's image (`tenure-compile`) where there is some, and
/// the interpreter where there isn't. Both work on the same words and frames, so that execution goes from one
/// to the other wherever compiled code may stop: nothing but time depends on which of them runs.
///
/// Compiled code that leaves before it has paid for 256 units is entered again when they are paid for. The interpreter goes on
/// meanwhile: what compiled code leaves to it, at whatever place, costs little more than interpreting does.
///
/// An image and its code belong together; the caller keeps them so. Behind a board's wall, code that isn't
/// what the image says harms its machine alone.
pub struct Compiled<'w> {
    /// The wall that both run behind.
    wall: &'w mut dyn Wall,
    code: &'w [u8],
    at: usize,
    /// Bytes of code to be paid for before compiled code is entered.
    due: isize,
    /// What [`left`] was when the last stay ended.
    left: isize,
}

impl core::fmt::Debug for Compiled<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

impl<'w> Compiled<'w> {
    /// Runs compiled code, which is entered at the offset `at`, behind `wall`.
    pub fn new(wall: &'w mut dyn Wall, code: &'w [u8], at: usize) -> Compiled<'w> {
        Compiled { wall, code, at, due: 0, left: 0 }
    }

    /// Notes that a stay has ended at `words`, before which [`left`] was `before`.
    fn pay(&mut self, before: isize, words: &[usize]) {
        self.left = left(words);
        // Code that says it has used less than nothing has paid nothing.
        self.due = self.due.saturating_sub(before.saturating_sub(self.left).max(0));
    }
}

impl Wall for Compiled<'_> {
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach> {
        // A single instruction apart from the image.
        if !stay.readable[2].is_empty() {
            return self.wall.confine(stay);
        }
        let Stay { readable, writable: [globals, stack, memory], words, enter: interpreter } = stay;
        let before = left(words);
        // Between stays, what was executed outside is paid for.
        self.due = self.due.saturating_sub(self.left.saturating_sub(before).max(0));
        if self.due <= 0 {
            let writable = [&mut *globals, &mut *stack, &mut *memory];
            let enter = Entry::Compiled { code: self.code, at: self.at };
            self.wall.confine(Stay { readable, writable, words, enter })?;
            self.due = STRETCH_BYTES;
            self.pay(before, words);
            match words.get(word::FLOW) {
                Some(&flow::INTERPRET) => {}
                // It has fuel left: it could have itself called again and again.
                Some(&(flow::CHECK | flow::NEXT)) if left(words) >= 0 => return Err(IMPOSSIBLE),
                _ => return Ok(()),
            }
        }
        // Until the interpreter looks at the fuel next, once the stretch is paid for; at most places where it does,
        // compiled code goes on.
        let [Some(&pc), Some(&limit)] = [words.get(word::PC), words.get(word::LIMIT)] else {
            return Ok(());
        };
        let stretch = pc.wrapping_add(self.due.max(0).cast_unsigned());
        let short = limit.min(stretch);
        if let Some(limit) = words.get_mut(word::LIMIT) {
            *limit = short;
        }
        let writable = [globals, stack, memory];
        let before = left(words);
        self.wall.confine(Stay { readable, writable, words, enter: interpreter })?;
        self.pay(before, words);
        if let Some(moved) = words.get_mut(word::LIMIT) {
            *moved = moved.wrapping_add(limit.wrapping_sub(short));
        }
        self.left = left(words);
        Ok(())
    }

    fn take_overdraft(&mut self) -> u32 {
        self.wall.take_overdraft()
    }
}

/// Bytes of code that the fuel of a stay still pays for; below zero if it is used up.
fn left(words: &[usize]) -> isize {
    match [words.get(word::PC), words.get(word::LIMIT)] {
        [Some(pc), Some(limit)] => limit.wrapping_sub(*pc).cast_signed(),
        _ => 0,
    }
}
