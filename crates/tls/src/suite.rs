//! The numbers on the wire of suites, groups and signature algorithms (RFC 8446 §B.3, §B.4).

use tenure_crypto::{AeadAlgorithm, Group, HashAlgorithm, Security, SignatureAlgorithm};

/// A cipher suite of TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `TLS_CHACHA20_POLY1305_SHA256`
    ChaCha20Poly1305Sha256,
    /// `TLS_AES_128_GCM_SHA256`
    Aes128GcmSha256,
    /// `TLS_AES_256_GCM_SHA384`
    #[cfg(feature = "sha512")]
    Aes256GcmSha384,
}

impl Suite {
    /// All of them, in the order in which a processor without AES instructions likes them.
    pub const ALL: &'static [Self] = &[
        Self::ChaCha20Poly1305Sha256,
        Self::Aes128GcmSha256,
        #[cfg(feature = "sha512")]
        Self::Aes256GcmSha384,
    ];

    /// The name in the RFC.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChaCha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
            Self::Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
            #[cfg(feature = "sha512")]
            Self::Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
        }
    }

    /// How records are protected.
    pub const fn aead(self) -> AeadAlgorithm {
        match self {
            Self::ChaCha20Poly1305Sha256 => AeadAlgorithm::ChaCha20Poly1305,
            Self::Aes128GcmSha256 => AeadAlgorithm::Aes128Gcm,
            #[cfg(feature = "sha512")]
            Self::Aes256GcmSha384 => AeadAlgorithm::Aes256Gcm,
        }
    }

    /// The hash of the transcript and the key schedule.
    pub const fn hash(self) -> HashAlgorithm {
        match self {
            Self::ChaCha20Poly1305Sha256 | Self::Aes128GcmSha256 => HashAlgorithm::Sha256,
            #[cfg(feature = "sha512")]
            Self::Aes256GcmSha384 => HashAlgorithm::Sha384,
        }
    }

    /// The number in the RFC.
    pub const fn number(self) -> u16 {
        match self {
            Self::ChaCha20Poly1305Sha256 => 0x1303,
            Self::Aes128GcmSha256 => 0x1301,
            #[cfg(feature = "sha512")]
            Self::Aes256GcmSha384 => 0x1302,
        }
    }

    /// The suite with `number`, if it is spoken.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|suite| suite.number() == number)
    }
}

/// The number of `group` in the RFC.
pub const fn group_number(group: Group) -> u16 {
    match group {
        Group::Secp256r1 => 0x0017,
        Group::Secp384r1 => 0x0018,
        Group::X25519 => 0x001d,
        Group::X25519MlKem768 => 0x11ec,
    }
}

pub(crate) fn group_from_number(number: u16) -> Option<Group> {
    [Group::Secp256r1, Group::Secp384r1, Group::X25519, Group::X25519MlKem768]
        .into_iter()
        .find(|group| group_number(*group) == number)
}

/// The signature algorithms with their numbers, best first for a small device.
const SCHEMES: &[(u16, SignatureAlgorithm)] = &[
    (0x0403, SignatureAlgorithm::EcdsaP256(HashAlgorithm::Sha256)),
    (0x0807, SignatureAlgorithm::Ed25519),
    #[cfg(feature = "sha512")]
    (0x0503, SignatureAlgorithm::EcdsaP384(HashAlgorithm::Sha384)),
    (0x0804, SignatureAlgorithm::RsaPss(HashAlgorithm::Sha256)),
    #[cfg(feature = "sha512")]
    (0x0805, SignatureAlgorithm::RsaPss(HashAlgorithm::Sha384)),
    #[cfg(feature = "sha512")]
    (0x0806, SignatureAlgorithm::RsaPss(HashAlgorithm::Sha512)),
    (0x0401, SignatureAlgorithm::RsaPkcs1(HashAlgorithm::Sha256)),
    #[cfg(feature = "sha512")]
    (0x0501, SignatureAlgorithm::RsaPkcs1(HashAlgorithm::Sha384)),
    #[cfg(feature = "sha512")]
    (0x0601, SignatureAlgorithm::RsaPkcs1(HashAlgorithm::Sha512)),
];

/// The numbers of what `security` can verify, to be offered.
pub(crate) fn offered_schemes(security: &impl Security) -> impl Iterator<Item = u16> {
    SCHEMES
        .iter()
        .filter(|(_, algorithm)| security.has_signature(*algorithm))
        .map(|(number, _)| *number)
}

/// The name of `algorithm` in the RFC (§4.2.3); none if no connection uses it.
pub const fn scheme_name(algorithm: SignatureAlgorithm) -> Option<&'static str> {
    use HashAlgorithm::Sha256;
    #[cfg(feature = "sha512")]
    use HashAlgorithm::{Sha384, Sha512};
    Some(match algorithm {
        SignatureAlgorithm::EcdsaP256(Sha256) => "ecdsa_secp256r1_sha256",
        SignatureAlgorithm::Ed25519 => "ed25519",
        SignatureAlgorithm::RsaPss(Sha256) => "rsa_pss_rsae_sha256",
        SignatureAlgorithm::RsaPkcs1(Sha256) => "rsa_pkcs1_sha256",
        #[cfg(feature = "sha512")]
        SignatureAlgorithm::EcdsaP384(Sha384) => "ecdsa_secp384r1_sha384",
        #[cfg(feature = "sha512")]
        SignatureAlgorithm::RsaPss(Sha384) => "rsa_pss_rsae_sha384",
        #[cfg(feature = "sha512")]
        SignatureAlgorithm::RsaPss(Sha512) => "rsa_pss_rsae_sha512",
        #[cfg(feature = "sha512")]
        SignatureAlgorithm::RsaPkcs1(Sha384) => "rsa_pkcs1_sha384",
        #[cfg(feature = "sha512")]
        SignatureAlgorithm::RsaPkcs1(Sha512) => "rsa_pkcs1_sha512",
        _ => return None,
    })
}

pub(crate) fn scheme_number(algorithm: SignatureAlgorithm) -> Option<u16> {
    SCHEMES.iter().find(|(_, it)| *it == algorithm).map(|(number, _)| *number)
}

/// The algorithm of a `CertificateVerify`; PKCS#1 is for certificates alone (RFC 8446 §4.2.3).
pub(crate) fn handshake_scheme(number: u16) -> Option<SignatureAlgorithm> {
    SCHEMES
        .iter()
        .find(|(it, algorithm)| {
            *it == number && !matches!(algorithm, SignatureAlgorithm::RsaPkcs1(_))
        })
        .map(|(_, algorithm)| *algorithm)
}
