use super::*;
use alloc::string::String;
use core::fmt;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// How many items a list of which nothing was read yet says that it has.
#[derive(Debug, PartialEq)]
struct Promised(Option<usize>);

impl<'de> Deserialize<'de> for Promised {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Promised(None))
    }
}

impl<'de> Visitor<'de> for Promised {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self, A::Error> {
        let promised = sequence.size_hint();
        while sequence.next_element::<u8>()?.is_some() {}
        Ok(Self(promised))
    }
}

#[test]
fn a_list_that_claims_a_length_reserves_nothing_for_it() {
    // A message of 8 KB that is a list of as many items as it has bytes left.
    let mut message = alloc::vec![1; 8192];
    message[..2].copy_from_slice(&[0xFE, 0x3F]);
    assert_eq!(decode::<Promised>(&message), Some((Promised(None), &[][..])));
}

#[test]
fn a_head_is_decoded_as_it_was_encoded_and_what_follows_it_is_left() {
    let head = (7_u32, String::from("attic"), alloc::vec![(1_u8, 2_i64), (3, -4)], Some(1.5_f64));
    let mut bytes = Vec::new();
    encode(&head, &mut bytes);
    let head_bytes = bytes.len();
    bytes.extend_from_slice(b"body");
    assert_eq!(decode(&bytes), Some((head.clone(), &b"body"[..])));
    type Same = (u32, String, Vec<(u8, i64)>, Option<f64>);
    for length in 0..head_bytes {
        assert_eq!(decode::<Same>(&bytes[..length]), None, "cut to {length}");
    }
}
