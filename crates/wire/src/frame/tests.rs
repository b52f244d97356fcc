//! Messages read back as they were written; inconsistent fragments don't exist; nothing panics.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::NoResult;
use crate::limits::FUNCTION_BYTES_MAX;

fn check(frame: Frame<'_>) {
    let mut finished = Finished::below(CallNumber(u64::MAX - 100));
    finished.insert(CallNumber(u64::MAX - 40));
    let message = Message { finished, frame };
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    assert_eq!(Message::parse(&bytes), Ok(message));
    bytes.pop();
    assert_ne!(Message::parse(&bytes), Ok(message), "cut by one byte");
}

#[test]
fn every_frame_reads_back() {
    let number = CallNumber(0x0102_0304_0506_0708);
    let mut fragments = FragmentSet::first(7);
    fragments.insert(255);
    let fragment = Fragment::of(&[3; 250], 100, 2, true).expect("the third of three");
    assert_eq!((fragment.count(), fragment.offset(), fragment.bytes().len()), (3, 200, 50));
    check(Frame::Acknowledge);
    check(Frame::Call { number, until_ms: None, fragment });
    check(Frame::Call { number, until_ms: Some(0x0708_090A), fragment });
    check(Frame::Query { number });
    check(Frame::Running { number });
    check(Frame::Missing { number, fragments });
    check(Frame::Reply { number, held_us: 77, fragment });
    check(Frame::Want { number, burst: 8, fragments });
    check(Frame::Later { number });
    check(Frame::Prove { number, cookie: Cookie([4; 16]) });
    check(Frame::Proof { number, cookie: Cookie([5; 16]) });
    check(Frame::Asleep { number, wakes_in_ms: 0x0506_0708 });
    check(Frame::Late { number, clock_ms: 0x0607_0809 });
}

#[test]
fn fragment_that_does_not_fit_its_lengths_is_refused() {
    let check = |length: u32, fragment_bytes: u16, index: u8, bytes: usize| {
        let raw = [
            &length.to_le_bytes()[..],
            &fragment_bytes.to_le_bytes(),
            &[index, 0],
            &vec![0; bytes],
        ]
        .concat();
        Fragment::parse(&raw).is_some()
    };
    assert!(check(250, 100, 0, 100));
    assert!(check(250, 100, 2, 50));
    assert!(!check(250, 100, 2, 100), "longer than the whole");
    assert!(!check(250, 100, 1, 99), "a short one in the middle");
    assert!(!check(250, 100, 3, 0), "beyond the last");
    assert!(!check(0, 100, 0, 0), "of nothing");
    assert!(!check(250, 0, 0, 0), "of no length");
    assert!(check(256, 1, 255, 1));
    assert!(!check(257, 1, 255, 1), "one of too many");
    assert!(!check(u32::MAX, u16::MAX, 0, usize::from(u16::MAX)), "one of too many");
}

#[test]
fn call_body_reads_back() {
    for parameter in [None, Some(&b""[..]), Some(&b"22.5"[..])] {
        let body = CallBody { remaining_ms: 5_000, function: "read", parameter };
        let bytes = body.to_bytes().expect("a valid body");
        assert_eq!(CallBody::parse(&bytes), Ok(body));
    }
    assert!(CallBody { remaining_ms: 0, function: "", parameter: None }.to_bytes().is_err());
    let long = "f".repeat(FUNCTION_BYTES_MAX + 1);
    assert!(CallBody { remaining_ms: 0, function: &long, parameter: None }.to_bytes().is_err());
}

#[test]
fn malformed_call_body_is_refused() {
    assert!(CallBody::parse(b"\0\0\0\0\x01f\0").is_ok());
    assert!(CallBody::parse(b"\0\0\0\0\x00\0").is_err(), "no function");
    assert!(CallBody::parse(b"\0\0\0\0\x02f\0").is_err(), "cut short");
    assert!(CallBody::parse(b"\0\0\0\0\x01f\0x").is_err(), "a null with bytes");
    assert!(CallBody::parse(b"\0\0\0\0\x01f\x02x").is_err(), "neither null nor bytes");
    assert!(CallBody::parse(b"\0\0\0\0\x01\xff\0").is_err(), "no UTF-8");
}

#[test]
fn reply_body_reads_back() {
    for result in [Ok(None), Ok(Some(&b""[..])), Ok(Some(&b"ok"[..]))]
        .into_iter()
        .chain(NoResult::ALL.iter().map(|reason| Err(*reason)))
    {
        let bytes = ReplyBody(result).to_bytes();
        assert_eq!(ReplyBody::parse(&bytes), Ok(ReplyBody(result)));
    }
    assert!(ReplyBody::parse(&[]).is_err());
    assert!(ReplyBody::parse(&[9, 1, 0, 0]).is_err());
}

#[test]
fn finished_calls_move_the_floor() {
    let mut finished = Finished::below(CallNumber(10));
    [12, 11, 14, 200].into_iter().for_each(|number| finished.insert(CallNumber(number)));
    assert_eq!(finished.floor(), CallNumber(10));
    assert!(finished.contains(CallNumber(12)) && !finished.contains(CallNumber(13)));
    assert!(!finished.contains(CallNumber(200)), "beyond the window");
    finished.insert(CallNumber(10));
    assert_eq!(finished.floor(), CallNumber(13));
    finished.insert(CallNumber(13));
    assert_eq!(finished, Finished::below(CallNumber(15)));
}

proptest! {
    #[test]
    fn merged_finished_calls_are_those_of_both(
        floors in [0_u64..100, 0_u64..100],
        one in proptest::collection::vec(0_u64..200, 0..40),
        two in proptest::collection::vec(0_u64..200, 0..40),
    ) {
        let build = |floor, numbers: &[u64]| {
            let mut finished = Finished::below(CallNumber(floor));
            numbers.iter().for_each(|number| finished.insert(CallNumber(*number)));
            finished
        };
        let (one, two) = (build(floors[0], &one), build(floors[1], &two));
        let mut both = one;
        both.merge(&two);
        let floor = one.floor().max(two.floor()).0;
        for number in 0..300 {
            let number = CallNumber(number);
            // Numbers below the higher floor count as kept, as the lower window doesn't reach them.
            let expected = number.0 < floor || one.contains(number) || two.contains(number);
            prop_assert_eq!(both.contains(number), expected, "{:?}", number);
        }
        prop_assert!(!both.contains(both.floor()));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let _ = Message::parse(&bytes);
        let _ = Greeting::parse(&bytes);
        let _ = CallBody::parse(&bytes);
        let _ = ReplyBody::parse(&bytes);
    }

    #[test]
    fn fragments_rebuild_the_whole(
        whole in proptest::collection::vec(any::<u8>(), 1..2000),
        fragment_bytes in 8_u16..2100,
    ) {
        let mut rebuilt = vec![0; whole.len()];
        let count = whole.len().div_ceil(usize::from(fragment_bytes));
        for index in 0..count {
            let fragment = Fragment::of(&whole, fragment_bytes, index, false).expect("exists");
            prop_assert_eq!(fragment.count(), count);
            rebuilt[fragment.offset()..][..fragment.bytes().len()].copy_from_slice(fragment.bytes());
        }
        prop_assert_eq!(rebuilt, whole.clone());
        prop_assert_eq!(Fragment::of(&whole, fragment_bytes, count, false), None);
    }
}
