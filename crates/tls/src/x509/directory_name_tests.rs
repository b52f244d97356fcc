//! Values of attributes that RFC 5280 §7.1 takes for the same, and such that it doesn't.

extern crate std;

use std::vec::Vec;

use super::*;

fn folded(tag: u8, content: &[u8]) -> Vec<u32> {
    Folded::new(tag, content).collect()
}

#[test]
fn strings_of_each_kind_are_compared_by_their_words() {
    let acme = folded(PRINTABLE_STRING, b"acme works");
    for (tag, content) in [
        (UTF8_STRING, &b"Acme Works"[..]),
        (IA5_STRING, b"  ACME   works "),
        (TELETEX_STRING, b"acme\tworks"),
        (BMP_STRING, b"\0A\0C\0M\0E\0 \0w\0o\0r\0k\0s"),
        (
            UNIVERSAL_STRING,
            b"\0\0\0a\0\0\0c\0\0\0m\0\0\0e\0\0\0 \0\0\0w\0\0\0o\0\0\0r\0\0\0k\0\0\0s",
        ),
    ] {
        assert_eq!(folded(tag, content), acme, "{tag:#x}");
    }
    assert_ne!(folded(UTF8_STRING, b"acmeworks"), acme);
    assert_ne!(folded(UTF8_STRING, b"acme works."), acme);
}

#[test]
fn letters_beyond_ascii_are_the_same_in_each_encoding() {
    let cafe = folded(UTF8_STRING, "caf\u{e9}".as_bytes());
    assert_eq!(folded(TELETEX_STRING, b"CAF\xe9"), cafe);
    assert_eq!(folded(BMP_STRING, b"\0c\0a\0f\0\xe9"), cafe);
    // What isn't UTF-8 ends, and is no panic.
    assert_eq!(folded(UTF8_STRING, b"\xff\xc3"), [0xff, 0xc3]);
    assert_eq!(folded(BMP_STRING, b"\0a\0"), [u32::from(b'a'), 0]);
}
