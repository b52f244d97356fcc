//! Memory that grows in small steps, and says when the heap has none for it.

use alloc::vec::Vec;

/// The steps in which memory grows, in bytes. Doubling, as [`Vec`] does, would take a small heap's largest pieces.
const STEP_BYTES: usize = 256;

/// Makes room in `bytes` for `more` bytes; `false` if the heap has none.
pub(crate) fn make_room(bytes: &mut Vec<u8>, more: usize) -> bool {
    let spare = bytes.capacity() - bytes.len();
    let Some(missing) = more.checked_sub(spare + 1) else { return true };
    let step = spare + (missing + 1).next_multiple_of(STEP_BYTES);
    bytes.try_reserve_exact(step).is_ok() || bytes.try_reserve_exact(more).is_ok()
}

/// Appends `more` to `bytes`; `false` if the heap has no room, and nothing was appended then.
#[must_use]
pub(crate) fn append(bytes: &mut Vec<u8>, more: &[u8]) -> bool {
    let has_room = make_room(bytes, more.len());
    if has_room {
        bytes.extend_from_slice(more);
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_in_steps() {
        let mut bytes = Vec::new();
        for length in 1..=3 * STEP_BYTES {
            assert!(append(&mut bytes, &[7]));
            assert_eq!(bytes.len(), length);
            assert_eq!(bytes.capacity(), length.next_multiple_of(STEP_BYTES));
        }
        assert!(append(&mut bytes, &[8; STEP_BYTES + 1]));
        assert_eq!(bytes.capacity(), 5 * STEP_BYTES);
    }

    #[test]
    fn what_no_heap_has_room_for_is_refused() {
        let mut bytes = alloc::vec![1; 5];
        assert!(!make_room(&mut bytes, isize::MAX as usize));
        assert_eq!(bytes, [1; 5]);
    }
}
