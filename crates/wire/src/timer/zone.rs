//! The clock of a place: how far it is from UTC, and when that changes.
//!
//! A zone is the rules of POSIX's `TZ` (IEEE Std 1003.1, 8.3) with hours from -167 to 167 (RFC 8536, 3.3.1), which is
//! what a computer's time zone database says of the years to come. A device evaluates them without that database.
//! Names of times, such as `CET`, are read and left out.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DAY_S, Date, HOUR_S, MINUTE_S, is_leap, length};

/// Rules of a place's clock, which are always well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Zone {
    /// How far its standard time is ahead of UTC, in seconds.
    standard_s: i32,
    summer: Option<Summer>,
}

/// The other time of a year, which most call summer time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Summer {
    /// How far it is ahead of UTC, in seconds.
    offset_s: i32,
    begins: Moment,
    ends: Moment,
}

/// A moment of each year, by the clock as it is until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moment {
    day: Day,
    /// Seconds from the day's midnight on; days before and after it can be reached.
    second: i32,
}

/// A day of each year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Day {
    /// `Jn`: from 1 to 365; 29 February isn't counted.
    CommonYear(u16),
    /// `n`: from 0 to 365; 29 February is counted.
    Year(u16),
    /// `Mm.w.d`: the `week`th of that day of the week in that month; the fifth is the last.
    Week { month: u8, week: u8, weekday: u8 },
}

/// A zone as a stranger wrote it.
#[derive(Deserialize)]
struct Unchecked {
    standard_s: i32,
    summer: Option<Summer>,
}

/// A change of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// When, in seconds since 1970.
    pub(super) at: i64,
    /// How far the clock was ahead of UTC until then, in seconds.
    pub(super) before_s: i64,
    /// How far it is from then on.
    pub(super) after_s: i64,
}

/// The farthest that a clock is from UTC, in seconds: less than 25 hours.
pub(super) const OFFSET_S_MAX: i64 = 25 * HOUR_S as i64 - 1;
/// The farthest that a change is from its day's midnight.
const SECOND_MAX: i32 = 168 * HOUR_S as i32 - 1;
/// When the clock changes if no time is said: at two.
const SECOND_OF_CHANGE: i32 = 2 * HOUR_S as i32;

/// The changes of four years.
type Changes = [(i64, i32); 8];
/// Those of them after which the clock is known: those of the last year may be undone by the next.
const KNOWN: usize = 6;

impl Zone {
    /// The zone without summer time that is so many seconds ahead of UTC; `None` beyond 25 hours.
    pub fn fixed(ahead_s: i32) -> Option<Self> {
        Unchecked { standard_s: ahead_s, summer: None }.try_into().ok()
    }

    /// How far the clock is ahead of UTC at `unix_s`, in seconds.
    pub fn ahead_s(&self, unix_s: i64) -> i64 {
        let Some(summer) = &self.summer else { return self.standard_s.into() };
        let changes = self.changes_about(unix_s, summer);
        offset(&changes, unix_s).unwrap_or(self.standard_s).into()
    }

    /// The first change of the clock after `unix_s`.
    pub(super) fn change_after(&self, unix_s: i64) -> Option<Change> {
        let changes = self.changes_about(unix_s, self.summer.as_ref()?);
        let at = changes[..KNOWN].iter().map(|(at, _)| *at).filter(|at| *at > unix_s);
        at.filter_map(|at| change(&changes, at)).next()
    }

    /// The last change of the clock at or before `unix_s`.
    pub(super) fn change_before(&self, unix_s: i64) -> Option<Change> {
        let changes = self.changes_about(unix_s, self.summer.as_ref()?);
        let at = changes.iter().rev().map(|(at, _)| *at).filter(|at| *at <= unix_s);
        at.filter_map(|at| change(&changes, at)).next()
    }

    /// The changes of the years from the one before `unix_s` on, with what the clock is ahead of UTC from each on, in
    /// their order.
    fn changes_about(&self, unix_s: i64, summer: &Summer) -> Changes {
        let days = (unix_s + i64::from(self.standard_s)).div_euclid(DAY_S as i64);
        let year = i64::from(Date::of(u32::try_from(days.max(0)).unwrap_or(u32::MAX / 2)).year);
        let of_year = |year: i64| {
            let begins = summer.begins.second_of(year) - i64::from(self.standard_s);
            let ends = summer.ends.second_of(year) - i64::from(summer.offset_s);
            [(begins, summer.offset_s), (ends, self.standard_s)]
        };
        let years = [year - 1, year, year + 1, year + 2].map(of_year);
        let mut changes = core::array::from_fn(|index| years[index / 2][index % 2]);
        // A summer that ends as the next begins goes on.
        changes.sort_unstable_by_key(|(at, offset_s)| (*at, *offset_s == summer.offset_s));
        changes
    }
}

/// The clock's offset at `unix_s`, if a change came before.
fn offset(changes: &Changes, unix_s: i64) -> Option<i32> {
    let last = changes.iter().rev().find(|(at, _)| *at <= unix_s);
    last.map(|(_, offset_s)| *offset_s)
}

/// The change at `at`, if there is one.
fn change(changes: &Changes, at: i64) -> Option<Change> {
    let (before, after) = (offset(changes, at - 1)?, offset(changes, at)?);
    let change = Change { at, before_s: before.into(), after_s: after.into() };
    (before != after).then_some(change)
}

impl Moment {
    /// When it is in `year`, in seconds since 1970 of its own clock.
    fn second_of(&self, year: i64) -> i64 {
        self.day.of(year) * DAY_S as i64 + i64::from(self.second)
    }
}

impl Day {
    /// Which day it is in `year`, in days since 1970-01-01.
    fn of(&self, year: i64) -> i64 {
        let new_year = days_before(year, 1);
        let is_leap = is_leap(u32::try_from(year).unwrap_or_default());
        match *self {
            Self::CommonYear(day) => new_year + i64::from(day) - 1 + i64::from(is_leap && day > 59),
            Self::Year(day) => new_year + i64::from(day),
            Self::Week { month, week, weekday } => {
                let first = days_before(year, month);
                // 1970-01-01 was a Thursday.
                let first_weekday = (first + 4).rem_euclid(7);
                let to_first = (i64::from(weekday) - first_weekday).rem_euclid(7);
                let of_month = to_first + 7 * (i64::from(week) - 1);
                let is_too_late = of_month >= i64::from(length(month, is_leap));
                first + of_month - if is_too_late { 7 } else { 0 }
            }
        }
    }

    fn is_well_formed(&self) -> bool {
        match *self {
            Self::CommonYear(day) => (1..=365).contains(&day),
            Self::Year(day) => day <= 365,
            Self::Week { month, week, weekday } => {
                (1..=12).contains(&month) && (1..=5).contains(&week) && weekday <= 6
            }
        }
    }
}

/// The days from 1970-01-01 to the first of that month, by H. Hinnant's `days_from_civil`.
fn days_before(year: i64, month: u8) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (i64::from(month) + 9) % 12;
    let of_year = (153 * from_march + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl TryFrom<Unchecked> for Zone {
    type Error = ZoneError;

    fn try_from(zone: Unchecked) -> Result<Self, ZoneError> {
        let is_offset = |offset_s: i32| i64::from(offset_s).abs() <= OFFSET_S_MAX;
        let is_moment = |moment: &Moment| {
            moment.day.is_well_formed() && (-SECOND_MAX..=SECOND_MAX).contains(&moment.second)
        };
        let is_summer = |summer: &Summer| {
            is_offset(summer.offset_s) && is_moment(&summer.begins) && is_moment(&summer.ends)
        };
        let is_well_formed =
            is_offset(zone.standard_s) && zone.summer.as_ref().is_none_or(is_summer);
        let checked = Self { standard_s: zone.standard_s, summer: zone.summer };
        is_well_formed.then_some(checked).ok_or(ZoneError)
    }
}

/// A text isn't the rules of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneError;

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a zone is a rule as in POSIX's TZ, with both changes if it has a summer time: `UTC0`, `EST5`, \
             `CET-1CEST,M3.5.0,M10.5.0/3`",
        )
    }
}

impl core::error::Error for ZoneError {}

impl FromStr for Zone {
    type Err = ZoneError;

    /// Reads `std offset [dst [offset] , start [/time] , end [/time]]`.
    fn from_str(text: &str) -> Result<Self, ZoneError> {
        let mut rest = Text(text);
        rest.name()?;
        let standard_s = -rest.time(24)?;
        let summer = if rest.0.is_empty() { None } else { Some(rest.summer(standard_s)?) };
        if !rest.0.is_empty() {
            return Err(ZoneError);
        }
        Unchecked { standard_s, summer }.try_into()
    }
}

/// The text left to read.
struct Text<'a>(&'a str);

impl Text<'_> {
    fn summer(&mut self, standard_s: i32) -> Result<Summer, ZoneError> {
        self.name()?;
        let is_ahead_by_an_hour = self.0.starts_with(',');
        let hour = HOUR_S as i32;
        let offset_s = if is_ahead_by_an_hour { standard_s + hour } else { -self.time(24)? };
        Ok(Summer { offset_s, begins: self.moment()?, ends: self.moment()? })
    }

    fn moment(&mut self) -> Result<Moment, ZoneError> {
        self.expect(',')?;
        let day = if self.take('J') {
            Day::CommonYear(self.number(365)?)
        } else if self.take('M') {
            let month = self.number(12)? as u8;
            self.expect('.')?;
            let week = self.number(5)? as u8;
            self.expect('.')?;
            Day::Week { month, week, weekday: self.number(6)? as u8 }
        } else {
            Day::Year(self.number(365)?)
        };
        let second = if self.take('/') { self.time(167)? } else { SECOND_OF_CHANGE };
        Ok(Moment { day, second })
    }

    /// The name of a time: three letters or more, or letters, digits and signs between `<` and `>`.
    fn name(&mut self) -> Result<(), ZoneError> {
        let is_quoted = self.take('<');
        let is_part = |letter: char| {
            letter.is_ascii_alphabetic()
                || is_quoted && (letter.is_ascii_digit() || letter == '+' || letter == '-')
        };
        let end = self.0.find(|letter| !is_part(letter)).unwrap_or(self.0.len());
        self.0 = &self.0[end..];
        if end < 3 || is_quoted && !self.take('>') {
            return Err(ZoneError);
        }
        Ok(())
    }

    /// `[+-]hh[:mm[:ss]]`, in seconds.
    fn time(&mut self, hours_max: u16) -> Result<i32, ZoneError> {
        let is_negative = self.take('-');
        if !is_negative {
            self.take('+');
        }
        let mut seconds = i32::from(self.number(hours_max)?) * HOUR_S as i32;
        if self.take(':') {
            seconds += i32::from(self.number(59)?) * MINUTE_S as i32;
            if self.take(':') {
                seconds += i32::from(self.number(59)?);
            }
        }
        Ok(if is_negative { -seconds } else { seconds })
    }

    fn number(&mut self, most: u16) -> Result<u16, ZoneError> {
        let end = self.0.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits.parse().ok().filter(|number| *number <= most).ok_or(ZoneError)
    }

    fn expect(&mut self, letter: char) -> Result<(), ZoneError> {
        self.take(letter).then_some(()).ok_or(ZoneError)
    }

    /// Whether `letter` was next.
    fn take(&mut self, letter: char) -> bool {
        let rest = self.0.strip_prefix(letter);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

/// `UTC+01:00`, or `UTC+01:00 (summer UTC+02:00)`.
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_offset(f, self.standard_s)?;
        let Some(summer) = &self.summer else { return Ok(()) };
        f.write_str(" (summer ")?;
        write_offset(f, summer.offset_s)?;
        f.write_str(")")
    }
}

fn write_offset(f: &mut fmt::Formatter<'_>, offset_s: i32) -> fmt::Result {
    let sign = if offset_s < 0 { '-' } else { '+' };
    let seconds = offset_s.unsigned_abs();
    let (hours, minutes) = (seconds / HOUR_S as u32, seconds % HOUR_S as u32 / MINUTE_S as u32);
    write!(f, "UTC{sign}{hours:02}:{minutes:02}")
}

#[cfg(test)]
mod tests;
