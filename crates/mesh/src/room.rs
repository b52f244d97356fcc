//! Memory that grows in small steps, and says when the heap has none for it.

use alloc::vec::Vec;

/// The longest steps in which memory grows, in bytes. Doubling on, as [`Vec`] does, would take a small heap's largest pieces.
pub(crate) const STEP_BYTES: usize = 256;
/// The shortest ones.
const STEP_BYTES_MIN: usize = 8;
/// The steps in which lists grow.
const PLACES_STEP: usize = 4;

/// Makes room in `bytes` for `more` bytes, in long steps; `false` if the heap has none.
pub(crate) fn make_room(bytes: &mut Vec<u8>, more: usize) -> bool {
    grow(bytes, more, STEP_BYTES)
}

/// Appends `more` to `bytes`; `false` if the heap has no room, and nothing was appended then. What is short stays so:
/// its memory doubles up to the longest step.
#[must_use]
pub(crate) fn append(bytes: &mut Vec<u8>, more: &[u8]) -> bool {
    let step = bytes.capacity().clamp(STEP_BYTES_MIN, STEP_BYTES);
    let has_room = grow(bytes, more.len(), step);
    if has_room {
        bytes.extend_from_slice(more);
    }
    has_room
}

/// Makes room for `more` bytes, by a step or by what is missing, whichever is longer.
#[inline(never)]
fn grow(bytes: &mut Vec<u8>, more: usize, step: usize) -> bool {
    let spare = bytes.capacity() - bytes.len();
    spare >= more
        || [spare + step, more]
            .into_iter()
            .any(|room| room >= more && bytes.try_reserve_exact(room).is_ok())
}

/// Whether `list` has a place for one more beside those that are `kept` for others; it grows by a few if the heap has
/// room.
pub(crate) fn has_place<T>(list: &mut Vec<T>, kept: usize) -> bool {
    let spare = list.capacity() - list.len();
    spare > kept || list.try_reserve_exact(spare + PLACES_STEP).is_ok()
}

/// Bytes to which is appended what the heap has room for. Whoever appends asks at the end whether something is missing.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_cut: bool,
}

impl Growing {
    /// No bytes, with room for so many.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), is_cut: false }
    }

    #[inline(never)]
    pub(crate) fn append(&mut self, more: &[u8]) {
        self.is_cut |= !append(&mut self.bytes, more);
    }

    /// Goes back to so many bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.is_cut = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_doubles_first_and_grows_in_steps_then() {
        let (mut bytes, mut capacities) = (Vec::new(), Vec::new());
        for _ in 0..3 * STEP_BYTES {
            assert!(append(&mut bytes, &[7]));
            if capacities.last() != Some(&bytes.capacity()) {
                capacities.push(bytes.capacity());
            }
        }
        assert_eq!(bytes, [7; 3 * STEP_BYTES]);
        assert_eq!(capacities, [8, 16, 32, 64, 128, 256, 512, 768]);
        assert!(append(&mut bytes, &[8; STEP_BYTES + 1]));
        assert_eq!(bytes.capacity(), 4 * STEP_BYTES + 1);
    }

    #[test]
    fn what_no_heap_has_room_for_is_refused() {
        let mut bytes = alloc::vec![1; 5];
        assert!(!make_room(&mut bytes, isize::MAX as usize));
        assert!(!make_room(&mut bytes, usize::MAX));
        assert_eq!(bytes, [1; 5]);
    }
}
