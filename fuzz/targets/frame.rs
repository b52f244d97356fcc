//! The frames of a peer inside a session, and the bodies of calls and replies: one form each.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_wire::frame::{CallBody, Greeting, Message, ReplyBody};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::parse(bytes) {
        let mut emitted = Vec::new();
        message.emit(&mut emitted);
        assert_eq!(emitted, bytes);
    }
    if let Ok(body) = CallBody::parse(bytes) {
        assert_eq!(body.to_bytes().as_deref(), Ok(bytes));
    }
    if let Ok(body) = ReplyBody::parse(bytes) {
        assert_eq!(body.to_bytes(), bytes);
    }
    if let Ok((greeting, rest)) = Greeting::parse(bytes) {
        assert_eq!([&greeting.to_bytes(), rest].concat(), bytes);
    }
});
