//! AVX-512: thirty-two registers hold thirty-two blocks, sixteen to a vector, for long data; four
//! blocks side by side, a vector per row, for the rest. Poly1305 by 52-bit multiplications.

use core::arch::x86_64::*;

use super::super::Backend;
use super::super::portable::Portable;
use super::detect::{Level, level};
use super::poly44;
use crate::accumulator::PolyState;
use crate::chacha::{BLOCK_BYTES, Block, State};
use crate::construction::{self, AeadError, Tag};
use crate::operations::Operations;

/// A processor with AVX-512 F, BW, DQ, VL and IFMA.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// The backend, if this machine has the instructions.
    #[inline]
    pub fn detect() -> Option<&'static Self> {
        if level() >= Level::Avx512 { Some(&Self(())) } else { None }
    }
}

impl Operations for Avx512 {
    fn name(&self) -> &'static str {
        "avx512"
    }

    fn xor(&self, state: &State, double_rounds: usize, data: &mut [Block]) {
        if data.len() == 1 {
            // Rows wait for each other; in plain registers four columns go side by side.
            return Portable.xor(state, double_rounds, data);
        }
        // SAFETY: an `Avx512` exists only where the instructions do.
        unsafe { xor(state, state.counter(), double_rounds, data) }
    }

    fn absorb(&self, state: &mut PolyState, data: &[[u8; 16]], top: u32) {
        // SAFETY: an `Avx512` exists only where the instructions do.
        unsafe { poly44::absorb(state, data, top) }
    }
}

impl Backend for Avx512 {
    fn seal(&self, state: &State, header: &[u8], data: &mut [u8]) -> Tag {
        construction::seal_together::<TOGETHER>(
            self,
            state,
            header,
            data,
            |state, key, blocks, tail| {
                let count = 1 + blocks.len() + usize::from(tail.is_some());
                let blocks = core::iter::once(key).chain(blocks).chain(tail);
                // SAFETY: an `Avx512` exists only where the instructions do.
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

/// Blocks in the two groups of [`long`].
const LONG: usize = 32;
/// Blocks that [`together`] can take.
const TOGETHER: usize = 20;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn xor(state: &State, mut counter: u32, double_rounds: usize, data: &mut [Block]) {
    let (groups, rest) = data.as_chunks_mut::<LONG>();
    for group in groups {
        long(state, counter, double_rounds, group);
        counter = counter.wrapping_add(LONG as u32);
    }
    let (first, second) = rest.split_at_mut(rest.len().min(TOGETHER));
    together(state, counter, double_rounds, first.len(), &mut *first);
    counter = counter.wrapping_add(first.len() as u32);
    together(state, counter, double_rounds, second.len(), second);
}

/// `count` blocks, at most [`TOGETHER`], wherever they are.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn together<'a>(
    state: &State,
    counter: u32,
    double_rounds: usize,
    count: usize,
    blocks: impl IntoIterator<Item = &'a mut Block>,
) {
    match count {
        0 => {}
        1 => {
            for block in blocks {
                one(state, counter, double_rounds, block);
            }
        }
        2..=4 => rows::<1>(state, counter, double_rounds, blocks),
        5..=8 => rows::<2>(state, counter, double_rounds, blocks),
        9..=16 => rows::<4>(state, counter, double_rounds, blocks),
        _ => rows::<5>(state, counter, double_rounds, blocks),
    }
}

/// Four quarter rounds of both groups, step by step: eight independent chains.
macro_rules! quarters {
    ($x:ident $y:ident, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        $($x[$a] = _mm512_add_epi32($x[$a], $x[$b]); $y[$a] = _mm512_add_epi32($y[$a], $y[$b]);)*
        $($x[$d] = _mm512_xor_si512($x[$d], $x[$a]); $y[$d] = _mm512_xor_si512($y[$d], $y[$a]);)*
        $($x[$d] = _mm512_rol_epi32::<16>($x[$d]); $y[$d] = _mm512_rol_epi32::<16>($y[$d]);)*
        $($x[$c] = _mm512_add_epi32($x[$c], $x[$d]); $y[$c] = _mm512_add_epi32($y[$c], $y[$d]);)*
        $($x[$b] = _mm512_xor_si512($x[$b], $x[$c]); $y[$b] = _mm512_xor_si512($y[$b], $y[$c]);)*
        $($x[$b] = _mm512_rol_epi32::<12>($x[$b]); $y[$b] = _mm512_rol_epi32::<12>($y[$b]);)*
        $($x[$a] = _mm512_add_epi32($x[$a], $x[$b]); $y[$a] = _mm512_add_epi32($y[$a], $y[$b]);)*
        $($x[$d] = _mm512_xor_si512($x[$d], $x[$a]); $y[$d] = _mm512_xor_si512($y[$d], $y[$a]);)*
        $($x[$d] = _mm512_rol_epi32::<8>($x[$d]); $y[$d] = _mm512_rol_epi32::<8>($y[$d]);)*
        $($x[$c] = _mm512_add_epi32($x[$c], $x[$d]); $y[$c] = _mm512_add_epi32($y[$c], $y[$d]);)*
        $($x[$b] = _mm512_xor_si512($x[$b], $x[$c]); $y[$b] = _mm512_xor_si512($y[$b], $y[$c]);)*
        $($x[$b] = _mm512_rol_epi32::<7>($x[$b]); $y[$b] = _mm512_rol_epi32::<7>($y[$b]);)*
    };
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn long(state: &State, counter: u32, double_rounds: usize, data: &mut [Block; LONG]) {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let counters = |first: u32| _mm512_add_epi32(_mm512_set1_epi32(first as i32), lanes);
    let mut x = [_mm512_setzero_si512(); 16];
    for (lanes, word) in x.iter_mut().zip(&state.0) {
        *lanes = _mm512_set1_epi32(*word as i32);
    }
    let mut y = x;
    x[12] = counters(counter);
    y[12] = counters(counter.wrapping_add(16));
    for _ in 0..double_rounds {
        quarters!(x y, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
        quarters!(x y, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
    }
    let (first, second) = data.split_at_mut(16);
    finish(state, counters(counter), x, first);
    finish(state, counters(counter.wrapping_add(16)), y, second);
}

/// Adds the input, turns words of sixteen blocks into blocks, and exclusive-ors those.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn finish(state: &State, counters: __m512i, x: [__m512i; 16], data: &mut [Block]) {
    // rows[r][k]: row r of blocks k, k + 4, k + 8, k + 12, in the vector's four quarters.
    let mut rows = [[counters; 4]; 4];
    for (row, out) in rows.iter_mut().enumerate() {
        let word = |i: usize| {
            let at = 4 * row + i;
            let input = if at == 12 { counters } else { _mm512_set1_epi32(state.0[at] as i32) };
            _mm512_add_epi32(x[at], input)
        };
        let (w0, w1, w2, w3) = (word(0), word(1), word(2), word(3));
        let low = [_mm512_unpacklo_epi32(w0, w1), _mm512_unpacklo_epi32(w2, w3)];
        let high = [_mm512_unpackhi_epi32(w0, w1), _mm512_unpackhi_epi32(w2, w3)];
        *out = [
            _mm512_unpacklo_epi64(low[0], low[1]),
            _mm512_unpackhi_epi64(low[0], low[1]),
            _mm512_unpacklo_epi64(high[0], high[1]),
            _mm512_unpackhi_epi64(high[0], high[1]),
        ];
    }
    for k in 0..4 {
        let keys = blocks_of_rows(rows[0][k], rows[1][k], rows[2][k], rows[3][k]);
        for (quarter, key) in keys.into_iter().enumerate() {
            xor_block(&mut data[4 * quarter + k], key);
        }
    }
}

/// Four blocks of which each argument holds one row, block by block.
#[inline]
#[target_feature(enable = "avx512f")]
fn blocks_of_rows(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    let ab = [_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b)];
    let cd = [_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xee>(c, d)];
    [
        _mm512_shuffle_i32x4::<0x88>(ab[0], cd[0]),
        _mm512_shuffle_i32x4::<0xdd>(ab[0], cd[0]),
        _mm512_shuffle_i32x4::<0x88>(ab[1], cd[1]),
        _mm512_shuffle_i32x4::<0xdd>(ab[1], cd[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor_block(block: &mut Block, key: __m512i) {
    let place: *mut __m512i = block.as_mut_ptr().cast();
    // SAFETY: 64 bytes, exclusively borrowed, at any alignment.
    unsafe { _mm512_storeu_si512(place, _mm512_xor_si512(_mm512_loadu_si512(place), key)) };
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn row(state: &State, i: usize) -> __m128i {
    let w = &state.0[4 * i..4 * i + 4];
    _mm_setr_epi32(w[0] as i32, w[1] as i32, w[2] as i32, w[3] as i32)
}

/// The last row with a counter of 0, word by word: its words were stored one by one a moment ago,
/// and a wider load would have to wait until they reach the cache.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn nonce_row(state: &State) -> __m128i {
    let word = |i: usize| core::hint::black_box(state.0[i]) as i32;
    _mm_setr_epi32(0, word(13), word(14), word(15))
}

/// A round of blocks that stand side by side in rows; `$add` and so on name the vector's width.
macro_rules! round {
    ($a:ident $b:ident $c:ident $d:ident, $count:expr, $add:ident $xor:ident $rol:ident) => {
        for i in 0..$count {
            $a[i] = $add($a[i], $b[i]);
            $d[i] = $rol::<16>($xor($d[i], $a[i]));
        }
        for i in 0..$count {
            $c[i] = $add($c[i], $d[i]);
            $b[i] = $rol::<12>($xor($b[i], $c[i]));
        }
        for i in 0..$count {
            $a[i] = $add($a[i], $b[i]);
            $d[i] = $rol::<8>($xor($d[i], $a[i]));
        }
        for i in 0..$count {
            $c[i] = $add($c[i], $d[i]);
            $b[i] = $rol::<7>($xor($b[i], $c[i]));
        }
    };
}

/// A double round of the same. b is ready last, so the other rows turn to meet it.
macro_rules! double_round {
    ($a:ident $b:ident $c:ident $d:ident, $count:expr, $add:ident $xor:ident $rol:ident
        $shuffle:ident) => {
        round!($a $b $c $d, $count, $add $xor $rol);
        for i in 0..$count {
            $a[i] = $shuffle::<0b10_01_00_11>($a[i]);
            $d[i] = $shuffle::<0b01_00_11_10>($d[i]);
            $c[i] = $shuffle::<0b00_11_10_01>($c[i]);
        }
        round!($a $b $c $d, $count, $add $xor $rol);
        for i in 0..$count {
            $a[i] = $shuffle::<0b00_11_10_01>($a[i]);
            $d[i] = $shuffle::<0b01_00_11_10>($d[i]);
            $c[i] = $shuffle::<0b10_01_00_11>($c[i]);
        }
    };
}

/// Up to `4 * VECTORS` blocks, four in the quarters of each vector, `VECTORS` vectors per row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn rows<'a, const VECTORS: usize>(
    state: &State,
    counter: u32,
    double_rounds: usize,
    blocks: impl IntoIterator<Item = &'a mut Block>,
) {
    let input = |i: usize| _mm512_broadcast_i32x4(row(state, i));
    let [ia, ib, ic] = [input(0), input(1), input(2)];
    let mut id = [_mm512_broadcast_i32x4(nonce_row(state)); VECTORS];
    for (vector, id) in id.iter_mut().enumerate() {
        let first = _mm512_set1_epi32(counter.wrapping_add(4 * vector as u32) as i32);
        let lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0);
        *id = _mm512_mask_add_epi32(*id, 0x1111, first, lanes);
    }
    let (mut a, mut b, mut c, mut d) = ([ia; VECTORS], [ib; VECTORS], [ic; VECTORS], id);
    for _ in 0..double_rounds {
        double_round!(a b c d, VECTORS,
            _mm512_add_epi32 _mm512_xor_si512 _mm512_rol_epi32 _mm512_shuffle_epi32);
    }
    let mut blocks = blocks.into_iter();
    for i in 0..VECTORS {
        let keys = blocks_of_rows(
            _mm512_add_epi32(a[i], ia),
            _mm512_add_epi32(b[i], ib),
            _mm512_add_epi32(c[i], ic),
            _mm512_add_epi32(d[i], id[i]),
        );
        for key in keys {
            let Some(block) = blocks.next() else { return };
            xor_block(block, key);
        }
    }
}

/// One block.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn one(state: &State, counter: u32, double_rounds: usize, block: &mut Block) {
    let [ia, ib, ic] = [row(state, 0), row(state, 1), row(state, 2)];
    let id = _mm_mask_set1_epi32(nonce_row(state), 1, counter as i32);
    let (mut a, mut b, mut c, mut d) = ([ia], [ib], [ic], [id]);
    for _ in 0..double_rounds {
        double_round!(a b c d, 1, _mm_add_epi32 _mm_xor_si128 _mm_rol_epi32 _mm_shuffle_epi32);
    }
    let sums = [(a, ia), (b, ib), (c, ic), (d, id)];
    for (bytes, (word, input)) in block.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
        let place: *mut __m128i = bytes.as_mut_ptr().cast();
        let key = _mm_add_epi32(word[0], input);
        // SAFETY: 16 bytes, exclusively borrowed, at any alignment.
        unsafe { _mm_storeu_si128(place, _mm_xor_si128(_mm_loadu_si128(place), key)) };
    }
}
