//! Poly1305 on the fastest backend for the core that this runs on.

use crate::accumulator::TAG_BYTES;
use crate::backend;
use crate::poly1305::Poly1305;

impl Poly1305 {
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
}
