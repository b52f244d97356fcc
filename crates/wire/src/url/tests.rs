//! URLs that have one reading, and those that don't.

use alloc::string::ToString;

use super::*;

#[track_caller]
fn canonical(text: &str) -> String {
    text.parse::<Url>().unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

#[test]
fn url_is_read_into_its_parts_and_written_in_one_form() {
    let url: Url = "https://API.example.com:8443/v1/items?new=1".parse().unwrap();
    assert_eq!(url.origin().to_string(), "https://api.example.com:8443");
    assert_eq!((url.path(), url.path_and_query()), ("/v1/items", "/v1/items?new=1"));
    assert_eq!(canonical("HTTPS://a.example"), "https://a.example/");
    assert_eq!(canonical("https://a.example:443/x"), "https://a.example/x");
    assert_eq!(canonical("http://a.example:?q"), "http://a.example/?q");
    assert_eq!(canonical("http://[2001:DB8::1]:8080/"), "http://[2001:db8::1]:8080/");
    assert_eq!(canonical("http://192.0.2.1/a%2Fb"), "http://192.0.2.1/a%2Fb");
}

#[test]
fn origin_is_scheme_host_and_port_alone() {
    for text in ["https://a.example", "https://a.example/", "HTTPS://A.example:443"] {
        assert_eq!(text.parse::<Origin>().unwrap().to_string(), "https://a.example", "{text}");
    }
    for text in ["https://a.example/v1", "https://a.example?q", "https://a.example#f"] {
        assert_eq!(text.parse::<Origin>(), Err(UrlError::NotAnOrigin), "{text}");
    }
}

#[test]
fn text_that_programs_read_differently_is_refused() {
    let refused = [
        ("ftp://a.example/", UrlError::Scheme),
        ("a.example", UrlError::Scheme),
        ("https:/a.example", UrlError::Scheme),
        ("https:///x", UrlError::Host),
        ("https://user@a.example/", UrlError::Host),
        ("https://a.example\\@b.example/", UrlError::Host),
        ("https://a.example%2eb.example/", UrlError::Host),
        ("https://a..example/", UrlError::Host),
        ("https://a.example./", UrlError::Host),
        ("https://-a.example/", UrlError::Host),
        ("https://bücher.example/", UrlError::Host),
        ("https://2130706433/", UrlError::Host),
        ("https://127.1/", UrlError::Host),
        ("https://0x7f.0.0.1/", UrlError::Host),
        ("https://0177.0.0.01/", UrlError::Host),
        ("https://a.0x7f/", UrlError::Host),
        ("https://[::1/", UrlError::Host),
        ("https://[fe80::1%25eth0]/", UrlError::Host),
        ("https://[::1]x/", UrlError::Host),
        ("https://a.example:0/", UrlError::Port),
        ("https://a.example:65536/", UrlError::Port),
        ("https://a.example:+80/", UrlError::Port),
        ("https://a.example/#top", UrlError::Path),
        ("https://a.example/a b", UrlError::Path),
        ("https://a.example/a\r\nb", UrlError::Path),
        ("https://a.example/%0d%0a", UrlError::Path),
        ("https://a.example/%zz", UrlError::Path),
        ("https://a.example/%4", UrlError::Path),
        ("https://a.example/v1/../admin", UrlError::Path),
        ("https://a.example/v1/%2e%2E/admin", UrlError::Path),
        ("https://a.example/v1/..%2fadmin", UrlError::Path),
        ("https://a.example/v1/..%5cadmin", UrlError::Path),
        ("https://a.example/.", UrlError::Path),
    ];
    for (text, error) in refused {
        assert_eq!(text.parse::<Url>(), Err(error), "{text}");
    }
    let long = alloc::format!("https://a.example/{}", "x".repeat(URL_BYTES_MAX));
    assert_eq!(long.parse::<Url>(), Err(UrlError::TooLong));
}

#[test]
fn reference_of_a_redirect_is_read_against_its_base() {
    let base: Url = "https://a.example/v1/items?page=2".parse().unwrap();
    let joined = |reference: &str| base.join(reference).map(|url| url.to_string());
    assert_eq!(joined("/v2/").unwrap(), "https://a.example/v2/");
    assert_eq!(joined("other?x#part").unwrap(), "https://a.example/v1/other?x");
    assert_eq!(joined("?page=3").unwrap(), "https://a.example/v1/items?page=3");
    assert_eq!(joined("//b.example/x").unwrap(), "https://b.example/x");
    assert_eq!(joined("http://b.example").unwrap(), "http://b.example/");
    assert_eq!(joined("").unwrap(), base.to_string());
    assert_eq!(joined("../admin"), Err(UrlError::Path));
    assert_eq!(joined("//user@b.example/"), Err(UrlError::Host));
}
