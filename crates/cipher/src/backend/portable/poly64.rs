//! Poly1305 with words of 64 bits and products of 128.

use crate::accumulator::PolyState;

/// See [`super::Operations::absorb`].
pub(super) fn absorb(state: &mut PolyState, data: &[[u8; 16]], top: u32) {
    let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let [r0, r1] = [join(state.r[0], state.r[1]), join(state.r[2], state.r[3])];
    // r1 is a multiple of 4, so r1 * 2^128 is r1 / 4 * 5.
    let s1 = r1 + (r1 >> 2);
    let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let mut h0 = join(state.h[0], state.h[1]);
    let mut h1 = join(state.h[2], state.h[3]);
    let mut h2 = u64::from(state.h[4]);
    for block in data {
        let m = u128::from_le_bytes(*block);
        let d0 = u128::from(h0) + (m & u128::from(u64::MAX));
        let d1 = u128::from(h1) + (m >> 64) + (d0 >> 64);
        (h0, h1) = (d0 as u64, d1 as u64);
        h2 += (d1 >> 64) as u64 + u64::from(top);

        let d0 = wide(h0, r0) + wide(h1, s1);
        let d1 = wide(h0, r1) + wide(h1, r0) + u128::from(h2 * s1) + (d0 >> 64);
        let d2 = h2 * r0 + (d1 >> 64) as u64;
        let d0 = u128::from(d0 as u64) + u128::from((d2 >> 2) + (d2 & !3));
        let d1 = u128::from(d1 as u64) + (d0 >> 64);
        (h0, h1) = (d0 as u64, d1 as u64);
        h2 = (d2 & 3) + (d1 >> 64) as u64;
    }
    state.h = [h0 as u32, (h0 >> 32) as u32, h1 as u32, (h1 >> 32) as u32, h2 as u32];
}
