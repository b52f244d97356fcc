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

/// Fields by which a gateway or a framework takes another path, method or host than the request's, or another caller, none of
/// which a grant has seen (IIS and ARR, Symfony, Rails, Spring, Next.js, Envoy, WebDAV's `Destination`; `Proxy` of CGI). Each
/// maker has its own; these are those in use.
const STEERING_FIELDS: [&str; 22] = [
    "base-url",
    "client-ip",
    "cf-connecting-ip",
    "destination",
    "forwarded",
    "proxy",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-host",
    "x-http-destinationurl",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-middleware-subrequest",
    "x-proxy-url",
    "x-real-ip",
    "x-rewrite-url",
    "x-scheme",
    "x-waws-unencoded-url",
];
/// The beginnings of further ones.
const STEERING_BEGINNINGS: [&str; 8] = [
    "x-accel-",
    "x-arr-",
    "x-envoy-",
    "x-forward",
    "x-original-",
    "x-originating-",
    "x-remote-",
    "x-rewrite-",
];

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// On a connection that may carry others.
    Kept,
    /// As the last one on its connection: whoever doesn't read its body reads no other request in that.
    Closed,
}

impl Connection {
    /// How a request is sent whose sender may send all to that server, or not.
    pub(crate) fn of(method: &Method, is_all_granted: bool) -> Self {
        if is_all_granted || is_without_body(method) { Self::Kept } else { Self::Closed }
    }
}

/// Whether a request by a method has no body: its content has no meaning (RFC 9110 §9.3.1, §9.3.2, §9.3.5, §9.3.7), and servers
/// that don't read it take it for the next request.
fn is_without_body(method: &Method) -> bool {
    matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "DELETE")
}

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
    connection: Connection,
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
    if !body.is_empty() && is_without_body(method) {
        return Err(BadMessage("a request by GET, HEAD, OPTIONS or DELETE has no body"));
    }
    let mut head = format!("{method} {} HTTP/1.1\r\n", url.path_and_query());
    // Writing to a string can't fail.
    let _ = write!(head, "host: {}\r\n", url.origin().authority());
    let _ = write!(head, "user-agent: tenure/{}\r\n", env!("CARGO_PKG_VERSION"));
    head += "accept-encoding: identity\r\n";
    if connection == Connection::Closed {
        head += "connection: close\r\n";
    }
    // RFC 9110 §8.6: a length also of nothing, where the method expects content.
    if !body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        let _ = write!(head, "content-length: {}\r\n", body.len());
    }
    let mut bytes = head.into_bytes();
    for field in fields {
        check_field(field.name)?;
        bytes.extend([field.name.as_bytes(), b": ", field.value, b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    Ok(bytes)
}

/// # Errors
/// No machine has a field of this name.
fn check_field(name: &str) -> Result<(), BadMessage> {
    // To CGI and its kin both are one (RFC 3875 §4.1.18).
    let name = name.to_ascii_lowercase().replace('_', "-");
    if OWN_FIELDS.contains(&name.as_str()) {
        return Err(BadMessage("it has a field that the device writes itself"));
    }
    let is_steering = STEERING_FIELDS.contains(&name.as_str())
        || STEERING_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    if is_steering {
        return Err(BadMessage(
            "it has a field by which servers take another path, method or caller",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(method: &str, message: Option<&str>) -> Result<String, BadMessage> {
        let (method, url) =
            (method.parse().unwrap(), "https://a.example:8443/v1?x".parse().unwrap());
        let bytes = request(&method, &url, message.map(str::as_bytes), Connection::Kept)?;
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

    // C3-1: `DELETE /admin` in the body of a granted GET.
    #[test]
    fn request_by_a_method_without_content_has_no_body_and_others_close_where_not_all_is_granted() {
        let hidden = "x: a\r\n\r\nDELETE /admin HTTP/1.1\r\nhost: a\r\n\r\n";
        for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
            let refused = BadMessage("a request by GET, HEAD, OPTIONS or DELETE has no body");
            assert_eq!(written(method, Some(hidden)), Err(refused), "{method}");
            let method = method.parse().unwrap();
            assert_eq!(Connection::of(&method, false), Connection::Kept, "{method}");
        }
        let url = "https://a.example/v1".parse().unwrap();
        for method in ["POST", "PUT", "PATCH", "REPORT"] {
            let method = method.parse().unwrap();
            assert_eq!(Connection::of(&method, true), Connection::Kept, "{method}");
            let connection = Connection::of(&method, false);
            let bytes = request(&method, &url, Some(hidden.as_bytes()), connection).unwrap();
            let head = String::from_utf8(bytes).unwrap();
            let head = head.split("\r\n\r\n").next().unwrap();
            assert!(head.contains("\r\nconnection: close\r\n"), "{method}: {head}");
        }
    }

    // C3-2
    #[test]
    fn field_by_which_a_server_takes_another_request_is_refused_in_each_spelling() {
        for name in [
            "X-Original-URL",
            "x-rewrite-url",
            "X-HTTP-Method-Override",
            "x_http_method_override",
            "X-Method-Override",
            "X-HTTP-Method",
            "Forwarded",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "x-forwarded-prefix",
            "X_Forwarded_For",
            "X-Real-IP",
            "content_length",
            "transfer_encoding",
            "Host_",
            "X-Host",
            "Destination",
            "Proxy",
            "X-Original-Method",
        ] {
            let is_refused = written("POST", Some(&format!("{name}: a\r\n\r\n"))).is_err();
            assert_eq!(is_refused, name != "Host_", "{name}");
        }
        for name in ["x-api-key", "authorization", "x-request-id", "accept", "if-match", "cookie"] {
            assert!(written("GET", Some(&format!("{name}: a\r\n\r\n"))).is_ok(), "{name}");
        }
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
