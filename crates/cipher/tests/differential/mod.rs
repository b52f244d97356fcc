//! This crate beside RustCrypto's `chacha20` and `chacha20poly1305`, driven by any bytes: seeks,
//! pieces, clusters, the ends of keystreams, every backend of this machine.
//!
//! A fuzz target runs it on what libFuzzer makes up, a test on the seeds that are worth keeping.

use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use tenure_cipher::backend::available;
use tenure_cipher::cluster::{Cluster, OneCore};
use tenure_cipher::{Extended, Form, Ietf, KeystreamEnd, Legacy, Stream};

/// Bytes of data at most in one call.
const LEN_MAX: usize = 3000;
/// Calls at most in one run.
const STEPS_MAX: usize = 16;

/// Does what `bytes` say with both; panics where they differ.
pub(crate) fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    match input.byte() % 8 {
        0 => check_stream::<10, Ietf, chacha20::ChaCha20>(&mut input),
        1 => check_stream::<6, Ietf, chacha20::ChaCha12>(&mut input),
        2 => check_stream::<4, Ietf, chacha20::ChaCha8>(&mut input),
        3 => check_stream::<10, Legacy, chacha20::ChaCha20Legacy>(&mut input),
        4 => check_stream::<10, Extended, chacha20::XChaCha20>(&mut input),
        5 => check_aead::<tenure_cipher::ChaCha20Poly1305, chacha20poly1305::ChaCha20Poly1305>(
            &mut input,
        ),
        6 => check_aead::<tenure_cipher::XChaCha20Poly1305, chacha20poly1305::XChaCha20Poly1305>(
            &mut input,
        ),
        _ => check_backends(&mut input),
    }
}

/// The rest of the bytes; zeros once they are used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |sum, _| sum << 8 | u64::from(self.byte()))
    }

    /// Short ones as likely as long ones.
    fn len(&mut self) -> usize {
        let (shift, low) = (self.byte() % 12, usize::from(self.byte()));
        ((low << shift) / 256 * 9 + low).min(LEN_MAX)
    }

    /// Bytes that one byte of the input decides.
    fn fill<const N: usize>(&mut self) -> [u8; N] {
        let first = self.byte();
        std::array::from_fn(|i| first.wrapping_mul(i as u8 | 1).wrapping_add(i as u8))
    }

    fn data(&mut self, len: usize) -> Vec<u8> {
        let first = self.byte();
        (0..len).map(|i| first.wrapping_add(i as u8)).collect()
    }

    /// Positions near what they may trip over: the start, the wrap of the counter's low word, the
    /// end of the keystream.
    fn position(&mut self, end: u128) -> u128 {
        let near = match self.byte() % 5 {
            0 => 0,
            1 => 1 << 38,
            2 => end,
            3 => return u128::from(self.number()),
            _ => u128::from(self.number()) << 6,
        };
        let offset = i128::from(i16::from_be_bytes([self.byte(), self.byte()]));
        near.saturating_add_signed(offset)
    }
}

/// Cores that take turns.
struct Turns(usize);

impl Cluster for Turns {
    fn cores(&self) -> usize {
        self.0
    }

    fn fork<T: Send>(&self, parts: &mut [T], work: impl Fn(&mut T) + Sync) {
        parts.iter_mut().rev().for_each(work);
    }
}

fn check_stream<const DOUBLE_ROUNDS: usize, F, Theirs>(input: &mut Input<'_>)
where
    F: Form,
    Stream<DOUBLE_ROUNDS, F>: KeyIvInit,
    Theirs: KeyIvInit + StreamCipher + StreamCipherSeek,
{
    let key: [u8; 32] = input.fill();
    let nonce: [u8; 24] = input.fill();
    let nonce = &nonce[..Theirs::iv_size()];
    let ours = <Stream<DOUBLE_ROUNDS, F> as KeyIvInit>::new_from_slices(&key, nonce);
    let mut ours = ours.expect("the lengths are right");
    let mut theirs = Theirs::new_from_slices(&key, nonce).expect("the lengths are right");
    let end = ours.remaining();
    let mut position = 0;
    for _ in 0..STEPS_MAX {
        if input.0.is_empty() {
            break;
        }
        let step = input.byte();
        if step & 1 == 1 {
            let wanted = input.position(end);
            let sought = ours.seek_to(wanted);
            assert_eq!(sought.is_ok(), wanted <= end, "seeking to {wanted}");
            position = if sought.is_ok() { wanted } else { position };
            continue;
        }
        let (len, offset) = (input.len(), usize::from(step >> 1 & 7));
        let before = input.data(offset + len);
        let mut data = before.clone();
        let done = apply(step >> 4, &mut ours, &mut data[offset..], input);
        if position + len as u128 > end {
            assert_eq!(done, Err(KeystreamEnd), "{len} bytes at {position}");
            assert_eq!(data, before, "a refused call changed its data");
            assert_eq!(ours.position(), position);
            continue;
        }
        assert_eq!(done, Ok(()), "{len} bytes at {position}");
        let mut expected = before.clone();
        // They may refuse the last blocks; they must not differ.
        let sought = theirs.try_seek(position).is_ok();
        if sought && theirs.try_apply_keystream(&mut expected[offset..]).is_ok() {
            assert!(data == expected, "{len} bytes at {position}");
        } else {
            assert!(end - position < 1 << 16, "refused {len} bytes at {position}");
        }
        position += len as u128;
        assert_eq!(ours.position(), position);
        assert_eq!(ours.remaining(), end - position);
    }
}

/// At once, in pieces, by a cluster, streamed.
fn apply<const DOUBLE_ROUNDS: usize, F: Form>(
    how: u8,
    ours: &mut Stream<DOUBLE_ROUNDS, F>,
    data: &mut [u8],
    input: &mut Input<'_>,
) -> Result<(), KeystreamEnd> {
    match how % 4 {
        0 => ours.xor(data),
        1 => {
            if data.len() as u128 > ours.remaining() {
                return ours.xor(data);
            }
            let piece = 1 + usize::from(input.byte());
            data.chunks_mut(piece).try_for_each(|piece| ours.xor(piece))
        }
        2 => ours.xor_on(&Turns(usize::from(input.byte())), data),
        _ => {
            let from = data.to_vec();
            let bytes = 64 * (1 + usize::from(input.byte() % 8));
            let mut buffers = [vec![0; bytes], vec![0; bytes], vec![0; bytes]];
            let [a, b, c] = &mut buffers;
            let cluster = Turns(usize::from(input.byte() % 20));
            ours.stream_on(&cluster, &mut OneCore, &from, data, [a, b, c]).map_err(|_| KeystreamEnd)
        }
    }
}

fn check_aead<Ours, Theirs>(input: &mut Input<'_>)
where
    Ours: KeyInit + AeadInOut,
    Theirs: KeyInit + AeadInOut<NonceSize = Ours::NonceSize, TagSize = Ours::TagSize>,
{
    let key: [u8; 32] = input.fill();
    let ours = Ours::new_from_slice(&key).expect("the length is right");
    let theirs = Theirs::new_from_slice(&key).expect("the length is right");
    let filling: [u8; 24] = input.fill();
    let mut nonce = chacha20poly1305::aead::Nonce::<Ours>::default();
    nonce.iter_mut().zip(filling).for_each(|(place, byte)| *place = byte);
    let (header_len, len) = (input.len(), input.len());
    let (header, text) = (input.data(header_len), input.data(len));

    let (mut a, mut b) = (text.clone(), text.clone());
    let tag =
        ours.encrypt_inout_detached(&nonce, &header, (&mut a[..]).into()).expect("short enough");
    let expected =
        theirs.encrypt_inout_detached(&nonce, &header, (&mut b[..]).into()).expect("short enough");
    assert!(a == b && tag == expected, "{len} bytes, {header_len} of header");

    let mut wrong = tag.clone();
    wrong[usize::from(input.byte() % 16)] ^= 1 << (input.byte() % 8);
    assert!(ours.decrypt_inout_detached(&nonce, &header, (&mut a[..]).into(), &wrong).is_err());
    assert!(a == b, "a refused message was changed");
    if len > 0 {
        let at = input.number() as usize % len;
        a[at] ^= 0x80;
        assert!(ours.decrypt_inout_detached(&nonce, &header, (&mut a[..]).into(), &tag).is_err());
        a[at] ^= 0x80;
    }
    ours.decrypt_inout_detached(&nonce, &header, (&mut a[..]).into(), &tag).expect("it is genuine");
    assert!(a == text, "{len} bytes came back changed");
}

/// Every backend, not only the one that this machine would choose.
fn check_backends(input: &mut Input<'_>) {
    let (key, nonce): ([u8; 32], [u8; 12]) = (input.fill(), input.fill());
    let (len, offset) = (input.len(), usize::from(input.byte() % 16));
    let blocks = len / 64;
    let last = (1u64 << 32) - blocks as u64;
    let first = if input.byte() & 1 == 1 { last } else { input.number() % last };
    let before = input.data(offset + 64 * blocks);
    let mut expected = before.clone();
    let mut theirs = chacha20::ChaCha20::new(&key.into(), &nonce.into());
    let known = theirs.try_seek(first * 64).is_ok()
        && theirs.try_apply_keystream(&mut expected[offset..]).is_ok();

    let text = input.data(len);
    let mut sealed = text.clone();
    let aead = chacha20poly1305::ChaCha20Poly1305::new(&key.into());
    let tag = aead.encrypt_inout_detached(&nonce.into(), &[], (&mut sealed[..]).into());
    let tag = tag.expect("short enough");
    for backend in available() {
        let mut state = Ietf::state::<10>(&key, &nonce);
        let mut data = text.clone();
        assert_eq!(backend.seal(&state, &[], &mut data)[..], tag[..], "{}", backend.name());
        assert!(data == sealed, "{}: {len} bytes", backend.name());
        assert_eq!(backend.open(&state, &[], &mut data, &tag.into()), Ok(()));
        assert!(data == text, "{}: {len} bytes came back changed", backend.name());

        state.set_counter(first as u32);
        let mut data = before.clone();
        backend.xor(&state, 10, data[offset..].as_chunks_mut().0);
        assert!(!known || data == expected, "{}: {blocks} blocks at {first}", backend.name());
    }
}
