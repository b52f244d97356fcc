//! The head of a response, and how long its body is.

use std::fmt;

use tenure_wire::capability::Method;

use super::Framing;

/// The longest head of a response, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most fields of a response.
const FIELDS_MAX: usize = 64;
/// The fields that concern the connection, which a machine has no part in (RFC 9110 §7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status.
    pub(crate) status: u16,
    /// The fields that a machine gets, their names in lower case.
    fields: Vec<(String, Vec<u8>)>,
    /// The length that the server says, which is that of no body where there is none.
    pub(crate) length: Option<u64>,
    /// How the body ends.
    pub(crate) framing: Framing,
    /// Whether the connection is good for another request after this one.
    pub(crate) is_kept: bool,
}

/// A response that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadResponse {
    /// It is no response of HTTP/1.
    Malformed,
    /// Its head has no end within the bound.
    TooLong,
    /// Its length is said twice, or is no number (RFC 9112 §6.3).
    Length,
    /// Its body comes in an encoding that nobody asked for (RFC 9112 §6.1).
    Encoding,
    /// It wants another protocol (RFC 9110 §15.2.2).
    Upgrade,
}

impl fmt::Display for BadResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the server's answer is no HTTP",
            Self::TooLong => "the head of the server's answer has over 16,384 bytes or 64 fields",
            Self::Length => "the server says two lengths for its answer, or one that is no number",
            Self::Encoding => "the server sends its answer in an encoding that wasn't asked for",
            Self::Upgrade => "the server wants another protocol than HTTP/1.1",
        })
    }
}

impl Head {
    /// Reads the head at the start of `bytes`, and how long it is; `None` if more bytes are needed. Interim responses
    /// count as read, too: they have a status below 200 and no body.
    ///
    /// # Errors
    /// [`BadResponse`].
    pub(crate) fn read(
        bytes: &[u8],
        method: &Method,
    ) -> Result<Option<(Self, usize)>, BadResponse> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        let end = match response.parse(bytes) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(BadResponse::TooLong);
            }
            Err(_) => return Err(BadResponse::Malformed),
        };
        let (Some(status @ 100..), Some(minor)) = (response.code, response.version) else {
            return Err(BadResponse::Malformed);
        };
        if status == 101 {
            return Err(BadResponse::Upgrade);
        }
        let named = |name: &'static str| {
            let same = move |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
            response.headers.iter().filter(same).map(|field| field.value)
        };
        let has_token = |name: &'static str, token: &str| {
            named(name).any(|value| {
                let mut tokens = value.split(|byte| *byte == b',');
                tokens.any(|one| one.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
            })
        };
        let length = length_of(named("content-length"))?;
        let framing = framing(status, method, named("transfer-encoding"), length)?;
        let is_kept = if minor == 0 {
            has_token("connection", "keep-alive")
        } else {
            !has_token("connection", "close")
        };
        let is_kept = is_kept && framing != Framing::UntilClose;
        let passed_on = |field: &&httparse::Header<'_>| {
            !HOP_BY_HOP.iter().any(|name| field.name.eq_ignore_ascii_case(name))
        };
        let fields = response.headers.iter().filter(passed_on);
        let fields =
            fields.map(|field| (field.name.to_ascii_lowercase(), field.value.to_vec())).collect();
        Ok(Some((Self { status, fields, length, framing, is_kept }, end)))
    }

    /// The value of a field that is there once, as text.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(one, _)| one == name);
        let (_, value) = values.next()?;
        if values.next().is_some() { None } else { std::str::from_utf8(value).ok() }
    }

    /// The head as a machine gets it, with the body's length if that is known.
    pub(crate) fn for_machine(&self, length: Option<u64>) -> Vec<u8> {
        let mut bytes = format!("HTTP/1.1 {} \r\n", self.status).into_bytes();
        if let Some(length) = length {
            bytes.extend(format!("content-length: {length}\r\n").as_bytes());
        }
        for (name, value) in &self.fields {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        bytes.extend(b"\r\n");
        bytes
    }
}

/// How a body ends (RFC 9112 §6.3).
fn framing<'a>(
    status: u16,
    method: &Method,
    mut encodings: impl Iterator<Item = &'a [u8]>,
    length: Option<u64>,
) -> Result<Framing, BadResponse> {
    if method.as_str() == "HEAD" || status < 200 || matches!(status, 204 | 304) {
        return Ok(Framing::None);
    }
    match (encodings.next(), encodings.next(), length) {
        (None, _, None) => Ok(Framing::UntilClose),
        (None, _, Some(length)) => Ok(Framing::Length(length)),
        (Some(encoding), None, None) if encoding.trim_ascii().eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        // Both may be an attempt to have two readers see two bodies.
        (Some(_), _, Some(_)) => Err(BadResponse::Length),
        (Some(_), _, None) => Err(BadResponse::Encoding),
    }
}

fn length_of<'a>(lengths: impl Iterator<Item = &'a [u8]>) -> Result<Option<u64>, BadResponse> {
    let mut known = None;
    for value in lengths.flat_map(|value| value.split(|byte| *byte == b',')) {
        let digits = value.trim_ascii();
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(digits).ok().filter(|_| is_number);
        let length: u64 =
            length.and_then(|digits| digits.parse().ok()).ok_or(BadResponse::Length)?;
        if known.is_some_and(|known| known != length) {
            return Err(BadResponse::Length);
        }
        known = Some(length);
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<(Head, usize)>, BadResponse> {
        Head::read(text.as_bytes(), &"GET".parse().unwrap())
    }

    fn head(text: &str) -> Head {
        read(text).unwrap().unwrap().0
    }

    #[test]
    fn head_is_read_once_it_is_whole_and_passed_on_without_the_connection_s_fields() {
        let text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\
                    Content-Length: 5\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(read(&text[..end]), Ok(None), "{end} bytes");
        }
        let (head, end) = read(&format!("{text}hello")).unwrap().unwrap();
        assert_eq!((end, head.status, head.framing), (text.len(), 200, Framing::Length(5)));
        assert!(!head.is_kept);
        assert_eq!(head.field("content-type"), Some("text/plain"));
        let passed = String::from_utf8(head.for_machine(Some(5))).unwrap();
        assert_eq!(
            passed,
            "HTTP/1.1 200 \r\ncontent-length: 5\r\ncontent-type: text/plain\r\n\r\n"
        );
    }

    #[test]
    fn body_ends_as_the_standard_has_it() {
        let framing = |fields: &str| head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).framing;
        assert_eq!(framing(""), Framing::UntilClose);
        assert_eq!(framing("content-length: 7, 7\r\nContent-Length: 7\r\n"), Framing::Length(7));
        assert_eq!(framing("transfer-encoding: Chunked\r\n"), Framing::Chunked);
        for status in ["100 Continue", "204 No Content", "304 Not Modified"] {
            let head = head(&format!("HTTP/1.1 {status}\r\ncontent-length: 7\r\n\r\n"));
            assert_eq!(head.framing, Framing::None, "{status}");
        }
        let to_head = Head::read(b"HTTP/1.1 200 OK\r\n\r\n", &"HEAD".parse().unwrap());
        assert_eq!(to_head.unwrap().unwrap().0.framing, Framing::None);
    }

    #[test]
    fn connection_is_kept_as_the_version_and_the_body_allow() {
        let is_kept = |text: &str| head(text).is_kept;
        assert!(is_kept("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
        assert!(!is_kept("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, Close\r\n\r\n"));
        assert!(!is_kept("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"));
        assert!(is_kept("HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n"));
        assert!(
            !is_kept("HTTP/1.1 200 OK\r\n\r\n"),
            "the end of the connection is that of the body"
        );
    }

    #[test]
    fn response_with_two_readings_is_refused() {
        let refused = [
            ("content-length: 5\r\ncontent-length: 6\r\n", BadResponse::Length),
            ("content-length: 5, 6\r\n", BadResponse::Length),
            ("content-length: +5\r\n", BadResponse::Length),
            ("content-length: 0x5\r\n", BadResponse::Length),
            ("content-length: \r\n", BadResponse::Length),
            ("content-length: 99999999999999999999\r\n", BadResponse::Length),
            ("content-length: 5\r\ntransfer-encoding: chunked\r\n", BadResponse::Length),
            ("transfer-encoding: gzip, chunked\r\n", BadResponse::Encoding),
            ("transfer-encoding: gzip\r\n", BadResponse::Encoding),
            ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", BadResponse::Encoding),
            ("bad header\r\n", BadResponse::Malformed),
        ];
        for (fields, error) in refused {
            let read = read(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
            assert_eq!(read.map(|_| ()), Err(error), "{fields}");
        }
        for text in ["SSH-2.0-OpenSSH\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n"] {
            assert_eq!(read(text).map(|_| ()), Err(BadResponse::Malformed), "{text}");
        }
        let upgrade = "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n";
        assert_eq!(read(upgrade).map(|_| ()), Err(BadResponse::Upgrade));
    }

    #[test]
    fn head_without_end_is_given_up_at_its_bound() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(HEAD_BYTES_MAX));
        assert_eq!(read(&long), Err(BadResponse::TooLong));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: a\r\n".repeat(FIELDS_MAX + 1));
        assert_eq!(read(&many), Err(BadResponse::TooLong));
    }
}
