//! A request as it is sent.

use std::fmt::Write as _;

use tenure_wire::Url;
use tenure_wire::capability::Method;

/// The most fields that a machine gives a request.
const FIELDS_MAX: usize = 32;

/// The fields that the device writes itself, or that concern the connection, which no machine has (RFC 9110 §7.6.1).
const OWN_FIELDS: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// A machine's message that is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadMessage(pub(crate) &'static str);

/// The bytes of a request for `url`, with the fields and the body of a machine's `message`.
///
/// # Errors
/// The message is no part of a request, or has a field that is the device's to write.
pub(crate) fn request(
    method: &Method,
    url: &Url,
    message: Option<&[u8]>,
) -> Result<Vec<u8>, BadMessage> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let (fields, body) = match message {
        None => (&[][..], &[][..]),
        Some(message) => match httparse::parse_headers(message, &mut fields) {
            Ok(httparse::Status::Complete((end, fields))) => (fields, &message[end..]),
            Ok(httparse::Status::Partial) => {
                return Err(BadMessage("its fields don't end with an empty line"));
            }
            Err(httparse::Error::TooManyHeaders) => {
                return Err(BadMessage("it has over 32 fields"));
            }
            Err(_) => return Err(BadMessage("it has a field that is malformed")),
        },
    };
    let mut head = format!("{method} {} HTTP/1.1\r\n", url.path_and_query());
    // Writing to a string can't fail.
    let _ = write!(head, "host: {}\r\n", url.origin().authority());
    let _ = write!(head, "user-agent: tenure/{}\r\n", env!("CARGO_PKG_VERSION"));
    head += "accept-encoding: identity\r\n";
    // RFC 9110 §8.6: a length also of nothing, where the method expects content.
    if !body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        let _ = write!(head, "content-length: {}\r\n", body.len());
    }
    let mut bytes = head.into_bytes();
    for field in fields {
        if OWN_FIELDS.iter().any(|own| field.name.eq_ignore_ascii_case(own)) {
            return Err(BadMessage("it has a field that the device writes itself"));
        }
        bytes.extend([field.name.as_bytes(), b": ", field.value, b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(method: &str, message: Option<&str>) -> Result<String, BadMessage> {
        let (method, url) =
            (method.parse().unwrap(), "https://a.example:8443/v1?x".parse().unwrap());
        let bytes = request(&method, &url, message.map(str::as_bytes))?;
        let text = String::from_utf8(bytes).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let start = format!(
            "{method} /v1?x HTTP/1.1\r\nhost: a.example:8443\r\nuser-agent: tenure/{version}\r\n\
             accept-encoding: identity\r\n"
        );
        Ok(text.strip_prefix(&start).unwrap().to_string())
    }

    #[test]
    fn request_has_the_machine_s_fields_and_body_behind_the_device_s() {
        assert_eq!(written("GET", None).unwrap(), "\r\n");
        assert_eq!(written("POST", None).unwrap(), "content-length: 0\r\n\r\n");
        let message = "Accept: text/plain\r\nx-a:1\r\n\r\nbody\r\n\r\nmore";
        assert_eq!(
            written("PUT", Some(message)).unwrap(),
            "content-length: 12\r\nAccept: text/plain\r\nx-a: 1\r\n\r\nbody\r\n\r\nmore"
        );
        assert_eq!(written("GET", Some("\r\n")).unwrap(), "\r\n");
    }

    #[test]
    fn message_that_would_change_the_request_around_it_is_refused() {
        for message in [
            "Host: b.example\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n",
            "CONTENT-LENGTH: 1\r\n\r\n",
            "x: a\r\n",
            "x: a\r\n y: b\r\n\r\n",
            "no field\r\n\r\n",
            "x\0: a\r\n\r\n",
            "x : a\r\n\r\n",
            "x: a\0\r\n\r\n",
            "",
        ] {
            assert!(written("GET", Some(message)).is_err(), "{message:?}");
        }
        let many = "x: a\r\n".repeat(FIELDS_MAX + 1) + "\r\n";
        assert_eq!(written("GET", Some(&many)), Err(BadMessage("it has over 32 fields")));
    }
}
