use super::*;
use alloc::string::ToString as _;
use alloc::vec;
use tenure_wire::control::LogLine;

fn at(seconds: u64) -> Instant {
    Instant::BOOT + Duration::from_secs(seconds)
}

/// A page of one line of so many bytes.
fn page(bytes: usize) -> Option<LogPage> {
    let line = LogLine {
        number: 7,
        at_ms: 1,
        machine: "counter".parse().unwrap(),
        level: "info".to_string(),
        message: "x".repeat(bytes),
        unix_s: None,
        boot: 1,
    };
    Some(LogPage { lines: vec![line], next: 8, lost: 0, more: false, boot: 1 })
}

fn answered(log: &mut LiveLog, now: Instant, from: Option<u64>) {
    let answer: Answer<LogWish> = Ok(LogWish { from, again_s: 1 });
    log.done(now, Ok(Some(postcard::to_allocvec(&answer).unwrap())));
}

#[test]
fn lines_are_told_while_the_hub_wants_them_and_not_before_or_after() {
    let mut log = LiveLog::new(true, at(0));
    assert_eq!(log.wanted(), None);
    log.next(at(0), 1, None);
    answered(&mut log, at(0), Some(7));
    assert_eq!((log.wanted(), log.at), (Some(7), Some(at(1))));
    let share: LogShare = postcard::from_bytes(&log.next(at(1), 1, page(5))).unwrap();
    assert_eq!((share.lines.len(), share.next, log.at), (1, 8, None));
    answered(&mut log, at(1), None);
    assert_eq!(log.wanted(), None);
}

#[test]
fn hub_that_is_silent_or_talks_nonsense_is_told_no_line() {
    let mut log = LiveLog::new(true, at(0));
    for nonsense in [Ok(None), Ok(Some(vec![0xFF; 9])), Err(NoResult::Execution)] {
        answered(&mut log, at(0), Some(0));
        log.done(at(0), nonsense);
        assert_eq!((log.wanted(), log.at), (None, Some(at(30))));
    }
    log.done(at(0), Err(NoResult::NoSuchFunction));
    assert_eq!(log.at, Some(at(3600)));
}

#[test]
fn hub_that_always_wants_lines_has_no_more_than_the_budget_of_a_day() {
    let mut log = LiveLog::new(true, at(0));
    let (mut told, mut now) = (0, 0);
    while now < 24 * 60 * 60 {
        answered(&mut log, at(now), Some(0));
        now += 1;
        let page = log.wanted().and_then(|_| page(8_000));
        told += page.as_ref().map_or(0, |_| 8_000);
        log.next(at(now), 1, page);
    }
    let burst = BYTES_A_DAY * BURST.as_secs() / (24 * 60 * 60);
    assert!((BYTES_A_DAY..=BYTES_A_DAY + burst).contains(&(told as u64)), "{told} bytes");
}
