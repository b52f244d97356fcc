//! Poly1305 by AVX-512 IFMA: eight blocks at a time, in limbs of 44, 44 and 42 bits.
//!
//! Lane `i` of the accumulator takes every eighth block and is multiplied by r^8 each time; at the
//! end it is multiplied by the power of r that its place in the message calls for, and the lanes
//! are added up. Only messages long enough to pay for the powers come here.

use core::arch::x86_64::*;

use super::super::portable::Portable;
use crate::accumulator::PolyState;
use crate::operations::Operations;

/// Blocks from which on the powers of r pay.
const WORTHWHILE: usize = 24;
const LANES: usize = 8;
const MASK_44: u64 = (1 << 44) - 1;
const MASK_42: u64 = (1 << 42) - 1;

/// A number below about 2^131 in limbs of 44, 44 and 42 bits.
#[derive(Clone, Copy)]
struct Limbs([u64; 3]);

/// See [`Operations::absorb`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]
pub(super) fn absorb(state: &mut PolyState, data: &[[u8; 16]], top: u32) {
    if data.len() < WORTHWHILE {
        return Portable.absorb(state, data, top);
    }
    let (groups, rest) = data.as_chunks::<LANES>();
    let r = Limbs::from_words(&[state.r[0], state.r[1], state.r[2], state.r[3], 0]);
    let powers = powers(r);
    state.h = absorb_groups(Limbs::from_words(&state.h), &powers, groups, top).words();
    Portable.absorb(state, rest, top);
}

/// r, r^2, … r^8.
fn powers(r: Limbs) -> [Limbs; LANES] {
    let r2 = r.times(r);
    let (r3, r4) = (r2.times(r), r2.times(r2));
    [r, r2, r3, r4, r4.times(r), r4.times(r2), r4.times(r3), r4.times(r4)]
}

/// A vector of multipliers: r and 20 r, since 2^132 is 4 * 5.
#[derive(Clone, Copy)]
struct Multiplier {
    r: [__m512i; 3],
    s: [__m512i; 2],
}

impl Multiplier {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(r: [__m512i; 3]) -> Self {
        let times_20 = |x| _mm512_slli_epi64::<2>(_mm512_add_epi64(x, _mm512_slli_epi64::<2>(x)));
        Self { r, s: [times_20(r[1]), times_20(r[2])] }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]
fn absorb_groups(
    h: Limbs,
    powers: &[Limbs; LANES],
    groups: &[[[u8; 16]; LANES]],
    top: u32,
) -> Limbs {
    let r8 = Multiplier::new(broadcast(powers[7]));
    let r16 = Multiplier::new(broadcast(powers[7].times(powers[7])));
    // Two sums, so that one's multiplication fills the other's waits. The first group is added to
    // the accumulator so far, which stands in the first lane.
    let zero = _mm512_setzero_si512();
    let (mut even, mut odd) = ([zero; 3], [zero; 3]);
    let (first, pairs) = groups.split_at(2 - groups.len() % 2);
    let mut start = [zero; 3];
    for (lanes, limb) in start.iter_mut().zip(h.0) {
        *lanes = _mm512_maskz_set1_epi64(1, limb as i64);
    }
    match first {
        [only] => odd = add(start, load(only, top)),
        [first, second] => {
            even = add(start, load(first, top));
            odd = load(second, top);
        }
        _ => {}
    }
    for pair in pairs.as_chunks::<2>().0 {
        even = add(multiply(even, r16), load(&pair[0], top));
        odd = add(multiply(odd, r16), load(&pair[1], top));
    }
    let sum = add(multiply(even, r8), odd);
    // `load` puts blocks 0 4 1 5 2 6 3 7 into the lanes; block i is to be multiplied by r^(8 - i).
    let by_place = |limb: usize| {
        let power = |block: usize| powers[LANES - 1 - block].0[limb] as i64;
        _mm512_setr_epi64(
            power(0),
            power(4),
            power(1),
            power(5),
            power(2),
            power(6),
            power(3),
            power(7),
        )
    };
    let last = Multiplier::new([by_place(0), by_place(1), by_place(2)]);
    let [a, b, c] = multiply(sum, last);
    let total = |limb| _mm512_reduce_add_epi64(limb) as u64;
    Limbs([total(a), total(b), total(c)]).carried()
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(x: Limbs) -> [__m512i; 3] {
    let [a, b, c] = x.0;
    [_mm512_set1_epi64(a as i64), _mm512_set1_epi64(b as i64), _mm512_set1_epi64(c as i64)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(a: [__m512i; 3], b: [__m512i; 3]) -> [__m512i; 3] {
    [_mm512_add_epi64(a[0], b[0]), _mm512_add_epi64(a[1], b[1]), _mm512_add_epi64(a[2], b[2])]
}

/// Eight blocks in limbs; each gets `top` as its bit 128.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(group: &[[u8; 16]; LANES], top: u32) -> [__m512i; 3] {
    let place: *const __m512i = group.as_ptr().cast();
    // SAFETY: two vectors of 64 bytes within the borrowed 128, at any alignment.
    let (a, b) = unsafe { (_mm512_loadu_si512(place), _mm512_loadu_si512(place.add(1))) };
    let (low, high) = (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let mask = _mm512_set1_epi64(MASK_44 as i64);
    let middle = _mm512_or_si512(_mm512_srli_epi64::<44>(low), _mm512_slli_epi64::<20>(high));
    [
        _mm512_and_si512(low, mask),
        _mm512_and_si512(middle, mask),
        _mm512_or_si512(_mm512_srli_epi64::<24>(high), _mm512_set1_epi64((top as i64) << 40)),
    ]
}

/// `h * r` in every lane, carried until each limb has at most a few bits more than its own.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply(h: [__m512i; 3], by: Multiplier) -> [__m512i; 3] {
    let zero = _mm512_setzero_si512();
    let Multiplier { r: [r0, r1, r2], s: [s1, s2] } = by;
    // Columns in two parts: bits 0 to 51 of each product, and the rest.
    let column = |x: [__m512i; 3]| {
        let low = _mm512_madd52lo_epu64(zero, h[0], x[0]);
        let high = _mm512_madd52hi_epu64(zero, h[0], x[0]);
        let other_low = _mm512_madd52lo_epu64(zero, h[1], x[1]);
        let other_high = _mm512_madd52hi_epu64(zero, h[1], x[1]);
        let low = _mm512_madd52lo_epu64(low, h[2], x[2]);
        let high = _mm512_madd52hi_epu64(high, h[2], x[2]);
        (_mm512_add_epi64(low, other_low), _mm512_add_epi64(high, other_high))
    };
    let (low0, high0) = column([r0, s2, s1]);
    let (low1, high1) = column([r1, r0, s2]);
    let (low2, high2) = column([r2, r1, r0]);
    let mask_44 = _mm512_set1_epi64(MASK_44 as i64);
    let mask_42 = _mm512_set1_epi64(MASK_42 as i64);
    // 2^52 is 2^8 of the next limb, and 2^10 of limb 0 when it wraps at 2^130.
    let times_5 = |x| _mm512_add_epi64(x, _mm512_slli_epi64::<2>(x));
    let d0 = _mm512_add_epi64(low0, times_5(_mm512_slli_epi64::<10>(high2)));
    let d1 = _mm512_add_epi64(low1, _mm512_slli_epi64::<8>(high0));
    let d2 = _mm512_add_epi64(low2, _mm512_slli_epi64::<8>(high1));
    // All three carry at once: a limb keeps up to 2^15 too much, and h < 2^46 with a message added.
    [
        _mm512_add_epi64(_mm512_and_si512(d0, mask_44), times_5(_mm512_srli_epi64::<42>(d2))),
        _mm512_add_epi64(_mm512_and_si512(d1, mask_44), _mm512_srli_epi64::<44>(d0)),
        _mm512_add_epi64(_mm512_and_si512(d2, mask_42), _mm512_srli_epi64::<44>(d1)),
    ]
}

impl Limbs {
    fn from_words(h: &[u32; 5]) -> Self {
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (low, high) = (join(h[0], h[1]), join(h[2], h[3]));
        Self([
            low & MASK_44,
            (low >> 44 | high << 20) & MASK_44,
            high >> 24 | u64::from(h[4]) << 40,
        ])
    }

    /// The five words, of numbers whose limbs are carried.
    fn words(&self) -> [u32; 5] {
        let [a, b, c] = self.0;
        let low = a | b << 44;
        // Limb 2 starts at bit 88: 24 bits into the upper word, of which 40 bits remain there.
        let high = b >> 20 | c << 24;
        [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32, (c >> 40) as u32]
    }

    /// Carries until limbs 0 and 1 have 44 bits, and limb 2 42 and at most a carry.
    fn carried(self) -> Self {
        let [a, b, c] = self.0;
        let b = b + (a >> 44);
        let c = c + (b >> 44);
        let a = (a & MASK_44) + (c >> 42) * 5;
        let b = (b & MASK_44) + (a >> 44);
        Self([a & MASK_44, b & MASK_44, (c & MASK_42) + (b >> 44)])
    }

    fn times(self, by: Self) -> Self {
        let ([h0, h1, h2], [r0, r1, r2]) = (self.0, by.0);
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let (s1, s2) = (r1 * 20, r2 * 20);
        let d0 = wide(h0, r0) + wide(h1, s2) + wide(h2, s1);
        let d1 = wide(h0, r1) + wide(h1, r0) + wide(h2, s2) + (d0 >> 44);
        let d2 = wide(h0, r2) + wide(h1, r1) + wide(h2, r0) + (d1 >> 44);
        let a = (d0 as u64 & MASK_44) + (d2 >> 42) as u64 * 5;
        let b = (d1 as u64 & MASK_44) + (a >> 44);
        Self([a & MASK_44, b & MASK_44, (d2 as u64 & MASK_42) + (b >> 44)])
    }
}
