//! Records: their header, and how they are protected (RFC 8446 §5).

use tenure_crypto::{AEAD_TAG_BYTES, AeadAlgorithm, Security, SecurityError};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The header of a record, in bytes.
pub(crate) const HEADER_BYTES: usize = 5;
/// The longest plaintext (§5.1), in bytes.
pub(crate) const PLAINTEXT_BYTES_MAX: usize = 1 << 14;
/// The longest protected record (§5.2), in bytes.
pub(crate) const CIPHERTEXT_BYTES_MAX: usize = PLAINTEXT_BYTES_MAX + 256;
/// The bytes that protection adds to a plaintext: the inner content type and the tag.
pub(crate) const PROTECTION_BYTES: usize = 1 + AEAD_TAG_BYTES;

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    ChangeCipherSpec = 20,
    Alert = 21,
    Handshake = 22,
    ApplicationData = 23,
}

impl ContentType {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::ApplicationData),
            _ => None,
        }
    }
}

/// The header of a record with `length` bytes of content.
pub(crate) fn header(content: ContentType, length: usize) -> [u8; HEADER_BYTES] {
    let [high, low] = (length as u16).to_be_bytes();
    [content as u8, 3, 3, high, low]
}

/// The keys of one direction, with the number of the next record.
#[derive(Zeroize, ZeroizeOnDrop)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Protection {
    #[zeroize(skip)]
    algorithm: AeadAlgorithm,
    key: [u8; 32],
    iv: [u8; 12],
    sequence: u64,
}

impl Protection {
    pub(crate) fn new(algorithm: AeadAlgorithm, key: &[u8], iv: &[u8; 12]) -> Self {
        let mut own = [0; 32];
        own[..key.len()].copy_from_slice(key);
        let protection = Self { algorithm, key: own, iv: *iv, sequence: 0 };
        own.zeroize();
        protection
    }

    /// How many records these keys have protected.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Sets the number of the next record.
    #[cfg(test)]
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// §5.3: the initialisation vector, with the record's number over its end.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()).for_each(|(to, it)| *to ^= it);
        nonce
    }

    /// Protects a record in place: its header, `length` bytes of plaintext, and room for the content
    /// type and the tag, which `record` ends with.
    pub(crate) fn seal(
        &mut self,
        security: &mut impl Security,
        content: ContentType,
        record: &mut [u8],
    ) -> Result<(), SecurityError> {
        let length = record.len() - HEADER_BYTES;
        let (head, body) = record.split_at_mut(HEADER_BYTES);
        head.copy_from_slice(&header(ContentType::ApplicationData, length));
        let (inner, tag) = body.split_at_mut(length - AEAD_TAG_BYTES);
        inner[length - AEAD_TAG_BYTES - 1] = content as u8;
        let key = &self.key[..self.algorithm.key_bytes()];
        let sealed = security.seal(self.algorithm, key, &self.nonce(), head, inner)?;
        tag.copy_from_slice(&sealed);
        self.sequence += 1;
        Ok(())
    }

    /// Opens a record in place, header and all, and returns its content type and the length of its
    /// plaintext, which begins behind the header. No content type means padding alone.
    pub(crate) fn open(
        &mut self,
        security: &mut impl Security,
        record: &mut [u8],
    ) -> Result<(Option<ContentType>, usize), SecurityError> {
        let (head, body) = record.split_at_mut(HEADER_BYTES);
        let (inner, tag) =
            body.split_last_chunk_mut::<AEAD_TAG_BYTES>().ok_or(SecurityError::Undecryptable)?;
        let key = &self.key[..self.algorithm.key_bytes()];
        security.open(self.algorithm, key, &self.nonce(), head, inner, tag)?;
        self.sequence += 1;
        let end = inner.iter().rposition(|byte| *byte != 0);
        Ok(end.map_or((None, 0), |end| (ContentType::from_number(inner[end]), end)))
    }
}
