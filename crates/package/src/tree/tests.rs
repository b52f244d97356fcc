use alloc::vec::Vec;

use super::*;

fn bytes(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, kind, value) in entries {
        bytes.extend([path.len() as u8, *kind, value.len() as u8, (value.len() >> 8) as u8]);
        bytes.extend(path.as_bytes());
        bytes.extend(*value);
    }
    bytes
}

#[test]
fn entries_come_back_in_order() {
    let bytes = bytes(&[("a", 1, b"text"), ("a.b", 0, b"\xff"), ("b.c.d", 0, b"")]);
    let entries: Vec<_> = Tree::parse(&bytes).unwrap().entries().collect();
    assert_eq!(entries[0], Entry { path: "a", kind: ValueKind::Text, value: b"text" });
    assert_eq!(entries[1], Entry { path: "a.b", kind: ValueKind::Bytes, value: b"\xff" });
    assert_eq!(entries[2], Entry { path: "b.c.d", kind: ValueKind::Bytes, value: b"" });
    assert_eq!(entries.len(), 3);
}

#[test]
fn bad_entries_are_refused() {
    let check = |entries: &[(&str, u8, &[u8])]| Tree::parse(&bytes(entries)).err();
    assert_eq!(check(&[]), None);
    for path in ["", ".", "a.", ".a", "a..b", "a\0b", "a.\x1b[2J", "\u{85}", &"p".repeat(129)] {
        assert_eq!(check(&[(path, 0, b"")]), Some(TreeError::Path), "{path:?}");
    }
    assert_eq!(check(&[("b", 0, b""), ("a", 0, b"")]), Some(TreeError::Order));
    assert_eq!(check(&[("a", 0, b""), ("a", 0, b"")]), Some(TreeError::Order));
    assert_eq!(check(&[("a", 2, b"")]), Some(TreeError::Kind));
    assert_eq!(check(&[("a", 0, &[0; 2048])]), None);
    assert_eq!(check(&[("a", 0, &[0; 2049])]), Some(TreeError::Value));
    assert_eq!(check(&[("a", 1, b"\xff")]), Some(TreeError::Text));
    let whole = bytes(&[("a.b", 1, b"value")]);
    for length in 1..whole.len() {
        assert_eq!(Tree::parse(&whole[..length]).err(), Some(TreeError::Truncated));
    }
}
