//! The time: as this computer has it, and as people read and write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Placements and enrolments are numbered by the time they are made, so that a later one counts
/// more.
pub fn now_in_milliseconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A time in the words of RFC 3339.
pub fn time(unix_s: u64) -> String {
    // A date that no calendar has is far enough away.
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(unix_s.min(LAST_UNIX_S)));
    humantime::format_rfc3339_seconds(at.unwrap_or(UNIX_EPOCH)).to_string()
}

/// How long something is, in its greatest unit alone.
pub fn rough(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The last second of the year 9999.
const LAST_UNIX_S: u64 = 253_402_300_799;

/// As [`parse_span`], in seconds.
///
/// # Errors
/// Its.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    parse_span(text).map(|span| span.as_secs())
}

/// The one notation of spans: 30d, 1h30m, 90s, 500ms; a second at least.
///
/// # Errors
/// It is none, or shorter than a second.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    parse_any_span(text).and_then(|span| match span.as_secs() {
        0 => Err("write a span of a second or more, as in 30d, 1h30m or 90s".to_string()),
        _ => Ok(span),
    })
}

/// As [`parse_span`], also of less than a second or of none.
///
/// # Errors
/// It is none.
pub fn parse_any_span(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text);
    span.map_err(|_| "write a span of time, as in 30d, 1h30m, 90s or 500ms".to_string())
}

/// As [`parse_any_span`], or a number of seconds, which may have a fraction.
///
/// # Errors
/// It is neither.
pub fn parse_span_or_seconds(text: &str) -> Result<Duration, String> {
    match text.parse().map(Duration::try_from_secs_f64) {
        Ok(Ok(span)) => Ok(span),
        Ok(Err(_)) => Err("write a span that is no longer than time is, as in 90s".to_string()),
        Err(_) => parse_any_span(text),
    }
}

/// As [`parse_any_span`] of whole milliseconds, or their number.
///
/// # Errors
/// It is neither.
pub fn parse_milliseconds(text: &str) -> Result<u32, String> {
    let ms = match text.parse() {
        Ok(ms) => Some(ms),
        Err(_) => {
            let span = parse_any_span(text)?;
            let is_whole = span.subsec_nanos() % 1_000_000 == 0;
            span.as_millis().try_into().ok().filter(|_| is_whole)
        }
    };
    ms.ok_or_else(|| "write a number of whole milliseconds, as in 100, 100ms or 2s".to_string())
}

/// A number of days from 1 to 366, or a span of so many whole days.
///
/// # Errors
/// It is neither.
pub fn parse_days(text: &str) -> Result<u16, String> {
    const DAY_S: u64 = 24 * 60 * 60;
    let days = match text.parse::<u64>() {
        Ok(days) => Some(days),
        Err(_) => {
            let span_s = parse_span(text)?.as_secs();
            (span_s % DAY_S == 0).then_some(span_s / DAY_S)
        }
    };
    let days = days.filter(|days| (1..=366).contains(days)).and_then(|days| days.try_into().ok());
    days.ok_or_else(|| "write a number of whole days from 1d to 366d, as in 30d".to_string())
}

/// A date, or a time of RFC 3339, in seconds since 1970.
///
/// # Errors
/// It is none, or before 1970.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let whole =
        if text.len() == "2027-01-31".len() { format!("{text}T00:00:00Z") } else { text.into() };
    let at = humantime::parse_rfc3339_weak(&whole).ok();
    at.and_then(|at: SystemTime| at.duration_since(UNIX_EPOCH).ok())
        .map(|since| since.as_secs())
        .ok_or_else(|| "write a date, as in 2027-01-31, or 2027-01-31T12:00:00Z".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans_are_read_as_they_are_written() {
        assert_eq!(parse_time("1970-01-02"), Ok(86_400));
        assert_eq!(parse_time("2027-01-31T12:00:00Z").map(time), Ok("2027-01-31T12:00:00Z".into()));
        assert_eq!(parse_seconds("30d"), Ok(30 * 86_400));
        assert!(
            ["tomorrow", "", "31.1.2027", "1960-01-01"]
                .iter()
                .all(|text| parse_time(text).is_err())
        );
        assert!(["0s", "x", "5", "500ms"].iter().all(|text| parse_seconds(text).is_err()));
        let ms = |text| parse_span_or_seconds(text).map(|span| span.as_millis());
        for (text, span_ms) in [
            ("20s", 20_000),
            ("1d", 86_400_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("2.5", 2_500),
            ("7", 7_000),
        ] {
            assert_eq!(ms(text), Ok(span_ms), "{text}");
        }
        assert!(["", "-1", "NaN", "inf", "1e300", "s", "5 x"].iter().all(|text| ms(text).is_err()));
        assert_eq!(
            (parse_days("30"), parse_days("30d"), parse_days("48h")),
            (Ok(30), Ok(30), Ok(2))
        );
        assert!(["0", "367", "36h", "d"].iter().all(|text| parse_days(text).is_err()));
        for (text, ms) in [("100", 100), ("100ms", 100), ("2s", 2_000), ("0", 0)] {
            assert_eq!(parse_milliseconds(text), Ok(ms), "{text}");
        }
        assert!(
            ["", "1.5", "100us", "60d", "x"].iter().all(|text| parse_milliseconds(text).is_err())
        );
        assert_eq!(time(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
