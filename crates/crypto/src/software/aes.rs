//! AES-GCM (NIST SP 800-38D).

use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, KeyInit};

use crate::{AEAD_TAG_BYTES, AeadAlgorithm, SecurityError};

pub(super) fn seal(
    algorithm: AeadAlgorithm,
    key: &[u8],
    nonce: &[u8; 12],
    associated: &[u8],
    message: &mut [u8],
) -> Result<[u8; AEAD_TAG_BYTES], SecurityError> {
    let nonce = nonce.into();
    let tag = match algorithm {
        AeadAlgorithm::Aes128Gcm => {
            with_key::<Aes128Gcm>(key)?.encrypt_inout_detached(nonce, associated, message.into())
        }
        AeadAlgorithm::Aes256Gcm => {
            with_key::<Aes256Gcm>(key)?.encrypt_inout_detached(nonce, associated, message.into())
        }
        AeadAlgorithm::ChaCha20Poly1305 => return Err(SecurityError::Unsupported),
    };
    tag.map(Into::into).map_err(|_| SecurityError::BufferTooSmall)
}

pub(super) fn open(
    algorithm: AeadAlgorithm,
    key: &[u8],
    nonce: &[u8; 12],
    associated: &[u8],
    message: &mut [u8],
    tag: &[u8; AEAD_TAG_BYTES],
) -> Result<(), SecurityError> {
    let (nonce, tag) = (nonce.into(), tag.into());
    let opened = match algorithm {
        AeadAlgorithm::Aes128Gcm => with_key::<Aes128Gcm>(key)?.decrypt_inout_detached(
            nonce,
            associated,
            message.into(),
            tag,
        ),
        AeadAlgorithm::Aes256Gcm => with_key::<Aes256Gcm>(key)?.decrypt_inout_detached(
            nonce,
            associated,
            message.into(),
            tag,
        ),
        AeadAlgorithm::ChaCha20Poly1305 => return Err(SecurityError::Unsupported),
    };
    opened.map_err(|_| SecurityError::Undecryptable)
}

fn with_key<A: KeyInit>(key: &[u8]) -> Result<A, SecurityError> {
    A::new_from_slice(key).map_err(|_| SecurityError::InvalidSecretKey)
}
