//! Timers that a package brings along: a function that the device calls again and again.
//!
//! A schedule is that of crontab(5) of Debian's cron: five fields, each a set of numbers. If neither the day of the
//! month nor the day of the week has a star, either one will do; else both must hold. Its times are in UTC, or on the
//! clock of a [`Zone`]. A step behind a single number, which Debian's cron refuses, goes to the field's end.

mod local;
mod zone;

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::local::LocalSchedule;
pub use self::zone::{Zone, ZoneError};

/// The shortest time between two calls of one timer, in milliseconds.
pub const PERIOD_MS_MIN: u32 = 10;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;
/// The most days between two times of a schedule: 40 years lie between 29 February 2088 and 2128, which are Sundays,
/// because that day is missing in 2100.
const DAYS_BETWEEN_MAX: u32 = 41 * 366;
/// The days after which the Gregorian calendar repeats: 400 years, which are whole weeks.
const CALENDAR_DAYS: u64 = 146_097;

const _: () = assert!(CALENDAR_DAYS.is_multiple_of(7));

/// The longest text of a schedule that a machine sets, in bytes.
pub const SCHEDULE_BYTES_MAX: usize = 128;

/// A timer that stands in a package: what it calls, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageTimer {
    /// The function, which may be private.
    pub function: String,
    /// When it is called.
    pub when: When,
}

/// When a timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Again and again, so many milliseconds apart, counted from the start of the machine.
    Every(u32),
    /// At times of day in UTC, once the device knows it.
    At(Schedule),
    /// At times of day on the clock of a zone.
    AtLocal(LocalSchedule),
}

impl When {
    /// The times that `text` says: a [`Schedule`], or a [`LocalSchedule`] if it begins with a zone.
    ///
    /// # Errors
    /// See [`ScheduleError`].
    pub fn at(text: &str) -> Result<Self, ScheduleError> {
        match text.trim_start().starts_with(local::PREFIX) {
            true => text.parse().map(Self::AtLocal),
            false => text.parse().map(Self::At),
        }
    }

    /// Whether it ever fires, and no oftener than timers may.
    pub fn is_possible(&self) -> bool {
        match self {
            Self::Every(period_ms) => *period_ms >= PERIOD_MS_MIN,
            Self::At(schedule) => schedule.next_after(0).is_some(),
            Self::AtLocal(schedule) => schedule.next_after(0).is_some(),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(ms) if ms % 1000 == 0 => write!(f, "every {} s", ms / 1000),
            Self::Every(ms) => write!(f, "every {ms} ms"),
            Self::At(schedule) => write!(f, "at `{schedule}` UTC"),
            Self::AtLocal(local) => write!(f, "at `{}` {}", local.schedule, local.zone),
        }
    }
}

/// Minutes of the year at which something happens, as in crontab(5): each field has a bit for each number.
///
/// All fields but the month have one bit more, for a star that the set doesn't show: `*/2` has one, and `1-31` hasn't. A
/// build that doesn't know this bit takes a full set for a star and any other for none, and so does this one if it is
/// clear. In UTC a star of minutes or hours means no more than its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Minutes of the hour, from 0; bit 63 is [`ODD_STAR_OF_MINUTES`].
    minutes: u64,
    /// Hours of the day, from 0; bit 31 is [`ODD_STAR_OF_HOURS`].
    hours: u32,
    /// Days of the month, from 1; bit 0 is [`ODD_STAR_OF_DAYS`].
    days: u32,
    /// Months, from 1.
    months: u16,
    /// Days of the week, from Sunday, which is 0; bit 7 is [`ODD_STAR_OF_WEEKDAYS`].
    weekdays: u8,
}

/// Days of the month have a star although they aren't all of them, or none although they are.
const ODD_STAR_OF_DAYS: u32 = 1;
/// The same of the days of the week.
const ODD_STAR_OF_WEEKDAYS: u8 = 1 << 7;
/// The same of the minutes.
const ODD_STAR_OF_MINUTES: u64 = 1 << 63;
/// The same of the hours.
const ODD_STAR_OF_HOURS: u32 = 1 << 31;
/// Where the fields stand that a star changes.
const MINUTES: usize = 0;
const HOURS: usize = 1;
const DAYS: usize = 2;
const WEEKDAYS_AT: usize = 4;

/// The fields of a schedule in the order of crontab(5), with their least and greatest numbers.
const FIELDS: [(&str, u8, u8); 5] = [
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The nicknames of crontab(5), and the fields that they stand for.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl Schedule {
    /// The first of its times after `unix_s`, in seconds since 1970; `None` if it has none.
    pub fn next_after(&self, unix_s: u64) -> Option<u64> {
        let from = (unix_s / MINUTE_S).checked_add(1)?.checked_mul(MINUTE_S)?;
        // A package may bring sets that no text makes.
        self.time_from(0)?;
        let days = from / DAY_S;
        let (before, first_day) = (days - days % CALENDAR_DAYS, (days % CALENDAR_DAYS) as u32);
        let mut day = first_day;
        while day <= first_day + DAYS_BETWEEN_MAX {
            let date = Date::of(day);
            let of_month =
                if bit(self.months.into(), date.month) { 0..date.days_left } else { 0..0 };
            for passed in of_month {
                let day = day + u32::from(passed);
                let from = if day == first_day { from % DAY_S } else { 0 };
                if self.is_day(day, date.day + passed)
                    && let Some(time) = self.time_from(from)
                {
                    return (before + u64::from(day)).checked_mul(DAY_S)?.checked_add(time);
                }
            }
            day += u32::from(date.days_left);
        }
        None
    }

    /// Whether it has a time, if none of its sets is empty: its days may be longer than all its months. Each day of
    /// the year is each day of the week at some time.
    fn comes(&self) -> bool {
        let is_in = |month: u8| {
            let days = 2_u64 << length(month, true);
            bit(self.months.into(), month) && self.field(DAYS) & (days - 1) != 0
        };
        !self.has_star_of_day() || (1..=12).any(is_in)
    }

    /// Whether one of its fields of days has a star that the set doesn't show, or none although the set is full.
    pub fn has_odd_star(&self) -> bool {
        [DAYS, WEEKDAYS_AT].into_iter().any(|index| self.has_odd_star_in(index))
    }

    /// Whether the field has a star that its set doesn't show, or none although the set is full.
    fn has_odd_star_in(&self, index: usize) -> bool {
        match index {
            MINUTES => self.minutes & ODD_STAR_OF_MINUTES != 0,
            HOURS => self.hours & ODD_STAR_OF_HOURS != 0,
            DAYS => self.days & ODD_STAR_OF_DAYS != 0,
            WEEKDAYS_AT => self.weekdays & ODD_STAR_OF_WEEKDAYS != 0,
            _ => false,
        }
    }

    /// Takes note of such a star.
    fn set_odd_star_in(&mut self, index: usize) {
        match index {
            MINUTES => self.minutes |= ODD_STAR_OF_MINUTES,
            HOURS => self.hours |= ODD_STAR_OF_HOURS,
            DAYS => self.days |= ODD_STAR_OF_DAYS,
            WEEKDAYS_AT => self.weekdays |= ODD_STAR_OF_WEEKDAYS,
            _ => {}
        }
    }

    /// Whether it says at which times of day, without a star in the minutes or hours. A change of the clock makes none
    /// of those fall out or come twice (crontab(5), "Local time changes").
    fn is_fixed(&self) -> bool {
        !self.has_star(MINUTES) && !self.has_star(HOURS)
    }

    /// Whether one of its fields of days has a star.
    fn has_star_of_day(&self) -> bool {
        self.has_star(DAYS) || self.has_star(WEEKDAYS_AT)
    }

    /// Whether the field has a star.
    fn has_star(&self, index: usize) -> bool {
        self.has_odd_star_in(index) != (self.field(index) == all_of(index))
    }

    /// Whether it is on that day, which is the one of that number in its month.
    fn is_day(&self, day: u32, of_month: u8) -> bool {
        // 1970-01-01 was a Thursday.
        let of_week = bit(self.weekdays.into(), ((day + 4) % 7) as u8);
        let of_month = bit(self.days.into(), of_month);
        match self.has_star_of_day() {
            true => of_month && of_week,
            false => of_month || of_week,
        }
    }

    /// The first time of a day at or after `second`, in seconds.
    fn time_from(&self, second: u64) -> Option<u64> {
        let hours = (second / HOUR_S..24).filter(|hour| bit(self.hours.into(), *hour as u8));
        let minute = |hour: u64| {
            let least = second.saturating_sub(hour * HOUR_S).div_ceil(MINUTE_S);
            (least..60).find(|minute| bit(self.minutes, *minute as u8))
        };
        let times = hours.filter_map(|hour| Some(hour * HOUR_S + minute(hour)? * MINUTE_S));
        times.min()
    }

    fn field(&self, index: usize) -> u64 {
        match index {
            MINUTES => self.minutes & !ODD_STAR_OF_MINUTES,
            HOURS => (self.hours & !ODD_STAR_OF_HOURS).into(),
            DAYS => (self.days & !ODD_STAR_OF_DAYS).into(),
            3 => self.months.into(),
            _ => (self.weekdays & !ODD_STAR_OF_WEEKDAYS).into(),
        }
    }
}

fn bit(set: u64, number: u8) -> bool {
    set >> number & 1 == 1
}

/// The set of all numbers of a field.
fn full(least: u8, most: u8) -> u64 {
    (least..=most).fold(0, |set, number| set | 1 << number)
}

/// The set of all numbers of the field with that index. Sunday is there once, as 0.
fn all_of(index: usize) -> u64 {
    let (_, least, most) = FIELDS[index];
    full(least, if index == WEEKDAYS_AT { 6 } else { most })
}

/// A day of the Gregorian calendar.
struct Date {
    year: u32,
    month: u8,
    day: u8,
    /// How many days of its month are left, itself included.
    days_left: u8,
}

impl Date {
    /// The day that is so many days after 1970-01-01, by H. Hinnant's `civil_from_days`.
    fn of(days: u32) -> Self {
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * from_march + 2) / 5 + 1) as u8;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 } as u8;
        let year = year_of_era + era * 400 + u32::from(month <= 2);
        Self { year, month, day, days_left: length(month, is_leap(year)) + 1 - day }
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The days of a month.
fn length(month: u8, is_leap: bool) -> u8 {
    match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Why a text is no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// It hasn't five fields, nor is it a time of day.
    Fields,
    /// A field isn't well formed, or has a number that it can't have.
    Field(usize),
    /// A range in a field ends before it begins.
    Turned(usize),
    /// A word with an `@` that stands for no times, as `@reboot`.
    Nickname,
    /// It never comes, as 30 February.
    Never,
    /// The zone before it is none.
    Zone(ZoneError),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields => f.write_str(
                "a schedule is a time of day (`06:30`) or has five fields as in crontab: minute, hour, \
                 day of the month, month, day of the week (`*/15 8-18 * * mon-fri`)",
            ),
            Self::Field(index) => {
                let (name, least, most) = FIELDS[*index];
                write!(f, "the {name} takes numbers from {least} to {most}, as in `*`, `{least},{most}`, `{least}-{most}` or `*/2`")
            }
            Self::Turned(index) => {
                let (name, least, most) = FIELDS[*index];
                write!(f, "a range of the {name} ends before it begins; write two: up to {most}, and from {least}")
            }
            Self::Nickname => f.write_str(
                "of crontab's nicknames there are `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly` \
                 and `@annually`",
            ),
            Self::Never => f.write_str("that day never comes"),
            Self::Zone(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ScheduleError {}

impl FromStr for Schedule {
    type Err = ScheduleError;

    /// Reads `HH:MM`, which is each day, the five fields of crontab(5), or one of its nicknames.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let mut text = text.trim_ascii();
        if text.starts_with('@') {
            let known = NICKNAMES.into_iter().find(|(nickname, _)| *nickname == text);
            text = known.ok_or(ScheduleError::Nickname)?.1;
        }
        let mut sets = [full(0, 0), full(0, 0), all_of(DAYS), all_of(3), all_of(WEEKDAYS_AT)];
        let mut has_star = [true; FIELDS.len()];
        if let Some((hour, minute)) = text.split_once(':') {
            has_star[..DAYS].fill(false);
            sets[0] = field(0, minute)?;
            sets[1] = field(1, hour)?;
        } else {
            let mut fields = text.split_ascii_whitespace();
            for (index, set) in sets.iter_mut().enumerate() {
                let text = fields.next().ok_or(ScheduleError::Fields)?;
                *set = field(index, text)?;
                has_star[index] = text.contains('*');
            }
            if fields.next().is_some() {
                return Err(ScheduleError::Fields);
            }
        }
        let [minutes, hours, days, months, weekdays] = sets;
        // Sunday is 0 and 7.
        let weekdays = (weekdays | weekdays >> 7 & 1) as u8 & 0x7F;
        let (hours, days, months) = (hours as u32, days as u32, months as u16);
        let mut schedule = Self { minutes, hours, days, months, weekdays };
        for index in [MINUTES, HOURS, DAYS, WEEKDAYS_AT] {
            if schedule.has_star(index) != has_star[index] {
                schedule.set_odd_star_in(index);
            }
        }
        if schedule.comes() { Ok(schedule) } else { Err(ScheduleError::Never) }
    }
}

/// The number that `text` says in digits alone; the greatest one if it is greater.
fn plain_number(text: &str) -> Option<u8> {
    let digit = |number: u8, byte: u8| {
        byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(byte - b'0'))
    };
    text.bytes().try_fold(0, digit).filter(|_| !text.is_empty())
}

/// The set that the text of the field with that index says.
fn field(index: usize, text: &str) -> Result<u64, ScheduleError> {
    let parts = text.split(',').map(|part| set_of_part(index, part));
    parts.into_iter().try_fold(0, |set, part| Ok(set | part?))
}

/// The set that one part of a list says: a star, a number or a range, each with a step or without.
fn set_of_part(index: usize, part: &str) -> Result<u64, ScheduleError> {
    let wrong = ScheduleError::Field(index);
    let (_, least, most) = FIELDS[index];
    // Where a part is open, Sunday stands at the week's beginning alone.
    let last_of_open = if index == WEEKDAYS_AT { 6 } else { most };
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => {
            let step = plain_number(step).filter(|step| *step > 0);
            (range, Some(step.ok_or(wrong)?))
        }
        None => (part, None),
    };

    let (first, last) = match range.split_once('-') {
        _ if range == "*" => (least, last_of_open),
        Some((first, last)) => {
            (number_in(index, first).ok_or(wrong)?, number_in(index, last).ok_or(wrong)?)
        }
        None => {
            let first = number_in(index, range).ok_or(wrong)?;
            (first, if step.is_some() { last_of_open.max(first) } else { first })
        }
    };
    if first > last {
        return Err(ScheduleError::Turned(index));
    }
    Ok((first..=last).step_by(step.unwrap_or(1).into()).fold(0, |set, bit| set | 1 << bit))
}

/// The number that `text` is in the field with that index, by its digits or its name.
fn number_in(index: usize, text: &str) -> Option<u8> {
    let (_, least, most) = FIELDS[index];
    let names: &[&str] = match index {
        3 => &MONTHS,
        WEEKDAYS_AT => &WEEKDAYS,
        _ => &[],
    };
    let named = || names.iter().position(|name| name.eq_ignore_ascii_case(text));
    let number = plain_number(text).or_else(|| Some(named()? as u8 + least));
    number.filter(|number| (least..=most).contains(number))
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for index in 0..FIELDS.len() {
            if index > 0 {
                f.write_str(" ")?;
            }
            let mut set = self.field(index);
            let mut separator = "";
            if self.has_star(index)
                && let Some((step, of_star)) = star_in(index, set)
            {
                f.write_str("*")?;
                if step > 1 {
                    write!(f, "/{step}")?;
                }
                (set, separator) = (set & !of_star, ",");
            }
            for (first, last) in runs(set) {
                match last - first {
                    0 => write!(f, "{separator}{first}")?,
                    _ => write!(f, "{separator}{first}-{last}")?,
                }
                separator = ",";
            }
        }
        Ok(())
    }
}

/// The least step of a star that is in the set of the field with that index, and the numbers that it takes.
fn star_in(index: usize, set: u64) -> Option<(u8, u64)> {
    let steps = (1..=FIELDS[index].2 + 1).map(|step| (step, step_set(all_of(index), step)));
    steps.into_iter().find(|(_, of_star)| set & of_star == *of_star)
}

/// Each number of `all` that is `step` after the one before.
fn step_set(all: u64, step: u8) -> u64 {
    let least = all.trailing_zeros() as u8;
    (least..u64::BITS as u8).step_by(step.into()).fold(0, |set, number| set | 1 << number) & all
}

/// The numbers of a set, as runs from first to last.
fn runs(set: u64) -> impl Iterator<Item = (u32, u32)> {
    let mut from = 0;
    core::iter::from_fn(move || {
        let rest = set.checked_shr(from)?;
        if rest == 0 {
            return None;
        }
        let first = from + rest.trailing_zeros();
        let last = first + (set >> first).trailing_ones() - 1;
        from = last + 1;
        Some((first, last))
    })
}

#[cfg(test)]
mod cron;
#[cfg(test)]
mod tests;
