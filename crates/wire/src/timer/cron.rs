//! A model of Debian's cron beside the schedules here: how it reads a field, character by character, and the rule by
//! which it finds the jobs of a minute.
//!
//! The model is held against verdicts of the real one in `debian.txt`: each line is a schedule that was drawn from the
//! grammar and what `crontab -n` of cron 3.0pl1-162 said of it.

use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const VERDICTS: &str = include_str!("debian.txt");

/// The numbers of one field, by their places; 7 of the days of the week stands for itself.
type Numbers = [bool; 60];

/// How a field differs from what is read here, although cron takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Oddities {
    /// A range ends before it begins: cron takes it for no number at all.
    is_turned: bool,
    /// Something stands behind a part that cron passes over to the next blank.
    has_rest: bool,
}

/// A field as cron reads it.
struct Reader<'a> {
    rest: &'a [u8],
    index: usize,
    /// Whether a single number may have a step, which cron refuses.
    takes_open_steps: bool,
    numbers: Numbers,
    oddities: Oddities,
}

impl Reader<'_> {
    /// The field's numbers; `None` if cron refuses it.
    fn read(text: &str, index: usize, takes_open_steps: bool) -> Option<(Numbers, Oddities)> {
        let mut reader = Reader {
            rest: text.as_bytes(),
            index,
            takes_open_steps,
            numbers: [false; 60],
            oddities: Oddities::default(),
        };
        reader.part()?;
        while reader.take(b',') {
            reader.part()?;
        }
        reader.oddities.has_rest = !reader.rest.is_empty();
        Some((reader.numbers, reader.oddities))
    }

    fn take(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn part(&mut self) -> Option<()> {
        let (_, least, most) = FIELDS[self.index];
        let (first, last) = if self.take(b'*') {
            (least.into(), most.into())
        } else {
            let first = self.number(true)?;
            if self.take(b'-') {
                (first, self.number(true)?)
            } else if self.rest.starts_with(b"/") {
                let last_of_open = if self.index == WEEKDAYS_AT { 6 } else { most.into() };
                self.takes_open_steps.then_some((first, last_of_open.max(first)))?
            } else {
                (first, first)
            }
        };
        let step = if self.take(b'/') { self.number(false)? } else { 1 };
        let has = |number: u64| (u64::from(least)..=u64::from(most)).contains(&number);
        if step == 0 || !has(first) || !has(last) {
            return None;
        }
        self.oddities.is_turned |= first > last;
        let mut number = first;
        while number <= last {
            self.numbers[usize::try_from(number).unwrap()] = true;
            number += step;
        }
        Some(())
    }

    fn number(&mut self, may_be_name: bool) -> Option<u64> {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        let word = core::str::from_utf8(word).unwrap().to_ascii_lowercase();
        if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
            return word.parse().ok();
        }
        let names = "sun mon tue wed thu fri sat";
        let (names, least) = match self.index {
            3 => ("jan feb mar apr may jun jul aug sep oct nov dec", 1),
            WEEKDAYS_AT => (names, 0),
            _ => return None,
        };
        let place = names.split(' ').position(|name| may_be_name && name == word)?;
        Some(place as u64 + least)
    }
}

/// A whole schedule as cron reads it, with or without the steps that are taken here alone.
fn read(text: &str, takes_open_steps: bool) -> Option<([Numbers; 5], Oddities)> {
    let texts: [&str; 5] = text.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let mut sum = Oddities::default();
    let mut fields = [[false; 60]; 5];
    for (index, text) in texts.into_iter().enumerate() {
        let (numbers, oddities) = Reader::read(text, index, takes_open_steps)?;
        fields[index] = numbers;
        sum.is_turned |= oddities.is_turned;
        sum.has_rest |= oddities.has_rest;
    }
    Some((fields, sum))
}

#[test]
fn the_model_judges_as_the_cron_of_debian_does() {
    let mut counts = [0, 0];
    for line in VERDICTS.lines().filter(|line| !line.starts_with('#')) {
        let (verdict, text) = line.split_once(' ').expect(line);
        assert_eq!(read(text, false).is_some(), verdict == "taken", "{text}");
        counts[usize::from(verdict == "taken")] += 1;
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

/// An atom: mostly a number of the field, sometimes one beyond it or with zeros before it, or a name.
fn atom(index: usize) -> BoxedStrategy<String> {
    let (_, least, most) = FIELDS[index];
    let number = (least..=most).prop_map(|number| alloc::format!("{number}"));
    let padded = (least..=most).prop_map(|number| alloc::format!("{number:03}"));
    let beyond = (0..=most + 2).prop_map(|number| alloc::format!("{number}"));
    let names: Vec<&str> = match index {
        3 => MONTHS.to_vec(),
        WEEKDAYS_AT => WEEKDAYS.to_vec(),
        _ => return prop_oneof![20 => number, 2 => padded, 1 => beyond].boxed(),
    };
    let name = (prop::sample::select(names), any::<bool>());
    let name = name.prop_map(|(name, upper)| if upper { name.to_uppercase() } else { name.into() });
    prop_oneof![10 => number, 2 => padded, 1 => beyond, 10 => name].boxed()
}

/// A part: a star, a number or a range, with a step or without, and rarely something behind it.
fn part(index: usize) -> BoxedStrategy<String> {
    let range = (atom(index), atom(index)).prop_map(|(first, last)| first + "-" + &last);
    let base = prop_oneof![2 => "[*]", 3 => atom(index), 3 => range];
    let step = prop_oneof![
        6 => Just(String::new()),
        4 => (1..9_u32).prop_map(|step| alloc::format!("/{step}")),
        1 => (0..400_u32).prop_map(|step| alloc::format!("/{step}")),
    ];
    let rest = prop_oneof![60 => Just(""), 1 => Just("/2"), 1 => Just("-3"), 1 => Just("~5"), 1 => Just("L")];
    (base, step, rest).prop_map(|(base, step, rest)| base + &step + rest).boxed()
}

fn schedule() -> impl Strategy<Value = String> {
    let field = |index| {
        let list = prop::collection::vec(part(index), 1..4).prop_map(|parts| parts.join(","));
        prop_oneof![1 => Just(String::from("*")), 3 => part(index), 2 => list]
    };
    let fields = (field(0), field(1), field(2), field(3), field(4));
    fields.prop_map(|(a, b, c, d, e)| [a, b, c, d, e].join(" "))
}

/// Whether cron runs a job of these fields on a day (`find_jobs`).
fn is_on(fields: &[Numbers; 5], text: &str, month: usize, day: usize, since: u64) -> bool {
    let texts: Vec<&str> = text.split(' ').collect();
    let weekday = ((since + 4) % 7) as usize;
    let of_week = fields[4][weekday] || weekday == 0 && fields[4][7];
    let of_month = fields[2][day];
    let has_star = texts[2].contains('*') || texts[4].contains('*');
    let is_day = if has_star { of_week && of_month } else { of_week || of_month };
    fields[3][month] && is_day
}

/// The first time on or after a day, as a calendar that counts day after day has it. None within 41 years is none.
fn first_from(fields: &[Numbers; 5], text: &str, from_day: u64) -> Option<u64> {
    let minute = (0..24 * 60).find(|at| fields[1][at / 60] && fields[0][at % 60])?;
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for since in 0..from_day + 41 * 366 {
        if since >= from_day && is_on(fields, text, month, day, since) {
            return Some(since * DAY_S + minute as u64 * 60);
        }
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = [31, 28 + usize::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        day += 1;
        if day > length[month - 1] {
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// What is taken is what cron takes, but for four things that are named here, and comes when cron says.
    #[test]
    fn random_schedules_come_when_the_rule_of_cron_says(text in schedule(), from_day in 10_000_u64..60_000) {
        let ours = text.parse::<Schedule>();
        let Some((fields, oddities)) = read(&text, true) else {
            prop_assert!(matches!(ours, Err(ScheduleError::Field(_) | ScheduleError::Turned(_))), "{ours:?}");
            return Ok(());
        };
        let expected = first_from(&fields, &text, from_day);
        match ours {
            // Cron would take the field without the rest, the range for nothing, and the day for one that never comes.
            Err(ScheduleError::Field(_)) => prop_assert!(oddities.has_rest),
            Err(ScheduleError::Turned(_)) => prop_assert!(oddities.is_turned),
            Err(error) => {
                prop_assert_eq!(error, ScheduleError::Never);
                prop_assert_eq!(expected, None);
            }
            Ok(schedule) => {
                prop_assert_eq!(oddities, Oddities::default());
                prop_assert_eq!(schedule.next_after(from_day * DAY_S - 1), expected);
                let shown = alloc::format!("{schedule}");
                prop_assert_eq!(shown.parse(), Ok(schedule), "shown as {}", shown);
            }
        }
    }
}
