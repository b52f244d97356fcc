//! A page that is longer than a call's result, fetched in parts (RFC 9110 §14).
//!
//! These pages ask for the bytes from the first on. A machine whose page is longer than a result answers with the first
//! of them (206 and `Content-Range`), and is asked for the next until it has told all. One that knows no ranges answers
//! with the whole, as servers may (RFC 9110 §14.2).

use http::{HeaderMap, StatusCode, header};

use crate::answer::Answer;

/// The most bytes of a page.
pub(crate) const PAGE_BYTES_MAX: usize = 1 << 20;

/// A page whose first part has come.
#[derive(Debug)]
pub(crate) struct Page {
    answer: Answer,
    whole: usize,
}

/// The next step to a page.
#[derive(Debug)]
pub(crate) enum Step {
    /// All of it is there.
    Done(Answer),
    /// The machine is to be asked for the bytes in this range.
    Ask(Page, String),
}

/// A part doesn't fit those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misfit;

/// The range that asks for the first part.
pub(crate) const FIRST: &str = "bytes=0-";

/// The step after the first answer.
pub(crate) fn begin(answer: Answer) -> Result<Step, Misfit> {
    if answer.status != StatusCode::PARTIAL_CONTENT {
        return Ok(Step::Done(answer));
    }
    let (first, whole) = range_of(&answer).ok_or(Misfit)?;
    if first != 0 || whole > PAGE_BYTES_MAX {
        return Err(Misfit);
    }
    Page { answer, whole }.next()
}

impl Page {
    /// The step after the next part.
    pub(crate) fn take(mut self, part: Answer) -> Result<Step, Misfit> {
        let tag = |answer: &Answer| answer.headers.get(header::ETAG).cloned();
        let follows = range_of(&part) == Some((self.answer.body.len(), self.whole));
        if part.status != StatusCode::PARTIAL_CONTENT || !follows || tag(&part) != tag(&self.answer)
        {
            return Err(Misfit);
        }
        self.answer.body.extend_from_slice(&part.body);
        self.next()
    }

    fn next(mut self) -> Result<Step, Misfit> {
        let have = self.answer.body.len();
        if have < self.whole {
            return Ok(Step::Ask(self, format!("bytes={have}-")));
        }
        self.answer.status = StatusCode::OK;
        self.answer.headers.remove(header::CONTENT_RANGE);
        Ok(Step::Done(self.answer))
    }
}

/// The place of a part's first byte, and the length of the whole (RFC 9110 §14.4); `None` if they don't fit its body, or
/// it has none.
fn range_of(answer: &Answer) -> Option<(usize, usize)> {
    let (range, whole) = content_range(&answer.headers)?;
    let whole: usize = whole.parse().ok()?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    let fits = last.checked_sub(first)?.checked_add(1)? == answer.body.len() && last < whole;
    fits.then_some((first, whole))
}

fn content_range(headers: &HeaderMap) -> Option<(&str, &str)> {
    headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(range: &str, body: &str, tag: &str) -> Answer {
        let text = format!("HTTP/1.1 206 \r\ncontent-range: {range}\r\netag: {tag}\r\n\r\n{body}");
        Answer::read(Some(text.into_bytes())).unwrap()
    }

    #[test]
    fn parts_become_one_page() {
        let Step::Ask(page, range) = begin(part("bytes 0-2/7", "abc", "\"1\"")).unwrap() else {
            panic!()
        };
        assert_eq!(range, "bytes=3-");
        let Step::Ask(page, range) = page.take(part("bytes 3-5/7", "def", "\"1\"")).unwrap() else {
            panic!()
        };
        assert_eq!(range, "bytes=6-");
        let Step::Done(answer) = page.take(part("bytes 6-6/7", "g", "\"1\"")).unwrap() else {
            panic!()
        };
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (StatusCode::OK, b"abcdefg".as_slice())
        );
        assert!(!answer.headers.contains_key(header::CONTENT_RANGE));
    }

    #[test]
    fn whole_page_needs_no_parts() {
        for result in ["all of it", "HTTP/1.1 404 \r\n\r\nno"] {
            let answer = Answer::read(Some(result.into())).unwrap();
            assert!(matches!(begin(answer.clone()).unwrap(), Step::Done(same) if same == answer));
        }
    }

    #[test]
    fn parts_that_lie_end_the_page() {
        let large = format!("bytes 0-2/{}", PAGE_BYTES_MAX + 1);
        for range in [
            "bytes 1-3/7",
            "bytes 0-3/7",
            "bytes 0-1/7",
            "bytes 0-2/2",
            "bytes 0-2/*",
            "bytes */7",
            "bytes 2-0/7",
            "bytes 0-18446744073709551615/7",
            "items 0-2/7",
            "",
            large.as_str(),
        ] {
            assert!(begin(part(range, "abc", "\"1\"")).is_err(), "{range}");
        }
        for (range, body, tag) in [
            ("bytes 0-2/7", "abc", "\"1\""),
            ("bytes 4-6/7", "efg", "\"1\""),
            ("bytes 3-5/8", "def", "\"1\""),
            ("bytes 3-5/7", "def", "\"2\""),
            ("bytes 3-3/7", "", "\"1\""),
        ] {
            let Step::Ask(page, _) = begin(part("bytes 0-2/7", "abc", "\"1\"")).unwrap() else {
                panic!()
            };
            assert_eq!(page.take(part(range, body, tag)).unwrap_err(), Misfit, "{range}");
        }
        let Step::Ask(page, _) = begin(part("bytes 0-2/7", "abc", "\"1\"")).unwrap() else {
            panic!()
        };
        assert!(page.take(Answer::read(Some(b"abc".to_vec())).unwrap()).is_err());
    }
}
