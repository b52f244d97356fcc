//! How rights name servers outside.

use alloc::string::{String, ToString};
use core::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::serialized_as_text::serialized_as_text;
use crate::url::{
    Origin, URL_BYTES_MAX, Url, UrlError, check_path_and_query, has_one_reading, split_origin,
};

/// The longest name of a method, in bytes.
const METHOD_BYTES_MAX: usize = 16;

/// Requests to servers outside.
///
/// | text | requests |
/// |---|---|
/// | `https://api.example.com/v1/items` | any method, that path, with any query |
/// | `https://api.example.com/v1/*` | any method, all paths that begin so and that have one reading |
/// | `GET https://api.example.com/*` | that method alone |
/// | `http://192.0.2.1:8080/*` | without TLS, at an address and a port |
///
/// It is kept as text in its one form, so that a device which reaches no servers needs no URLs. What came as bytes in
/// another form matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReachPattern(String);

/// A method of HTTP (RFC 9110 §9.1), in capital letters. `CONNECT` and `TRACE` are none here: one would lead anywhere, the
/// other returns what a proxy adds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(String);

/// A machine's request, as far as grants look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit<'a> {
    /// By which method.
    pub method: &'a Method,
    /// At which URL.
    pub url: &'a Url,
}

impl Method {
    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it changes nothing at the server (RFC 9110 §9.2.1).
    pub fn is_safe(&self) -> bool {
        matches!(self.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

impl FromStr for Method {
    type Err = ReachError;

    fn from_str(text: &str) -> Result<Self, ReachError> {
        let is_word = (1..=METHOD_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_word || matches!(text, "CONNECT" | "TRACE") {
            return Err(ReachError::Method);
        }
        Ok(Self(text.to_string()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

serialized_as_text!(Method);

impl fmt::Display for Visit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.url.origin(), self.url.path())
    }
}

impl ReachPattern {
    /// Whether `visit` is one of them, however the server and what stands before it read its path.
    pub fn matches(&self, visit: &Visit<'_>) -> bool {
        let (method, place) = self.parts();
        let (origin, path) = (visit.url.origin().to_string(), visit.url.path());
        let asked = alloc::format!("{origin}{path}");
        if method.is_some_and(|method| method != visit.method.as_str()) || !is_within(&asked, place)
        {
            return false;
        }
        // A whole server is no bound that another reading would leave.
        is_all_of(place, &origin) || has_one_reading(path)
    }

    /// Whether these are all requests to a server, by any method.
    pub fn is_all_of(&self, origin: &Origin) -> bool {
        let (method, place) = self.parts();
        method.is_none() && is_all_of(place, &origin.to_string())
    }

    /// Whether all that `other` matches are surely among them.
    pub fn covers(&self, other: &Self) -> bool {
        let ((method, place), (other_method, other_place)) = (self.parts(), other.parts());
        (method.is_none() || method == other_method) && is_within(other_place, place)
    }

    /// The method, if there is one, and the place.
    fn parts(&self) -> (Option<&str>, &str) {
        match self.0.split_once(' ') {
            Some((method, place)) => (Some(method), place),
            None => (None, &self.0),
        }
    }
}

/// Whether `place` has all paths of the server.
fn is_all_of(place: &str, origin: &str) -> bool {
    place.strip_prefix(origin) == Some("/*")
}

/// Whether `asked`, a place or all that begin so, lies within `place`, which has its `/` behind the host.
fn is_within(asked: &str, place: &str) -> bool {
    place.strip_suffix('*').map_or(asked == place, |begin| asked.starts_with(begin))
}

impl FromStr for ReachPattern {
    type Err = ReachError;

    fn from_str(text: &str) -> Result<Self, ReachError> {
        let (method, url) = match text.split_once(' ') {
            Some((method, url)) => (Some(method.parse::<Method>()?), url),
            None => (None, text),
        };
        let (origin, path) = split_origin(url).map_err(ReachError::Url)?;
        let (path, star) = match path.strip_suffix('*') {
            Some(path) => (path, "*"),
            None => (path, ""),
        };
        if path.contains(['*', '?']) || !path.starts_with('/') {
            return Err(ReachError::Path);
        }
        check_path_and_query(path).map_err(ReachError::Url)?;
        // With what may stand in place of the star.
        let within = if star.is_empty() { "" } else { "x" };
        if !has_one_reading(&alloc::format!("{path}{within}")) {
            return Err(ReachError::Readings);
        }
        Ok(Self(match method {
            Some(method) => alloc::format!("{method} {origin}{path}{star}"),
            None => alloc::format!("{origin}{path}{star}"),
        }))
    }
}

impl TryFrom<String> for ReachPattern {
    type Error = ReachError;

    /// Takes what was checked when it was signed: only its shape is looked at, so that no host's name is cut short.
    fn try_from(text: String) -> Result<Self, ReachError> {
        let behind_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
        let (host, path) = behind_scheme.split_once('/').unwrap_or_default();
        let is_early = |part: &str| part.contains('*');
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        let inner = path.strip_suffix('*').unwrap_or(path);
        if host.is_empty() || is_early(host) || is_early(inner) || !is_plain {
            return Err(ReachError::Path);
        }
        if text.len() > URL_BYTES_MAX + METHOD_BYTES_MAX {
            return Err(ReachError::Url(UrlError::TooLong));
        }
        Ok(Self(text))
    }
}

impl From<ReachPattern> for String {
    fn from(pattern: ReachPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for ReachPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text names no requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachError {
    /// The word before the URL is no method.
    Method,
    /// The URL is none.
    Url(UrlError),
    /// Proxies and servers read its path in more than one way.
    Readings,
    /// There is no path, or it has a `*` that isn't its end, or a query.
    Path,
}

impl fmt::Display for ReachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method => f.write_str("a method is a word in capitals, as GET, POST, PUT, PATCH or DELETE"),
            Self::Url(error) => error.fmt(f),
            Self::Readings => f.write_str(
                "a path under a grant has one reading: no `//`, no %25 and no %5C, no name that begins or ends with dots or spaces, of other alphabets letters alone",
            ),
            Self::Path => f.write_str(
                "servers are named URL, or METHOD URL, whose path may end with *: https://api.example.com/v1/*",
            ),
        }
    }
}

impl core::error::Error for ReachError {}
