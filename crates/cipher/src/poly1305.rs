//! Poly1305, RFC 8439 §2.5: a one-time authenticator.

use core::fmt;

use zeroize::ZeroizeOnDrop;

use crate::backend::{self, Backend, wipe::wipe};
use crate::chacha::KEY_BYTES;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// The accumulator and its multiplier, in words of 32 bits, least significant first. Wiped when
/// dropped.
///
/// Between calls `h[4]` is at most 4; only [`Poly1305::tag`] brings `h` below 2^130 - 5.
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
    pub fn reduced(&self) -> [u32; 5] {
        // h < 5 * 2^128 < 2p, so subtracting p once reduces it.
        subtract_p(&self.h)
    }

    /// `h mod (2^130 - 5)`, plus `s`, modulo 2^128 (RFC 8439 §2.5.1, the last steps).
    fn tag(&self, s: &[u8; 16]) -> [u8; TAG_BYTES] {
        let low = words_to_u128(&self.reduced()).wrapping_add(u128::from_le_bytes(*s));
        low.to_le_bytes()
    }
}

impl Drop for PolyState {
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

/// Computes the tag of one message under a one-time key. Wiped when dropped.
///
/// A key authenticates one message and no more: two tags under one key give it away.
#[derive(Clone)]
pub struct Poly1305 {
    state: PolyState,
    s: [u8; 16],
    partial: [u8; 16],
    partial_len: usize,
}

impl Poly1305 {
    /// Under the one-time key `r || s`.
    pub fn with_key(key: &[u8; KEY_BYTES]) -> Self {
        let (mut r, mut s) = ([0; 16], [0; 16]);
        r.copy_from_slice(&key[..16]);
        s.copy_from_slice(&key[16..]);
        let state = PolyState::new(&r);
        wipe(&mut r);
        Self { state, s, partial: [0; 16], partial_len: 0 }
    }

    /// Appends `data` to the message.
    pub fn update(&mut self, data: &[u8]) {
        self.update_on(backend::native(), data);
    }

    /// Appends zeros up to a multiple of 16 bytes (RFC 8439 §2.8).
    pub fn pad(&mut self) {
        self.pad_on(backend::native());
    }

    /// Ends the message and gives its tag.
    pub fn tag(self) -> [u8; TAG_BYTES] {
        self.tag_on(backend::native())
    }

    pub(crate) fn update_on(&mut self, backend: &(impl Backend + ?Sized), mut data: &[u8]) {
        if self.partial_len > 0 {
            let (head, rest) = data.split_at(data.len().min(16 - self.partial_len));
            for (place, byte) in self.partial.iter_mut().skip(self.partial_len).zip(head) {
                *place = *byte;
            }
            self.partial_len += head.len();
            data = rest;
            if self.partial_len < 16 {
                return;
            }
            backend.absorb(&mut self.state, core::slice::from_ref(&self.partial), 1);
            self.partial_len = 0;
        }
        let (blocks, tail) = data.as_chunks::<16>();
        if !blocks.is_empty() {
            backend.absorb(&mut self.state, blocks, 1);
        }
        self.partial.iter_mut().zip(tail).for_each(|(place, byte)| *place = *byte);
        self.partial_len = tail.len();
    }

    pub(crate) fn pad_on(&mut self, backend: &(impl Backend + ?Sized)) {
        if self.partial_len > 0 {
            self.partial.iter_mut().skip(self.partial_len).for_each(|byte| *byte = 0);
            backend.absorb(&mut self.state, core::slice::from_ref(&self.partial), 1);
            self.partial_len = 0;
        }
    }

    pub(crate) fn tag_on(mut self, backend: &(impl Backend + ?Sized)) -> [u8; TAG_BYTES] {
        if self.partial_len > 0 {
            let end_mark = core::iter::once(1).chain(core::iter::repeat(0));
            let rest = self.partial.iter_mut().skip(self.partial_len);
            rest.zip(end_mark).for_each(|(place, byte)| *place = byte);
            backend.absorb(&mut self.state, core::slice::from_ref(&self.partial), 0);
        }
        self.state.tag(&self.s)
    }
}

impl Drop for Poly1305 {
    fn drop(&mut self) {
        wipe(&mut self.s);
        wipe(&mut self.partial);
    }
}

impl ZeroizeOnDrop for Poly1305 {}

impl fmt::Debug for Poly1305 {
    /// Shows no key material.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poly1305").finish_non_exhaustive()
    }
}
