//! ChaCha20-Poly1305 and XChaCha20-Poly1305, RFC 8439 §2.8, in place with a detached tag.

use core::fmt;
use core::marker::PhantomData;

use zeroize::ZeroizeOnDrop;

use crate::backend::{self, Backend, wipe::wipe};
use crate::chacha::{BLOCK_BYTES, Block, Extended, Form, Ietf, KEY_BYTES, State};
use crate::poly1305::{Poly1305, TAG_BYTES};

/// ChaCha20-Poly1305, RFC 8439.
pub type ChaCha20Poly1305 = Aead<Ietf>;
/// XChaCha20-Poly1305: a nonce of 24 bytes, which may be drawn at random.
pub type XChaCha20Poly1305 = Aead<Extended>;
/// A tag of 16 bytes.
pub type Tag = [u8; TAG_BYTES];

const DOUBLE_ROUNDS: usize = 10;

/// Block 0 makes the authenticator's key (RFC 8439 §2.6), the others encrypt.
const DATA_BYTES_MAX: u64 = (Ietf::BLOCKS - 1) * BLOCK_BYTES as u64;

/// Sealing or opening failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AeadError {
    /// The caller's message is longer than 2^38 - 64 bytes.
    TooLong,
    /// The peer's message, header, nonce or tag is not what was sealed under this key.
    Forged,
}

impl fmt::Display for AeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the message is longer than the keystream of one nonce",
            Self::Forged => "the message was not sealed under this key",
        })
    }
}

impl core::error::Error for AeadError {}

/// An AEAD under one key. Wiped when dropped.
#[derive(Clone)]
pub struct Aead<F: Form> {
    key: [u8; KEY_BYTES],
    form: PhantomData<F>,
}

impl<F: AeadForm> Aead<F> {
    /// Under `key`.
    pub fn with_key(key: &[u8; KEY_BYTES]) -> Self {
        Self { key: *key, form: PhantomData }
    }

    /// Encrypts `data` in place and authenticates it together with `header`, which stays in clear.
    ///
    /// A nonce must never be used for two messages under one key.
    pub fn seal(&self, nonce: &F::Nonce, header: &[u8], data: &mut [u8]) -> Result<Tag, AeadError> {
        check_length(data)?;
        let state = F::state::<DOUBLE_ROUNDS>(&self.key, nonce);
        Ok(backend::native().seal(&state, header, data))
    }

    /// Checks `tag`, then decrypts `data` in place. If the tag is wrong, `data` stays as it was.
    pub fn open(
        &self,
        nonce: &F::Nonce,
        header: &[u8],
        data: &mut [u8],
        tag: &Tag,
    ) -> Result<(), AeadError> {
        check_length(data)?;
        let state = F::state::<DOUBLE_ROUNDS>(&self.key, nonce);
        backend::native().open(&state, header, data, tag)
    }
}

/// The forms of which RFC 8439 and the XChaCha draft make AEADs.
pub trait AeadForm: Form {}
impl AeadForm for Ietf {}
impl AeadForm for Extended {}

#[inline]
fn check_length(data: &[u8]) -> Result<(), AeadError> {
    if data.len() as u64 > DATA_BYTES_MAX { Err(AeadError::TooLong) } else { Ok(()) }
}

/// RFC 8439 §2.8.1 from the state of block 0, in the usual two passes.
pub(crate) fn seal(
    backend: &(impl Backend + ?Sized),
    state: &State,
    header: &[u8],
    data: &mut [u8],
) -> Tag {
    let authenticator = authenticator(backend, state);
    xor_data(backend, state, 1, data);
    authenticate(backend, authenticator, header, data)
}

/// The way back from [`seal`]: `data` is changed only if the tag is right.
pub(crate) fn open(
    backend: &(impl Backend + ?Sized),
    state: &State,
    header: &[u8],
    data: &mut [u8],
    tag: &Tag,
) -> Result<(), AeadError> {
    let expected = authenticate(backend, authenticator(backend, state), header, data);
    if !equal(&expected, tag) {
        return Err(AeadError::Forged);
    }
    xor_data(backend, state, 1, data);
    Ok(())
}

/// [`seal`] for backends that work on many blocks at once: the authenticator's block and the first
/// of the data's go together, `BLOCKS` in all. `xor` works on blocks that need not be neighbours.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn seal_together<const BLOCKS: usize>(
    backend: &(impl Backend + ?Sized),
    state: &State,
    header: &[u8],
    data: &mut [u8],
    xor: impl FnOnce(&State, &mut Block, &mut [Block], Option<&mut Block>),
) -> Tag {
    let (head, rest) = data.split_at_mut(data.len().min((BLOCKS - 1) * BLOCK_BYTES));
    let (blocks, tail) = head.as_chunks_mut::<BLOCK_BYTES>();
    let (mut key_block, mut tail_block) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
    copy(tail, &mut tail_block);
    xor(state, &mut key_block, blocks, (!tail.is_empty()).then_some(&mut tail_block));
    if !tail.is_empty() {
        copy(&tail_block, tail);
        wipe(&mut tail_block);
    }
    let authenticator = authenticator_of_block(&mut key_block);
    if !rest.is_empty() {
        xor_data(backend, state, BLOCKS as u32, rest);
    }
    authenticate(backend, authenticator, header, data)
}

/// [`open`] in the same way; the keystream waits in a buffer until the tag is known to be right.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn open_together<const BLOCKS: usize>(
    backend: &(impl Backend + ?Sized),
    state: &State,
    header: &[u8],
    data: &mut [u8],
    tag: &Tag,
) -> Result<(), AeadError> {
    let head_len = data.len().min((BLOCKS - 1) * BLOCK_BYTES);
    let mut buffer: [Block; BLOCKS] = [[0; BLOCK_BYTES]; BLOCKS];
    let used = (1 + head_len.div_ceil(BLOCK_BYTES)).min(BLOCKS);
    backend.xor(state, DOUBLE_ROUNDS, &mut buffer[..used]);
    let authenticator = authenticator_of_block(&mut buffer[0]);
    let opened = equal(&authenticate(backend, authenticator, header, data), tag);
    if opened {
        let (head, rest) = data.split_at_mut(head_len);
        for (byte, key) in head.iter_mut().zip(&buffer.as_flattened()[BLOCK_BYTES..]) {
            *byte ^= key;
        }
        if !rest.is_empty() {
            xor_data(backend, state, BLOCKS as u32, rest);
        }
    }
    wipe(buffer[..used].as_flattened_mut());
    if opened { Ok(()) } else { Err(AeadError::Forged) }
}

/// RFC 8439 §2.6.
fn authenticator(backend: &(impl Backend + ?Sized), state: &State) -> Poly1305 {
    let mut block = [0; BLOCK_BYTES];
    backend.xor(state, DOUBLE_ROUNDS, core::slice::from_mut(&mut block));
    authenticator_of_block(&mut block)
}

/// RFC 8439 §2.6: the one-time key is the first half of block 0, which is wiped.
fn authenticator_of_block(block: &mut Block) -> Poly1305 {
    let (key, _) = block.split_first_chunk::<KEY_BYTES>().unwrap_or((&[0; KEY_BYTES], &[]));
    let authenticator = Poly1305::with_key(key);
    wipe(block);
    authenticator
}

/// Encrypts `data`, the first byte of which belongs to block `first`.
fn xor_data(backend: &(impl Backend + ?Sized), state: &State, first: u32, data: &mut [u8]) {
    let mut state = state.clone();
    state.set_counter(first);
    let (blocks, tail) = data.as_chunks_mut::<BLOCK_BYTES>();
    if !blocks.is_empty() {
        backend.xor(&state, DOUBLE_ROUNDS, blocks);
    }
    if !tail.is_empty() {
        state.set_counter(first + blocks.len() as u32);
        let mut block: Block = [0; BLOCK_BYTES];
        copy(tail, &mut block);
        backend.xor(&state, DOUBLE_ROUNDS, core::slice::from_mut(&mut block));
        copy(&block, tail);
        wipe(&mut block);
    }
}

/// RFC 8439 §2.8: header and ciphertext, each padded, then both lengths.
fn authenticate(
    backend: &(impl Backend + ?Sized),
    mut authenticator: Poly1305,
    header: &[u8],
    data: &[u8],
) -> Tag {
    authenticator.update_on(backend, header);
    authenticator.pad_on(backend);
    authenticator.update_on(backend, data);
    authenticator.pad_on(backend);
    let mut lengths = [0; 16];
    lengths[..8].copy_from_slice(&(header.len() as u64).to_le_bytes());
    lengths[8..].copy_from_slice(&(data.len() as u64).to_le_bytes());
    authenticator.update_on(backend, &lengths);
    authenticator.tag_on(backend)
}

/// As many bytes as both have.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Compares in constant time.
fn equal(a: &Tag, b: &Tag) -> bool {
    let difference = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    core::hint::black_box(difference) == 0
}

impl<F: Form> Drop for Aead<F> {
    fn drop(&mut self) {
        wipe(&mut self.key);
    }
}

impl<F: Form> ZeroizeOnDrop for Aead<F> {}

impl<F: Form> fmt::Debug for Aead<F> {
    /// Shows no key material.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aead").finish_non_exhaustive()
    }
}
