//! ChaCha20 and Poly1305 put together over the operations of any instruction set, RFC 8439 §2.8.

use core::fmt;

use crate::accumulator::TAG_BYTES;
use crate::backend::wipe::wipe;
use crate::chacha::{BLOCK_BYTES, Block, KEY_BYTES, State};
use crate::operations::Operations;
use crate::poly1305::Poly1305;

pub(crate) const DOUBLE_ROUNDS: usize = 10;

/// A tag of 16 bytes.
pub type Tag = [u8; TAG_BYTES];

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

/// RFC 8439 §2.8.1 from the state of block 0, in the usual two passes.
pub(crate) fn seal(
    on: &(impl Operations + ?Sized),
    state: &State,
    header: &[u8],
    data: &mut [u8],
) -> Tag {
    let authenticator = authenticator(on, state);
    xor_data(on, state, 1, data);
    authenticate(on, authenticator, header, data)
}

/// The way back from [`seal`]: `data` is changed only if the tag is right.
pub(crate) fn open(
    on: &(impl Operations + ?Sized),
    state: &State,
    header: &[u8],
    data: &mut [u8],
    tag: &Tag,
) -> Result<(), AeadError> {
    let expected = authenticate(on, authenticator(on, state), header, data);
    if !equal(&expected, tag) {
        return Err(AeadError::Forged);
    }
    xor_data(on, state, 1, data);
    Ok(())
}

/// [`seal`] for backends that work on many blocks at once: the authenticator's block and the first
/// of the data's go together, `BLOCKS` in all. `xor` works on blocks that need not be neighbours.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn seal_together<const BLOCKS: usize>(
    on: &(impl Operations + ?Sized),
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
        xor_data(on, state, BLOCKS as u32, rest);
    }
    authenticate(on, authenticator, header, data)
}

/// [`open`] in the same way; the keystream waits in a buffer until the tag is known to be right.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn open_together<const BLOCKS: usize>(
    on: &(impl Operations + ?Sized),
    state: &State,
    header: &[u8],
    data: &mut [u8],
    tag: &Tag,
) -> Result<(), AeadError> {
    let head_len = data.len().min((BLOCKS - 1) * BLOCK_BYTES);
    let mut buffer: [Block; BLOCKS] = [[0; BLOCK_BYTES]; BLOCKS];
    let used = (1 + head_len.div_ceil(BLOCK_BYTES)).min(BLOCKS);
    on.xor(state, DOUBLE_ROUNDS, &mut buffer[..used]);
    let authenticator = authenticator_of_block(&mut buffer[0]);
    let opened = equal(&authenticate(on, authenticator, header, data), tag);
    if opened {
        let (head, rest) = data.split_at_mut(head_len);
        for (byte, key) in head.iter_mut().zip(&buffer.as_flattened()[BLOCK_BYTES..]) {
            *byte ^= key;
        }
        if !rest.is_empty() {
            xor_data(on, state, BLOCKS as u32, rest);
        }
    }
    wipe(buffer[..used].as_flattened_mut());
    if opened { Ok(()) } else { Err(AeadError::Forged) }
}

/// RFC 8439 §2.6.
fn authenticator(on: &(impl Operations + ?Sized), state: &State) -> Poly1305 {
    let mut block = [0; BLOCK_BYTES];
    on.xor(state, DOUBLE_ROUNDS, core::slice::from_mut(&mut block));
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
fn xor_data(on: &(impl Operations + ?Sized), state: &State, first: u32, data: &mut [u8]) {
    let mut state = state.clone();
    state.set_counter(first);
    let (blocks, tail) = data.as_chunks_mut::<BLOCK_BYTES>();
    if !blocks.is_empty() {
        on.xor(&state, DOUBLE_ROUNDS, blocks);
    }
    if !tail.is_empty() {
        state.set_counter(first + blocks.len() as u32);
        let mut block: Block = [0; BLOCK_BYTES];
        copy(tail, &mut block);
        on.xor(&state, DOUBLE_ROUNDS, core::slice::from_mut(&mut block));
        copy(&block, tail);
        wipe(&mut block);
    }
}

/// RFC 8439 §2.8: header and ciphertext, each padded, then both lengths.
fn authenticate(
    on: &(impl Operations + ?Sized),
    mut authenticator: Poly1305,
    header: &[u8],
    data: &[u8],
) -> Tag {
    authenticator.update_on(on, header);
    authenticator.pad_on(on);
    authenticator.update_on(on, data);
    authenticator.pad_on(on);
    let mut lengths = [0; 16];
    lengths[..8].copy_from_slice(&(header.len() as u64).to_le_bytes());
    lengths[8..].copy_from_slice(&(data.len() as u64).to_le_bytes());
    authenticator.update_on(on, &lengths);
    authenticator.tag_on(on)
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
