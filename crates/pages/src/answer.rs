//! A machine's result as the answer to a visitor: an HTTP/1.1 message (RFC 9112 §2.1) whose body ends with it, or the
//! body alone.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// The most fields of an answer.
const FIELDS_MAX: usize = 32;
/// The beginning of a result that is a message, and not a body alone.
const MESSAGE: &[u8] = b"HTTP/1.";

/// A machine's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// The result begins as a message does, and isn't one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Answer {
    /// The answer in the result of a call; null is an answer without a body (RFC 9110 §15.3.5).
    pub(crate) fn read(result: Option<Vec<u8>>) -> Result<Self, Malformed> {
        match result {
            None => Ok(Self::plain(StatusCode::NO_CONTENT, None, Vec::new())),
            Some(bytes) if bytes.starts_with(MESSAGE) => Self::of_message(bytes),
            Some(body) => Ok(Self::plain(StatusCode::OK, Some(kind_of(&body)), body)),
        }
    }

    fn plain(status: StatusCode, kind: Option<&'static str>, body: Vec<u8>) -> Self {
        let kind = kind.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind)));
        Self { status, headers: kind.into_iter().collect(), body }
    }

    fn of_message(mut bytes: Vec<u8>) -> Result<Self, Malformed> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        let head = match response.parse(&bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) | Err(_) => return Err(Malformed),
        };
        let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
        // An answer is final: an interim one promises another (RFC 9110 §15.2).
        let status = status.filter(|status| !status.is_informational()).ok_or(Malformed)?;
        let mut headers = HeaderMap::new();
        for field in response.headers.iter() {
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Malformed)?;
            let value = HeaderValue::from_bytes(field.value).map_err(|_| Malformed)?;
            headers.append(name, value);
        }
        bytes.drain(..head);
        if is_without_body(status) {
            bytes.clear();
        } else if !bytes.is_empty() && !headers.contains_key(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind_of(&bytes)));
        }
        Ok(Self { status, headers, body: bytes })
    }
}

/// Whether an answer ends with its head, whatever a machine sends behind it: who takes one for empty would read its body as the
/// next answer (RFC 9110 §15.3.5, §15.3.6, §15.4.5).
fn is_without_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The media type of a body that comes without one.
fn kind_of(body: &[u8]) -> &'static str {
    match std::str::from_utf8(body) {
        Ok(text) if text.trim_start().starts_with('<') => "text/html; charset=utf-8",
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(result: &[u8]) -> Result<Answer, Malformed> {
        Answer::read(Some(result.to_vec()))
    }

    #[test]
    fn result_that_is_a_body_alone_is_of_the_kind_that_it_looks_like() {
        for (body, kind) in [
            ("<h1>21.5</h1>", "text/html; charset=utf-8"),
            ("\n <!doctype html>", "text/html; charset=utf-8"),
            ("21.5", "text/plain; charset=utf-8"),
            ("", "text/plain; charset=utf-8"),
            ("HTTP is a protocol", "text/plain; charset=utf-8"),
        ] {
            let answer = read(body.as_bytes()).unwrap();
            assert_eq!(
                (answer.status, &answer.headers[header::CONTENT_TYPE]),
                (StatusCode::OK, &HeaderValue::from_static(kind)),
                "{body}"
            );
            assert_eq!(answer.body, body.as_bytes());
        }
        assert_eq!(
            read(b"\xff\xd8").unwrap().headers[header::CONTENT_TYPE],
            "application/octet-stream"
        );
        assert_eq!(Answer::read(None).unwrap().status, StatusCode::NO_CONTENT);
    }

    #[test]
    fn message_is_taken_apart() {
        let answer = read(
            b"HTTP/1.1 404 Not Found\r\nX-A: 1\r\nx-a: 2\r\nContent-Type: a/b\r\n\r\nno\r\n\r\n",
        )
        .unwrap();
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        let values: Vec<_> = answer.headers.get_all("x-a").iter().collect();
        assert_eq!(values, ["1", "2"]);
        assert_eq!(answer.body, b"no\r\n\r\n");
        assert_eq!(
            read(b"HTTP/1.1 200 \r\n\r\n<p>").unwrap().headers[header::CONTENT_TYPE],
            "text/html; charset=utf-8"
        );
        // C4-4: 205 among them.
        for status in [204, 205, 304] {
            let text =
                format!("HTTP/1.1 {status} \r\netag: \"a\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\nevil");
            assert_eq!(read(text.as_bytes()).unwrap().body, b"", "{status}");
        }
    }

    #[test]
    fn message_that_is_none_is_refused() {
        for result in [
            "HTTP/1.1 200 OK",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 \r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
            "HTTP/1.9 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: b\x01\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: c\r\n\r\n",
        ] {
            assert_eq!(read(result.as_bytes()), Err(Malformed), "{result:?}");
        }
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(FIELDS_MAX + 1));
        assert_eq!(read(many.as_bytes()), Err(Malformed));
    }

    proptest! {
        #[test]
        fn no_result_is_more_than_malformed(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&tail);
            let _ = read(&[b"HTTP/1.1 200 OK\r\n", tail.as_slice()].concat());
        }
    }
}
