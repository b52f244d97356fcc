//! The end of the keystream: an error, and never a byte of it twice.

use tenure_cipher::{ChaCha20, ChaCha20Legacy, KeystreamEnd, XChaCha20};

/// RFC 8439 §2.4: 2^32 blocks of 64 bytes.
const IETF_END: u128 = 1 << 38;

fn at(position: u128) -> ChaCha20 {
    let mut stream = ChaCha20::with_key(&[1; 32], &[2; 12]);
    stream.seek_to(position).unwrap();
    stream
}

#[test]
fn last_byte_is_there_and_the_next_is_refused() {
    let mut stream = at(IETF_END - 1);
    assert_eq!(stream.remaining(), 1);
    let mut byte = [0];
    stream.xor(&mut byte).unwrap();
    assert_eq!(stream.remaining(), 0);
    assert_eq!(stream.position(), IETF_END);
    let before = byte;
    assert_eq!(stream.xor(&mut byte), Err(KeystreamEnd));
    assert_eq!(byte, before, "a refused call changed its data");
    assert_eq!(stream.xor(&mut []), Ok(()));
}

#[test]
fn message_over_the_end_is_refused_whole() {
    for len in [65, 100, 1000, 5000] {
        let mut stream = at(IETF_END - 64);
        let mut data = vec![7; len];
        assert_eq!(stream.xor(&mut data), Err(KeystreamEnd));
        assert!(data.iter().all(|byte| *byte == 7), "{len} bytes");
        assert_eq!(stream.position(), IETF_END - 64);
    }
}

#[test]
fn message_up_to_the_end_equals_its_pieces() {
    let mut whole = vec![0; 4096 + 13];
    at(IETF_END - whole.len() as u128).xor(&mut whole).unwrap();
    let mut pieces = vec![0; whole.len()];
    let mut stream = at(IETF_END - whole.len() as u128);
    for piece in pieces.chunks_mut(61) {
        stream.xor(piece).unwrap();
    }
    assert!(whole == pieces);
}

#[test]
fn seeking_past_the_end_is_refused_and_changes_nothing() {
    let mut stream = at(100);
    assert_eq!(stream.seek_to(IETF_END + 1), Err(KeystreamEnd));
    assert_eq!(stream.seek_to(u128::MAX), Err(KeystreamEnd));
    assert_eq!(stream.position(), 100);
    stream.seek_to(IETF_END).unwrap();
    assert_eq!(stream.remaining(), 0);
    let mut extended = XChaCha20::with_key(&[1; 32], &[2; 24]);
    assert_eq!(extended.seek_to(IETF_END + 1), Err(KeystreamEnd));
}

/// Block 2^32 of the original form has a counter whose low word is 0 again: its keystream must not
/// be that of block 0.
#[test]
fn original_form_counts_on_past_32_bits() {
    let mut stream = ChaCha20Legacy::with_key(&[1; 32], &[2; 8]);
    let mut first = [0; 64];
    stream.xor(&mut first).unwrap();
    let mut across = [0; 128];
    stream.seek_to(IETF_END - 64).unwrap();
    stream.xor(&mut across).unwrap();
    assert_ne!(across[64..], first);
    stream.seek_to(IETF_END).unwrap();
    let mut after = [0; 64];
    stream.xor(&mut after).unwrap();
    assert_eq!(across[64..], after);
    assert_eq!(stream.seek_to(u128::from(u64::MAX) * 64), Ok(()));
    assert_eq!(stream.xor(&mut [0]), Err(KeystreamEnd));
}
