//! A public key of P-256 as PEM (RFC 7468 §13), for whoever makes a certificate for it.

use core::fmt;

use tenure_crypto::element::POINT_BYTES;

/// The front of a `SubjectPublicKeyInfo` for P-256 (RFC 5480 §2.1.1), up to the point's form: uncompressed.
const FRONT: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
];
const LINE_CHARACTERS: usize = 64;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The coordinates of a point of P-256, shown as a public key in PEM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pem<'a>(pub(super) &'a [u8; POINT_BYTES]);

impl fmt::Display for Pem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut der = [0; FRONT.len() + POINT_BYTES];
        let (front, point) = der.split_at_mut(FRONT.len());
        front.copy_from_slice(&FRONT);
        point.copy_from_slice(self.0);
        f.write_str("-----BEGIN PUBLIC KEY-----\n")?;
        for line in der.chunks(LINE_CHARACTERS / 4 * 3) {
            line.chunks(3).try_for_each(|three| write_base64(f, three))?;
            f.write_str("\n")?;
        }
        f.write_str("-----END PUBLIC KEY-----")
    }
}

/// Up to three bytes (RFC 4648 §4).
fn write_base64(f: &mut fmt::Formatter<'_>, three: &[u8]) -> fmt::Result {
    let at = |place: usize| u32::from(three.get(place).copied().unwrap_or_default());
    let bits = at(0) << 16 | at(1) << 8 | at(2);
    for place in 0..4 {
        let character = if place <= three.len() {
            ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]
        } else {
            b'='
        };
        fmt::Write::write_char(f, character.into())?;
    }
    Ok(())
}
