use super::*;
use proptest::prelude::*;

fn deframe(deframer: &mut Deframer, line: &[u8]) -> Vec<Result<Vec<u8>, SerialError>> {
    line.iter().filter_map(|byte| deframer.push(*byte)).collect()
}

#[test]
fn the_check_value_of_the_checksum_is_that_of_the_catalogue() {
    assert_eq!(CHECKSUM.checksum(b"123456789"), 0x906E);
}

#[test]
fn a_receiver_that_joins_in_the_middle_gets_the_next_frame() {
    let mut line = Vec::new();
    frame_for_serial(b"first\0frame", &mut line);
    frame_for_serial(b"second", &mut line);
    let got = deframe(&mut Deframer::new(100), &line[5..]);
    assert_eq!(got.len(), 2);
    assert!(got[0].is_err());
    assert_eq!(got[1], Ok(b"second".to_vec()));
}

#[test]
fn a_frame_that_is_too_long_is_dropped_and_no_more() {
    let mut line = Vec::new();
    frame_for_serial(&[7; 101], &mut line);
    frame_for_serial(&[7; 100], &mut line);
    let got = deframe(&mut Deframer::new(100), &line);
    assert_eq!(got, [Err(SerialError::TooLong), Ok([7; 100].to_vec())]);
}

#[test]
fn a_changed_byte_is_noticed() {
    let mut line = Vec::new();
    frame_for_serial(b"hello", &mut line);
    for at in 0..line.len() - 1 {
        let mut changed = line.clone();
        changed[at] ^= 0x40;
        assert!(!deframe(&mut Deframer::new(100), &changed).contains(&Ok(b"hello".to_vec())));
    }
}

proptest! {
    #[test]
    fn what_goes_over_a_line_comes_back(
        frames in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..600), 1..4),
    ) {
        let mut line = Vec::new();
        for frame in &frames {
            let before = line.len();
            frame_for_serial(frame, &mut line);
            prop_assert!(line.len() - before <= line_bytes_max(frame.len()));
            prop_assert_eq!(line[before..].iter().filter(|byte| **byte == 0).count(), 1);
        }
        let got: Result<Vec<_>, _> =
            deframe(&mut Deframer::new(600), &line).into_iter().collect();
        prop_assert_eq!(got.unwrap(), frames);
    }

    #[test]
    fn noise_is_no_frame_and_no_trouble(line in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut deframer = Deframer::new(64);
        for byte in line {
            if let Some(Ok(frame)) = deframer.push(byte) {
                prop_assert!(frame.len() <= 64);
            }
            prop_assert!(deframer.frame.len() <= 64 + 4);
        }
    }
}
