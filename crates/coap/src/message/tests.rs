use proptest::prelude::*;

use super::*;

/// A request whose token is `t`, with these options in their order, and a payload.
fn datagram(first: u8, code: u8, options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut packet = Packet::new();
    packet.header.message_id = 0x0102;
    packet.header.code = code.into();
    packet.set_token(b"t".to_vec());
    for (number, value) in options {
        packet.add_option(CoapOption::from(*number), value.to_vec());
    }
    packet.payload = payload.to_vec();
    let mut bytes = packet.to_bytes_unlimited().unwrap();
    bytes[0] = first | 1;
    bytes
}

fn asked_by(options: &[(u16, &[u8])]) -> Result<Asked, Misread> {
    match read(&datagram(0x40, 1, options, b"")) {
        Heard::Request(request) => request.asked,
        heard => panic!("{heard:?}"),
    }
}

#[test]
fn request_is_read_with_its_options() {
    let options: [(u16, &[u8]); 10] = [
        (3, b"attic"),
        (6, b""),
        (11, b"m"),
        (11, "grüße".as_bytes()),
        (15, b"a=1"),
        (15, b"b"),
        (17, &[50]),
        (23, &[0x16]),
        (252, b"echoed"),
        (9000, b"elective"),
    ];
    let Heard::Request(request) = read(&datagram(0x50, 1, &options, b"hi")) else { panic!() };
    assert_eq!(
        (request.is_confirmable, request.id, &request.token[..]),
        (false, 0x0102, &b"t"[..])
    );
    assert_eq!(request.echo.as_deref(), Some(&b"echoed"[..]));
    let asked = request.asked.unwrap();
    assert_eq!((asked.method, asked.path), (Method::Get, vec!["m".into(), "grüße".into()]));
    assert_eq!((asked.query.as_deref(), asked.accept), (Some("a=1&b"), Some(50)));
    assert_eq!((asked.observe, asked.block2.unwrap().number), (Some(Observe::Register), 1));
    assert_eq!(asked.payload, b"hi");
}

#[test]
fn options_that_must_be_understood_are_refused_and_others_left_out() {
    for (option, value, code) in [
        (1, &b"x"[..], Code::BadOption),
        (5, b"", Code::BadOption),
        (9, b"", Code::BadOption),
        (19, b"", Code::BadOption),
        (31, b"", Code::BadOption),
        (35, b"coap://other", Code::ProxyingNotSupported),
        (39, b"coap", Code::ProxyingNotSupported),
        (17, b"123", Code::BadOption),
        (23, &[7], Code::BadRequest),
        (23, &[0, 0, 0, 0], Code::BadOption),
        (27, &[0], Code::BadOption),
        (11, &[0xFF], Code::BadRequest),
        (9001, b"", Code::BadOption),
    ] {
        assert_eq!(asked_by(&[(option, value)]).unwrap_err().code, code, "{option} {value:?}");
    }
    assert_eq!(asked_by(&[(17, b"0"), (17, b"0")]).unwrap_err().code, Code::BadOption);
    for (option, value) in [(6, &b"12345"[..]), (6, &[2]), (16, b"x"), (60, b"12345"), (258, b"x")]
    {
        let asked = asked_by(&[(option, value)]).unwrap();
        assert_eq!((asked.observe, asked.size1), (None, None), "{option}");
    }
}

#[test]
fn messages_that_are_no_requests_are_told_apart() {
    assert_eq!(read(&[0x40, 0, 1, 2]), Heard::Rejected(0x0102), "a ping");
    assert_eq!(read(&[0x50, 0, 1, 2]), Heard::Ignored);
    assert_eq!(read(&[0x60, 0, 1, 2]), Heard::Acknowledged(0x0102));
    assert_eq!(read(&[0x70, 0, 1, 2]), Heard::Reset(0x0102));
    for (bytes, what) in [
        (&[0x41, 0, 1, 2, 3][..], "an empty message with a token"),
        (&[0x40, 0, 1, 2, 0xFF, 1], "an empty message with a payload"),
        (&[0x40, 1, 1, 2, 0xFF], "a marker without a payload"),
        (&[0x49, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0], "a token of nine bytes"),
        (&[0x42, 1, 1, 2, 3], "a token that is cut off"),
        (&[0x40, 1, 1, 2, 0xF1, 0], "a delta that is reserved"),
        (&[0x40, 1, 1, 2, 0x1F, 0], "a length that is reserved"),
        (&[0x40, 1, 1, 2, 0xB5, 1], "an option that is cut off"),
        (&[0x40, 0x45, 1, 2], "a response that nobody asked for"),
        (&[0x40, 0x20, 1, 2], "a class that is reserved"),
    ] {
        assert_eq!(read(bytes), Heard::Rejected(0x0102), "{what}");
        let mut other = bytes.to_vec();
        other[0] |= 0x10;
        assert_eq!(read(&other), Heard::Ignored, "{what}, and not confirmable");
    }
    for bytes in [&[][..], &[0x40, 1, 1], &[0x80, 1, 1, 2], &[0x00, 1, 1, 2], &[0x60, 0x45, 1, 2]] {
        assert_eq!(read(bytes), Heard::Ignored, "{bytes:?}");
    }
    // An option whose value ends in the marker's byte is no payload.
    assert!(matches!(read(&[0x40, 1, 1, 2, 0x41, 0xFF]), Heard::Request(_)));
    let long = datagram(0x40, 1, &[], &vec![0; DATAGRAM_BYTES_MAX]);
    assert_eq!(read(&long), Heard::Rejected(0x0102));
    // A method that nobody knows is one all the same.
    let Heard::Request(request) = read(&[0x40, 0x1F, 1, 2]) else { panic!() };
    assert_eq!(request.asked.unwrap().method, Method::Other);
}

#[test]
fn reply_is_written_as_the_standard_has_it() {
    let mut reply = Reply::new(Code::Content);
    (reply.format, reply.max_age_s, reply.observe) = (Some(0), Some(300), Some(0x010203));
    reply.block2 = Some(Block::at(64, 2, true));
    reply.payload = b"21".to_vec();
    let message = reply.message(Type::Acknowledgement, 0x0405, b"t");
    let expected = b"\x61\x45\x04\x05t\x63\x01\x02\x03\x60\x22\x01\x2C\x91\x1A\xFF21";
    assert_eq!(message, expected, "{message:02x?}");
    assert_eq!(empty_message(Type::Reset, 0x0102), [0x70, 0, 1, 2]);
}

proptest! {
    #[test]
    fn bytes_at_random_are_a_request_or_nothing(
        first in prop_oneof![Just(0x40_u8), Just(0x51), Just(0x48), any::<u8>()],
        rest in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let bytes = [&[first][..], &rest].concat();
        if let Heard::Request(request) = read(&bytes) {
            prop_assert!(request.token.len() <= 8);
            prop_assert_eq!(request.datagram_bytes, bytes.len());
        }
    }
}
