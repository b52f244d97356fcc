//! Poly1305's accumulator, RFC 8439 §2.5.1: the part that an instruction set works on.

use zeroize::ZeroizeOnDrop;

use crate::backend::wipe::wipe;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// The accumulator and its multiplier, in words of 32 bits, least significant first. Wiped when
/// dropped.
///
/// Between calls `h[4]` is at most 4; only [`crate::Poly1305::tag`] brings `h` below 2^130 - 5.
#[derive(Clone)]
#[repr(C)]
pub struct PolyState {
    /// The accumulator.
    pub(crate) h: [u32; 5],
    /// The multiplier, clamped: below 2^124, its words 1 to 3 multiples of 4.
    pub(crate) r: [u32; 4],
}

impl PolyState {
    /// A zero accumulator under the first half of a one-time key.
    #[inline]
    pub fn new(r: &[u8; 16]) -> Self {
        let word = |i: usize| u32::from_le_bytes([r[i], r[i + 1], r[i + 2], r[i + 3]]);
        let r = [
            word(0) & 0x0fff_ffff,
            word(4) & 0x0fff_fffc,
            word(8) & 0x0fff_fffc,
            word(12) & 0x0fff_fffc,
        ];
        Self { h: [0; 5], r }
    }

    /// The accumulator, least significant word first, partly reduced.
    pub fn accumulator(&self) -> [u32; 5] {
        self.h
    }

    /// The accumulator modulo 2^130 - 5.
    #[inline]
    pub fn reduced(&self) -> [u32; 5] {
        // h < 5 * 2^128 < 2p, so subtracting p once reduces it.
        subtract_p(&self.h)
    }

    /// `h mod (2^130 - 5)`, plus `s`, modulo 2^128 (RFC 8439 §2.5.1, the last steps).
    #[inline]
    pub(crate) fn tag(&self, s: &[u8; 16]) -> [u8; TAG_BYTES] {
        let low = words_to_u128(&self.reduced()).wrapping_add(u128::from_le_bytes(*s));
        low.to_le_bytes()
    }
}

impl Drop for PolyState {
    #[inline]
    fn drop(&mut self) {
        wipe(&mut self.h);
        wipe(&mut self.r);
    }
}

impl ZeroizeOnDrop for PolyState {}

/// `h - p` if that is not negative, else `h`, without a branch.
///
/// `h - p` is `h + 5 - 2^130`.
fn subtract_p(h: &[u32; 5]) -> [u32; 5] {
    let mut reduced = [0; 5];
    let mut carry = 5;
    for (out, word) in reduced.iter_mut().zip(h) {
        let sum = u64::from(*word) + carry;
        *out = sum as u32;
        carry = sum >> 32;
    }
    // Bit 130 of h + 5, the uppermost it can have, says whether h >= p. The compiler must not see
    // that the mask is all ones or none: it would make a branch of the choice.
    let take = core::hint::black_box(0u32.wrapping_sub(reduced[4] >> 2));
    reduced[4] &= 3;
    let mut out = [0; 5];
    for ((out, reduced), word) in out.iter_mut().zip(&reduced).zip(h) {
        *out = (reduced & take) | (word & !take);
    }
    out
}

fn words_to_u128(h: &[u32; 5]) -> u128 {
    h[..4].iter().rev().fold(0, |sum, word| (sum << 32) | u128::from(*word))
}
