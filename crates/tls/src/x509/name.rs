//! The names that certificates are for: DNS names with wildcards (RFC 6125 §6.4), IP addresses.
//!
//! Common names are never looked at.

use core::net::IpAddr;

use super::CertificateError;
use super::der::{Der, implicit};

/// General names (RFC 5280 §4.2.1.6), by their tags.
pub(super) const MAILBOX: u8 = implicit(1);
pub(super) const DNS_NAME: u8 = implicit(2);
pub(super) const IP_ADDRESS: u8 = implicit(7);

/// Whether `tag` is that of a general name: nine there are.
pub(super) fn is_general_name(tag: u8) -> bool {
    matches!(tag, 0xa0 | MAILBOX | DNS_NAME | 0xa3 | 0xa4 | 0xa5 | 0x86 | IP_ADDRESS | 0x88)
}

/// The name that a client wants to speak to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerName<'a> {
    /// A DNS name, in ASCII, with or without the dot at its end.
    Dns(&'a str),
    /// An IPv4 address.
    Ipv4([u8; 4]),
    /// An IPv6 address.
    Ipv6([u8; 16]),
}

impl From<IpAddr> for ServerName<'_> {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::Ipv4(address.octets()),
            IpAddr::V6(address) => Self::Ipv6(address.octets()),
        }
    }
}

impl<'a> ServerName<'a> {
    /// The name as it stands in `server_name` (RFC 6066 §3): without the dot; none for addresses.
    pub(crate) fn indication(&self) -> Option<&'a str> {
        match self {
            Self::Dns(name) => Some(name.strip_suffix('.').unwrap_or(name)),
            Self::Ipv4(_) | Self::Ipv6(_) => None,
        }
    }

    /// Whether a connection can ask for it.
    pub(crate) fn is_valid(&self) -> bool {
        self.indication().is_none_or(|name| is_dns_name(name.as_bytes()))
    }
}

/// A name or an address in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlternativeName<'a> {
    /// A DNS name, perhaps with a wildcard for its first label.
    Dns(&'a str),
    /// An IPv4 address.
    Ipv4([u8; 4]),
    /// An IPv6 address.
    Ipv6([u8; 16]),
}

impl<'a> AlternativeName<'a> {
    /// The name that the general name with `tag` is, if it is of a kind that can be asked for.
    pub(super) fn from_general(tag: u8, value: &'a [u8]) -> Option<Self> {
        match tag {
            DNS_NAME => core::str::from_utf8(value).ok().map(Self::Dns),
            IP_ADDRESS => match value.try_into() {
                Ok(address) => Some(Self::Ipv4(address)),
                Err(_) => value.try_into().ok().map(Self::Ipv6),
            },
            _ => None,
        }
    }
}

/// The names of a certificate: its subject's, and the general names beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    /// A `Name`, in DER.
    pub(super) subject: &'a [u8],
    /// The content of the sequence of general names.
    pub(super) alternative: &'a [u8],
}

/// Whether `name` is labels of letters, digits, hyphens and underscores, and no address.
pub(super) fn is_dns_name(name: &[u8]) -> bool {
    let is_label = |label: &[u8]| {
        (1..=63).contains(&label.len())
            && label.iter().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
            && !label.starts_with(b"-")
            && !label.ends_with(b"-")
    };
    let mut labels = name.split(|byte| *byte == b'.');
    let is_numeric = name
        .rsplit(|byte| *byte == b'.')
        .next()
        .is_some_and(|last| last.iter().all(u8::is_ascii_digit));
    name.len() <= 253 && labels.all(is_label) && !is_numeric
}

/// Checks that a certificate of these names is for `name`.
pub(super) fn check(names: Names<'_>, name: &ServerName<'_>) -> Result<(), CertificateError> {
    let mut names = Der::new(names.alternative);
    let mut is_found = false;
    while !names.is_empty() {
        let (tag, value, _) = names.any()?;
        if !is_general_name(tag) {
            return Err(CertificateError::Malformed);
        }
        is_found |= match name {
            ServerName::Dns(_) => {
                let wanted = name.indication().unwrap_or_default().as_bytes();
                tag == DNS_NAME && dns_matches(value, wanted)
            }
            ServerName::Ipv4(address) => tag == IP_ADDRESS && value == address,
            ServerName::Ipv6(address) => tag == IP_ADDRESS && value == address,
        };
    }
    if is_found { Ok(()) } else { Err(CertificateError::NameMismatch) }
}

/// Whether `pattern` is `name`, or a wildcard for its first label alone.
fn dns_matches(pattern: &[u8], name: &[u8]) -> bool {
    if let Some(domain) = pattern.strip_prefix(b"*.") {
        // A wildcard of a single label would be of a whole top-level domain.
        let first_dot = name.iter().position(|byte| *byte == b'.');
        return domain.contains(&b'.')
            && is_dns_name(domain)
            && first_dot
                .is_some_and(|dot| dot > 0 && name[dot + 1..].eq_ignore_ascii_case(domain));
    }
    is_dns_name(pattern) && pattern.eq_ignore_ascii_case(name)
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
