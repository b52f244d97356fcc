//! A keystream with a position: what the backends' whole blocks become for a caller who has bytes.

use core::fmt;
use core::marker::PhantomData;

use zeroize::ZeroizeOnDrop;

use crate::backend::{self, wipe::wipe};
use crate::chacha::{BLOCK_BYTES, Block, Extended, Form, Ietf, KEY_BYTES, Legacy, State};

/// ChaCha20 as in RFC 8439: 96-bit nonce, at most 256 GiB.
pub type ChaCha20 = Stream<10, Ietf>;
/// ChaCha20 with 12 rounds.
pub type ChaCha12 = Stream<6, Ietf>;
/// ChaCha20 with 8 rounds.
pub type ChaCha8 = Stream<4, Ietf>;
/// The original ChaCha20: 64-bit nonce and 64-bit counter.
pub type ChaCha20Legacy = Stream<10, Legacy>;
/// The original ChaCha with 12 rounds.
pub type ChaCha12Legacy = Stream<6, Legacy>;
/// The original ChaCha with 8 rounds.
pub type ChaCha8Legacy = Stream<4, Legacy>;
/// XChaCha20: 192-bit nonce.
pub type XChaCha20 = Stream<10, Extended>;
/// XChaCha with 12 rounds.
pub type XChaCha12 = Stream<6, Extended>;
/// XChaCha with 8 rounds.
pub type XChaCha8 = Stream<4, Extended>;

/// The caller asked for keystream past the last block (RFC 8439 §2.4: 256 GiB under one nonce).
/// Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeystreamEnd;

impl fmt::Display for KeystreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the keystream of this nonce ends before the last byte asked for")
    }
}

impl core::error::Error for KeystreamEnd {}

/// The keystream of one key and nonce, at a byte position. Wiped when dropped.
#[derive(Clone)]
pub struct Stream<const DOUBLE_ROUNDS: usize, F: Form> {
    state: State,
    /// The block after the one in `leftover`.
    next_block: u64,
    /// The keystream block that was last begun; bytes from `leftover_start` on are unused.
    leftover: Block,
    leftover_start: usize,
    form: PhantomData<F>,
}

impl<const DOUBLE_ROUNDS: usize, F: Form> Stream<DOUBLE_ROUNDS, F> {
    /// The keystream of `key` and `nonce` from its first byte.
    pub fn with_key(key: &[u8; KEY_BYTES], nonce: &F::Nonce) -> Self {
        Self {
            state: F::state::<DOUBLE_ROUNDS>(key, nonce),
            next_block: 0,
            leftover: [0; BLOCK_BYTES],
            leftover_start: BLOCK_BYTES,
            form: PhantomData,
        }
    }

    /// Exclusive-ors the next `data.len()` bytes of keystream into `data`: encrypts and decrypts.
    pub fn xor(&mut self, data: &mut [u8]) -> Result<(), KeystreamEnd> {
        if data.len() as u128 > self.remaining() {
            return Err(KeystreamEnd);
        }
        self.xor_within(data);
        Ok(())
    }

    /// Bytes of keystream used so far: the position of the next byte.
    pub fn position(&self) -> u128 {
        let unused = BLOCK_BYTES - self.leftover_start;
        u128::from(self.next_block) * BLOCK_BYTES as u128 - unused as u128
    }

    /// Goes to byte `position` of the keystream; the end itself is a position.
    pub fn seek_to(&mut self, position: u128) -> Result<(), KeystreamEnd> {
        let block = position / BLOCK_BYTES as u128;
        let byte = (position % BLOCK_BYTES as u128) as usize;
        if block > u128::from(F::BLOCKS) || (block == u128::from(F::BLOCKS) && byte > 0) {
            return Err(KeystreamEnd);
        }
        self.next_block = block as u64;
        self.leftover_start = BLOCK_BYTES;
        if byte > 0 {
            self.begin_block();
            self.leftover_start = byte;
        }
        Ok(())
    }

    /// Bytes of keystream left under this nonce.
    pub fn remaining(&self) -> u128 {
        u128::from(F::BLOCKS) * BLOCK_BYTES as u128 - self.position()
    }

    /// [`Self::xor`] for data already known to fit [`Self::remaining`].
    pub(crate) fn xor_within(&mut self, data: &mut [u8]) {
        self.xor_with(data, |state, blocks| backend::native().xor(state, DOUBLE_ROUNDS, blocks));
    }

    /// The same with whole blocks left to `xor`.
    pub(crate) fn xor_with(&mut self, data: &mut [u8], xor: impl FnMut(&State, &mut [Block])) {
        let unused = BLOCK_BYTES - self.leftover_start;
        let (head, rest) = data.split_at_mut(unused.min(data.len()));
        self.xor_leftover(head);
        let (blocks, tail) = rest.as_chunks_mut::<BLOCK_BYTES>();
        self.xor_blocks(blocks, xor);
        if !tail.is_empty() {
            self.begin_block();
            self.xor_leftover(tail);
        }
    }

    fn xor_leftover(&mut self, data: &mut [u8]) {
        for (byte, key) in data.iter_mut().zip(self.leftover.iter().skip(self.leftover_start)) {
            *byte ^= key;
        }
        self.leftover_start += data.len();
    }

    /// Backends count in 32 bits; here the counter's upper half moves.
    fn xor_blocks(&mut self, mut blocks: &mut [Block], mut xor: impl FnMut(&State, &mut [Block])) {
        while !blocks.is_empty() {
            F::set_block(&mut self.state, self.next_block);
            let until_wrap = (1 << 32) - (self.next_block & 0xffff_ffff);
            let count = usize::try_from(until_wrap).unwrap_or(usize::MAX).min(blocks.len());
            let (now, later) = blocks.split_at_mut(count);
            // Spent even if `xor` panics: a caller who goes on must not get it again.
            self.next_block += count as u64;
            xor(&self.state, now);
            blocks = later;
        }
    }

    fn begin_block(&mut self) {
        F::set_block(&mut self.state, self.next_block);
        self.leftover = [0; BLOCK_BYTES];
        let block = core::slice::from_mut(&mut self.leftover);
        backend::native().xor(&self.state, DOUBLE_ROUNDS, block);
        self.leftover_start = 0;
        self.next_block += 1;
    }
}

impl<const DOUBLE_ROUNDS: usize, F: Form> Drop for Stream<DOUBLE_ROUNDS, F> {
    fn drop(&mut self) {
        wipe(&mut self.leftover);
    }
}

impl<const DOUBLE_ROUNDS: usize, F: Form> ZeroizeOnDrop for Stream<DOUBLE_ROUNDS, F> {}

impl<const DOUBLE_ROUNDS: usize, F: Form> fmt::Debug for Stream<DOUBLE_ROUNDS, F> {
    /// Shows no key material.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("position", &self.position()).finish_non_exhaustive()
    }
}
