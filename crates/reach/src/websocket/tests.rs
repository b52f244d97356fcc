use proptest::prelude::*;

use super::*;

/// All that comes to `own` side in these bytes, which it gets in pieces of this length.
fn read(own: Side, bytes: &[u8], piece: usize) -> Result<Vec<Message>, Broken> {
    let (mut incoming, mut messages) = (Incoming::new(own), Vec::new());
    for piece in bytes.chunks(piece) {
        incoming.take(piece);
        while let Some(message) = incoming.message()? {
            messages.push(message);
        }
    }
    Ok(messages)
}

fn datagram(bytes: &[u8]) -> Message {
    Message::Datagram(bytes.to_vec())
}

// RFC 6455 §1.3.
#[test]
fn key_has_the_answer_of_the_standard() {
    assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert!(is_key("dGhlIHNhbXBsZSBub25jZQ==") && is_key(&key_of(&[7; 16])));
    for other in ["", "dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25jZQ", "no key\r\n"] {
        assert!(!is_key(other), "{other:?}");
    }
}

// RFC 6455 §5.7, as binary messages.
#[test]
fn frames_of_the_standard_are_read() {
    let masked = [0x82, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(read(Side::Server, &masked, 1), Ok(vec![datagram(b"Hello")]));
    let in_parts = [0x02, 0x03, b'H', b'e', b'l', 0x80, 0x02, b'l', b'o'];
    assert_eq!(read(Side::Client, &in_parts, 4), Ok(vec![datagram(b"Hello")]));
    let ping = [0x89, 0x05, b'H', b'e', b'l', b'l', b'o'];
    assert_eq!(read(Side::Client, &ping, 3), Ok(vec![Message::Ping(b"Hello".to_vec())]));
    let long = [&[0x82, 0x7E, 0x01, 0x00][..], &[7; 256]].concat();
    assert_eq!(read(Side::Client, &long, 100), Ok(vec![datagram(&[7; 256])]));
}

#[test]
fn control_frames_may_come_between_the_frames_of_a_message() {
    let bytes = [0x02, 0x01, b'a', 0x89, 0x00, 0x8A, 0x00, 0x00, 0x00, 0x80, 0x01, b'b', 0x88, 0];
    assert_eq!(
        read(Side::Client, &bytes, 14),
        Ok(vec![Message::Ping(vec![]), Message::Pong, datagram(b"ab"), Message::Close])
    );
}

#[test]
fn what_is_not_due_ends_the_connection() {
    use Broken::{Protocol, Text, TooLong};
    let too_long = (DATAGRAM_BYTES_MAX as u16 + 1).to_be_bytes();
    for (bytes, broken) in [
        (&[0x81, 0x00][..], Text),
        (&[0xC2, 0x00], Protocol),
        (&[0x83, 0x00], Protocol),
        (&[0x8B, 0x00], Protocol),
        // A server that masks, the rest of no message, a message in a message.
        (&[0x82, 0x80], Protocol),
        (&[0x80, 0x00], Protocol),
        (&[0x02, 0x00, 0x82, 0x00], Protocol),
        // Control frames in parts, or too long.
        (&[0x09, 0x00], Protocol),
        (&[0x89, 0x7E, 0x00, 0x7E], Protocol),
        // Lengths: in a longer way than they need, too long, and of 64 bits.
        (&[0x82, 0x7E, 0x00, 0x7D], Protocol),
        (&[0x82, 0x7E, too_long[0], too_long[1]], TooLong),
        (&[0x82, 0x7F], TooLong),
    ] {
        assert_eq!(read(Side::Client, bytes, 1), Err(broken), "{bytes:x?}");
    }
    assert_eq!(read(Side::Server, &[0x82, 0x00], 2), Err(Protocol), "a client masks");
    let half = [&[0x02, 0x7E, 0x04, 0x00][..], &[0; 1024]].concat();
    let other = [&[0x80, 0x7E, 0x04, 0x00][..], &[0; 1024]].concat();
    assert_eq!(read(Side::Client, &[half, other].concat(), 4096), Err(TooLong), "in all");
}

#[test]
fn what_is_kept_of_a_message_that_never_ends_is_bounded() {
    let mut incoming = Incoming::new(Side::Client);
    incoming.take(&[0x02, 0x00]);
    for _ in 0..100_000 {
        incoming.take(&[0x00, 0x00]);
        assert_eq!(incoming.message(), Ok(None));
    }
    assert!(incoming.received.is_empty() && incoming.begun == Some(Vec::new()));
}

proptest! {
    #[test]
    fn datagrams_come_as_they_were_sent_in_whatever_pieces(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=DATAGRAM_BYTES_MAX), 0..4),
        mask in any::<[u8; 4]>(),
        piece in 1_usize..2000,
    ) {
        for (from, to) in [(Side::Client, Side::Server), (Side::Server, Side::Client)] {
            let frames = datagrams.iter().flat_map(|it| frame(from, Kind::Binary, it, mask));
            let messages: Vec<Message> = datagrams.iter().map(|it| datagram(it)).collect();
            prop_assert_eq!(read(to, &frames.collect::<Vec<_>>(), piece), Ok(messages));
        }
    }

    #[test]
    fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(Side::Server, &bytes, 7);
        let _ = read(Side::Client, &bytes, 7);
    }
}
