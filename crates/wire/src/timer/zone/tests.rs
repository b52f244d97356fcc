use alloc::string::ToString;

use super::*;

/// 2026-03-29 01:00 UTC, the last Sunday of March.
const FORWARD: i64 = 1_774_746_000;
/// 2026-10-25 01:00 UTC, the last Sunday of October.
const BACK: i64 = 1_792_890_000;

fn zone(text: &str) -> Zone {
    text.parse().unwrap()
}

#[test]
fn clock_changes_when_its_rules_say() {
    let berlin = zone("CET-1CEST,M3.5.0,M10.5.0/3");
    assert_eq!(
        [FORWARD - 1, FORWARD, BACK - 1, BACK].map(|at| berlin.ahead_s(at)),
        [3_600, 7_200, 7_200, 3_600]
    );
    let forward = Change { at: FORWARD, before_s: 3_600, after_s: 7_200 };
    let back = Change { at: BACK, before_s: 7_200, after_s: 3_600 };
    assert_eq!(berlin.change_after(FORWARD - 1), Some(forward));
    assert_eq!(berlin.change_after(FORWARD), Some(back));
    assert_eq!(berlin.change_before(BACK - 1), Some(forward));
    assert_eq!(berlin.change_before(BACK), Some(back));
    assert_eq!(zone("UTC0").change_after(0), None);
}

/// RFC 8536, 3.3.1: "XXX3EDT4,0/0,J365/23" is daylight saving time the whole year.
#[test]
fn summer_that_ends_as_the_next_begins_goes_on() {
    let always = zone("XXX3EDT4,0/0,J365/23");
    for days in 0..3_000 {
        assert_eq!(always.ahead_s(FORWARD + days * DAY_S as i64), -4 * 3_600, "{days}");
    }
    assert_eq!((always.change_after(FORWARD), always.change_before(FORWARD)), (None, None));
}

#[test]
fn days_are_counted_as_their_form_says() {
    // 2028 is a leap year: its 60th day is 29 February.
    let new_year = days_before(2028, 1);
    assert_eq!(Day::CommonYear(59).of(2028), new_year + 58);
    assert_eq!(Day::CommonYear(60).of(2028), new_year + 60, "1 March");
    assert_eq!(Day::Year(59).of(2028), new_year + 59, "29 February");
    // February 2026 begins on a Sunday and has four of each day.
    let february = days_before(2026, 2);
    assert_eq!(Day::Week { month: 2, week: 1, weekday: 0 }.of(2026), february);
    assert_eq!(Day::Week { month: 2, week: 5, weekday: 6 }.of(2026), february + 27);
}

#[test]
fn text_that_is_no_zone_is_refused() {
    for text in [
        "",
        "UTC",
        "UT0",
        "Europe/Berlin",
        "UTC25",
        "UTC0:60",
        "UTC0x",
        "<UTC0",
        "CET-1CEST",
        "CET-1CEST,M3.5.0",
        "CET-1CEST,M3.5.0,M13.1.0",
        "CET-1CEST,M3.0.0,M10.1.0",
        "CET-1CEST,M3.6.0,M10.1.0",
        "CET-1CEST,J0,J365",
        "CET-1CEST,M3.5.0/168,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/3 ",
        "CET--1",
        "CET+-1",
    ] {
        assert_eq!(text.parse::<Zone>(), Err(ZoneError), "{text:?}");
    }
}

#[test]
fn zone_is_shown_by_its_distances_from_utc() {
    for (text, shown) in [
        ("UTC0", "UTC+00:00"),
        ("<+0545>-5:45", "UTC+05:45"),
        ("EST5EDT,M3.2.0,M11.1.0", "UTC-05:00 (summer UTC-04:00)"),
    ] {
        assert_eq!(zone(text).to_string(), shown);
    }
}

/// A package is a stranger's.
#[test]
fn bytes_that_no_text_makes_are_refused() {
    let berlin = zone("CET-1CEST,M3.5.0,M10.5.0/3");
    let bytes = postcard::to_allocvec(&berlin).unwrap();
    assert_eq!(postcard::from_bytes(&bytes), Ok(berlin));
    let moment = |day| Moment { day, second: 0 };
    let winter = moment(Day::Year(300));
    for (standard_s, summer) in [
        (i32::MIN, None),
        (90_000, None),
        (0, Some((i32::MAX, moment(Day::Year(1)), winter))),
        (0, Some((0, moment(Day::Year(366)), winter))),
        (0, Some((0, winter, moment(Day::CommonYear(0))))),
        (0, Some((0, winter, moment(Day::Week { month: 0, week: 1, weekday: 0 })))),
        (0, Some((0, winter, moment(Day::Week { month: 1, week: 1, weekday: 7 })))),
        (0, Some((0, winter, Moment { day: Day::Year(1), second: i32::MIN }))),
    ] {
        let summer = summer.map(|(offset_s, begins, ends)| Summer { offset_s, begins, ends });
        let bytes = postcard::to_allocvec(&Zone { standard_s, summer }).unwrap();
        assert!(postcard::from_bytes::<Zone>(&bytes).is_err(), "{standard_s} {summer:?}");
    }
}
