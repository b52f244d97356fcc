//! Ids, keys and signatures as they cross the wire: plain bytes with a type and a text form.

use core::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::text::{self, TextError};

macro_rules! text_form {
    ($type:ident, $bytes:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                text::write(f, &self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($type))
            }
        }

        impl FromStr for $type {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                text::parse::<$bytes>(text).map(Self)
            }
        }
    };
}

/// A machine's id: the first 12 bytes of the SHA-256 of its X25519 public key.
///
/// Shown as four groups of five characters, the last of which carries a check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MachineId(pub [u8; 12]);
text_form!(MachineId, 12);

/// A machine's X25519 public key (RFC 7748).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicKey(pub [u8; 32]);
text_form!(PublicKey, 32);

/// An Ed25519 public key (RFC 8032) of a device, an owner or a tenant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VerifyingKey(pub [u8; 32]);
text_form!(VerifyingKey, 32);

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);
text_form!(Digest, 32);

/// An Ed25519 signature (RFC 8032), in two halves because serde stops at arrays of 32.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    r: [u8; 32],
    s: [u8; 32],
}

impl Signature {
    /// The signature in `bytes`.
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        let (mut r, mut s) = ([0; 32], [0; 32]);
        r.copy_from_slice(&bytes[..32]);
        s.copy_from_slice(&bytes[32..]);
        Self { r, s }
    }

    /// The signature as 64 bytes, R before S (RFC 8032 §5.1.6).
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.r);
        bytes[32..].copy_from_slice(&self.s);
        bytes
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(")?;
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}
