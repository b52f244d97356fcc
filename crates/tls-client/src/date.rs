//! The date by which certificates are judged, and who told it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use tenure_tls::x509::CertificateError;
use tenure_tls::{Error, Now};
use tenure_wire::control::DateTeller;

/// The last second of the year 9999, the last that a calendar shows.
const LAST_UNIX_S: u64 = 253_402_300_799;

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// How long ago 1970 began.
    pub since_1970: Duration,
    /// Whoever told it.
    pub teller: DateTeller,
}

/// A source of the date. Copies ask the same source.
#[derive(Clone)]
pub struct Dates(Arc<dyn Fn() -> Option<Date> + Send + Sync>);

impl Dates {
    /// Dates by `ask`, which returns `None` while the device doesn't know the date.
    pub fn new(ask: impl Fn() -> Option<Date> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// The date, if the device knows it.
    pub fn date(&self) -> Option<Date> {
        (self.0)()
    }

    /// The time, as TLS needs it, on a clock that began at `start`.
    pub fn now(&self, start: Instant) -> Now {
        Now::new(start.elapsed(), self.date().map(|date| date.since_1970))
    }
}

/// An error of TLS in words. One about the date says how the device learns it, or by whom it goes.
pub fn explain(error: Error, date: Option<Date>) -> String {
    match (error, date) {
        (Error::Certificate(CertificateError::TimeUnknown), _) => format!(
            "TLS: {error}; it learns it by its system's clock, by any command of its owner, or from a hub whose key \
             is pinned"
        ),
        (
            Error::Certificate(CertificateError::NotYetValid | CertificateError::Expired),
            Some(date),
        ) => format!("TLS: {error}; by {} it is {date}", date.teller),
        _ => format!("TLS: {error}"),
    }
}

impl fmt::Display for Date {
    /// By RFC 3339.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = Duration::from_secs(self.since_1970.as_secs().min(LAST_UNIX_S));
        humantime::format_rfc3339_seconds(UNIX_EPOCH + seconds).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_about_the_date_says_how_it_is_learnt_or_by_whom_the_device_goes() {
        let date =
            |seconds, teller| Some(Date { since_1970: Duration::from_secs(seconds), teller });
        let said = |error, date| explain(Error::Certificate(error), date);
        let unknown = said(CertificateError::TimeUnknown, None);
        assert!(unknown.contains("does not know the time; it learns it by"), "{unknown}");
        let expired = said(CertificateError::Expired, date(4_102_444_800, DateTeller::Clock));
        assert!(expired.ends_with("; by its own clock it is 2100-01-01T00:00:00Z"), "{expired}");
        let early = said(CertificateError::NotYetValid, date(u64::MAX, DateTeller::Owner));
        assert!(early.ends_with("; by its owner it is 9999-12-31T23:59:59Z"), "{early}");
        let other = said(CertificateError::NameMismatch, date(0, DateTeller::Hub));
        assert!(!other.contains("1970"), "{other}");
    }
}
