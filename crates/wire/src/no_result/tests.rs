use super::*;
use crate::frame::ReplyBody;
use crate::limits::WORDS_BYTES_MAX;
use alloc::string::ToString;

#[test]
fn codes_are_distinct_and_come_back_over_the_wire() {
    for (place, reason) in NoResult::ALL.iter().enumerate() {
        assert!(NoResult::ALL[..place].iter().all(|other| other.code() != reason.code()));
        assert_ne!(reason.code(), 0, "0 is a result");
        let bytes = ReplyBody(Err(*reason)).to_bytes();
        assert_eq!(ReplyBody::parse(&bytes), Ok(ReplyBody(Err(*reason))));
    }
}

#[test]
fn wait_is_carried_in_milliseconds() {
    let stopped = NoResult::Stopped { again_in: Duration::from_millis(0x1_02) };
    assert_eq!(ReplyBody(Err(stopped)).to_bytes(), [9, 2, 1, 0, 0]);
    assert_eq!(ReplyBody::parse(&[9, 2, 1, 0, 0]), Ok(ReplyBody(Err(stopped))));
    let longest = NoResult::Stopped { again_in: Duration::MAX };
    assert_eq!(ReplyBody(Err(longest)).to_bytes(), [9, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert!(ReplyBody::parse(&[9, 2, 1]).is_err(), "half a wait");
}

#[test]
fn reason_of_a_later_version_keeps_its_code_and_may_have_run() {
    let later = NoResult::Other(200);
    assert_eq!(ReplyBody::parse(&[200, 1, 2, 3]), Ok(ReplyBody(Err(later))));
    assert!(later.may_have_run());
    assert_eq!(later.host_error(), HostError::Unknown);
    assert!(later.to_string().ends_with(": 200"));
}

#[test]
fn bytes_appended_to_a_known_reason_are_ignored() {
    assert_eq!(ReplyBody::parse(&[5, 1]), Ok(ReplyBody(Err(NoResult::Busy))));
    let stopped = NoResult::Stopped { again_in: Duration::from_millis(1) };
    assert_eq!(ReplyBody::parse(&[9, 1, 0, 0, 0, 7]), Ok(ReplyBody(Err(stopped))));
}

#[test]
fn words_follow_a_reason_without_a_wait_and_are_cut() {
    for reason in NoResult::ALL {
        let bytes = ReplyBody::failure(*reason, b"too warm");
        assert_eq!(ReplyBody::parse(&bytes), Ok(ReplyBody(Err(*reason))));
        let words: &[u8] = if reason.again_in().is_none() { b"too warm" } else { b"" };
        assert_eq!(ReplyBody::words(&bytes), words, "{reason}");
    }
    let long = [b'x'; WORDS_BYTES_MAX + 1];
    let bytes = ReplyBody::failure(NoResult::Execution, &long);
    assert_eq!(bytes.len(), 1 + WORDS_BYTES_MAX);
    let longer = [&[1][..], &long].concat();
    assert_eq!(ReplyBody::words(&longer).len(), WORDS_BYTES_MAX, "a peer may send more");
    assert_eq!(ReplyBody::words(&ReplyBody(Ok(Some(b"result"))).to_bytes()), b"");
    assert_eq!(ReplyBody::words(&[]), b"");
}

/// Frozen: the codes of version 1.
#[test]
fn codes_of_version_1_are_these() {
    let codes = NoResult::ALL.iter().map(|reason| reason.code());
    assert!(codes.eq([1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 19, 14, 15, 16, 18, 9, 17, 20]));
}
