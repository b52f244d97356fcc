use alloc::format;
use alloc::string::String;

use super::*;
use proptest::prelude::*;

fn deframe(deframer: &mut Deframer, line: &[u8]) -> Vec<Result<Vec<u8>, SerialError>> {
    line.iter().filter_map(|byte| Some(deframer.push(*byte)?.map(<[u8]>::to_vec))).collect()
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

/// A frame as it goes over a line.
fn lined(frame: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    frame_for_serial(frame, &mut line);
    line
}

/// Compares a frame's line with hexadecimal digits, in which `RUN` stands for the bytes from 1 to 254.
fn check_line(frame: &[u8], expected: &str) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let run: Vec<u8> = (1..=254).collect();
    let line = lined(frame);
    assert_eq!(hex(&line), expected.replace(' ', "").replace("RUN", &hex(&run)));
    assert_eq!(deframe(&mut Deframer::new(frame.len()), &line), [Ok(frame.to_vec())]);
}

#[test]
fn lines_have_the_bytes_that_other_devices_expect() {
    // The empty frame has a checksum of zeros.
    check_line(b"", "01 01 01 00");
    check_line(b"\0", "01 03 78 f0 00");
    check_line(b"123456789", "0c 31 32 33 34 35 36 37 38 39 6e 90 00");
    check_line(b"first\0frame", "06 66 69 72 73 74 08 66 72 61 6d 65 44 23 00");
    let run: Vec<u8> = (1..=254).collect();
    check_line(&run, "ff RUN 03 a4 f7 00");
    check_line(&[&run[..], &[0], &run].concat(), "ff RUN 01 ff RUN 03 c1 df 00");
    check_line(&[&run[..], &run].concat(), "ff RUN ff RUN 03 26 75 00");
    // The checksum ends a run of 254 bytes, and the code of an empty one follows.
    let (beginning, _) = run.split_at(252);
    let line = lined(beginning);
    assert_eq!((line[0], &line[1..253]), (0xFF, beginning));
    assert_eq!(line[253..], [0xA9, 0x50, 0x01, 0x00]);
}

#[test]
fn a_lost_delimiter_costs_two_frames_and_no_more() {
    let mut line = Vec::new();
    for frame in [b"first", b"other", b"third"] {
        frame_for_serial(frame, &mut line);
    }
    let delimiter = line.iter().position(|byte| *byte == 0).unwrap();
    line.remove(delimiter);
    let got = deframe(&mut Deframer::new(100), &line);
    assert_eq!(got, [Err(SerialError::Checksum), Ok(b"third".to_vec())]);
}

#[test]
fn a_frame_that_is_too_long_and_cut_off_is_too_long() {
    let mut line = lined(&[7; 101]);
    line.remove(50);
    let got = deframe(&mut Deframer::new(90), &line);
    assert_eq!(got, [Err(SerialError::TooLong)]);
}

/// COBS as the paper describes it: a zero is added, and each run before a zero goes in parts of at most 254 bytes.
fn line_by_the_paper(frame: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    let bytes = [frame, &CHECKSUM.checksum(frame).to_le_bytes()].concat();
    for run in bytes.split(|byte| *byte == 0) {
        let (parts, rest) = run.as_chunks::<RUN_BYTES_MAX>();
        for part in parts {
            line.push(0xFF);
            line.extend(part);
        }
        line.push(u8::try_from(rest.len()).unwrap() + 1);
        line.extend(rest);
    }
    line.push(0);
    line
}

/// The frames between the zeros of `line`, and the reasons of the others, each decoded as a whole.
fn frames_by_the_paper(line: &[u8], frame_bytes_max: usize) -> Vec<Result<Vec<u8>, SerialError>> {
    let Some(end) = line.iter().rposition(|byte| *byte == 0) else { return Vec::new() };
    let between = line[..end].split(|byte| *byte == 0).filter(|bytes| !bytes.is_empty());
    let decoded = between.map(|mut bytes| {
        let mut frame = Vec::new();
        let mut is_whole = true;
        while let Some((code, rest)) = bytes.split_first() {
            let run_bytes = usize::from(*code) - 1;
            is_whole = run_bytes <= rest.len();
            let (run, rest) = rest.split_at(run_bytes.min(rest.len()));
            frame.extend(run);
            if *code != 0xFF && !rest.is_empty() {
                frame.push(0);
            }
            bytes = rest;
        }
        if frame.len() > frame_bytes_max + 2 {
            return Err(SerialError::TooLong);
        }
        let Some((content, checksum)) = frame.split_last_chunk().filter(|_| is_whole) else {
            return Err(SerialError::Truncated);
        };
        let is_right = CHECKSUM.checksum(content).to_le_bytes() == *checksum;
        if is_right { Ok(content.to_vec()) } else { Err(SerialError::Checksum) }
    });
    decoded.collect()
}

/// Bytes with many zeros, or a run without any that is near a multiple of the longest.
fn frame_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..600),
        (250_usize..=256, 1_usize..=2)
            .prop_flat_map(|(bytes, runs)| { proptest::collection::vec(1_u8.., bytes * runs) }),
    ]
}

/// A frame's line, whole or with one byte lost, or noise; between them zeros or none.
fn line_bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        frame_bytes().prop_map(|frame| line_by_the_paper(&frame)),
        (frame_bytes(), any::<proptest::sample::Index>()).prop_map(|(frame, lost)| {
            let mut line = line_by_the_paper(&frame);
            line.remove(lost.index(line.len()));
            line
        }),
        frame_bytes().prop_map(|frame| {
            let mut line = line_by_the_paper(&frame);
            line.pop();
            line
        }),
        proptest::collection::vec(any::<u8>(), 0..400),
        proptest::collection::vec(Just(0_u8), 0..3),
    ];
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn what_goes_over_a_line_comes_back(
        frames in proptest::collection::vec(frame_bytes(), 1..4),
    ) {
        let mut line = Vec::new();
        for frame in &frames {
            let before = line.len();
            frame_for_serial(frame, &mut line);
            prop_assert!(line.len() - before <= line_bytes_max(frame.len()));
            prop_assert_eq!(line[before..].iter().filter(|byte| **byte == 0).count(), 1);
            prop_assert_eq!(&line[before..], line_by_the_paper(frame));
        }
        let got: Result<Vec<_>, _> =
            deframe(&mut Deframer::new(600), &line).into_iter().collect();
        prop_assert_eq!(got.unwrap(), frames);
    }

    #[test]
    fn a_damaged_line_is_read_as_the_paper_says(line in line_bytes(), frame_bytes_max in 0..600_usize) {
        let mut deframer = Deframer::new(frame_bytes_max);
        let mut got = Vec::new();
        for byte in &line {
            got.extend(deframer.push(*byte).map(|frame| frame.map(<[u8]>::to_vec)));
            prop_assert!(deframer.frame.len() <= frame_bytes_max + 3);
        }
        prop_assert_eq!(got, frames_by_the_paper(&line, frame_bytes_max));
    }
}
