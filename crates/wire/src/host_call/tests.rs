use super::*;
use alloc::vec::Vec;

#[test]
fn numbers_ascend_and_each_has_its_documentation() {
    assert!(TABLE.is_sorted_by(|one, next| one.number < next.number));
    for call in TABLE {
        assert!(HostCall::decode(call.number, &[]).is_some(), "{}", call.name);
        assert!(!call.documentation().is_empty(), "{}", call.name);
    }
    assert_eq!(HostCall::decode(u16::MAX, &[]), None);
}

#[test]
fn arguments_are_taken_in_order() {
    assert_eq!(
        HostCall::decode(8, &[16, 3, 1, 32, 4]),
        Some(HostCall::tree_set {
            path: GuestText(GuestBytes::new(16, 3)),
            kind: 1,
            value: GuestBytes::new(32, 4),
        })
    );
    assert_eq!(HostCall::decode(7, &[0, 9]), Some(HostCall::reply { value: None }));
    assert_eq!(TABLE[14].wasm_parameters().count(), 12);
}

#[test]
fn pointers_are_checked_at_their_ends() {
    let mut memory = *b"0123456789";
    assert_eq!(GuestBytes::new(8, 2).read(&memory), Ok(&b"89"[..]));
    assert_eq!(GuestBytes::new(10, 0).read(&memory), Ok(&b""[..]));
    for (pointer, length) in [(8, 3), (11, 0), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)] {
        assert_eq!(GuestBytes::new(pointer, length).read(&memory), Err(BadPointer));
        let room = GuestBuffer(GuestBytes::new(pointer, length));
        assert_eq!(room.write(&mut memory, b"x"), Err(BadPointer));
    }
    assert_eq!(GuestBuffer(GuestBytes::new(7, 2)).write(&mut memory, b"abc"), Ok(2));
    assert_eq!(&memory, b"0123456ab9");
}

#[test]
fn error_codes_are_negative_and_come_back() {
    for (error, name) in HostError::ALL {
        assert!(error.code() < 0, "{name}");
        assert_eq!(HostError::from_code(error.code()), Some(*error));
    }
}

#[test]
fn every_range_that_a_call_names_is_told() {
    let queue = HostCall::decode(14, &[16, 1, 32, 2, 0, 9, 64, 3, 80, 4, 5, 6]).unwrap();
    let mut ranges = Vec::new();
    queue.for_each_range(|range| ranges.push(range));
    let expected = [(16, 1), (32, 2), (64, 3), (80, 4)];
    assert_eq!(ranges, expected.map(|(pointer, length)| GuestBytes::new(pointer, length)));
}
