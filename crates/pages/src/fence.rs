//! The fence between a visitor's browser, other pages and a machine: requests that go no further, fields that don't pass.
//!
//! A page at a host of its own is kept from others by the browser; one that shares its origin with others is confined: no
//! field passes that means more than that page, and the browser gives it an origin that is nobody's (CSP Level 3,
//! `sandbox` without `allow-same-origin`).

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tenure_http_listener::Site;

use crate::answer::Answer;
use crate::{cookies, request};

/// The fields of an answer that mean something to the visitor's browser, for that page and its origin. Whatever else a machine
/// says stays here: what concerns the connection or the length of a body, which is counted anew (RFC 9110 §7.6.1); what speaks
/// for more than the page (`Alt-Svc`, `Clear-Site-Data`); and what a proxy before these pages would do in its owner's name
/// (`X-Accel-Redirect`, `X-Sendfile` and their like, of which each maker has its own).
const OF_THE_PAGE: [HeaderName; 19] = [
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_HEADERS,
    header::ACCESS_CONTROL_ALLOW_METHODS,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::ACCESS_CONTROL_EXPOSE_HEADERS,
    header::ACCESS_CONTROL_MAX_AGE,
    header::CONTENT_LOCATION,
    header::CONTENT_SECURITY_POLICY_REPORT_ONLY,
    HeaderName::from_static("cross-origin-embedder-policy"),
    HeaderName::from_static("cross-origin-opener-policy"),
    HeaderName::from_static("cross-origin-resource-policy"),
    HeaderName::from_static("permissions-policy"),
    header::REFERRER_POLICY,
    header::REFRESH,
    HeaderName::from_static("server-timing"),
    header::SET_COOKIE,
    header::WWW_AUTHENTICATE,
    header::X_CONTENT_TYPE_OPTIONS,
    header::X_FRAME_OPTIONS,
];

/// Whether a browser asks for a change that another page than this one wants (Fetch Metadata; RFC 6454 §7). A program
/// that is no browser says nothing of that.
pub(crate) fn is_foreign_change(method: &Method, headers: &HeaderMap) -> bool {
    !request::is_safe(method) && Site::of(headers) == Site::Other
}

/// Takes from an answer what a machine has no say in, and adds what is missing where silence would be unsafe.
pub(crate) fn protect(answer: &mut Answer) {
    let mut headers = only(&answer.headers, OF_THE_PAGE.iter().chain(&CONFINED));
    let cookies = headers.get_all(header::SET_COOKIE).iter().filter(|it| cookies::may_be_set(it));
    let cookies: Vec<HeaderValue> = cookies.cloned().collect();
    headers.remove(header::SET_COOKIE);
    for cookie in cookies {
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
    answer.headers = headers;
}

/// The fields of these names.
fn only<'a>(headers: &HeaderMap, names: impl IntoIterator<Item = &'a HeaderName>) -> HeaderMap {
    let mut passed = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            passed.append(name, value.clone());
        }
    }
    passed
}

/// The fields of an answer that mean that answer alone, and nothing else on its origin.
const CONFINED: [HeaderName; 15] = [
    header::ACCEPT_RANGES,
    header::ALLOW,
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_RANGE,
    header::CONTENT_SECURITY_POLICY,
    header::CONTENT_TYPE,
    header::ETAG,
    header::EXPIRES,
    header::LAST_MODIFIED,
    header::LOCATION,
    header::RETRY_AFTER,
    header::VARY,
];
/// What a page may do that shares its origin: run scripts, send forms, save files, and ask its visitor. It is no part of
/// another page.
const SANDBOX: &str =
    "sandbox allow-scripts allow-forms allow-downloads allow-modals; frame-ancestors 'none'";

const SANDBOX_WORD: &[u8] = b"sandbox";

/// Takes from a request what the browser keeps for the whole of an origin, and not for the page.
pub(crate) fn withhold(headers: &mut HeaderMap) {
    for name in [header::AUTHORIZATION, header::COOKIE, header::ORIGIN] {
        headers.remove(name);
    }
}

/// Confines an answer to the path `below` of an origin that it shares with others.
pub(crate) fn confine(answer: &mut Answer, below: &str) {
    protect(answer);
    let mut headers = only(&answer.headers, &CONFINED);
    // A policy takes from what a page may do, but for a sandbox: of several the last one counts (HTML §7.1.6).
    let policies = headers.get_all(header::CONTENT_SECURITY_POLICY);
    let has_sandbox = |policy: &HeaderValue| {
        policy
            .as_bytes()
            .to_ascii_lowercase()
            .windows(SANDBOX_WORD.len())
            .any(|it| it == SANDBOX_WORD)
    };
    if policies.iter().any(has_sandbox) {
        headers.remove(header::CONTENT_SECURITY_POLICY);
    }
    let own = HeaderValue::from_static;
    headers.append(header::CONTENT_SECURITY_POLICY, own(SANDBOX));
    // The page's own requests come from nobody's origin, too; who knows its path may read it (Fetch §3.3).
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, own("*"));
    headers.insert(header::REFERRER_POLICY, own("no-referrer"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, own("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, own("DENY"));
    // No cache that many share keeps what one visitor was shown (RFC 9111 §5.2.2.7).
    headers.append(header::CACHE_CONTROL, own("private"));
    if let Some(location) = headers.get_mut(header::LOCATION) {
        *location = moved_below(location, below);
    }
    answer.headers = headers;
}

/// Where a machine leads that takes the root for its own: below its path. A place that is relative, or elsewhere, stays
/// (RFC 3986 §4.2).
fn moved_below(location: &HeaderValue, below: &str) -> HeaderValue {
    let bytes = location.as_bytes();
    if !bytes.starts_with(b"/") || bytes.starts_with(b"//") {
        return location.clone();
    }
    let moved = [below.as_bytes(), bytes].concat();
    HeaderValue::from_bytes(&moved).unwrap_or(HeaderValue::from_static("/"))
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

    // C4-5: nginx, Apache, lighttpd, LiteSpeed, Varnish and CDNs do what such fields say, with their owner's rights.
    #[test]
    fn field_that_a_proxy_would_obey_does_not_pass_nor_one_that_nobody_knows() {
        let fields = [
            "x-accel-redirect: /internal/key.txt",
            "X-Accel-Limit-Rate: 1",
            "x-accel-expires: 31536000",
            "x-sendfile: /etc/passwd",
            "x-sendfile2: /etc/passwd 0-",
            "x-lighttpd-send-file: /etc/passwd",
            "x-litespeed-location: /internal",
            "x-litespeed-cache-control: public",
            "x-reproxy-url: http://127.0.0.1/",
            "surrogate-control: content=\"ESI/1.0\"",
            "cdn-cache-control: max-age=9",
            "x-later-maker-s-field: 1",
            "clear-site-data: \"*\"",
            "alt-svc: h2=\":443\"",
            "upgrade: h2c",
            "link: </x>; rel=preload",
            "status: 200",
        ];
        let text =
            format!("HTTP/1.1 200 OK\r\n{}\r\ncontent-type: a/b\r\n\r\nx", fields.join("\r\n"));
        let mut answer = Answer::read(Some(text.into())).unwrap();
        protect(&mut answer);
        let mut names: Vec<&str> = answer.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let own = ["cache-control", "content-type", "referrer-policy", "x-content-type-options"];
        assert_eq!(names, [&own[..], &["x-frame-options"]].concat());
    }

    #[test]
    fn answer_on_a_shared_origin_says_nothing_for_the_others_there() {
        let text = "HTTP/1.1 200 OK\r\nset-cookie: tenure_session=x; Path=/\r\nclear-site-data: \"*\"\r\n\
                    service-worker-allowed: /\r\nrefresh: 0; url=/sign-out\r\nlink: </x>; rel=preload\r\n\
                    www-authenticate: Basic realm=\"hub\"\r\nreport-to: {}\r\nx-frame-options: ALLOWALL\r\n\
                    access-control-allow-origin: https://a.example\r\naccess-control-allow-credentials: true\r\n\
                    content-security-policy: img-src *, SandBox allow-same-origin allow-scripts\r\nreferrer-policy: unsafe-url\r\n\
                    content-type: text/html\r\netag: \"1\"\r\ncache-control: public, max-age=60\r\n\r\nx";
        let mut answer = Answer::read(Some(text.into())).unwrap();
        confine(&mut answer, "/m/a@b");
        let mut said: Vec<String> = answer
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        said.sort();
        let expected = [
            "access-control-allow-origin: *",
            "cache-control: private",
            "cache-control: public, max-age=60",
            &format!("content-security-policy: {SANDBOX}"),
            "content-type: text/html",
            "etag: \"1\"",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
        ];
        assert_eq!(said, expected);
        let text = "HTTP/1.1 200 OK\r\ncontent-security-policy: default-src 'none'\r\n\r\nx";
        let mut answer = Answer::read(Some(text.into())).unwrap();
        confine(&mut answer, "/m/a@b");
        assert_eq!(answer.headers.get_all(header::CONTENT_SECURITY_POLICY).iter().count(), 2);
        assert!(!SANDBOX.contains("allow-same-origin") && !SANDBOX.contains("allow-top"));
    }

    #[test]
    fn machine_leads_no_further_than_below_its_path_or_elsewhere() {
        for (location, leads) in [
            ("/", "/m/a@b/"),
            ("/degrees?x=/", "/m/a@b/degrees?x=/"),
            ("/\\evil.example", "/m/a@b/\\evil.example"),
            (".", "."),
            ("../x", "../x"),
            ("//evil.example/", "//evil.example/"),
            ("https://evil.example/", "https://evil.example/"),
        ] {
            let text = format!("HTTP/1.1 303 \r\nlocation: {location}\r\n\r\n");
            let mut answer = Answer::read(Some(text.into())).unwrap();
            confine(&mut answer, "/m/a@b");
            assert_eq!(answer.headers[header::LOCATION], leads, "{location}");
        }
    }
}
