//! The `Range` of a request (RFC 9110 14).

use http::{HeaderMap, HeaderValue, Method, header};

/// The part of a representation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Some of its bytes.
    Bytes {
        /// The place of the first of them.
        first: usize,
        /// The place of the last of them.
        last: usize,
    },
    /// Bytes behind its end (RFC 9110 15.5.17).
    Behind,
}

/// The part of a representation of `length` bytes that a request is answered with, if it has this entity tag. A header that
/// isn't understood counts for nothing (RFC 9110 14.2), and several ranges are answered by the whole.
pub fn part(
    method: &Method,
    headers: &HeaderMap,
    length: usize,
    tag: Option<&HeaderValue>,
) -> Part {
    // No other method has ranges, and a condition holds by a strong tag alone (RFC 9110 13.1.5); dates aren't compared.
    let condition = headers.get(header::IF_RANGE);
    let is_strong = |tag: &HeaderValue| !tag.as_bytes().starts_with(b"W/");
    let holds = condition.is_none_or(|it| tag.is_some_and(|tag| tag == it && is_strong(tag)));
    if *method != Method::GET || !holds {
        return Part::Whole;
    }
    let text = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    text.and_then(|text| part_of(text, length)).unwrap_or(Part::Whole)
}

/// The part that the text of the header says; `None` if it says no single range of bytes.
fn part_of(text: &str, length: usize) -> Option<Part> {
    let (unit, set) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    // A list may have empty elements (RFC 9110 5.6.1.2).
    let mut ranges = set.split(',').map(str::trim).filter(|range| !range.is_empty());
    let (range, None) = (ranges.next()?, ranges.next()) else { return None };
    let (first, last) = range.split_once('-')?;
    if first.is_empty() {
        return Some(match (number(last)?, length) {
            (0, _) => Part::Behind,
            // No Content-Range can name the end of nothing.
            (_, 0) => Part::Whole,
            (suffix, _) => Part::Bytes { first: length.saturating_sub(suffix), last: length - 1 },
        });
    }
    let first = number(first)?;
    let last = if last.is_empty() { usize::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    Some(match first < length {
        true => Part::Bytes { first, last: last.min(length - 1) },
        false => Part::Behind,
    })
}

/// A number of bytes (`1*DIGIT`); one that is beyond all memory is the greatest.
pub fn number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(range: &'static str, length: usize) -> Part {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static(range));
        part(&Method::GET, &headers, length, None)
    }

    /// The examples of RFC 9110 14.1.2, of 10,000 bytes, and their neighbours.
    #[test]
    fn ranges_of_bytes_are_those_of_the_rfc() {
        let bytes = |first, last| Part::Bytes { first, last };
        for (range, part) in [
            ("bytes=0-499", bytes(0, 499)),
            ("bytes=500-999", bytes(500, 999)),
            ("bytes=-500", bytes(9_500, 9_999)),
            ("bytes=9500-", bytes(9_500, 9_999)),
            ("Bytes=0-0", bytes(0, 0)),
            ("bytes= , 1-2 ,", bytes(1, 2)),
            ("bytes=9999-99999999999999999999999999", bytes(9_999, 9_999)),
            ("bytes=-99999999999999999999999999", bytes(0, 9_999)),
            ("bytes=10000-", Part::Behind),
            ("bytes=99999999999999999999999999-", Part::Behind),
            ("bytes=-0", Part::Behind),
        ] {
            assert_eq!(asked(range, 10_000), part, "{range}");
        }
        assert_eq!(asked("bytes=0-", 0), Part::Behind);
        assert_eq!(asked("bytes=-5", 0), Part::Whole);
    }

    #[test]
    fn header_that_names_no_single_range_of_bytes_counts_for_nothing() {
        for range in [
            "items=0-5",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=abc",
            "bytes=-",
            "bytes=5",
            "bytes=5-4",
            "bytes=+1-2",
            "bytes=1-+2",
            "bytes=--1",
            "bytes=1-2-3",
            "bytes=0-0,-1",
            "bytes 0-5",
            "",
        ] {
            assert_eq!(asked(range, 10_000), Part::Whole, "{range}");
        }
    }

    #[test]
    fn head_and_a_condition_that_does_not_hold_ask_for_the_whole() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(part(&Method::HEAD, &headers, 9, None), Part::Whole);
        let tag = HeaderValue::from_static;
        for (condition, own, holds) in [
            ("\"1\"", Some("\"1\""), true),
            ("\"1\"", Some("\"2\""), false),
            ("\"1\"", None, false),
            ("W/\"1\"", Some("W/\"1\""), false),
            ("Tue, 15 Nov 1994 12:45:26 GMT", Some("\"1\""), false),
        ] {
            headers.insert(header::IF_RANGE, tag(condition));
            let own = own.map(tag);
            let expected = if holds { Part::Bytes { first: 0, last: 1 } } else { Part::Whole };
            assert_eq!(part(&Method::GET, &headers, 9, own.as_ref()), expected, "{condition}");
        }
    }
}
