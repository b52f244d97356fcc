//! The ChaCha state: how key, nonce and block counter are laid out, and HChaCha.

use zeroize::ZeroizeOnDrop;

use crate::backend::wipe::wipe;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes of a keystream block.
pub const BLOCK_BYTES: usize = 64;
/// One block of data or keystream.
pub type Block = [u8; BLOCK_BYTES];

/// "expand 32-byte k", RFC 8439 §2.3.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The sixteen input words of a block, RFC 8439 §2.3: four constants, eight words of key, and four
/// of counter and nonce. Wiped when dropped.
#[derive(Clone)]
#[repr(align(16))]
pub struct State(pub(crate) [u32; 16]);

impl State {
    /// Lays out `key` and the last four words: block counter and nonce.
    #[inline]
    pub(crate) fn new(key: &[u8; KEY_BYTES], tail: [u32; 4]) -> Self {
        let [c0, c1, c2, c3] = CONSTANTS;
        let [k0, k1, k2, k3, k4, k5, k6, k7] = little_endian(key);
        let [t0, t1, t2, t3] = tail;
        Self([c0, c1, c2, c3, k0, k1, k2, k3, k4, k5, k6, k7, t0, t1, t2, t3])
    }

    /// The sixteen words, in order.
    pub fn words(&self) -> &[u32; 16] {
        &self.0
    }

    /// The block number that the low word of the counter holds.
    pub fn counter(&self) -> u32 {
        self.0[12]
    }

    /// Sets the low word of the counter.
    pub fn set_counter(&mut self, block: u32) {
        self.0[12] = block;
    }
}

impl Drop for State {
    #[inline]
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl ZeroizeOnDrop for State {}

/// Where nonce and counter stand in the state, and so how long a keystream may be.
///
/// Sealed: the three forms below are all there are.
pub trait Form: sealed::Sealed + Clone {
    /// A byte array of the nonce's length.
    type Nonce: AsRef<[u8]>;
    /// Blocks of keystream under one nonce.
    const BLOCKS: u64;

    /// The state of block 0.
    fn state<const DOUBLE_ROUNDS: usize>(key: &[u8; KEY_BYTES], nonce: &Self::Nonce) -> State;

    /// Puts block number `block` into the state.
    fn set_block(state: &mut State, block: u64);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Ietf {}
    impl Sealed for super::Legacy {}
    impl Sealed for super::Extended {}
}

/// RFC 8439: a nonce of 96 bits, a counter of 32; 256 GiB under one nonce.
#[derive(Clone, Copy, Debug)]
pub struct Ietf;

/// The original ChaCha: a nonce of 64 bits, a counter of 64.
#[derive(Clone, Copy, Debug)]
pub struct Legacy;

/// XChaCha (draft-irtf-cfrg-xchacha-03): a nonce of 192 bits, long enough to draw at random. The
/// first 128 bits make a subkey, the rest a nonce for [`Ietf`].
#[derive(Clone, Copy, Debug)]
pub struct Extended;

impl Form for Ietf {
    type Nonce = [u8; 12];
    const BLOCKS: u64 = 1 << 32;

    #[inline]
    fn state<const DOUBLE_ROUNDS: usize>(key: &[u8; KEY_BYTES], nonce: &[u8; 12]) -> State {
        let [a, b, c] = little_endian(nonce);
        State::new(key, [0, a, b, c])
    }

    fn set_block(state: &mut State, block: u64) {
        state.0[12] = block as u32;
    }
}

impl Form for Legacy {
    type Nonce = [u8; 8];
    // One less than the counter could tell apart, so that the number of the next block always
    // fits a u64.
    const BLOCKS: u64 = u64::MAX;

    fn state<const DOUBLE_ROUNDS: usize>(key: &[u8; KEY_BYTES], nonce: &[u8; 8]) -> State {
        let [a, b] = little_endian(nonce);
        State::new(key, [0, 0, a, b])
    }

    fn set_block(state: &mut State, block: u64) {
        state.0[12] = block as u32;
        state.0[13] = (block >> 32) as u32;
    }
}

impl Form for Extended {
    type Nonce = [u8; 24];
    const BLOCKS: u64 = Ietf::BLOCKS;

    fn state<const DOUBLE_ROUNDS: usize>(key: &[u8; KEY_BYTES], nonce: &[u8; 24]) -> State {
        let (mut prefix, mut suffix) = ([0; 16], [0; 12]);
        prefix.copy_from_slice(&nonce[..16]);
        suffix[4..].copy_from_slice(&nonce[16..]);
        let mut subkey = hchacha::<DOUBLE_ROUNDS>(key, &prefix);
        let state = Ietf::state::<DOUBLE_ROUNDS>(&subkey, &suffix);
        wipe(&mut subkey);
        state
    }

    fn set_block(state: &mut State, block: u64) {
        Ietf::set_block(state, block);
    }
}

/// HChaCha, draft-irtf-cfrg-xchacha-03 §2.2: a subkey from a key and 128 bits of nonce. The usual
/// number of double rounds is 10.
pub fn hchacha<const DOUBLE_ROUNDS: usize>(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; 16],
) -> [u8; KEY_BYTES] {
    let mut state = State::new(key, little_endian(nonce));
    permute(&mut state.0, DOUBLE_ROUNDS);
    let mut subkey = [0; KEY_BYTES];
    let words = state.0[..4].iter().chain(&state.0[12..]);
    for (bytes, word) in subkey.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    subkey
}

/// Runs the double rounds, without adding the input (RFC 8439 §2.3).
#[inline(always)]
pub(crate) fn permute(x: &mut [u32; 16], double_rounds: usize) {
    for _ in 0..double_rounds {
        quarter_round(x, 0, 4, 8, 12);
        quarter_round(x, 1, 5, 9, 13);
        quarter_round(x, 2, 6, 10, 14);
        quarter_round(x, 3, 7, 11, 15);
        quarter_round(x, 0, 5, 10, 15);
        quarter_round(x, 1, 6, 11, 12);
        quarter_round(x, 2, 7, 8, 13);
        quarter_round(x, 3, 4, 9, 14);
    }
}

/// RFC 8439 §2.1.
#[inline(always)]
pub(crate) fn quarter_round(x: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(16);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(12);
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(8);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(7);
}

/// Reads `N` little-endian words; `bytes` holds `4 * N` bytes.
#[inline]
fn little_endian<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}
