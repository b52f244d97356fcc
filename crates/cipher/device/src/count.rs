//! Instructions that a message costs.

use core::hint::black_box;

use tenure_bench_report::line;
use tenure_cipher::backend::Backend;
use tenure_cipher::{Form, Ietf, PolyState};

use crate::machine;

/// Bytes of the long message.
const LONG: usize = 16 * 1024;
/// Bytes of the short one.
const SHORT: usize = 64;

#[repr(align(16))]
struct Memory([u8; LONG]);

/// Counts one backend.
pub fn count(backend: &dyn Backend) {
    let mut memory = Memory([0; LONG]);
    let data = black_box(&mut memory.0);
    let state = Ietf::state::<10>(black_box(&[1; 32]), black_box(&[2; 12]));
    measure(["chacha20", backend.name()], data, |data| {
        backend.xor(&state, 10, data.as_chunks_mut().0);
    });
    let mut poly = PolyState::new(black_box(&[3; 16]));
    measure(["poly1305", backend.name()], data, |data| {
        backend.absorb(&mut poly, data.as_chunks().0, 1);
    });
    measure(["aead", backend.name()], data, |data| {
        black_box(backend.seal(&state, &[], data));
    });
}

/// RustCrypto's, through their own interfaces, key set-up included as in ours.
#[cfg(feature = "peers")]
pub mod peers {
    use super::{LONG, Memory, black_box, measure};
    use chacha20::cipher::{KeyIvInit, StreamCipher};
    use chacha20poly1305::aead::{AeadInOut, KeyInit};
    use poly1305::universal_hash::UniversalHash;

    /// Counts the three crates.
    pub fn count() {
        let mut memory = Memory([0; LONG]);
        let data = black_box(&mut memory.0);
        measure(["chacha20", "rustcrypto"], data, |data| {
            chacha20::ChaCha20::new(black_box(&[1; 32].into()), black_box(&[2; 12].into()))
                .apply_keystream(data);
        });
        measure(["poly1305", "rustcrypto"], data, |data| {
            let mut poly = poly1305::Poly1305::new(black_box(&[3; 32].into()));
            poly.update(poly1305::Block::slice_as_chunks(data).0);
            black_box(poly.finalize());
        });
        measure(["aead", "rustcrypto"], data, |data| {
            let aead = chacha20poly1305::ChaCha20Poly1305::new(black_box(&[1; 32].into()));
            let tag = aead.encrypt_inout_detached(&[2; 12].into(), &[], data.into());
            let _ = black_box(tag);
        });
    }
}

/// Prints the cost of `work` on a long and a short message, the counter's own cost taken off.
fn measure(name: [&str; 2], data: &mut [u8], mut work: impl FnMut(&mut [u8])) {
    for len in [LONG, SHORT] {
        let data = &mut data[..len];
        // Short messages are repeated: some machines count in steps of tens of instructions.
        let times = if len == SHORT { 100 } else { 1 };
        let idle = machine::instructions(|| black_box(()));
        let busy = machine::instructions(|| (0..times).for_each(|_| work(black_box(&mut *data))));
        line(
            machine::write,
            &["count ", name[0], " ", name[1]],
            &[(busy - idle) / times, len as u32],
        );
    }
}
