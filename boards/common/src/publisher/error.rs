//! Why a publisher doesn't start, and why a connection ended.

use core::fmt;

use smoltcp::wire::Ipv4Address;
use tenure_crypto::SecurityError;
use tenure_mqtt::Fault;
use tenure_tls::LinkError;
use tenure_tls::x509::CertificateError;

use super::SLOT;
use crate::settings::SettingsError;

/// Why a publisher doesn't start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublisherError {
    /// The machine lacks this; the emulator's argument for it stands in brackets.
    Absent(&'static str),
    /// The settings are missing or wrong.
    Settings(SettingsError),
    /// The secure element doesn't do what it is for.
    Element(SecurityError),
    /// The element has no key in the slot, though there is a certificate for one, or makes none.
    NoKey(SecurityError),
    /// An authority's certificate can't be used.
    Authority(CertificateError),
    /// There is neither an authority with a date to judge by nor a key of the broker.
    NoTrust,
    /// There is no certificate for the element's key, which was shown on the console.
    NoCertificate,
    /// The own certificate can't be used.
    Certificate(CertificateError),
    /// The own certificate is for another key than the element's, which was shown on the console.
    OtherKey,
}

impl fmt::Display for PublisherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(what) => write!(f, "there is no {what}"),
            Self::Settings(error) => error.fmt(f),
            Self::Element(error) => {
                write!(f, "{error}; `element` of the settings says at which bus it is")
            }
            Self::NoKey(error) => write!(
                f,
                "there is no key in slot {SLOT} of the secure element: {error}; without a certificate in flash it makes one, if the slot isn't locked"
            ),
            Self::Authority(error) => {
                write!(f, "an authority's certificate in flash can't be used: {error}")
            }
            Self::NoTrust => f.write_str(
                "no broker can be trusted: write an authority's certificate and `date`, or `broker-key`, to the flash",
            ),
            Self::NoCertificate => f.write_str(
                "there is no client certificate in flash: have one made for the key above, and write it there",
            ),
            Self::Certificate(error) => {
                write!(f, "the client certificate in flash can't be used: {error}")
            }
            Self::OtherKey => f.write_str(
                "the client certificate in flash is for another key: have one made for the key above",
            ),
        }
    }
}

impl core::error::Error for PublisherError {}

impl From<SettingsError> for PublisherError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

/// Why there is no connection, or none any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setback {
    /// The broker's name is none that can be asked for.
    BadName,
    /// Nobody knows the broker's name.
    NoSuchName,
    /// Nobody listens there, or nobody answers.
    Unreachable(Ipv4Address),
    /// TCP or TLS ended.
    Link(LinkError<Broken>),
    /// The broker closed the connection.
    Closed,
    /// MQTT ended.
    Mqtt(Fault),
}

impl Setback {
    /// An error of TLS alone.
    pub(super) fn tls(error: tenure_tls::Error) -> Self {
        Self::Link(LinkError::Tls(error))
    }
}

impl fmt::Display for Setback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => f.write_str("the broker's name isn't one of the DNS"),
            Self::NoSuchName => f.write_str("the DNS has no address for the broker's name"),
            Self::Unreachable(address) => write!(f, "no connection to {address}"),
            Self::Link(error) => error.fmt(f),
            Self::Closed => f.write_str("the broker closed the connection"),
            Self::Mqtt(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for Setback {}

impl From<LinkError<Broken>> for Setback {
    fn from(error: LinkError<Broken>) -> Self {
        Self::Link(error)
    }
}

/// The connection broke off: it was reset, or the other side acknowledged nothing for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection broke off")
    }
}

impl core::error::Error for Broken {}
