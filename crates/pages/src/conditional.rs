//! The visitor's conditions on a page that is there whole: what a browser has already isn't sent again (RFC 9110 §13.1.2),
//! and of a long one what it asks for (RFC 9110 §14.2). A machine may answer both by itself.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tenure_http_listener::range::{self, Part};

use crate::answer::Answer;

/// The fields that an answer keeps whose body a visitor has (RFC 9110 §15.4.5).
const OF_UNCHANGED: [header::HeaderName; 4] =
    [header::CACHE_CONTROL, header::ETAG, header::EXPIRES, header::VARY];

/// Whether a machine is asked for the range that a visitor asks for; else for all of the page, of which the visitor then
/// gets that range. A machine needn't know more than the form `bytes=N-` or `bytes=N-M`.
pub(crate) fn is_for_the_machine(headers: &HeaderMap) -> bool {
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let range = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    range.is_some_and(|(first, last)| {
        range::number(first).is_some() && (last.is_empty() || range::number(last).is_some())
    })
}

/// Leaves out of a page what its visitor has, or didn't ask for.
pub(crate) fn condense(method: &Method, headers: &HeaderMap, answer: &mut Answer) {
    if *method != Method::GET || answer.status != StatusCode::OK {
        return;
    }
    let tag = match answer.headers.get(header::ETAG).cloned() {
        Some(tag) => {
            // What has a tag of the machine's may be kept, if it is asked about each time.
            let asks_first = HeaderValue::from_static("no-cache");
            answer.headers.entry(header::CACHE_CONTROL).or_insert(asks_first);
            tag
        }
        None => {
            let tag = tag_of(&answer.body);
            answer.headers.insert(header::ETAG, tag.clone());
            tag
        }
    };
    if has(headers, &tag) {
        answer.status = StatusCode::NOT_MODIFIED;
        answer.body.clear();
        let kept = OF_UNCHANGED
            .iter()
            .filter_map(|name| answer.headers.remove(name).map(|value| (name.clone(), value)));
        answer.headers = kept.collect();
        return;
    }
    let length = answer.body.len();
    let range = match range::part(method, headers, length, Some(&tag)) {
        Part::Whole => {
            answer.headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            return;
        }
        Part::Bytes { first, last } => {
            answer.body.truncate(last + 1);
            answer.body.drain(..first);
            answer.status = StatusCode::PARTIAL_CONTENT;
            format!("bytes {first}-{last}/{length}")
        }
        Part::Behind => {
            answer.body.clear();
            answer.status = StatusCode::RANGE_NOT_SATISFIABLE;
            format!("bytes */{length}")
        }
    };
    if let Ok(range) = HeaderValue::from_str(&range) {
        answer.headers.insert(header::CONTENT_RANGE, range);
    }
}

/// Whether a visitor has what has this tag, by the weak comparison (RFC 9110 §8.8.3.2).
fn has(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let own = opaque(tag.as_bytes());
    headers.get_all(header::IF_NONE_MATCH).iter().any(|known| {
        let mut known = known.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        known.any(|known| known == b"*" || opaque(known) == own)
    })
}

/// A tag that tells a body from others; it is no proof against who makes two of one tag, and harms the own page by that.
fn tag_of(body: &[u8]) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(header::HeaderName, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn condensed(message: &str, fields: &[(header::HeaderName, &str)]) -> Answer {
        let mut answer = Answer::read(Some(message.into())).unwrap();
        condense(&Method::GET, &headers(fields), &mut answer);
        answer
    }

    #[test]
    fn page_that_a_visitor_has_is_not_sent_again() {
        let tag = condensed("21.5", &[]).headers[header::ETAG].clone();
        let known = [(header::IF_NONE_MATCH, tag.to_str().unwrap())];
        let unchanged = condensed("21.5", &known);
        assert_eq!((unchanged.status, unchanged.body.len()), (StatusCode::NOT_MODIFIED, 0));
        assert!(!unchanged.headers.contains_key(header::CONTENT_TYPE));
        assert_eq!(unchanged.headers[header::ETAG], tag);
        assert_eq!(condensed("21.6", &known).status, StatusCode::OK);
        let own = "HTTP/1.1 200 OK\r\netag: \"a\"\r\n\r\n21.5";
        for (known, status) in [
            ("\"a\"", 304),
            ("W/\"a\"", 304),
            ("\"b\", \"a\"", 304),
            ("*", 304),
            ("\"b\"", 200),
            ("a", 200),
        ] {
            let answer = condensed(own, &[(header::IF_NONE_MATCH, known)]);
            assert_eq!(answer.status, status, "{known}");
            assert_eq!(answer.headers[header::CACHE_CONTROL], "no-cache");
        }
        let failure = condensed("HTTP/1.1 404 \r\n\r\nno", &[(header::IF_NONE_MATCH, "*")]);
        assert_eq!(failure.status, StatusCode::NOT_FOUND);
    }

    #[test]
    fn range_of_a_whole_page_is_cut_out_of_it() {
        for (range, status, body, part) in [
            ("bytes=1-2", 206, "bc", Some("bytes 1-2/5")),
            ("bytes=-2", 206, "de", Some("bytes 3-4/5")),
            ("bytes=3-", 206, "de", Some("bytes 3-4/5")),
            ("bytes=0-0,4-4", 200, "abcde", None),
            ("bytes=5-", 416, "", Some("bytes */5")),
            ("lines=1-2", 200, "abcde", None),
        ] {
            let answer = condensed("abcde", &[(header::RANGE, range)]);
            let said = answer.headers.get(header::CONTENT_RANGE).map(|it| it.to_str().unwrap());
            assert_eq!(
                (answer.status.as_u16(), answer.body.as_slice(), said),
                (status, body.as_bytes(), part),
                "{range}"
            );
        }
        let changed =
            condensed("abcde", &[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, "\"x\"")]);
        assert_eq!(changed.body, b"abcde");
    }

    #[test]
    fn machine_is_asked_for_ranges_of_two_forms_alone() {
        for (range, is) in [
            ("bytes=0-", true),
            ("bytes=3-9", true),
            ("bytes=-5", false),
            ("bytes=0-1,3-4", false),
            ("lines=0-", false),
        ] {
            assert_eq!(is_for_the_machine(&headers(&[(header::RANGE, range)])), is, "{range}");
        }
    }
}
