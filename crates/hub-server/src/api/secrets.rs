//! Secrets that open the hub: made of the system's randomness, told once, and stored as hashes.

use tenure_crypto::sha256;

/// 160 bits that nobody guesses, as 40 hexadecimal digits; `None` if the system has no randomness.
pub(super) fn secret() -> Option<String> {
    let mut random = [0; 20];
    getrandom::fill(&mut random).ok()?;
    Some(data_encoding::HEXLOWER.encode(&random))
}

/// A secret as it is stored.
pub(super) fn hash(secret: &str) -> [u8; 32] {
    sha256(&[secret.as_bytes()]).0
}
