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

/// Tricks by which a path below `/v1/` is elsewhere to somebody, and who that is.
const TRICKS: [(&str, &str); 44] = [
    ("..;/admin", "Tomcat, Jetty drop what follows a `;`"),
    ("..;a=b/admin", "the same"),
    ("..%3b/admin", "decoded before that"),
    ("..%3B%2fadmin", "the same"),
    (".;/admin", "the same"),
    (";/..;/admin", "the same"),
    (";a=b/admin", "an empty segment once dropped"),
    ("a/..;b/..;c/admin", "the same"),
    ("..%3f/admin", "a query once decoded"),
    ("..%23/admin", "a fragment once decoded"),
    ("%3f/admin", "the same"),
    ("%23", "the same"),
    ("..%20/admin", "spaces are dropped (IIS)"),
    ("%20../admin", "the same"),
    ("..+/admin", "a `+` for a space"),
    ("+../admin", "the same"),
    ("%20/admin", "the same"),
    ("a%20", "the same"),
    ("...", "dots at an end are dropped (Windows)"),
    (".../admin", "the same; two steps up to some"),
    ("..../admin", "the same"),
    ("admin.", "the same"),
    ("..%255cadmin", "decoded twice"),
    ("%252e%252e/admin", "decoded twice"),
    ("..%252fadmin", "decoded twice"),
    ("%25252e%25252e/admin", "decoded three times"),
    ("a%25b", "decoded twice"),
    ("a%5cb", "a backslash for a slash (IIS)"),
    ("/admin", "slashes are joined, or begin a host"),
    ("a//admin", "the same"),
    ("%2fadmin", "the same, decoded"),
    ("a%2f%2fadmin", "the same"),
    ("a/%2f", "the same"),
    ("%c0%ae%c0%ae/admin", "an overlong dot"),
    ("%e0%80%ae%e0%80%ae/admin", "the same"),
    ("..%c0%afadmin", "an overlong slash"),
    ("..%c1%9cadmin", "an overlong backslash"),
    ("%ef%bc%8e%ef%bc%8e/admin", "full-width dots (NFKC)"),
    ("..%ef%bc%8fadmin", "a full-width slash"),
    ("%e2%80%a5/admin", "a leader of two dots"),
    ("..%e2%88%95admin", "a division slash"),
    ("..%c2%a5admin", "a yen for a backslash (code pages)"),
    ("%ff", "no text"),
    ("..:$i30/admin", "a stream of a file (NTFS)"),
];

/// Paths that are the same to everybody.
const PLAIN: [&str; 14] = [
    "",
    "items",
    "items/",
    "a/b.json",
    ".well-known/core",
    "a;v=1/b",
    "group%2Fproject",
    "%e5%8c%97%e4%ba%ac",
    "caf%C3%A9",
    "a%20b",
    "~user/-/_x",
    "(a)'!*,@:&=$",
    "+49301234",
    "v1.2.3",
];

// C3-3: each of these went out under a grant of `/v1/*`.
#[test]
fn path_that_makers_read_differently_has_more_than_one_reading() {
    for (trick, who) in TRICKS {
        let url = alloc::format!("https://a.example/v1/{trick}").parse::<Url>();
        // Those that are no URL at all are refused before.
        assert!(!url.is_ok_and(|url| has_one_reading(url.path())), "{trick}: {who}");
    }
    for refused in ["..", ".", "%2e%2e/x", "..%2fx", "..%5cx", "a%00b", "a%0db", "%u002e", "a\\b"] {
        let url = alloc::format!("https://a.example/v1/{refused}").parse::<Url>();
        assert_eq!(url, Err(UrlError::Path), "{refused}");
    }
    for plain in PLAIN {
        for query in ["", "?q=../%2e%25;//", "?"] {
            let url = alloc::format!("https://a.example/v1/{plain}{query}");
            assert!(has_one_reading(url.parse::<Url>().unwrap().path()), "{url}");
        }
    }
}

/// What a maker's server makes of a path: one of these after the other, in any order.
fn read(path: &str, step: u8) -> String {
    let each =
        |change: &dyn Fn(&str) -> String| path.split('/').map(change).collect::<Vec<_>>().join("/");
    match step % 8 {
        0 => String::from_utf8_lossy(&percent_decoded(path)).into_owned(),
        1 => each(&|segment| segment.split(';').next().unwrap_or_default().into()),
        2 => path.split(['?', '#']).next().unwrap_or_default().into(),
        3 => path.replace('\\', "/"),
        4 => each(&|segment| segment.trim_matches(' ').into()),
        5 => each(&|segment| match segment.trim_end_matches(['.', ' ']) {
            "" if segment == ".." => "..".into(),
            trimmed => trimmed.into(),
        }),
        6 => path.replace('+', " "),
        _ => ['．', '‥', '／', '∕', '＼', '¥', '％', '；']
            .into_iter()
            .zip([".", "..", "/", "/", "\\", "\\", "%", ";"])
            .fold(path.to_string(), |path, (wide, narrow)| path.replace(wide, narrow)),
    }
}

fn percent_decoded(path: &str) -> Vec<u8> {
    let (bytes, mut decoded, mut at) = (path.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let octet = path.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match octet.filter(|_| bytes[at] == b'%') {
            Some(octet) => {
                decoded.push(octet);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

/// Where a path leads once `.` and `..` are taken as steps and slashes are joined.
fn resolved(path: &str) -> Vec<&str> {
    let mut way = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(way.pop()),
            name => way.push(name),
        }
    }
    way
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4000))]

    /// Whatever a server and what stands before it make of a path that a grant below `/v1/` covers, it is below `/v1/`.
    #[test]
    fn path_of_one_reading_stays_below_its_beginning_whoever_reads_it(
        parts in proptest::collection::vec(0..32_usize, 1..8),
        steps in proptest::collection::vec(0..8_u8, 0..7),
    ) {
        const PARTS: [&str; 32] = [
            "/", "/", "/", "..", ".", "a", "b", "admin", ";", "%3b", "%2e", "%2E%2e", "%2f", "%5c", "%25", "%252e", "%3f",
            "%23", "%20", "+", "%c0%ae", "%ef%bc%8e", "%e2%80%a5", "%ef%bc%8f", "%e2%88%95", "%c2%a5", "...", "%00", ":",
            "%ef%bc%85", "%ef%bc%9b", "-",
        ];
        let path: String = parts.iter().map(|part| PARTS[*part]).collect();
        let Ok(url) = alloc::format!("https://a.example/v1/{path}").parse::<Url>() else { return Ok(()) };
        if !has_one_reading(url.path()) {
            return Ok(());
        }
        let read = steps.iter().fold(url.path().to_string(), |path, step| read(&path, *step));
        proptest::prop_assert!(!read.contains("//"), "{path}: {read}");
        proptest::prop_assert_eq!(resolved(&read).first().copied(), Some("v1"), "{}: {}", path, read);
    }
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
