//! Poly1305 with words of 32 bits and products of 64.
//!
//! `r` is below 2^124 and its upper words are multiples of 4, so `x * r[i] * 2^(32 * (4 + k))` is
//! `x * (r[i] / 4 * 5) * 2^(32 * k)` modulo 2^130 - 5 when the weights meet at 2^128.

use super::super::aligned::words;
use crate::accumulator::PolyState;

/// See [`super::Operations::absorb`].
pub(super) fn absorb(state: &mut PolyState, data: &[[u8; 16]], top: u32) {
    let [r0, r1, r2, r3] = state.r;
    let [s1, s2, s3] = [r1 + (r1 >> 2), r2 + (r2 >> 2), r3 + (r3 >> 2)];
    let [mut h0, mut h1, mut h2, mut h3, mut h4] = state.h;
    let wide = |a: u32, b: u32| u64::from(a) * u64::from(b);
    for block in data {
        let message = match words(block) {
            Some(words) => words.map(u32::from_le),
            None => [0, 4, 8, 12]
                .map(|i| u32::from_le_bytes([block[i], block[i + 1], block[i + 2], block[i + 3]])),
        };
        let m = |i: usize| u64::from(message[i]);
        let d0 = u64::from(h0) + m(0);
        let d1 = u64::from(h1) + m(1) + (d0 >> 32);
        let d2 = u64::from(h2) + m(2) + (d1 >> 32);
        let d3 = u64::from(h3) + m(3) + (d2 >> 32);
        (h0, h1, h2, h3) = (d0 as u32, d1 as u32, d2 as u32, d3 as u32);
        h4 = h4 + (d3 >> 32) as u32 + top;

        // Every h[i] * r[j] is below 2^60.4, h4 below 8, and so no sum overflows.
        let d0 = wide(h0, r0) + wide(h1, s3) + wide(h2, s2) + wide(h3, s1);
        let d1 = wide(h0, r1) + wide(h1, r0) + wide(h2, s3) + wide(h3, s2) + u64::from(h4 * s1);
        let d2 = wide(h0, r2) + wide(h1, r1) + wide(h2, r0) + wide(h3, s3) + u64::from(h4 * s2);
        let d3 = wide(h0, r3) + wide(h1, r2) + wide(h2, r1) + wide(h3, r0) + u64::from(h4 * s3);
        let d4 = h4 * r0;

        let d1 = d1 + (d0 >> 32);
        let d2 = d2 + (d1 >> 32);
        let d3 = d3 + (d2 >> 32);
        let d4 = d4 + (d3 >> 32) as u32;
        // 2^130 is 5: what stands above bit 130 comes back five times.
        let d0 = (d0 & 0xffff_ffff) + u64::from((d4 >> 2) + (d4 & !3));
        let d1 = (d1 & 0xffff_ffff) + (d0 >> 32);
        let d2 = (d2 & 0xffff_ffff) + (d1 >> 32);
        let d3 = (d3 & 0xffff_ffff) + (d2 >> 32);
        (h0, h1, h2, h3) = (d0 as u32, d1 as u32, d2 as u32, d3 as u32);
        h4 = (d4 & 3) + (d3 >> 32) as u32;
    }
    state.h = [h0, h1, h2, h3, h4];
}
