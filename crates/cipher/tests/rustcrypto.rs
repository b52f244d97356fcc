//! The traits of `cipher` and `aead`, and agreement with RustCrypto's own ciphers behind them.
#![cfg(feature = "rustcrypto")]

use aead::{AeadInOut, KeyInit, inout::InOutBuf};
use cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};

use tenure_hal::simulated::Random;

/// Seeks and encrypts pieces of random lengths with both; `end` bounds the positions.
fn check_stream<Ours, Theirs>(seed: u64, end: u64)
where
    Ours: KeyIvInit + StreamCipher + StreamCipherSeek,
    Theirs: KeyIvInit + StreamCipher + StreamCipherSeek,
{
    let mut random = Random::new(seed);
    let key = random.bytes(32);
    let nonce = random.bytes(Ours::iv_size());
    let mut ours = Ours::new_from_slices(&key, &nonce).unwrap();
    let mut theirs = Theirs::new_from_slices(&key, &nonce).unwrap();
    for step in 0..40 {
        if random.below(3) == 0 {
            let position = random.below(end - 8192);
            ours.seek(position);
            theirs.seek(position);
        }
        let len = random.length(12);
        let mut a = random.bytes(len);
        let mut b = a.clone();
        ours.apply_keystream(&mut a);
        theirs.apply_keystream(&mut b);
        assert!(a == b, "seed {seed}, step {step}, length {len}");
        assert_eq!(ours.current_pos::<u64>(), theirs.current_pos::<u64>(), "seed {seed}");
    }
}

#[test]
fn streams_agree_with_chacha20_wherever_they_are_sought() {
    for seed in 0..40 {
        check_stream::<tenure_cipher::ChaCha20, chacha20::ChaCha20>(seed, 1 << 38);
        check_stream::<tenure_cipher::ChaCha12, chacha20::ChaCha12>(seed, 1 << 38);
        check_stream::<tenure_cipher::ChaCha8, chacha20::ChaCha8>(seed, 1 << 38);
        check_stream::<tenure_cipher::XChaCha20, chacha20::XChaCha20>(seed, 1 << 38);
        check_stream::<tenure_cipher::ChaCha20Legacy, chacha20::ChaCha20Legacy>(seed, 1 << 60);
    }
}

#[test]
fn input_and_output_apart_give_what_in_place_gives() {
    let input = [3; 200];
    let (mut apart, mut in_place) = ([0; 200], input);
    let cipher = || tenure_cipher::ChaCha20::new(&[1; 32].into(), &[2; 12].into());
    cipher().apply_keystream_b2b(&input, &mut apart);
    cipher().apply_keystream(&mut in_place);
    assert_eq!(apart, in_place);
}

/// Seals with both, opens each other's message, and refuses it once a bit is flipped.
fn check_aead<Ours, Theirs>(seed: u64)
where
    Ours: KeyInit + AeadInOut,
    Theirs: KeyInit + AeadInOut<NonceSize = Ours::NonceSize, TagSize = Ours::TagSize>,
{
    let mut random = Random::new(seed);
    let key = random.bytes(32);
    let ours = Ours::new_from_slice(&key).unwrap();
    let theirs = Theirs::new_from_slice(&key).unwrap();
    let mut nonce = aead::Nonce::<Ours>::default();
    nonce.iter_mut().for_each(|byte| *byte = random.number() as u8);
    let header_len = random.below(70) as usize;
    let header = random.bytes(header_len);
    let text_len = random.length(13);
    let text = random.bytes(text_len);

    let (mut a, mut b) = (text.clone(), text.clone());
    let tag = ours.encrypt_inout_detached(&nonce, &header, InOutBuf::from(&mut a[..])).unwrap();
    let theirs_tag =
        theirs.encrypt_inout_detached(&nonce, &header, InOutBuf::from(&mut b[..])).unwrap();
    assert!(a == b && tag == theirs_tag, "seed {seed}, {text_len} bytes");

    let open = |data: &mut Vec<u8>, header: &[u8], tag: &aead::Tag<Ours>| {
        ours.decrypt_inout_detached(&nonce, header, InOutBuf::from(&mut data[..]), tag)
    };
    let mut wrong_tag = tag.clone();
    wrong_tag[random.below(16) as usize] ^= 1 << random.below(8);
    assert!(open(&mut b, &header, &wrong_tag).is_err(), "seed {seed}");
    if text_len > 0 {
        let at = random.below(text_len as u64) as usize;
        b[at] ^= 1;
        assert!(open(&mut b, &header, &tag).is_err(), "seed {seed}");
        b[at] ^= 1;
    }
    assert!(a == b, "seed {seed}: a refused message was changed");
    open(&mut b, &header, &tag).unwrap();
    assert!(b == text, "seed {seed}");
}

#[test]
fn aeads_agree_with_chacha20poly1305() {
    for seed in 0..200 {
        check_aead::<tenure_cipher::ChaCha20Poly1305, chacha20poly1305::ChaCha20Poly1305>(seed);
        check_aead::<tenure_cipher::XChaCha20Poly1305, chacha20poly1305::XChaCha20Poly1305>(seed);
    }
}
