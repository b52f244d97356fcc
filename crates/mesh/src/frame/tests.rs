//! Frames as this version writes them: a later build reads these bytes, and refuses those of another version.

use tenure_testbed::frozen;

use super::*;

fn header(to: Destination, introduces: bool) -> Header {
    let sender = NodeId::from_bytes([1, 2, 3, 4, 5, 6]);
    let number = FrameNumber { sender, epoch: 7, salt: [8; 8], sequence: 9 };
    Header { number, to, sealed: true, introduces }
}

#[test]
fn frame_of_version_2_is_written_and_read() {
    let to = Destination::One(NodeId::from_bytes([6, 5, 4, 3, 2, 1]));
    let header = header(to, true);
    let of = NodeId::from_bytes([6, 5, 4, 3, 2, 1]);
    let introduction = Introduction { of, epoch: 10, salt: [11; 8], heard: 12, asks: true };
    let mut written = Vec::new();
    header.emit(&mut written);
    written.push(1);
    introduction.emit(&mut written);
    assert!(emit_record(ProtocolNumber(3), b"short", &mut written));
    assert!(emit_record(ProtocolNumber(4), &[5; 200], &mut written));

    let bytes = frozen(env!("CARGO_MANIFEST_DIR"), "frame-2", &written);
    let (read, length) = Header::parse(&bytes).unwrap();
    assert_eq!(read, header);
    let (mut introductions, _) = split_introductions(&bytes[length..]).unwrap();
    assert_eq!(introductions.next(), Some(introduction));
    let (first, rest) = split_record(records_of(&read, &bytes[length..]).unwrap()).unwrap();
    assert_eq!((first.protocol, first.message), (ProtocolNumber(3), &b"short"[..]));
    let (second, rest) = split_record(rest).unwrap();
    assert_eq!((second.protocol, second.message), (ProtocolNumber(4), &[5; 200][..]));
    assert!(rest.is_empty());

    let mut later = bytes.clone();
    later[0] += 0x10;
    assert_eq!(Header::parse(&later), Err(FrameError::Version));
}
