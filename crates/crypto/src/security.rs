//! The security abstraction layer's trait: what a protocol asks of whatever holds keys.
//!
//! A backend implements [`Security`]: [`Software`](crate::Software) in plain code, a secure element
//! for the operations that it has, or a mix of both. Hashes, HMAC and HKDF are not in the trait: a
//! transcript is hashed in small pieces and copied in the middle, which no element's engine does, so
//! they are always [software](crate::HashAlgorithm).
//!
//! Operations that use a secret take a time that doesn't depend on it. Verification may vary.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::HashAlgorithm;

/// How many bytes an AEAD of [`AeadAlgorithm`] adds.
pub const AEAD_TAG_BYTES: usize = 16;
/// The longest agreed secret, in bytes.
pub const AGREED_BYTES_MAX: usize = 64;
/// The longest signature that [`Security::sign`] makes, in bytes: RSA with 4,096 bits, or ECDSA on P-384 in DER.
pub const SIGNATURE_BYTES_MAX: usize = if cfg!(feature = "rsa-signing") { 512 } else { 104 };
/// The longest secret of an agreement under way, in bytes.
const EPHEMERAL_BYTES_MAX: usize = if cfg!(feature = "mlkem") { 96 } else { 48 };

/// A holder of keys, as TLS and the sessions between machines need it.
pub trait Security {
    /// Whether key agreement works in `group`.
    fn has_group(&self, group: Group) -> bool;

    /// Whether signatures of `algorithm` can be verified.
    fn has_signature(&self, algorithm: SignatureAlgorithm) -> bool;

    /// Whether `algorithm` can seal and open.
    fn has_aead(&self, algorithm: AeadAlgorithm) -> bool;

    /// Fills `bytes` with random bytes fit for keys.
    ///
    /// # Errors
    /// [`SecurityError::Entropy`] or [`SecurityError::Hardware`]; nothing in `bytes` may be used then.
    fn random(&mut self, bytes: &mut [u8]) -> Result<(), SecurityError>;

    /// Makes an ephemeral key in `group`, writes its public part to the front of `public` and
    /// returns the length of that, [`Group::share_bytes`].
    ///
    /// # Errors
    /// [`SecurityError::Unsupported`], [`SecurityError::BufferTooSmall`], or no randomness.
    fn begin_agreement(
        &mut self,
        group: Group,
        public: &mut [u8],
    ) -> Result<(EphemeralKey, usize), SecurityError>;

    /// Agrees on a secret with the holder of `peer`, which answers what `key` began.
    ///
    /// # Errors
    /// [`SecurityError::InvalidPublicKey`] if `peer` is no key of the group or a useless one.
    fn finish_agreement(
        &mut self,
        key: &EphemeralKey,
        peer: &[u8],
    ) -> Result<AgreedSecret, SecurityError>;

    /// Answers the public part `peer` that another began with: writes what it needs to finish to the
    /// front of `public`, and returns the length of that and the secret.
    ///
    /// # Errors
    /// As [`Self::begin_agreement`] and [`Self::finish_agreement`].
    fn answer_agreement(
        &mut self,
        group: Group,
        peer: &[u8],
        public: &mut [u8],
    ) -> Result<(usize, AgreedSecret), SecurityError> {
        let (key, length) = self.begin_agreement(group, public)?;
        Ok((length, self.finish_agreement(&key, peer)?))
    }

    /// Signs `message` with `key`, writes the signature to the front of `signature` and returns its
    /// length: ECDSA in DER, Ed25519 as its 64 bytes.
    ///
    /// # Errors
    /// [`SecurityError::Unsupported`], [`SecurityError::BufferTooSmall`] if `signature` has less than
    /// [`SIGNATURE_BYTES_MAX`] bytes, [`SecurityError::InvalidSecretKey`].
    fn sign(
        &mut self,
        key: &PrivateKey<'_>,
        message: &[u8],
        signature: &mut [u8],
    ) -> Result<usize, SecurityError>;

    /// Checks that the holder of `key` made `signature` of `message`.
    ///
    /// # Errors
    /// [`SecurityError::BadSignature`], [`SecurityError::InvalidPublicKey`] if `key` is no key of the
    /// algorithm, [`SecurityError::Unsupported`].
    fn verify(
        &mut self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyRef<'_>,
        message: Signed<'_>,
        signature: &[u8],
    ) -> Result<(), SecurityError>;

    /// Encrypts `message` where it stands and returns its tag, which also covers `associated`.
    /// `key` has [`AeadAlgorithm::key_bytes`]; nobody may use a nonce twice with it.
    ///
    /// # Errors
    /// [`SecurityError::Unsupported`], [`SecurityError::InvalidSecretKey`] if `key` has another length.
    fn seal(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_BYTES], SecurityError>;

    /// Decrypts `message`, whose tag is `tag`, where it stands.
    ///
    /// # Errors
    /// [`SecurityError::Undecryptable`] if anything is wrong; `message` is not plaintext then.
    /// Otherwise as [`Self::seal`].
    fn open(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
        tag: &[u8; AEAD_TAG_BYTES],
    ) -> Result<(), SecurityError>;
}

/// A group for key agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Curve25519 (RFC 7748).
    X25519,
    /// NIST P-256 (SEC 2), points uncompressed (SEC 1).
    Secp256r1,
    /// NIST P-384.
    Secp384r1,
    /// ML-KEM-768 (FIPS 203) and X25519, one after the other.
    X25519MlKem768,
}

impl Group {
    /// The name in IANA's registry of TLS groups.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519 => "x25519",
            Self::Secp256r1 => "secp256r1",
            Self::Secp384r1 => "secp384r1",
            Self::X25519MlKem768 => "X25519MLKEM768",
        }
    }

    /// The length of the public part that begins an agreement, in bytes.
    pub const fn share_bytes(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::Secp256r1 => 65,
            Self::Secp384r1 => 97,
            Self::X25519MlKem768 => 1184 + 32,
        }
    }

    /// The length of the public part that answers, in bytes.
    pub const fn answer_bytes(self) -> usize {
        match self {
            Self::X25519MlKem768 => 1088 + 32,
            other => other.share_bytes(),
        }
    }
}

/// An AEAD with nonces of 12 bytes and tags of [`AEAD_TAG_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AeadAlgorithm {
    /// RFC 8439.
    ChaCha20Poly1305,
    /// NIST SP 800-38D with AES-128.
    Aes128Gcm,
    /// NIST SP 800-38D with AES-256.
    Aes256Gcm,
}

impl AeadAlgorithm {
    /// The length of a key, in bytes.
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::ChaCha20Poly1305 | Self::Aes256Gcm => 32,
        }
    }
}

/// A signature algorithm, with its hash and, for ECDSA, its curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// ECDSA (FIPS 186-5) on P-256, signatures in DER.
    EcdsaP256(HashAlgorithm),
    /// ECDSA on P-384, signatures in DER.
    EcdsaP384(HashAlgorithm),
    /// RFC 8032, over the message itself.
    Ed25519,
    /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
    RsaPkcs1(HashAlgorithm),
    /// RSASSA-PSS (RFC 8017 §8.1), MGF1 with the same hash, salt as long as its digest.
    RsaPss(HashAlgorithm),
}

impl SignatureAlgorithm {
    /// The hash of what is signed; none where the message is signed itself.
    pub const fn hash(self) -> Option<HashAlgorithm> {
        match self {
            Self::Ed25519 => None,
            Self::EcdsaP256(hash)
            | Self::EcdsaP384(hash)
            | Self::RsaPkcs1(hash)
            | Self::RsaPss(hash) => Some(hash),
        }
    }
}

/// The subject of a signature: the message, or its digest where it isn't in memory any more.
#[derive(Clone, Copy, Debug)]
pub enum Signed<'a> {
    /// The message itself; any algorithm takes it.
    Message(&'a [u8]),
    /// Its digest under the hash of the algorithm; not for Ed25519.
    Digest(&'a [u8]),
}

/// A public key that verifies, as it stands in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicKeyRef<'a> {
    /// A point of P-256, uncompressed: 65 bytes.
    P256(&'a [u8]),
    /// A point of P-384, uncompressed: 97 bytes.
    P384(&'a [u8]),
    /// 32 bytes.
    Ed25519(&'a [u8]),
    /// A modulus without leading zeros and an odd exponent.
    Rsa {
        /// Big-endian, 2,048 to 4,096 bits.
        modulus: &'a [u8],
        /// The public exponent.
        exponent: u32,
    },
}

/// A private key that signs, or the place where it is kept.
#[derive(Clone, Copy)]
pub enum PrivateKey<'a> {
    /// A scalar of P-256, big-endian; signs with SHA-256.
    P256(&'a [u8; 32]),
    /// A scalar of P-384, big-endian; signs with SHA-384.
    P384(&'a [u8; 48]),
    /// The 32-byte secret of RFC 8032 §5.1.5.
    Ed25519(&'a [u8; 32]),
    /// An RSA key; signs by RSASSA-PSS with SHA-256.
    #[cfg(feature = "rsa-signing")]
    Rsa(RsaPrivateKey<'a>),
    /// A P-256 key that never leaves a secure element, by its slot; signs with SHA-256.
    ElementP256 {
        /// The element's key slot.
        slot: u8,
    },
}

/// The numbers of an RSA key (RFC 8017 §3.2), big-endian without leading zeros: 2,048 to 4,096 bits, a multiple of 64,
/// and two primes of half the length.
#[cfg(feature = "rsa-signing")]
#[derive(Clone, Copy)]
pub struct RsaPrivateKey<'a> {
    /// The modulus, n.
    pub modulus: &'a [u8],
    /// The public exponent, e.
    pub exponent: u32,
    /// The first prime, p.
    pub p: &'a [u8],
    /// The second prime, q.
    pub q: &'a [u8],
    /// The private exponent modulo p - 1, dP.
    pub p_exponent: &'a [u8],
    /// The private exponent modulo q - 1, dQ.
    pub q_exponent: &'a [u8],
    /// The inverse of q modulo p, qInv.
    pub q_inverse: &'a [u8],
}

impl PrivateKey<'_> {
    /// The algorithm that the key signs with; none if this build lacks its hash.
    pub const fn algorithm(&self) -> Option<SignatureAlgorithm> {
        match self {
            Self::P256(_) | Self::ElementP256 { .. } => {
                Some(SignatureAlgorithm::EcdsaP256(HashAlgorithm::Sha256))
            }
            #[cfg(feature = "sha512")]
            Self::P384(_) => Some(SignatureAlgorithm::EcdsaP384(HashAlgorithm::Sha384)),
            #[cfg(not(feature = "sha512"))]
            Self::P384(_) => None,
            Self::Ed25519(_) => Some(SignatureAlgorithm::Ed25519),
            #[cfg(feature = "rsa-signing")]
            Self::Rsa(_) => Some(SignatureAlgorithm::RsaPss(HashAlgorithm::Sha256)),
        }
    }
}

impl core::fmt::Debug for PrivateKey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PrivateKey({:?})", self.algorithm())
    }
}

/// The secret of an agreement under way, or what its backend finds it by.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct EphemeralKey {
    #[zeroize(skip)]
    group: Group,
    bytes: [u8; EPHEMERAL_BYTES_MAX],
}

impl EphemeralKey {
    /// A key of `group` that keeps `secret`; for backends.
    ///
    /// # Panics
    /// If `secret` is longer than any group's.
    pub fn new(group: Group, secret: &[u8]) -> Self {
        let mut bytes = [0; EPHEMERAL_BYTES_MAX];
        bytes[..secret.len()].copy_from_slice(secret);
        Self { group, bytes }
    }

    /// The group.
    pub fn group(&self) -> Group {
        self.group
    }

    /// The first `N` bytes of what [`Self::new`] kept; for backends.
    ///
    /// # Panics
    /// If `N` is longer than any group's secret.
    pub fn secret<const N: usize>(&self) -> &[u8; N] {
        self.bytes.first_chunk().expect("a backend asks for no more than it kept")
    }
}

impl core::fmt::Debug for EphemeralKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "EphemeralKey({:?})", self.group)
    }
}

/// A shared secret of two parties. Not a key: it goes through a key derivation first.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct AgreedSecret {
    bytes: [u8; AGREED_BYTES_MAX],
    length: u8,
}

impl AgreedSecret {
    /// The secret of `parts`, one after the other; for backends, which wipe theirs.
    ///
    /// # Panics
    /// If they are longer than [`AGREED_BYTES_MAX`].
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut secret = Self { bytes: [0; AGREED_BYTES_MAX], length: 0 };
        for part in parts {
            let at = usize::from(secret.length);
            secret.bytes[at..at + part.len()].copy_from_slice(part);
            secret.length += part.len() as u8;
        }
        secret
    }

    /// The input for a key derivation.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl core::fmt::Debug for AgreedSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "AgreedSecret({} bytes)", self.length)
    }
}

/// Why an operation did not come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityError {
    /// The backend doesn't have this algorithm, group or kind of key.
    Unsupported,
    /// There is no randomness.
    Entropy,
    /// The caller's buffer is too small for the result.
    BufferTooSmall,
    /// The peer's public key is none, or of small order.
    InvalidPublicKey,
    /// The own key is none, or has the wrong length.
    InvalidSecretKey,
    /// Nobody with that key signed that.
    BadSignature,
    /// A sealed message was not made with this key, nonce and associated data, or was changed.
    Undecryptable,
    /// The secure element doesn't answer, or not as it should.
    Hardware,
}

impl core::fmt::Display for SecurityError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Unsupported => "the algorithm is not supported",
            Self::Entropy => "there is no randomness",
            Self::BufferTooSmall => "the buffer is too small",
            Self::InvalidPublicKey => "the peer's public key is invalid",
            Self::InvalidSecretKey => "the own key is invalid",
            Self::BadSignature => "the signature does not verify",
            Self::Undecryptable => "could not be decrypted",
            Self::Hardware => "the secure element failed",
        })
    }
}

impl core::error::Error for SecurityError {}
