//! Public keys and their text form: base 32 with a check, in groups of five.

use alloc::format;
use alloc::string::String;
use core::{fmt, str::FromStr};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const CHARACTERS: usize = 52;
const GROUP: usize = 5;
/// 52 characters are 260 bits: the 256 of the key, and a check.
const CHECK_BITS: u32 = 4;

/// A machine's X25519 public key, which says who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// The key as the target of a call.
    pub fn target(&self) -> String {
        format!("#{self}")
    }

    fn check(&self) -> u8 {
        let (sum, weighted) = self.0.iter().fold((0_u32, 7_u32), |(sum, weighted), byte| {
            let sum = (sum + u32::from(*byte)) % 251;
            (sum, (weighted * 3 + sum) % 251)
        });
        ((sum ^ weighted ^ (weighted >> 4)) & ((1 << CHECK_BITS) - 1)) as u8
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut bits, mut count, mut bytes) = (0_u32, 0, self.0.iter());
        for position in 0..CHARACTERS {
            if position > 0 && position % GROUP == 0 {
                f.write_str("-")?;
            }
            if count < 5 {
                let (next, width) =
                    bytes.next().map_or((self.check(), CHECK_BITS), |byte| (*byte, 8));
                bits = bits << width | u32::from(next);
                count += width;
            }
            count -= 5;
            let digit = ALPHABET[(bits >> count & 31) as usize];
            write!(f, "{}", char::from(digit))?;
        }
        Ok(())
    }
}

impl FromStr for PublicKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        let mut key = Self([0; 32]);
        let (mut bits, mut count, mut position, mut written) = (0_u32, 0, 0, 0);
        for (at, character) in text.bytes().enumerate() {
            if at % (GROUP + 1) == GROUP {
                if character != b'-' {
                    return Err(KeyTextError);
                }
                continue;
            }
            let digit = ALPHABET.iter().position(|letter| *letter == character);
            bits = bits << 5 | digit.ok_or(KeyTextError)? as u32;
            count += 5;
            position += 1;
            if count >= 8
                && let Some(byte) = key.0.get_mut(written)
            {
                count -= 8;
                *byte = (bits >> count) as u8;
                written += 1;
            }
        }
        let check = bits & ((1 << CHECK_BITS) - 1);
        if position != CHARACTERS || text.ends_with('-') || check != u32::from(key.check()) {
            return Err(KeyTextError);
        }
        Ok(key)
    }
}

/// A text is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTextError;

impl fmt::Display for KeyTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a public key, or mistyped")
    }
}

impl core::error::Error for KeyTextError {}
