use proptest::prelude::*;

use super::*;

/// The processor's reading of the registers, as the manual says (B3.5.8).
fn is_covered(window: &Window, address: usize) -> bool {
    let (base, rule) = window.registers();
    let length = 1_usize << ((rule >> 1 & 0x1F) + 1);
    assert!((base as usize).is_multiple_of(length), "a window lies at a multiple of its length");
    let Some(offset) = address.checked_sub(base as usize).filter(|offset| *offset < length) else {
        return false;
    };
    rule >> 8 & 1 << (offset / (length / 8)) == 0
}

#[test]
fn aligned_power_of_two_takes_one_whole_window() {
    let range = 0x2000_8000..0x2001_0000;
    let window = Window::around(0x2000_9000, &range).unwrap();
    assert_eq!(window.addresses(), range);
    assert_eq!(window.registers(), (0x2000_8000, 14 << 1));
}

#[test]
fn eighths_of_a_window_are_left_out() {
    // 5 KiB at a multiple of 8.
    let window = Window::around(0x2000_0000, &(0x2000_0000..0x2000_1400)).unwrap();
    assert_eq!(window.addresses(), 0x2000_0000..0x2000_1400);
    assert_eq!(window.registers(), (0x2000_0000, 0b1110_0000 << 8 | 12 << 1));
}

#[test]
fn what_is_shorter_than_a_step_means_the_step() {
    let window = Window::around(0x2000_0044, &(0x2000_0044..0x2000_0045)).unwrap();
    assert_eq!(window.addresses(), 0x2000_0040..0x2000_0060);
    assert_eq!(Window::around(0x2000_0060, &(0x2000_0044..0x2000_0045)), None);
    for nothing in [0, 1, 32] {
        assert_eq!(Window::around(nothing, &(nothing..nothing)), None);
    }
    assert_eq!(Window::around(usize::MAX, &(usize::MAX - 8..usize::MAX)), None);
}

#[test]
fn code_of_whole_kilobytes_takes_two_windows() {
    for kilobytes in 1..64 {
        let code = 0x2001_0000..0x2001_0000 + (kilobytes << 10);
        assert!(Window::covering(code).count() <= 2, "{kilobytes} KiB");
    }
}

#[test]
fn instructions_that_write_are_told_from_those_that_read() {
    // As LLVM's assembler encodes them: str, strb, strh with an offset, by the stack pointer, by a
    // register; push, stm; str.w, strb.w, strh.w, strd, stmdb, strex.
    let writes = [
        0x6008, 0x7008, 0x8008, 0x9001, 0x5088, 0x5288, 0x5488, 0xB510, 0xC103, 0xF8C1, 0xF881,
        0xF8A1, 0xE9C1, 0xE92D, 0xE841,
    ];
    assert!(writes.into_iter().all(is_store));
    // ldr, ldrb, ldrh, by the stack pointer, of a literal; ldr, ldrh, ldrb, ldrsb, ldrsh by a register; pop,
    // ldm; ldr.w, of a literal, ldrsb.w, ldrd, ldm.w, ldrex, tbb.
    let reads = [
        0x6808, 0x7808, 0x8808, 0x9801, 0x4800, 0x5888, 0x5A88, 0x5C88, 0x5688, 0x5E88, 0xBD10,
        0xC903, 0xF8D1, 0xF8DF, 0xF991, 0xE9D1, 0xE8BD, 0xE851, 0xE8D0,
    ];
    assert!(!reads.into_iter().any(is_store));
}

proptest! {
    #[test]
    fn windows_cover_a_range_and_nothing_else(start in 0_usize..1 << 18, length in 1_usize..1 << 16) {
        let range = 0x2000_0000 + start..0x2000_0000 + start + length;
        let whole = range.start & !31..range.end.next_multiple_of(32);
        let mut next = whole.start;
        for window in Window::covering(range.clone()) {
            let covered = window.addresses();
            prop_assert!(covered.contains(&next));
            prop_assert!(covered.start >= whole.start && covered.end <= whole.end);
            for address in [covered.start, covered.end - 1] {
                prop_assert!(is_covered(&window, address));
            }
            for address in [covered.start.wrapping_sub(1), covered.end] {
                prop_assert!(!is_covered(&window, address));
            }
            next = covered.end;
        }
        prop_assert_eq!(next, whole.end);
    }

    #[test]
    fn window_around_an_address_has_it_and_stays_in_the_range(
        start in 0_usize..1 << 18, length in 1_usize..1 << 16, at in 0_usize..1 << 16,
    ) {
        let range = 0x2000_0000 + start..0x2000_0000 + start + length;
        let address = range.start + at % length;
        let window = Window::around(address, &range).unwrap();
        prop_assert!(is_covered(&window, address));
        let covered = window.addresses();
        prop_assert!(covered.start >= range.start & !31 && covered.end <= range.end.next_multiple_of(32));
    }
}
