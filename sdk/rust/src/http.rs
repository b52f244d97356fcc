//! Pages: a machine that exports `http` is visited by browsers, by way of `tenure pages`.
//!
//! ```
//! use tenure::http::{Request, Response};
//!
//! tenure::export!(http);
//!
//! fn http(request: Request) -> Response {
//!     match (request.method, request.path) {
//!         ("GET", "/") => Response::html("<h1>21.5</h1>"),
//!         ("POST", "/set") if request.field("degrees").is_some() => Response::see_other("/"),
//!         _ => Response::error(404, "no such page"),
//!     }
//! }
//! ```
//!
//! A page shows live values by `new EventSource("live")` in its script, and a machine's [`Response::live`]: a stream that stays
//! open outside of the machine, which is asked again and again for the value as it is.
//!
//! A page may also be what any function returns: text that begins with `<` is HTML, other text is plain. A machine is called
//! by visitors whom nobody knows: its lease has to grant that (`callers = ["*"]` in `tenure.toml`).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{Reply, fields};

/// The most bytes of a page's body that go into one result; a longer one is sent in parts, as it is asked for.
pub const PART_BYTES: usize = 6 * 1024;

/// A visitor's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// `GET`, `POST` and so on.
    pub method: &'a str,
    /// The path, from its `/` on, as it was sent (RFC 3986 §3.3).
    pub path: &'a str,
    /// The text after `?`, without it; empty if there is none.
    pub query: &'a str,
    fields: &'a str,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The request in the parameter of a call: an HTTP/1.1 message (RFC 9112 §2.1) whose body ends with it.
    ///
    /// # Errors
    /// It isn't one; the text says so.
    pub fn parse(parameter: &'a [u8]) -> Result<Self, &'static str> {
        const NONE: &str = "the parameter is no HTTP request";
        let end = parameter.windows(4).position(|four| four == b"\r\n\r\n").ok_or(NONE)?;
        let head = core::str::from_utf8(&parameter[..end + 2]).map_err(|_| NONE)?;
        let (line, fields) = head.split_once("\r\n").ok_or(NONE)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next().ok_or(NONE)?, words.next().ok_or(NONE)?);
        if !words.next().is_some_and(|version| version.starts_with("HTTP/1.")) {
            return Err(NONE);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Self { method, path, query, fields, body: &parameter[end + 4..] })
    }

    /// The value of a header field; the letters of its name have no case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        fields::value_of(self.fields, name)
    }

    /// The value of a field of the address (`?degrees=21`) or, where that has none of the name, of a form that was sent
    /// with it.
    pub fn field(&self, name: &str) -> Option<String> {
        let form = core::str::from_utf8(self.body).unwrap_or("");
        let is_form = self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        let form = if is_form { form } else { "" };
        let mut pairs = self.query.split('&').chain(form.split('&'));
        pairs.find_map(|pair| {
            let (field, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(field) == name).then(|| decoded(value))
        })
    }
}

/// A name or value of a form (WHATWG URL, application/x-www-form-urlencoded).
fn decoded(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (digit(bytes.get(at + 1)), digit(bytes.get(at + 2)));
        let (byte, length) = match (byte, escaped) {
            (b'%', (Some(high), Some(low))) => ((high * 16 + low) as u8, 3),
            (b'+', _) => (b' ', 1),
            (byte, _) => (*byte, 1),
        };
        decoded.push(byte);
        at += length;
    }
    match String::from_utf8_lossy(&decoded) {
        Cow::Borrowed(text) => String::from(text),
        Cow::Owned(text) => text,
    }
}

/// `text` as it stands in HTML, in an element or in an attribute between double quotes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The answer to a visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: u16,
    fields: String,
    body: Vec<u8>,
}

impl Response {
    /// An answer with this status and without a body.
    pub fn status(status: u16) -> Self {
        Self { status, fields: String::new(), body: Vec::new() }
    }

    /// A body of that media type, such as `"application/json"`.
    pub fn body(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::status(200).header("content-type", kind) }
    }

    /// A page.
    pub fn html(page: impl Into<String>) -> Self {
        Self::body("text/html; charset=utf-8", page.into())
    }

    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::body("text/plain; charset=utf-8", text.into())
    }

    /// JSON, as `text` has it already.
    pub fn json(text: impl Into<String>) -> Self {
        Self::body("application/json", text.into())
    }

    /// The bytes of a file, of the media type that the end of its name says: `Response::file("style.css",
    /// include_bytes!("style.css"))`, or of a value in the tree.
    pub fn file(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self::body(kind_of(name), bytes)
    }

    /// A live value, for a page's `EventSource`: it is sent whenever it differs from before. By default it is asked for each
    /// second; see [`Self::again_in`].
    pub fn live(value: &str) -> Self {
        Self::events().event("", value)
    }

    /// Events for a page's `EventSource` (HTML §9.2); none as yet. A visitor who has some already says so in the field
    /// `last-event-id`, and is to be given those that came later, or none.
    pub fn events() -> Self {
        Self::body("text/event-stream", "")
    }

    /// Adds an event. An `id` that isn't empty tells which events a visitor has; line ends in it become spaces.
    #[must_use]
    pub fn event(mut self, id: &str, data: &str) -> Self {
        let mut text = String::new();
        if !id.is_empty() {
            fields::add(&mut text, "id", id);
        }
        // RFC 9112 §2.2 and HTML §9.2.6 end a line in three ways.
        let data = data.replace("\r\n", "\n").replace('\r', "\n");
        data.split('\n').for_each(|line| fields::add(&mut text, "data", line));
        text.push_str("\r\n");
        self.body.extend_from_slice(text.as_bytes());
        self
    }

    /// How soon the machine is asked for events again: after 0.2 s at the earliest, and a minute at the latest.
    #[must_use]
    pub fn again_in(mut self, time: Duration) -> Self {
        let retry = format!("retry: {}\r\n\r\n", time.as_millis());
        self.body.extend_from_slice(retry.as_bytes());
        self
    }

    /// An error with a line of text.
    pub fn error(status: u16, text: &str) -> Self {
        Self { status, ..Self::text(format!("{text}\n")) }
    }

    /// Leads a browser to another page of this machine, as after a form (RFC 9110 §15.4.4).
    pub fn see_other(location: &str) -> Self {
        Self::status(303).header("location", location)
    }

    /// Adds a header field. Line ends in `value` become spaces: no value makes a field of its own.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        fields::add(&mut self.fields, name, value);
        self
    }

    /// The part of a long body that `request` asks for (RFC 9110 §14): as much as one result holds. A body that is short
    /// enough stays as it is, and whoever serves the pages cuts out of it what a visitor asked for.
    #[must_use]
    pub fn part_for(self, request: &Request<'_>) -> Self {
        let whole = self.body.len();
        let range = request.header("range").and_then(range).filter(|_| request.method == "GET");
        let Some((first, end)) = range.filter(|_| self.status == 200 && whole > PART_BYTES) else {
            return self;
        };
        if first >= whole {
            return Self::status(416).header("content-range", &format!("bytes */{whole}"));
        }
        let last = (first + PART_BYTES).min(whole).min(end) - 1;
        let tag = format!("\"{:08x}\"", digest(&self.body));
        let mut part = self
            .header("content-range", &format!("bytes {first}-{last}/{whole}"))
            .header("etag", &tag);
        part.status = 206;
        part.body = part.body[first..=last].to_vec();
        part
    }
}

impl Reply for Response {
    fn reply(self) {
        let mut message = format!("HTTP/1.1 {} \r\n{}\r\n", self.status, self.fields).into_bytes();
        message.extend_from_slice(&self.body);
        message.reply();
    }
}

/// The first byte of `bytes=N-` or `bytes=N-M`, and the byte after the last one; a part may stop before.
fn range(range: &str) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let first: usize = first.parse().ok()?;
    let end =
        if last.is_empty() { usize::MAX } else { last.parse::<usize>().ok()?.checked_add(1)? };
    (first < end).then_some((first, end))
}

/// The media type of a file with this name; that of any bytes if the name says none (RFC 2046 §4.5.1).
fn kind_of(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let is = |it: &(&str, &str)| end.eq_ignore_ascii_case(it.0);
    KINDS.iter().find(|it| is(it)).map_or("application/octet-stream", |(_, kind)| kind)
}

/// The media types of files on pages, by the ends of their names.
const KINDS: [(&str, &str); 16] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("txt", "text/plain; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("webp", "image/webp"),
    ("ico", "image/vnd.microsoft.icon"),
    ("woff2", "font/woff2"),
    ("wasm", "application/wasm"),
    ("pdf", "application/pdf"),
];
/// FNV-1a of 32 bits: tells a page that changed between two parts from one that didn't.
fn digest(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
