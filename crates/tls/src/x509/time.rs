//! Dates of certificates (RFC 5280 §4.1.2.5), as seconds.

use super::CertificateError;
use super::der::{Der, GENERALIZED_TIME, UTC_TIME};

/// Seconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(pub i64);

impl UnixTime {
    /// Reads a `Time`: of two digits' years until 2049, of four after.
    pub(super) fn read(der: &mut Der<'_>) -> Result<Self, CertificateError> {
        let (tag, text, _) = der.any()?;
        let (year, rest) = match (tag, text.len()) {
            (UTC_TIME, 13) => {
                let year = digits(&text[..2])?;
                (if year < 50 { 2000 + year } else { 1900 + year }, &text[2..])
            }
            (GENERALIZED_TIME, 15) => (digits(&text[..4])?, &text[4..]),
            _ => return Err(CertificateError::Malformed),
        };
        let [month, day, hour, minute, second] =
            [0, 2, 4, 6, 8].map(|at| digits(&rest[at..at + 2]));
        let (month, day) = (month?, day?);
        let (hour, minute, second) = (hour?, minute?, second?);
        let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
        if !is_date || hour > 23 || minute > 59 || second > 59 || rest[10] != b'Z' {
            return Err(CertificateError::Malformed);
        }
        let seconds = (hour * 60 + minute) * 60 + second;
        Ok(Self(i64::from(days_since_1970(year, month, day)) * 86_400 + i64::from(seconds)))
    }
}

/// In 32 bits, as all arithmetic here: a division of 64 takes a kilobyte of flash on a small processor.
fn digits(text: &[u8]) -> Result<i32, CertificateError> {
    text.iter().try_fold(0, |value, digit| match digit {
        b'0'..=b'9' => Ok(value * 10 + i32::from(digit - b'0')),
        _ => Err(CertificateError::Malformed),
    })
}

const fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The civil calendar, counted in eras of 400 years that begin in March.
const fn days_since_1970(year: i32, month: i32, day: i32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
#[path = "time_tests.rs"]
mod tests;
