//! Addresses of servers outside, as machines name them and leases grant them.
//!
//! A URL here has one reading: what different programs read differently is refused, so that what was granted is what is
//! asked for.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

use crate::serialized_as_text::serialized_as_text;
use serde::{Deserialize, Serialize};

/// The longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 512;
/// The longest name of a host, in bytes (RFC 1035 §2.3.4, without the root's dot).
const HOST_BYTES_MAX: usize = 253;
/// The longest label of a host's name, in bytes (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// A URL with a host (RFC 3986): `https://api.example.com/v1/items?new=1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Url {
    origin: Origin,
    /// The path and the query; it begins with `/`.
    path_and_query: String,
}

/// Scheme, host and port (RFC 6454 §4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// How the host is spoken to.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// Its port.
    pub port: u16,
}

/// How a host is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// HTTP over TLS (RFC 9110 §4.2.2).
    Https,
    /// HTTP that anybody on the way reads and changes (RFC 9110 §4.2.1).
    Http,
}

/// A host, by name or by address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// By its name in the DNS, in lower case.
    Name(String),
    /// By its address.
    Address(IpAddr),
}

impl Scheme {
    /// The port where there is none in the URL.
    pub const fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }

    /// The scheme's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }
}

impl Url {
    /// Scheme, host and port.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The path and the query, as a request's target has them (RFC 9112 §3.2.1).
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        path_of(&self.path_and_query)
    }

    /// The URL that `reference` means where this one is the base (RFC 3986 §5.2), as a redirect's `Location` does.
    ///
    /// # Errors
    /// [`UrlError`] as for a URL; a reference relative to the path's last segment counts as such, too.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.split('#').next().unwrap_or_default();
        if reference.contains("://") {
            return reference.parse();
        }
        if let Some(authority) = reference.strip_prefix("//") {
            return alloc::format!("{}://{authority}", self.origin.scheme.as_str()).parse();
        }
        let path_and_query = match reference.as_bytes().first() {
            None => self.path_and_query.clone(),
            Some(b'/') => reference.to_string(),
            Some(b'?') => alloc::format!("{}{reference}", self.path()),
            Some(_) => {
                let folder = self.path().rfind('/').map_or("/", |end| &self.path()[..=end]);
                alloc::format!("{folder}{reference}")
            }
        };
        check_path_and_query(&path_and_query)?;
        Ok(Self { origin: self.origin.clone(), path_and_query })
    }
}

/// The part before a query.
fn path_of(path_and_query: &str) -> &str {
    path_and_query.split('?').next().unwrap_or_default()
}

/// Splits a text into the origin and what follows it, as written.
///
/// # Errors
/// [`UrlError`]; what follows isn't looked at.
pub(crate) fn split_origin(text: &str) -> Result<(Origin, &str), UrlError> {
    if text.len() > URL_BYTES_MAX {
        return Err(UrlError::TooLong);
    }
    let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
    let scheme = match () {
        () if scheme.eq_ignore_ascii_case("https") => Scheme::Https,
        () if scheme.eq_ignore_ascii_case("http") => Scheme::Http,
        () => return Err(UrlError::Scheme),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (host, port) = split_port(authority)?;
    let port = match port {
        None | Some("") => scheme.port(),
        Some(port) => read_port(port)?,
    };
    Ok((Origin { scheme, host: host.parse()?, port }, rest))
}

/// Host and port of an authority. A user's name is no part of it (RFC 9110 §4.2.4).
fn split_port(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    if let Some(bracketed) = authority.strip_prefix('[') {
        let end = bracketed.find(']').ok_or(UrlError::Host)? + 2;
        let (host, rest) = authority.split_at(end);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(UrlError::Host),
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn read_port(text: &str) -> Result<u16, UrlError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| digits && *port != 0);
    port.ok_or(UrlError::Port)
}

impl FromStr for Origin {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match split_origin(text)? {
            (origin, "" | "/") => Ok(origin),
            _ => Err(UrlError::NotAnOrigin),
        }
    }
}

impl FromStr for Host {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if let Some(address) = text.strip_prefix('[') {
            let address = address.strip_suffix(']').ok_or(UrlError::Host)?;
            let address = address.parse::<Ipv6Addr>().map_err(|_| UrlError::Host)?;
            return Ok(Self::Address(IpAddr::V6(address)));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        let is_label = |label: &str| {
            (1..=LABEL_BYTES_MAX).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let last = text.rsplit('.').next().unwrap_or_default();
        // Others take `0x7f.1` and `2130706433` for addresses.
        let is_number = last.bytes().next().is_some_and(|first| first.is_ascii_digit());
        if text.len() > HOST_BYTES_MAX || is_number || !text.split('.').all(is_label) {
            return Err(UrlError::Host);
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

/// Checks a path and a query: the characters of RFC 3986 §3.3 and §3.4, and no segment that leads up, also
/// once percent-encoded octets are decoded, as servers do.
pub(crate) fn check_path_and_query(text: &str) -> Result<(), UrlError> {
    if text.len() > URL_BYTES_MAX {
        return Err(UrlError::TooLong);
    }
    let path = path_of(text);
    let query = text.get(path.len()..).unwrap_or_default();
    let (decoded, _) = (decode(path)?, decode(query)?);
    let mut segments = decoded.split(|octet| b"/\\".contains(octet));
    let leads_up = segments.any(|segment| matches!(segment, b"." | b".."));
    if !text.starts_with('/') || leads_up || decoded.iter().any(|octet| octet.is_ascii_control()) {
        return Err(UrlError::Path);
    }
    Ok(())
}

/// The octets that a path or a query means (RFC 3986 §2.1).
fn decode(text: &str) -> Result<Vec<u8>, UrlError> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = |at: usize| bytes.get(at).and_then(|digit| (*digit as char).to_digit(16));
        let octet = match byte {
            b'%' => {
                let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2)) else {
                    return Err(UrlError::Path);
                };
                at += 2;
                (high * 16 + low) as u8
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => byte,
            _ if b"-._~!$&'()*+,;=:@/?".contains(&byte) => byte,
            _ => return Err(UrlError::Path),
        };
        at += 1;
        decoded.push(octet);
    }
    Ok(decoded)
}

/// Whether proxies and servers of all makers read a path alike, also where one decodes it twice, drops what follows a `;`, joins
/// slashes, or takes other characters for dots and slashes: then it is below each of its own beginnings.
pub(crate) fn has_one_reading(path: &str) -> bool {
    let decoded = decode(path).unwrap_or_default();
    // Octets that are no UTF-8 are overlong forms of dots and slashes to some.
    let Ok(path) = core::str::from_utf8(&decoded) else { return false };
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last_and_empty = segment.is_empty() && segments.peek().is_none();
        if !is_last_and_empty && !is_plain_segment(segment) {
            return false;
        }
    }
    true
}

/// Whether a segment, decoded, is a name to everybody.
fn is_plain_segment(segment: &str) -> bool {
    // What stays behind the first of these is a parameter, a query or a fragment to some, who drop it.
    let name = segment.split([';', '?', '#']).next().unwrap_or_default();
    // Some take `+` for a space, and some drop spaces.
    let bare = name.trim_start_matches(['+', ' ']);
    let is_hidden = bare.starts_with('.');
    let behind_dots = bare.trim_start_matches('.').chars().next();
    let is_named =
        behind_dots.is_some_and(|first| first.is_ascii_alphanumeric() || "-_".contains(first));
    // Of `%` some see what it would be decoded once more; a backslash is a slash to some. Windows drops dots and spaces at an end.
    !bare.is_empty()
        && !name.starts_with(' ')
        && !name.ends_with([' ', '.'])
        && (!is_hidden || (is_named && bare.len() == name.len()))
        && !segment.contains(['%', '\\'])
        && segment.chars().all(|character| character.is_ascii() || is_letter(character))
}

/// Whether a character is a letter of a script in use, and not one that is changed into dots, slashes or the like where text is
/// brought into another form (Unicode's compatibility forms, code pages of Windows). The ranges are those of letters alone.
fn is_letter(character: char) -> bool {
    const LETTERS: [(u32, u32); 16] = [
        (0xC0, 0xD6),
        (0xD8, 0xF6),
        (0xF8, 0x17F),
        (0x386, 0x386),
        (0x388, 0x3CE),
        (0x400, 0x52F),
        (0x5D0, 0x5EA),
        (0x620, 0x64A),
        (0x904, 0x939),
        (0xE01, 0xE2E),
        (0x10D0, 0x10FA),
        (0x1EA0, 0x1EF9),
        (0x3041, 0x3096),
        (0x30A1, 0x30FA),
        (0x4E00, 0x9FFF),
        (0xAC00, 0xD7A3),
    ];
    let code = u32::from(character);
    LETTERS.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (origin, rest) = split_origin(text)?;
        let path_and_query = match rest.as_bytes().first() {
            // RFC 9110 §4.2.3: an empty path is the same as `/`.
            None | Some(b'?') => alloc::format!("/{rest}"),
            Some(_) => rest.to_string(),
        };
        check_path_and_query(&path_and_query)?;
        Ok(Self { origin, path_and_query })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl Origin {
    /// Host and port as a request's `Host` has them (RFC 9110 §7.2): without the scheme's own port.
    pub fn authority(&self) -> impl fmt::Display {
        Authority(self)
    }
}

struct Authority<'a>(&'a Origin);

impl fmt::Display for Authority<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { scheme, host, port } = self.0;
        write!(f, "{host}")?;
        if *port == scheme.port() { Ok(()) } else { write!(f, ":{port}") }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path_and_query)
    }
}

serialized_as_text!(Url);

/// Why a text is no URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// It is longer than a URL may be.
    TooLong,
    /// It begins with neither `https://` nor `http://`.
    Scheme,
    /// It has no host, or one that is neither a name nor an address.
    Host,
    /// It has no port after the host and a colon.
    Port,
    /// Its path or query has a character that none has, or a segment `.` or `..`.
    Path,
    /// It has more than scheme, host and port.
    NotAnOrigin,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "a URL has at most {URL_BYTES_MAX} characters"),
            Self::Scheme => f.write_str("a URL begins with https:// or http://"),
            Self::Host => f.write_str(
                "a URL's host is a name (api.example.com), or an address (192.0.2.1, [2001:db8::1])",
            ),
            Self::Port => f.write_str("a port is a number from 1 to 65535"),
            Self::Path => f.write_str(
                "a URL's path has no spaces, no `#`, no segment `.` or `..`; other characters stand as %XX",
            ),
            Self::NotAnOrigin => {
                f.write_str("scheme, host and port stand alone, as in https://api.example.com:8443")
            }
        }
    }
}

impl core::error::Error for UrlError {}

#[cfg(test)]
mod tests;
