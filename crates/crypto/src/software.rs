//! The backend in software: every operation of the layer that this build has the features for.

#[cfg(feature = "aes")]
mod aes;
#[cfg(feature = "mlkem")]
mod mlkem;
#[cfg(any(feature = "p256", feature = "p384"))]
mod nist;
#[cfg(feature = "rsa")]
mod rsa;

#[cfg(feature = "ed25519")]
use ed25519_dalek::Signer;
use tenure_hal::Entropy;
use tenure_wire::PublicKey;
#[cfg(any(feature = "mlkem", feature = "p256", feature = "p384"))]
use zeroize::Zeroizing;

use crate::{
    AEAD_TAG_BYTES, AeadAlgorithm, AeadKey, AgreedSecret, EphemeralKey, Group, Nonce, PrivateKey,
    PublicKeyRef, Security, SecurityError, SignatureAlgorithm, Signed, StaticSecret,
};

/// All operations in plain code, with keys in the caller's memory; randomness comes from `E`.
#[derive(Debug)]
pub struct Software<E> {
    entropy: E,
}

impl<E: Entropy> Software<E> {
    /// A backend that draws its ephemeral keys from `entropy`.
    pub fn new(entropy: E) -> Self {
        Self { entropy }
    }
}

impl<E: Entropy> Security for Software<E> {
    fn has_group(&self, group: Group) -> bool {
        match group {
            Group::X25519 => true,
            Group::Secp256r1 => cfg!(feature = "p256"),
            Group::Secp384r1 => cfg!(feature = "p384"),
            Group::X25519MlKem768 => cfg!(feature = "mlkem"),
        }
    }

    fn has_signature(&self, algorithm: SignatureAlgorithm) -> bool {
        match algorithm {
            SignatureAlgorithm::Ed25519 => cfg!(feature = "ed25519"),
            SignatureAlgorithm::EcdsaP256(_) => cfg!(feature = "p256"),
            SignatureAlgorithm::EcdsaP384(_) => cfg!(feature = "p384"),
            SignatureAlgorithm::RsaPkcs1(_) | SignatureAlgorithm::RsaPss(_) => {
                cfg!(feature = "rsa")
            }
        }
    }

    fn has_aead(&self, algorithm: AeadAlgorithm) -> bool {
        algorithm == AeadAlgorithm::ChaCha20Poly1305 || cfg!(feature = "aes")
    }

    fn random(&mut self, bytes: &mut [u8]) -> Result<(), SecurityError> {
        self.entropy.fill(bytes).map_err(|_| SecurityError::Entropy)
    }

    fn begin_agreement(
        &mut self,
        group: Group,
        public: &mut [u8],
    ) -> Result<(EphemeralKey, usize), SecurityError> {
        let public = public.get_mut(..group.share_bytes()).ok_or(SecurityError::BufferTooSmall)?;
        let key = match group {
            Group::X25519 => {
                let key = self.x25519_secret()?;
                public.copy_from_slice(&key.public_key().0);
                EphemeralKey::new(group, &*key.to_bytes())
            }
            #[cfg(feature = "p256")]
            Group::Secp256r1 => self.scalar(|secret| nist::p256::public_key(secret, public))?,
            #[cfg(feature = "p384")]
            Group::Secp384r1 => self.scalar(|secret| nist::p384::public_key(secret, public))?,
            #[cfg(feature = "mlkem")]
            Group::X25519MlKem768 => {
                let mut secret = Zeroizing::new([0; mlkem::SECRET_BYTES]);
                self.random(&mut *secret)?;
                mlkem::public_key(&secret, public);
                EphemeralKey::new(group, &*secret)
            }
            #[cfg(not(all(feature = "p256", feature = "p384", feature = "mlkem")))]
            _ => return Err(SecurityError::Unsupported),
        };
        Ok((key, group.share_bytes()))
    }

    fn finish_agreement(
        &mut self,
        key: &EphemeralKey,
        peer: &[u8],
    ) -> Result<AgreedSecret, SecurityError> {
        match key.group() {
            Group::X25519 => x25519(key.secret(), peer),
            #[cfg(feature = "p256")]
            Group::Secp256r1 => nist::p256::agree(key.secret(), peer),
            #[cfg(feature = "p384")]
            Group::Secp384r1 => nist::p384::agree(key.secret(), peer),
            #[cfg(feature = "mlkem")]
            Group::X25519MlKem768 => mlkem::decapsulate(key.secret(), peer),
            #[cfg(not(all(feature = "p256", feature = "p384", feature = "mlkem")))]
            _ => Err(SecurityError::Unsupported),
        }
    }

    #[cfg(feature = "mlkem")]
    fn answer_agreement(
        &mut self,
        group: Group,
        peer: &[u8],
        public: &mut [u8],
    ) -> Result<(usize, AgreedSecret), SecurityError> {
        if group == Group::X25519MlKem768 {
            let length = group.answer_bytes();
            let public = public.get_mut(..length).ok_or(SecurityError::BufferTooSmall)?;
            let mut random = Zeroizing::new([0; 64]);
            self.random(&mut *random)?;
            return Ok((length, mlkem::encapsulate(&random, peer, public)?));
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
        // A build without any of these kinds of keys signs nothing.
        let _ = (message, &signature);
        match key {
            #[cfg(feature = "p256")]
            PrivateKey::P256(secret) => nist::p256::sign(secret, message, signature),
            #[cfg(feature = "p384")]
            PrivateKey::P384(secret) => nist::p384::sign(secret, message, signature),
            #[cfg(feature = "ed25519")]
            PrivateKey::Ed25519(secret) => {
                let signed = ed25519_dalek::SigningKey::from_bytes(secret).sign(message).to_bytes();
                let place = signature.first_chunk_mut().ok_or(SecurityError::BufferTooSmall)?;
                *place = signed;
                Ok(signed.len())
            }
            #[cfg(feature = "rsa-signing")]
            PrivateKey::Rsa(key) => {
                let mut salt = [0; rsa::sign::SALT_BYTES];
                self.random(&mut salt)?;
                let digest = crate::HashAlgorithm::Sha256.digest(&[message]);
                rsa::sign::sign(key, &digest, &salt, signature)
            }
            _ => Err(SecurityError::Unsupported),
        }
    }

    fn verify(
        &mut self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyRef<'_>,
        message: Signed<'_>,
        signature: &[u8],
    ) -> Result<(), SecurityError> {
        verify(algorithm, key, message, signature)
    }

    fn seal(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_BYTES], SecurityError> {
        match algorithm {
            AeadAlgorithm::ChaCha20Poly1305 => {
                Ok(chacha(key)?.seal(&Nonce::from_bytes(*nonce), associated, message))
            }
            #[cfg(feature = "aes")]
            _ => aes::seal(algorithm, key, nonce, associated, message),
            #[cfg(not(feature = "aes"))]
            _ => Err(SecurityError::Unsupported),
        }
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
        match algorithm {
            AeadAlgorithm::ChaCha20Poly1305 => chacha(key)?
                .open_detached(&Nonce::from_bytes(*nonce), associated, message, tag)
                .map_err(|_| SecurityError::Undecryptable),
            #[cfg(feature = "aes")]
            _ => aes::open(algorithm, key, nonce, associated, message, tag),
            #[cfg(not(feature = "aes"))]
            _ => Err(SecurityError::Unsupported),
        }
    }
}

impl<E: Entropy> Software<E> {
    fn x25519_secret(&mut self) -> Result<StaticSecret, SecurityError> {
        StaticSecret::generate(&mut self.entropy).map_err(|_| SecurityError::Entropy)
    }

    /// Draws scalars until `accept` takes one, as all but one in 2^32 are.
    #[cfg(any(feature = "p256", feature = "p384"))]
    fn scalar<const N: usize>(
        &mut self,
        mut accept: impl FnMut(&[u8; N]) -> Result<Group, SecurityError>,
    ) -> Result<EphemeralKey, SecurityError> {
        const DRAWS_MAX: usize = 4;
        let mut secret = Zeroizing::new([0; N]);
        for _ in 0..DRAWS_MAX {
            self.random(&mut *secret)?;
            if let Ok(group) = accept(&secret) {
                return Ok(EphemeralKey::new(group, &*secret));
            }
        }
        // A source that draws four scalars out of range in a row isn't random.
        Err(SecurityError::Entropy)
    }
}

/// Verifies a signature in software, for backends that have no better way.
///
/// # Errors
/// As [`Security::verify`].
pub fn verify(
    algorithm: SignatureAlgorithm,
    key: &PublicKeyRef<'_>,
    message: Signed<'_>,
    signature: &[u8],
) -> Result<(), SecurityError> {
    let Some(hash) = algorithm.hash() else {
        let (PublicKeyRef::Ed25519(key), Signed::Message(message)) = (key, message) else {
            return Err(SecurityError::InvalidPublicKey);
        };
        #[cfg(feature = "ed25519")]
        return ed25519(key, message, signature);
        #[cfg(not(feature = "ed25519"))]
        {
            let _ = (key, message, signature);
            return Err(SecurityError::Unsupported);
        }
    };
    let digest = match message {
        Signed::Message(message) => hash.digest(&[message]),
        Signed::Digest(digest) if digest.len() == hash.digest_bytes() => {
            crate::HashValue::from_slice(digest)
        }
        Signed::Digest(_) => return Err(SecurityError::BadSignature),
    };
    let _ = &digest;
    match (algorithm, key) {
        #[cfg(feature = "p256")]
        (SignatureAlgorithm::EcdsaP256(_), PublicKeyRef::P256(key)) => {
            nist::p256::verify(key, &digest, signature)
        }
        #[cfg(feature = "p384")]
        (SignatureAlgorithm::EcdsaP384(_), PublicKeyRef::P384(key)) => {
            nist::p384::verify(key, &digest, signature)
        }
        #[cfg(feature = "rsa")]
        (
            SignatureAlgorithm::RsaPkcs1(hash) | SignatureAlgorithm::RsaPss(hash),
            PublicKeyRef::Rsa { modulus, exponent },
        ) => {
            let padding = match algorithm {
                SignatureAlgorithm::RsaPss(_) => rsa::Padding::Pss,
                _ => rsa::Padding::Pkcs1,
            };
            let (exponent, digest) = (*exponent, &*digest);
            rsa::verify(&rsa::Claim { padding, modulus, exponent, hash, digest, signature })
        }
        _ => Err(SecurityError::InvalidPublicKey),
    }
}

#[cfg(feature = "ed25519")]
fn ed25519(key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), SecurityError> {
    let key: &[u8; 32] = key.try_into().map_err(|_| SecurityError::InvalidPublicKey)?;
    let key = ed25519_dalek::VerifyingKey::from_bytes(key)
        .map_err(|_| SecurityError::InvalidPublicKey)?;
    let signature =
        ed25519_dalek::Signature::from_slice(signature).map_err(|_| SecurityError::BadSignature)?;
    key.verify_strict(message, &signature).map_err(|_| SecurityError::BadSignature)
}

fn x25519(secret: &[u8; 32], peer: &[u8]) -> Result<AgreedSecret, SecurityError> {
    let peer = PublicKey(peer.try_into().map_err(|_| SecurityError::InvalidPublicKey)?);
    let agreed = StaticSecret::from_bytes(secret)
        .agree(&peer)
        .map_err(|_| SecurityError::InvalidPublicKey)?;
    Ok(AgreedSecret::new(&[agreed.as_bytes()]))
}

fn chacha(key: &[u8]) -> Result<AeadKey, SecurityError> {
    key.try_into().map(AeadKey::from_bytes).map_err(|_| SecurityError::InvalidSecretKey)
}
