//! The fence between a visitor's browser, other pages and a machine: requests that go no further, fields that don't pass.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tenure_http_listener::Site;

use crate::answer::Answer;
use crate::request;

/// The fields that concern one connection, or the length of a body that is counted anew (RFC 9110 §7.6.1), and those
/// by which a page would speak for more than itself.
const DROPPED: [HeaderName; 12] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::ALT_SVC,
    header::STRICT_TRANSPORT_SECURITY,
    HeaderName::from_static("public-key-pins"),
];

/// Whether a browser asks for a change that another page than this one wants (Fetch Metadata; RFC 6454 §7). A program
/// that is no browser says nothing of that.
pub(crate) fn is_foreign_change(method: &Method, headers: &HeaderMap) -> bool {
    !request::is_safe(method) && Site::of(headers) == Site::Other
}

/// Takes from an answer what a machine has no say in, and adds what is missing where silence would be unsafe.
pub(crate) fn protect(answer: &mut Answer) {
    let headers = &mut answer.headers;
    for name in &DROPPED {
        headers.remove(name);
    }
    // A cookie with a domain is sent to the pages of others below it (RFC 6265 §5.2.3).
    let cookies: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    headers.remove(header::SET_COOKIE);
    for cookie in cookies.into_iter().filter(|cookie| !has_domain(cookie)) {
        headers.append(header::SET_COOKIE, cookie);
    }
    let unless_said = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "SAMEORIGIN"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in unless_said {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

fn has_domain(cookie: &HeaderValue) -> bool {
    cookie.as_bytes().split(|byte| *byte == b';').skip(1).any(|attribute| {
        let name = attribute.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"domain")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn change_is_made_for_the_page_itself_and_for_programs() {
        for fields in [
            &[][..],
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
            &[("sec-fetch-site", "none")],
            &[("host", "Lamp.localhost:80"), ("origin", "http://lamp.localhost:80")],
        ] {
            assert!(!is_foreign_change(&Method::POST, &headers(fields)), "{fields:?}");
        }
        for fields in [
            &[("sec-fetch-site", "cross-site")][..],
            // Another machine's page, of the same site.
            &[("sec-fetch-site", "same-site")],
            &[("host", "lamp.localhost"), ("origin", "http://door.localhost")],
            &[("host", "lamp.localhost"), ("origin", "null")],
            &[("origin", "http://lamp.localhost")],
        ] {
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                assert!(is_foreign_change(&method, &headers(fields)), "{fields:?}");
            }
            assert!(!is_foreign_change(&Method::GET, &headers(fields)), "{fields:?}");
        }
    }

    #[test]
    fn answer_keeps_what_is_the_page_s_own() {
        let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\nconnection: close\r\n\
                    set-cookie: a=1; Path=/\r\nset-cookie: b=domain; domain =localhost\r\nset-cookie: c=domain\r\n\
                    strict-transport-security: max-age=1\r\ncache-control: max-age=60\r\n\r\nx";
        let mut answer = Answer::read(Some(text.into())).unwrap();
        protect(&mut answer);
        let cookies: Vec<_> = answer.headers.get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; Path=/", "c=domain"]);
        for name in
            ["transfer-encoding", "content-length", "connection", "strict-transport-security"]
        {
            assert!(!answer.headers.contains_key(name), "{name}");
        }
        assert_eq!(answer.headers[header::CACHE_CONTROL], "max-age=60");
        assert_eq!(answer.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}
