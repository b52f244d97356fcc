//! ChaCha20-Poly1305, both ways.
#![no_std]
#![no_main]

use tenure_cipher::ChaCha20Poly1305;
use tenure_size::{keep, probe, unknown, unknown_bytes};

probe!({
    let aead = ChaCha20Poly1305::with_key(&unknown());
    let mut message = unknown::<64>();
    keep(aead.seal(&unknown(), unknown_bytes(), &mut message).is_ok());
    keep(aead.open(&unknown(), unknown_bytes(), &mut message, &unknown()).is_ok());
    keep(message);
});
