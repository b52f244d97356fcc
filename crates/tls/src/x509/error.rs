//! Why a certificate or a chain is refused: the rule that it breaks.

use core::fmt;

use crate::Alert;

/// The rule that a certificate or a chain breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// It is not DER, or not a certificate (RFC 5280 §4.1).
    Malformed,
    /// Not of version 3.
    UnsupportedVersion,
    /// An extension stands there twice (§4.2).
    DuplicateExtension,
    /// A critical extension that isn't known (§4.2).
    UnknownCriticalExtension,
    /// A signature algorithm that isn't supported, or that its two places name differently
    /// (§4.1.1.2).
    UnsupportedSignatureAlgorithm,
    /// A signature over a digest of MD5 or SHA-1, whose collisions are known (RFC 8446 §4.4.2.4).
    BrokenHash,
    /// A kind or length of public key that isn't supported.
    UnsupportedKey,
    /// The signature of the issuer doesn't verify.
    BadSignature,
    /// Not valid yet (§4.1.2.5).
    NotYetValid,
    /// Not valid any more (§4.1.2.5).
    Expired,
    /// This device doesn't know the time, and its owner didn't choose to trust pinned keys alone.
    TimeUnknown,
    /// No anchor and no certificate of the chain issued it.
    UnknownIssuer,
    /// Its issuer is no authority: `CA:FALSE`, or no basic constraints (§4.2.1.9).
    IssuerNotAuthority,
    /// It is an authority and not a server or client.
    AuthorityAsLeaf,
    /// More authorities below one than it allows (§4.2.1.9).
    PathTooLong,
    /// More certificates than any chain needs.
    TooManyCertificates,
    /// To judge it takes more work than any chain needs: more paths, signatures or compared names.
    TooMuchWork,
    /// Its key may not sign certificates, or not make signatures (§4.2.1.3).
    KeyUsage,
    /// Its key isn't for servers, or for clients (§4.2.1.12).
    ExtendedKeyUsage,
    /// A name that an authority above may not vouch for (§4.2.1.10).
    NameConstraint,
    /// A name constraint of a kind that can't be evaluated.
    UnsupportedNameConstraint,
    /// It isn't for the name that was asked for.
    NameMismatch,
    /// It isn't one of the keys that are trusted.
    NotPinned,
    /// There is no certificate.
    Missing,
}

impl CertificateError {
    /// The alert that the RFC names (RFC 8446 §6.2).
    pub const fn alert(self) -> Alert {
        match self {
            Self::UnsupportedVersion
            | Self::UnsupportedSignatureAlgorithm
            | Self::UnsupportedKey => Alert::UNSUPPORTED_CERTIFICATE,
            Self::NotYetValid | Self::Expired => Alert::CERTIFICATE_EXPIRED,
            Self::UnknownIssuer => Alert::UNKNOWN_CA,
            Self::TimeUnknown | Self::NotPinned => Alert::CERTIFICATE_UNKNOWN,
            Self::Missing => Alert::DECODE_ERROR,
            _ => Alert::BAD_CERTIFICATE,
        }
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is not a certificate in DER",
            Self::UnsupportedVersion => "it is not of version 3",
            Self::DuplicateExtension => "an extension stands there twice",
            Self::UnknownCriticalExtension => "a critical extension is unknown",
            Self::UnsupportedSignatureAlgorithm => "its signature algorithm is not supported",
            Self::BrokenHash => "its signature is over MD5 or SHA-1",
            Self::UnsupportedKey => "its kind or length of key is not supported",
            Self::BadSignature => "the signature of its issuer does not verify",
            Self::NotYetValid => "it is not valid yet",
            Self::Expired => "it has expired",
            Self::TimeUnknown => "this device does not know the time",
            Self::UnknownIssuer => "nobody who is trusted issued it",
            Self::IssuerNotAuthority => "its issuer is not an authority",
            Self::AuthorityAsLeaf => "it is an authority",
            Self::PathTooLong => "there are more authorities than one above allows",
            Self::TooManyCertificates => "the chain has too many certificates",
            Self::TooMuchWork => "the chain takes too much work to judge",
            Self::KeyUsage => "its key usage does not allow that",
            Self::ExtendedKeyUsage => "its extended key usage does not allow that",
            Self::NameConstraint => "an authority above may not vouch for its name",
            Self::UnsupportedNameConstraint => "a name constraint is of an unsupported kind",
            Self::NameMismatch => "it is for another name",
            Self::NotPinned => "its key is not one of those that are trusted",
            Self::Missing => "there is none",
        })
    }
}

impl core::error::Error for CertificateError {}
