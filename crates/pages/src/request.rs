//! A visitor's request as the parameter of a call: an HTTP/1.1 message (RFC 9112 §2.1) whose body ends with it.

use http::{HeaderName, Method, header, request};
use tenure_wire::limits::PARAMETER_BYTES_MAX;

use crate::origin::host_asked;

/// The fields that a machine is told; it has little memory, and what isn't here decides no answer.
const TOLD: [HeaderName; 17] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::ORIGIN,
    header::ACCESS_CONTROL_REQUEST_METHOD,
    header::ACCESS_CONTROL_REQUEST_HEADERS,
    header::USER_AGENT,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("x-requested-with"),
    header::RANGE,
];

/// The request is longer than a call's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The request as a machine gets it; `range` stands in place of the visitor's own.
pub(crate) fn message(
    parts: &request::Parts,
    range: Option<&str>,
    body: &[u8],
) -> Result<Vec<u8>, TooLong> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut message = format!("{} {target} HTTP/1.1\r\n", parts.method).into_bytes();
    let mut field = |name: &HeaderName, value: &[u8]| {
        message.extend_from_slice(name.as_str().as_bytes());
        message.extend_from_slice(b": ");
        message.extend_from_slice(value);
        message.extend_from_slice(b"\r\n");
    };
    // A target's host stands in place of the field's (RFC 9112 §3.2.2): a machine is told the host that led to it.
    if let Some(host) = host_asked(parts) {
        field(&header::HOST, host.as_bytes());
    }
    for name in &TOLD {
        if *name == header::RANGE && range.is_some() {
            continue;
        }
        for value in parts.headers.get_all(name) {
            field(name, value.as_bytes());
        }
    }
    if let Some(range) = range {
        field(&header::RANGE, range.as_bytes());
    }
    message.extend_from_slice(b"\r\n");
    message.extend_from_slice(body);
    if message.len() > PARAMETER_BYTES_MAX { Err(TooLong) } else { Ok(message) }
}

/// Whether a method is for a proxy or a server, and not for a page: `CONNECT` would make a tunnel of the connection, which
/// swallows what follows, and `TRACE` shows a page the fields that a browser keeps from it (RFC 9110 §9.3.6, §9.3.8).
pub(crate) fn is_for_no_page(method: &Method) -> bool {
    matches!(*method, Method::CONNECT | Method::TRACE) || method.as_str() == "TRACK"
}

/// Whether a request changes nothing (RFC 9110 §9.2.1).
pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(request: http::request::Builder) -> request::Parts {
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn message_has_the_line_of_the_request_the_fields_that_decide_an_answer_and_the_body() {
        let request = Request::put("http://lamp.localhost/on?level=3")
            .header("host", "lamp.localhost")
            .header("content-type", "text/plain")
            .header("connection", "keep-alive")
            .header("content-length", "4")
            .header("sec-ch-ua", "x")
            .header("range", "bytes=1-");
        let expected =
            b"PUT /on?level=3 HTTP/1.1\r\nhost: lamp.localhost\r\ncontent-type: text/plain\r\n\
                         range: bytes=1-\r\n\r\nfull";
        let parts = parts(request);
        assert_eq!(message(&parts, None, b"full").unwrap(), expected);
        let other = message(&parts, Some("bytes=7-"), b"").unwrap();
        assert!(other.ends_with(b"range: bytes=7-\r\n\r\n"), "{}", other.escape_ascii());
    }

    // C4-2
    #[test]
    fn host_in_the_target_stands_in_place_of_the_field_s() {
        let request = Request::get("http://lamp.localhost/x").header("host", "other.localhost");
        let told = message(&parts(request), None, b"").unwrap();
        assert_eq!(told, b"GET /x HTTP/1.1\r\nhost: lamp.localhost\r\n\r\n");
    }

    #[test]
    fn request_longer_than_a_parameter_is_refused() {
        let parts = parts(Request::post("/"));
        let head = message(&parts, None, b"").unwrap().len();
        let body = vec![0; PARAMETER_BYTES_MAX - head];
        assert!(message(&parts, None, &body).is_ok());
        assert_eq!(message(&parts, None, &[body.as_slice(), b"0"].concat()), Err(TooLong));
    }
}
