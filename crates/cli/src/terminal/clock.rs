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

/// The last second of the year 9999.
const LAST_UNIX_S: u64 = 253_402_300_799;

/// As [`parse_span`], in seconds.
///
/// # Errors
/// Its.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    parse_span(text).map(|span| span.as_secs())
}

/// A span of time as in 30d, 12h or 90s.
///
/// # Errors
/// It is none, or shorter than a second.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.as_secs() > 0 => Ok(span),
        _ => Err("write a span of time, as in 30d, 12h or 90s".to_string()),
    }
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
        assert!(["0s", "x", "5"].iter().all(|text| parse_seconds(text).is_err()));
        assert_eq!(time(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
