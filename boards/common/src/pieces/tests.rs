use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const BOTTOM: usize = 0x100;
const END: usize = 0x1000;

fn layout(bytes: usize, alignment: usize) -> Layout {
    Layout::from_size_align(bytes, alignment).unwrap()
}

#[test]
fn pieces_are_taken_from_above_where_they_fit_and_where_they_are_wanted() {
    let mut pieces = Pieces::<4>::up_to(END);
    let small = layout(0x100, 0x100);
    assert_eq!(pieces.take(small, None, BOTTOM), Some(0xF00));
    assert_eq!(pieces.take(layout(0x400, 0x400), None, BOTTOM), Some(0x800));
    assert_eq!(pieces.take(small, None, BOTTOM), Some(0xE00), "between the two");
    assert_eq!(pieces.take(small, Some(0xE00), BOTTOM), None, "it is taken");
    assert_eq!(pieces.take(small, Some(0xD80), BOTTOM), None, "it isn't aligned");
    assert_eq!(pieces.take(small, Some(BOTTOM - 0x100), BOTTOM), None, "it is below");
    assert_eq!(pieces.take(small, Some(END), BOTTOM), None, "it is above");
    assert_eq!((pieces.lowest(), pieces.used()), (0x800, 0x600));
    assert!(pieces.give_back(0x800) && !pieces.give_back(0x800));
    assert_eq!(pieces.take(layout(0xE00, 1), None, BOTTOM), None);
    assert_eq!(pieces.take(layout(0x400, 0x400), Some(0x800), BOTTOM), Some(0x800));
    assert_eq!(pieces.take(small, None, BOTTOM), Some(0xD00));
    assert_eq!(pieces.take(small, None, BOTTOM), None, "more than can be remembered");
}

proptest! {
    #[test]
    fn pieces_lie_apart_within_their_memory(
        steps in proptest::collection::vec((any::<bool>(), 0..8_usize, 1..0x300_usize, 0..8_u32), 1..60),
    ) {
        let mut pieces = Pieces::<8>::up_to(END);
        let mut held: Vec<(usize, usize)> = Vec::new();
        for (takes, which, bytes, alignment) in steps {
            if takes {
                let wanted = layout(bytes, 1 << alignment);
                if let Some(start) = pieces.take(wanted, None, BOTTOM) {
                    prop_assert!(start >= BOTTOM && start + bytes <= END);
                    prop_assert!(start.is_multiple_of(1 << alignment));
                    prop_assert!(held.iter().all(|one| start + bytes <= one.0 || one.1 <= start));
                    held.push((start, start + bytes));
                }
            } else if which < held.len() {
                let (start, end) = held.swap_remove(which);
                prop_assert!(pieces.give_back(start));
                // A piece that was just given back can be had again where it was.
                let again = pieces.take(layout(end - start, 1), Some(start), BOTTOM);
                prop_assert_eq!(again, Some(start));
                prop_assert!(pieces.give_back(start));
            }
            prop_assert_eq!(pieces.used(), held.iter().map(|(start, end)| end - start).sum::<usize>());
            prop_assert_eq!(pieces.lowest(), held.iter().map(|one| one.0).min().unwrap_or(END));
        }
    }
}
