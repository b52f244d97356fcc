//! AVX2: eight blocks at a time for long data, a vector per word of the state; two blocks side by
//! side, a vector per row, for the rest.

use core::arch::x86_64::*;

use super::super::Backend;
use super::super::portable::Portable;
use super::detect::{Level, level};
use crate::accumulator::PolyState;
use crate::chacha::{BLOCK_BYTES, Block, State};
use crate::construction::{self, AeadError, Tag};
use crate::operations::Operations;

/// A processor with AVX2.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// The backend, if this machine has AVX2.
    #[inline]
    pub fn detect() -> Option<&'static Self> {
        if level() >= Level::Avx2 { Some(&Self(())) } else { None }
    }
}

const LANES: usize = 8;
/// Blocks that [`together`] can take.
const TOGETHER: usize = 8;

impl Operations for Avx2 {
    fn name(&self) -> &'static str {
        "avx2"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        if data.len() == 1 {
            // Rows wait for each other; in plain registers four columns go side by side.
            return Portable.xor(state, double_rounds, data);
        }
        // SAFETY: an `Avx2` exists only where the instructions do.
        unsafe { xor(state, double_rounds, data) }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        Portable.absorb(state, data, top);
    }
}

impl Backend for Avx2 {
    fn seal(&self, state: &State, header: &[u8], data: &mut [u8]) -> Tag {
        construction::seal_together::<TOGETHER>(
            self,
            state,
            header,
            data,
            |state, key, blocks, tail| {
                let count = 1 + blocks.len() + usize::from(tail.is_some());
                let blocks = core::iter::once(key).chain(blocks).chain(tail);
                // SAFETY: an `Avx2` exists only where the instructions do.
                unsafe { together(state, 0, 10, count, blocks) }
            },
        )
    }

    fn open(
        &self,
        state: &State,
        header: &[u8],
        data: &mut [u8],
        tag: &Tag,
    ) -> Result<(), AeadError> {
        if data.len() <= 3 * BLOCK_BYTES {
            construction::open_together::<4>(self, state, header, data, tag)
        } else {
            construction::open_together::<TOGETHER>(self, state, header, data, tag)
        }
    }
}

#[target_feature(enable = "avx2")]
fn xor(state: &State, double_rounds: usize, data: &mut [Block]) {
    let mut counter = state.counter();
    let (groups, rest) = data.as_chunks_mut::<LANES>();
    for group in groups {
        eight_blocks(state, counter, double_rounds, group);
        counter = counter.wrapping_add(LANES as u32);
    }
    together(state, counter, double_rounds, rest.len(), rest);
}

/// `count` blocks, at most [`TOGETHER`], wherever they are.
#[inline]
#[target_feature(enable = "avx2")]
fn together<'a>(
    state: &State,
    counter: u32,
    double_rounds: usize,
    count: usize,
    blocks: impl IntoIterator<Item = &'a mut Block>,
) {
    match count {
        0 => {}
        1..=2 => rows::<1>(state, counter, double_rounds, blocks),
        3..=4 => rows::<2>(state, counter, double_rounds, blocks),
        _ => rows::<4>(state, counter, double_rounds, blocks),
    }
}

macro_rules! rotate {
    ($x:expr, 16, $by_2:ident) => {
        _mm256_shuffle_epi8($x, $by_2)
    };
    ($x:expr, 8, $by_2:ident) => {
        _mm256_shuffle_epi8($x, bytes_by_1())
    };
    ($x:expr, $n:literal, $by_2:ident) => {{
        let x = $x;
        _mm256_or_si256(_mm256_slli_epi32::<$n>(x), _mm256_srli_epi32::<{ 32 - $n }>(x))
    }};
}

/// Rotates each word left by 16 bits. Hidden from the compiler, which makes two shuffles of it
/// where it knows what the bytes are.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_by_2() -> __m256i {
    core::hint::black_box(_mm256_broadcastsi128_si256(_mm_setr_epi8(
        2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13,
    )))
}

/// Rotates each word left by 8 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_by_1() -> __m256i {
    _mm256_broadcastsi128_si256(_mm_setr_epi8(3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14))
}

/// Quarter rounds step by step, so that each instruction has independent neighbours. Two at a time:
/// more would need more scratch registers than there are.
macro_rules! quarters {
    ($x:ident, $by_2:ident, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        $($x[$a] = _mm256_add_epi32($x[$a], $x[$b]);)*
        $($x[$d] = rotate!(_mm256_xor_si256($x[$d], $x[$a]), 16, $by_2);)*
        $($x[$c] = _mm256_add_epi32($x[$c], $x[$d]);)*
        $($x[$b] = rotate!(_mm256_xor_si256($x[$b], $x[$c]), 12, $by_2);)*
        $($x[$a] = _mm256_add_epi32($x[$a], $x[$b]);)*
        $($x[$d] = rotate!(_mm256_xor_si256($x[$d], $x[$a]), 8, $by_2);)*
        $($x[$c] = _mm256_add_epi32($x[$c], $x[$d]);)*
        $($x[$b] = rotate!(_mm256_xor_si256($x[$b], $x[$c]), 7, $by_2);)*
    };
}

#[target_feature(enable = "avx2")]
fn eight_blocks(state: &State, counter: u32, double_rounds: usize, data: &mut [Block; LANES]) {
    let mut input = [_mm256_setzero_si256(); 16];
    for (lanes, word) in input.iter_mut().zip(&state.0) {
        *lanes = _mm256_set1_epi32(*word as i32);
    }
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    input[12] = _mm256_add_epi32(_mm256_set1_epi32(counter as i32), lanes);
    let mut x = input;
    let by_2 = bytes_by_2();
    for _ in 0..double_rounds {
        quarters!(x, by_2, [0 4 8 12] [1 5 9 13]);
        quarters!(x, by_2, [2 6 10 14] [3 7 11 15]);
        quarters!(x, by_2, [0 5 10 15] [1 6 11 12]);
        quarters!(x, by_2, [2 7 8 13] [3 4 9 14]);
    }
    for i in 0..16 {
        x[i] = _mm256_add_epi32(x[i], input[i]);
    }
    let low = transpose([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]);
    let high = transpose([x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15]]);
    for ((block, low), high) in data.iter_mut().zip(low).zip(high) {
        xor_32(block.first_chunk_mut(), low);
        xor_32(block.last_chunk_mut(), high);
    }
}

/// Eight words of eight blocks become eight half blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(x: [__m256i; 8]) -> [__m256i; 8] {
    let pair = |i: usize| {
        let low =
            [_mm256_unpacklo_epi32(x[i], x[i + 1]), _mm256_unpacklo_epi32(x[i + 2], x[i + 3])];
        let high =
            [_mm256_unpackhi_epi32(x[i], x[i + 1]), _mm256_unpackhi_epi32(x[i + 2], x[i + 3])];
        [
            _mm256_unpacklo_epi64(low[0], low[1]),
            _mm256_unpackhi_epi64(low[0], low[1]),
            _mm256_unpacklo_epi64(high[0], high[1]),
            _mm256_unpackhi_epi64(high[0], high[1]),
        ]
    };
    let (a, b) = (pair(0), pair(4));
    let low = |i: usize| _mm256_permute2x128_si256::<0x20>(a[i], b[i]);
    let high = |i: usize| _mm256_permute2x128_si256::<0x31>(a[i], b[i]);
    [low(0), low(1), low(2), low(3), high(0), high(1), high(2), high(3)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor_32(place: Option<&mut [u8; 32]>, key: __m256i) {
    if let Some(place) = place {
        let place: *mut __m256i = place.as_mut_ptr().cast();
        // SAFETY: 32 bytes, exclusively borrowed, at any alignment.
        unsafe { _mm256_storeu_si256(place, _mm256_xor_si256(_mm256_loadu_si256(place), key)) };
    }
}

/// Up to `2 * PAIRS` blocks, two in the halves of each vector, `PAIRS` vectors per row.
#[target_feature(enable = "avx2")]
fn rows<'a, const PAIRS: usize>(
    state: &State,
    counter: u32,
    double_rounds: usize,
    blocks: impl IntoIterator<Item = &'a mut Block>,
) {
    let row = |i: usize| {
        let w = &state.0[4 * i..4 * i + 4];
        _mm256_broadcastsi128_si256(_mm_setr_epi32(
            w[0] as i32,
            w[1] as i32,
            w[2] as i32,
            w[3] as i32,
        ))
    };
    let [ia, ib, ic] = [row(0), row(1), row(2)];
    let nonce = _mm256_insert_epi32::<4>(_mm256_insert_epi32::<0>(row(3), 0), 0);
    let mut id = [nonce; PAIRS];
    for (pair, id) in id.iter_mut().enumerate() {
        let first = counter.wrapping_add(2 * pair as u32) as i32;
        let counters = _mm256_setr_epi32(first, 0, 0, 0, first.wrapping_add(1), 0, 0, 0);
        *id = _mm256_add_epi32(*id, counters);
    }
    let (mut a, mut b, mut c, mut d) = ([ia; PAIRS], [ib; PAIRS], [ic; PAIRS], id);
    let by_2 = bytes_by_2();
    macro_rules! round {
        () => {
            for i in 0..PAIRS {
                a[i] = _mm256_add_epi32(a[i], b[i]);
                d[i] = rotate!(_mm256_xor_si256(d[i], a[i]), 16, by_2);
            }
            for i in 0..PAIRS {
                c[i] = _mm256_add_epi32(c[i], d[i]);
                b[i] = rotate!(_mm256_xor_si256(b[i], c[i]), 12, by_2);
            }
            for i in 0..PAIRS {
                a[i] = _mm256_add_epi32(a[i], b[i]);
                d[i] = rotate!(_mm256_xor_si256(d[i], a[i]), 8, by_2);
            }
            for i in 0..PAIRS {
                c[i] = _mm256_add_epi32(c[i], d[i]);
                b[i] = rotate!(_mm256_xor_si256(b[i], c[i]), 7, by_2);
            }
        };
    }
    for _ in 0..double_rounds {
        round!();
        // b is ready last, so the others turn to meet it.
        for i in 0..PAIRS {
            a[i] = _mm256_shuffle_epi32::<0b10_01_00_11>(a[i]);
            d[i] = _mm256_shuffle_epi32::<0b01_00_11_10>(d[i]);
            c[i] = _mm256_shuffle_epi32::<0b00_11_10_01>(c[i]);
        }
        round!();
        for i in 0..PAIRS {
            a[i] = _mm256_shuffle_epi32::<0b00_11_10_01>(a[i]);
            d[i] = _mm256_shuffle_epi32::<0b01_00_11_10>(d[i]);
            c[i] = _mm256_shuffle_epi32::<0b10_01_00_11>(c[i]);
        }
    }
    let mut blocks = blocks.into_iter();
    for i in 0..PAIRS {
        let a = _mm256_add_epi32(a[i], ia);
        let b = _mm256_add_epi32(b[i], ib);
        let c = _mm256_add_epi32(c[i], ic);
        let d = _mm256_add_epi32(d[i], id[i]);
        let Some(block) = blocks.next() else { return };
        xor_32(block.first_chunk_mut(), _mm256_permute2x128_si256::<0x20>(a, b));
        xor_32(block.last_chunk_mut(), _mm256_permute2x128_si256::<0x20>(c, d));
        let Some(block) = blocks.next() else { return };
        xor_32(block.first_chunk_mut(), _mm256_permute2x128_si256::<0x31>(a, b));
        xor_32(block.last_chunk_mut(), _mm256_permute2x128_si256::<0x31>(c, d));
    }
}
