//! The backend with a secure element: P-256 and the seed of randomness come from a chip, the rest from software.
//!
//! Which operations the chip does is chosen one by one ([`Uses`]): it is slow where a processor is fast, but keeps
//! its keys, and saves the code of the curve.

mod chip;
#[cfg(all(feature = "simulated", target_pointer_width = "64"))]
pub mod simulated;

use tenure_hal::{Entropy, EntropyError, I2c};
use zeroize::{Zeroize, ZeroizeOnDrop};

pub use self::chip::{ADDRESS, Chip, POINT_BYTES};
use crate::ecdsa::{read_der, write_der};
use crate::{
    AEAD_TAG_BYTES, AeadAlgorithm, AgreedSecret, EphemeralKey, Group, HashAlgorithm, PrivateKey,
    PublicKeyRef, Security, SecurityError, SignatureAlgorithm, Signed, Software, hmac_sha256,
};

/// How points stand outside the chip: uncompressed (SEC 1).
const UNCOMPRESSED: u8 = 4;

/// Which operations on P-256 the chip does. Signing with [`PrivateKey::ElementP256`] is always its own; what it
/// doesn't do, software does if this build has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// Key agreement, one at a time.
    pub agreement: bool,
    /// Verifying signatures.
    pub verification: bool,
}

/// A chip on the bus `B`, and software for everything that it doesn't do.
#[derive(Debug)]
pub struct WithElement<B> {
    chip: Chip<B>,
    software: Software<Seeded>,
    uses: Uses,
    /// The number of the key agreement that the chip holds a key for.
    agreement: u32,
}

impl<B: I2c> WithElement<B> {
    /// Takes `chip`, and seeds the randomness from it once: it is slow.
    ///
    /// # Errors
    /// [`SecurityError::Hardware`] if the chip doesn't answer as it should.
    pub fn new(mut chip: Chip<B>, uses: Uses) -> Result<Self, SecurityError> {
        let seeded = Seeded(chip.random()?);
        Ok(Self { chip, software: Software::new(seeded), uses, agreement: 0 })
    }

    /// The chip, for what is no part of the layer: making keys, for one.
    pub fn chip(&mut self) -> &mut Chip<B> {
        &mut self.chip
    }

    fn is_agreement(&self, group: Group) -> bool {
        self.uses.agreement && group == Group::Secp256r1
    }
}

impl<B: I2c> Security for WithElement<B> {
    fn has_group(&self, group: Group) -> bool {
        self.is_agreement(group) || self.software.has_group(group)
    }

    fn has_signature(&self, algorithm: SignatureAlgorithm) -> bool {
        let by_chip =
            self.uses.verification && matches!(algorithm, SignatureAlgorithm::EcdsaP256(_));
        by_chip || self.software.has_signature(algorithm)
    }

    fn has_aead(&self, algorithm: AeadAlgorithm) -> bool {
        self.software.has_aead(algorithm)
    }

    fn random(&mut self, bytes: &mut [u8]) -> Result<(), SecurityError> {
        self.software.random(bytes)
    }

    fn begin_agreement(
        &mut self,
        group: Group,
        public: &mut [u8],
    ) -> Result<(EphemeralKey, usize), SecurityError> {
        if !self.is_agreement(group) {
            return self.software.begin_agreement(group, public);
        }
        let public = public.get_mut(..group.share_bytes()).ok_or(SecurityError::BufferTooSmall)?;
        let point = self.chip.make_ephemeral_key()?;
        let (form, coordinates) = public.split_at_mut(1);
        form[0] = UNCOMPRESSED;
        coordinates.copy_from_slice(&point);
        self.agreement = self.agreement.wrapping_add(1);
        Ok((EphemeralKey::new(group, &self.agreement.to_be_bytes()), group.share_bytes()))
    }

    fn finish_agreement(
        &mut self,
        key: &EphemeralKey,
        peer: &[u8],
    ) -> Result<AgreedSecret, SecurityError> {
        if !self.is_agreement(key.group()) {
            return self.software.finish_agreement(key, peer);
        }
        // The chip holds one key: another agreement began since.
        if u32::from_be_bytes(*key.secret()) != self.agreement {
            return Err(SecurityError::InvalidSecretKey);
        }
        let mut agreed = self.chip.agree(point(peer)?)?;
        let secret = AgreedSecret::new(&[&agreed]);
        agreed.zeroize();
        Ok(secret)
    }

    fn answer_agreement(
        &mut self,
        group: Group,
        peer: &[u8],
        public: &mut [u8],
    ) -> Result<(usize, AgreedSecret), SecurityError> {
        if !self.is_agreement(group) {
            return self.software.answer_agreement(group, peer, public);
        }
        let (key, length) = self.begin_agreement(group, public)?;
        Ok((length, self.finish_agreement(&key, peer)?))
    }

    fn sign(
        &mut self,
        key: &PrivateKey<'_>,
        message: &[u8],
        signature: &mut [u8],
    ) -> Result<usize, SecurityError> {
        let PrivateKey::ElementP256 { slot } = key else {
            return self.software.sign(key, message, signature);
        };
        let signed =
            self.chip.sign(*slot, &digest_of(&HashAlgorithm::Sha256.digest(&[message])))?;
        let (r, s) = signed.split_at(signed.len() / 2);
        write_der([r, s], signature)
    }

    fn verify(
        &mut self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyRef<'_>,
        message: Signed<'_>,
        signature: &[u8],
    ) -> Result<(), SecurityError> {
        let (true, SignatureAlgorithm::EcdsaP256(hash), PublicKeyRef::P256(key)) =
            (self.uses.verification, algorithm, key)
        else {
            return self.software.verify(algorithm, key, message, signature);
        };
        let digest = match message {
            Signed::Message(message) => digest_of(&hash.digest(&[message])),
            Signed::Digest(digest) if digest.len() == hash.digest_bytes() => digest_of(digest),
            Signed::Digest(_) => return Err(SecurityError::BadSignature),
        };
        let mut numbers = [0; POINT_BYTES];
        read_der(signature, &mut numbers)?;
        self.chip.verify(&digest, &numbers, point(key)?)
    }

    fn seal(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_BYTES], SecurityError> {
        self.software.seal(algorithm, key, nonce, associated, message)
    }

    fn open(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
        tag: &[u8; AEAD_TAG_BYTES],
    ) -> Result<(), SecurityError> {
        self.software.open(algorithm, key, nonce, associated, message, tag)
    }
}

/// The coordinates of an uncompressed point. Whether it is on the curve, the chip says.
fn point(bytes: &[u8]) -> Result<&[u8; POINT_BYTES], SecurityError> {
    match bytes {
        [UNCOMPRESSED, coordinates @ ..] => {
            coordinates.try_into().map_err(|_| SecurityError::InvalidPublicKey)
        }
        _ => Err(SecurityError::InvalidPublicKey),
    }
}

/// The leftmost 32 bytes of a digest, which is all that P-256 signs.
fn digest_of(digest: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(&digest[..32]);
    bytes
}

/// Random bytes from a secret that only the chip knew: each use replaces it, so that what it gave can't be found
/// from what it is.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Seeded([u8; 32]);

impl core::fmt::Debug for Seeded {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Seeded(secret)")
    }
}

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for (index, chunk) in bytes.chunks_mut(32).enumerate() {
            let number = (index as u32 + 1).to_be_bytes();
            let mut block = hmac_sha256(&self.0, &[&number]);
            chunk.copy_from_slice(&block[..chunk.len()]);
            block.zeroize();
        }
        self.0 = hmac_sha256(&self.0, &[&[0; 4]]);
        Ok(())
    }
}
