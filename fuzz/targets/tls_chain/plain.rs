//! A holder of keys that hides nothing and believes everything, so that the input reaches what stands behind
//! cryptography; and the certificates of the ends.
#![allow(dead_code, reason = "each target uses a part of it")]

use tenure_crypto::{
    AEAD_TAG_BYTES, AeadAlgorithm, AgreedSecret, EphemeralKey, Group, PrivateKey, PublicKeyRef,
    Security, SecurityError, SignatureAlgorithm, Signed, Software,
};
use tenure_hal::simulated::Sequence;

/// The anchor, a certificate of its own.
pub(crate) const ROOT: &[u8] = include_bytes!("root.der");
/// A certificate for `server.test` below it, for servers and clients.
pub(crate) const LEAF: &[u8] = include_bytes!("leaf.der");
/// A date at which both are valid, in seconds since 1970.
pub(crate) const DATE_S: i64 = 1_820_000_000;

/// Key agreement is real.
pub(crate) struct Plain(Software<Sequence>);

impl Plain {
    pub(crate) fn new() -> Self {
        Self(Software::new(Sequence(1)))
    }
}

impl Security for Plain {
    fn has_group(&self, group: Group) -> bool {
        self.0.has_group(group)
    }

    fn has_signature(&self, _: SignatureAlgorithm) -> bool {
        true
    }

    fn has_aead(&self, _: AeadAlgorithm) -> bool {
        true
    }

    fn random(&mut self, bytes: &mut [u8]) -> Result<(), SecurityError> {
        self.0.random(bytes)
    }

    fn begin_agreement(
        &mut self,
        group: Group,
        public: &mut [u8],
    ) -> Result<(EphemeralKey, usize), SecurityError> {
        self.0.begin_agreement(group, public)
    }

    fn finish_agreement(
        &mut self,
        key: &EphemeralKey,
        peer: &[u8],
    ) -> Result<AgreedSecret, SecurityError> {
        self.0.finish_agreement(key, peer)
    }

    fn sign(
        &mut self,
        _: &PrivateKey<'_>,
        _: &[u8],
        signature: &mut [u8],
    ) -> Result<usize, SecurityError> {
        signature[0] = 1;
        Ok(1)
    }

    /// Any signature by a key of the right kind.
    fn verify(
        &mut self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyRef<'_>,
        _: Signed<'_>,
        _: &[u8],
    ) -> Result<(), SecurityError> {
        match (algorithm, key) {
            (SignatureAlgorithm::EcdsaP256(_), PublicKeyRef::P256(_))
            | (SignatureAlgorithm::EcdsaP384(_), PublicKeyRef::P384(_))
            | (SignatureAlgorithm::Ed25519, PublicKeyRef::Ed25519(_))
            | (
                SignatureAlgorithm::RsaPkcs1(_) | SignatureAlgorithm::RsaPss(_),
                PublicKeyRef::Rsa { .. },
            ) => Ok(()),
            _ => Err(SecurityError::InvalidPublicKey),
        }
    }

    fn seal(
        &mut self,
        _: AeadAlgorithm,
        _: &[u8],
        _: &[u8; 12],
        _: &[u8],
        _: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_BYTES], SecurityError> {
        Ok([0; AEAD_TAG_BYTES])
    }

    fn open(
        &mut self,
        _: AeadAlgorithm,
        _: &[u8],
        _: &[u8; 12],
        _: &[u8],
        _: &mut [u8],
        _: &[u8; AEAD_TAG_BYTES],
    ) -> Result<(), SecurityError> {
        Ok(())
    }
}
