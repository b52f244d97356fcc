//! Why a connection ended, who is to blame, and the alert that says so (RFC 8446 §6).

use core::fmt;

use tenure_crypto::SecurityError;

use crate::wire::{Full, Malformed};
use crate::x509::CertificateError;

/// An alert's description (RFC 8446 §6, RFC 7301 §3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Alert(pub u8);

/// The alerts' constants with their names.
macro_rules! alerts {
    ($($constant:ident = $number:literal $name:literal,)*) => {
        impl Alert {
            $(#[doc = concat!("`", $name, "`")] pub const $constant: Self = Self($number);)*

            /// The name in the RFC; `unknown` if it has none.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($number => $name,)*
                    _ => "unknown",
                }
            }
        }
    };
}

alerts! {
    CLOSE_NOTIFY = 0 "close_notify",
    UNEXPECTED_MESSAGE = 10 "unexpected_message",
    BAD_RECORD_MAC = 20 "bad_record_mac",
    RECORD_OVERFLOW = 22 "record_overflow",
    HANDSHAKE_FAILURE = 40 "handshake_failure",
    BAD_CERTIFICATE = 42 "bad_certificate",
    UNSUPPORTED_CERTIFICATE = 43 "unsupported_certificate",
    CERTIFICATE_REVOKED = 44 "certificate_revoked",
    CERTIFICATE_EXPIRED = 45 "certificate_expired",
    CERTIFICATE_UNKNOWN = 46 "certificate_unknown",
    ILLEGAL_PARAMETER = 47 "illegal_parameter",
    UNKNOWN_CA = 48 "unknown_ca",
    ACCESS_DENIED = 49 "access_denied",
    DECODE_ERROR = 50 "decode_error",
    DECRYPT_ERROR = 51 "decrypt_error",
    PROTOCOL_VERSION = 70 "protocol_version",
    INSUFFICIENT_SECURITY = 71 "insufficient_security",
    INTERNAL_ERROR = 80 "internal_error",
    INAPPROPRIATE_FALLBACK = 86 "inappropriate_fallback",
    USER_CANCELED = 90 "user_canceled",
    MISSING_EXTENSION = 109 "missing_extension",
    UNSUPPORTED_EXTENSION = 110 "unsupported_extension",
    UNRECOGNIZED_NAME = 112 "unrecognized_name",
    BAD_CERTIFICATE_STATUS_RESPONSE = 113 "bad_certificate_status_response",
    UNKNOWN_PSK_IDENTITY = 115 "unknown_psk_identity",
    CERTIFICATE_REQUIRED = 116 "certificate_required",
    NO_APPLICATION_PROTOCOL = 120 "no_application_protocol",
}

impl fmt::Debug for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a connection ended other than by a clean close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer did what the protocol forbids.
    Peer(Misbehaviour),
    /// The peer's certificates don't prove who it is.
    Certificate(CertificateError),
    /// The peer ended the connection by an alert.
    Alerted(Alert),
    /// The peer closed the transport without saying so (RFC 8446 §6.1).
    Truncated,
    /// The peer did not finish in time.
    Deadline,
    /// A record or message, the peer's or an own one, doesn't fit the buffer that the caller lent.
    BufferTooSmall,
    /// The caller's own certificates, keys or names can't be used.
    Configuration,
    /// An own key, the randomness or a secure element failed.
    Security(SecurityError),
}

/// An act of the peer that the protocol forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// A record or message isn't what its grammar says.
    Malformed,
    /// A message, record or content that isn't due in this state.
    Unexpected,
    /// A record that can't be decrypted.
    Undecryptable,
    /// A record longer than the limit.
    Oversized,
    /// Nothing but TLS 1.2 or older.
    OldVersion,
    /// A value that wasn't offered, or contradicts another.
    IllegalParameter,
    /// A needed extension isn't there.
    MissingExtension,
    /// An extension that wasn't offered.
    UnsolicitedExtension,
    /// No suite, group or signature algorithm in common.
    NothingInCommon,
    /// A signature, `Finished` or binder that doesn't verify.
    BadProof,
    /// A public key that is no key of its group.
    BadKeyShare,
    /// No application protocol in common.
    NoApplicationProtocol,
    /// A client certificate is required, and there is none.
    NoCertificate,
    /// More empty records, warnings, key updates or tickets than any use has for.
    Flood,
}

impl Misbehaviour {
    /// The alert that the RFC names.
    pub const fn alert(self) -> Alert {
        match self {
            Self::Malformed => Alert::DECODE_ERROR,
            Self::Unexpected | Self::Flood => Alert::UNEXPECTED_MESSAGE,
            Self::Undecryptable => Alert::BAD_RECORD_MAC,
            Self::Oversized => Alert::RECORD_OVERFLOW,
            Self::OldVersion => Alert::PROTOCOL_VERSION,
            Self::IllegalParameter | Self::BadKeyShare => Alert::ILLEGAL_PARAMETER,
            Self::MissingExtension => Alert::MISSING_EXTENSION,
            Self::UnsolicitedExtension => Alert::UNSUPPORTED_EXTENSION,
            Self::NothingInCommon => Alert::HANDSHAKE_FAILURE,
            Self::BadProof => Alert::DECRYPT_ERROR,
            Self::NoApplicationProtocol => Alert::NO_APPLICATION_PROTOCOL,
            Self::NoCertificate => Alert::CERTIFICATE_REQUIRED,
        }
    }
}

impl Error {
    /// The alert that tells the peer; none where it knows, or can't be told.
    pub const fn alert(self) -> Option<Alert> {
        match self {
            Self::Peer(misbehaviour) => Some(misbehaviour.alert()),
            Self::Certificate(error) => Some(error.alert()),
            Self::Alerted(_) | Self::Truncated => None,
            Self::Deadline => Some(Alert::USER_CANCELED),
            Self::BufferTooSmall | Self::Configuration | Self::Security(_) => {
                Some(Alert::INTERNAL_ERROR)
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(misbehaviour) => write!(f, "the peer broke the protocol: {misbehaviour}"),
            Self::Certificate(error) => write!(f, "the peer's certificate is refused: {error}"),
            Self::Alerted(alert) => write!(f, "the peer ended the connection: {alert}"),
            Self::Truncated => f.write_str("the peer closed the transport without closing TLS"),
            Self::Deadline => f.write_str("the peer did not finish in time"),
            Self::BufferTooSmall => {
                f.write_str("a record or message, the peer's or the own, exceeds the buffer")
            }
            Self::Configuration => f.write_str("the own certificates, keys or names are unusable"),
            Self::Security(error) => write!(f, "an operation with keys failed: {error}"),
        }
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a message is malformed",
            Self::Unexpected => "a message is not due in this state",
            Self::Undecryptable => "a record can't be decrypted",
            Self::Oversized => "a record is longer than the limit",
            Self::OldVersion => "it does not speak TLS 1.3",
            Self::IllegalParameter => "a value was not offered or contradicts another",
            Self::MissingExtension => "a needed extension is missing",
            Self::UnsolicitedExtension => "an extension was not offered",
            Self::NothingInCommon => "no suite, group or signature algorithm in common",
            Self::BadProof => "a signature or a Finished message does not verify",
            Self::BadKeyShare => "a key share is no key of its group",
            Self::NoApplicationProtocol => "no application protocol in common",
            Self::NoCertificate => "a client certificate is required",
            Self::Flood => {
                "more empty records, warnings, key updates or tickets than any use has for"
            }
        })
    }
}

impl core::error::Error for Error {}

impl From<Misbehaviour> for Error {
    fn from(misbehaviour: Misbehaviour) -> Self {
        Self::Peer(misbehaviour)
    }
}

impl From<Malformed> for Error {
    fn from(_: Malformed) -> Self {
        Self::Peer(Misbehaviour::Malformed)
    }
}

impl From<CertificateError> for Error {
    fn from(error: CertificateError) -> Self {
        Self::Certificate(error)
    }
}

impl From<Full> for Error {
    fn from(_: Full) -> Self {
        Self::BufferTooSmall
    }
}

impl From<SecurityError> for Error {
    fn from(error: SecurityError) -> Self {
        match error {
            SecurityError::BadSignature => Self::Peer(Misbehaviour::BadProof),
            SecurityError::InvalidPublicKey => Self::Peer(Misbehaviour::BadKeyShare),
            SecurityError::Undecryptable => Self::Peer(Misbehaviour::Undecryptable),
            SecurityError::BufferTooSmall => Self::BufferTooSmall,
            other => Self::Security(other),
        }
    }
}
