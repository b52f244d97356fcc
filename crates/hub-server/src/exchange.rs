//! One request to the API and its answer, whether they came over HTTP or in a session.

pub(crate) mod once;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::store::space::{self, Keeps};
use crate::store::sql::{self, Connection};

/// A request whose pass has been checked.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    /// The segments of the path, decoded.
    pub(crate) segments: Vec<String>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// The key that asks.
    pub(crate) who: String,
    /// Who asks in the key's name, for the audit log: a person, a token or both; empty where the key itself does.
    pub(crate) by: String,
    /// The person among them; empty where there is none.
    pub(crate) person: String,
    /// The wall clock, in seconds since 1970 UTC.
    pub(crate) unix_s: u64,
    /// Since when the hub has heard its devices without a gap, by the same clock.
    pub(crate) hub_hears_since_unix_s: u64,
    /// Whether it may be noted in the audit log where it only ends something: others have their part of a day's entries.
    pub(crate) is_noted: bool,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Vec<u8>,
}

impl Exchange {
    /// Whether it changes nothing that it is about.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// The parameter called `name`.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        parameters.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The header called `name`, if it is text.
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// An answer in JSON.
    pub(crate) fn json(status: StatusCode, value: &Value) -> Self {
        Self { body: value.to_string().into_bytes(), ..Self::empty(status) }
            .with(header::CONTENT_TYPE, "application/json")
    }

    /// An error in the form of RFC 9457.
    pub(crate) fn problem(status: StatusCode, detail: &str) -> Self {
        let body = json!({ "status": status.as_u16(), "detail": detail }).to_string();
        Self { body: body.into_bytes(), ..Self::empty(status) }
            .with(header::CONTENT_TYPE, "application/problem+json")
    }

    /// The same with a header more.
    #[must_use]
    pub(crate) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The headers as HTTP has them; a value that can't be one is left out.
    pub(crate) fn header_map(&self) -> HeaderMap {
        let valid = |(name, value): &(HeaderName, String)| {
            Some((name.clone(), HeaderValue::from_str(value).ok()?))
        };
        self.headers.iter().filter_map(valid).collect()
    }
}

/// The most bytes that an act of a person adds, its entry in the audit log included.
const ACT_BYTES: usize = 2 * 1024;

/// Why something that a person adds isn't done on a disk that is nearly full.
///
/// # Errors
/// The database fails.
pub(crate) fn no_room(connection: &Connection) -> Result<Option<Reply>, sql::Error> {
    let text =
        "the hub has room for the ends of passes, dismissals and revocations alone: see --disk-max";
    let is_left = space::is_left(connection, Keeps::History, ACT_BYTES)?;
    Ok((!is_left).then(|| Reply::problem(StatusCode::INSUFFICIENT_STORAGE, text)))
}

/// The segments of a path, decoded.
pub(crate) fn segments_of(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(decoded).collect()
}

/// Names and values of an address or a form.
pub(crate) fn pairs(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text).into_owned().collect()
}

/// Text in an address (RFC 3986 §2.1).
pub fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A segment of a path, decoded. A plus sign stands for itself there.
fn decoded(segment: &str) -> String {
    let escaped = segment.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(escaped.as_bytes()).map(|(name, _)| name.into_owned()).collect()
}
