//! Poly1305, RFC 8439 §2.5: a one-time authenticator, over the operations of any instruction set.

use core::fmt;

use zeroize::ZeroizeOnDrop;

use crate::accumulator::{PolyState, TAG_BYTES};
use crate::backend::wipe::wipe;
use crate::chacha::KEY_BYTES;
use crate::operations::Operations;

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

    /// [`Self::update`] on an instruction set.
    pub(crate) fn update_on(&mut self, on: &(impl Operations + ?Sized), mut data: &[u8]) {
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
            on.absorb(&mut self.state, core::slice::from_ref(&self.partial), 1);
            self.partial_len = 0;
        }
        let (blocks, tail) = data.as_chunks::<16>();
        if !blocks.is_empty() {
            on.absorb(&mut self.state, blocks, 1);
        }
        self.partial.iter_mut().zip(tail).for_each(|(place, byte)| *place = *byte);
        self.partial_len = tail.len();
    }

    /// [`Self::pad`] on an instruction set.
    pub(crate) fn pad_on(&mut self, on: &(impl Operations + ?Sized)) {
        if self.partial_len > 0 {
            self.partial.iter_mut().skip(self.partial_len).for_each(|byte| *byte = 0);
            on.absorb(&mut self.state, core::slice::from_ref(&self.partial), 1);
            self.partial_len = 0;
        }
    }

    /// [`Self::tag`] on an instruction set.
    pub(crate) fn tag_on(mut self, on: &(impl Operations + ?Sized)) -> [u8; TAG_BYTES] {
        if self.partial_len > 0 {
            let end_mark = core::iter::once(1).chain(core::iter::repeat(0));
            let rest = self.partial.iter_mut().skip(self.partial_len);
            rest.zip(end_mark).for_each(|(place, byte)| *place = byte);
            on.absorb(&mut self.state, core::slice::from_ref(&self.partial), 0);
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
