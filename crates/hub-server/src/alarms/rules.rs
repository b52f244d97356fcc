//! Rules, and the conditions in which the operator's file writes them: `silent > 10m`, `faults > 3/h`, `flash > 90 %`,
//! `memory > 90 %`, `version != 1.2`, `bill > 5`, `clock > 2h`, `devices > 90 %`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use tenure_wire::{Label, Name};

use super::mails::Email;
use super::queue::Receivers;
use super::webhooks::Webhook;
use crate::devices::reports::FAULTS_KEPT_MAX;

/// The most rules of a file.
pub const RULES_MAX: usize = 64;
/// The words that a condition begins with.
pub const SUBJECTS: [&str; 8] =
    ["silent", "faults", "flash", "memory", "version", "bill", "clock", "devices"];

/// The silence that a rule may wait for, in seconds: the hub forgets a device after 30 days.
const SILENT_S: RangeInclusive<u64> = MINUTE_S..=29 * DAY_S;
/// The shortest jump of the clock that a rule may wait for, and the longest, in seconds: a shorter one isn't noted.
const JUMP_S: RangeInclusive<u64> = 2 * HOUR_S..=365 * DAY_S;
/// The most faults that a rule counts to: of more, the hub keeps none.
const FAULTS_MAX: u64 = FAULTS_KEPT_MAX.unsigned_abs() - 1;
/// The longest version, in bytes.
const VERSION_BYTES_MAX: usize = 32;
/// The most whole units of a currency that a bill is compared with.
const BILL_MAX: u128 = 1_000_000_000_000;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// The rules of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Each with a name of its own; [`RULES_MAX`] at most.
    pub rules: Vec<Rule>,
    /// The servers that rules tell, each with a name of its own.
    pub webhooks: Vec<Webhook>,
    /// The mailboxes that rules tell, each with a name that no server has, either.
    pub emails: Vec<Email>,
}

impl Rules {
    /// Whether `name` is one of those that rules may tell.
    pub fn tells(&self, name: &str) -> bool {
        let webhooks = self.webhooks.iter().map(|webhook| &webhook.name);
        let mut names = webhooks.chain(self.emails.iter().map(|email| &email.name));
        names.any(|known| known.as_str() == name)
    }
}

impl Receivers for Rules {
    fn knows(&self, name: &str) -> bool {
        self.tells(name)
    }

    fn told_by(&self, rule: &str) -> &[Name] {
        let named = self.rules.iter().find(|known| known.name.as_str() == rule);
        named.map(|rule| rule.tell.as_slice()).unwrap_or_default()
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: Name,
    /// What raises an alarm on a device.
    pub when: Condition,
    /// The machine that it looks at, where the condition is of machines; without it, at the device or all its machines.
    pub machine: Option<Name>,
    /// The labels that a device carries which the rule is for, all of them.
    pub labels: Vec<Label>,
    /// The names of the servers and mailboxes that are told of its alarms.
    pub tell: Vec<Name>,
}

/// What raises an alarm on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Its record is over, and it wasn't heard for longer than this.
    Silent {
        /// In seconds.
        over_s: u64,
    },
    /// Its machines had more faults.
    Faults {
        /// How many are still good.
        over: u64,
        /// Within how many seconds.
        within_s: u64,
    },
    /// Its flash for data or for code is fuller.
    Flash {
        /// In per cent.
        over_percent: u8,
    },
    /// Its heap is fuller.
    Memory {
        /// In per cent.
        over_percent: u8,
    },
    /// It has another version than this one, or those that begin with it and a dot.
    Version {
        /// The version, or its first numbers.
        other_than: String,
    },
    /// The receipts of this month (UTC) cost more by the hub's tariff.
    Bill {
        /// In millionths of the tariff's currency.
        over_millionths: u128,
    },
    /// The hub's own clock jumped further, within the last hour.
    Clock {
        /// In seconds, ahead or back.
        over_s: u64,
    },
    /// The hub lists more of the devices that it may list.
    Devices {
        /// In per cent.
        over_percent: u8,
    },
}

/// A text that is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// It begins with another word.
    #[error(
        "`{0}` is nothing that a rule looks at; it looks at silent, faults, flash, memory, version, bill, clock or devices"
    )]
    Subject(String),
    /// The sign behind the word is another one.
    #[error("`{sign}` stands behind `{subject}`; write `{subject} {needed} {example}`")]
    Sign {
        /// The word.
        subject: &'static str,
        /// What stands there.
        sign: String,
        /// What would be good.
        needed: &'static str,
        /// A value.
        example: &'static str,
    },
    /// The value isn't one.
    #[error("`{value}` is no value for `{subject}`, which takes {takes}; write `{example}`")]
    Value {
        /// The word.
        subject: &'static str,
        /// What stands there.
        value: String,
        /// What would be good, in words.
        takes: &'static str,
        /// A condition that is one.
        example: &'static str,
    },
}

/// How a condition is written.
struct Form {
    subject: &'static str,
    sign: &'static str,
    takes: &'static str,
    example_value: &'static str,
    example: &'static str,
    read: fn(&str) -> Option<Condition>,
}

/// Each, in the order of [`SUBJECTS`].
const FORMS: [Form; 8] = [
    Form {
        subject: SUBJECTS[0],
        sign: ">",
        takes: "a time of 1 minute to 29 days in s, m, h or d",
        example_value: "10m",
        example: "silent > 10m",
        read: |value| Some(Condition::Silent { over_s: time(value, SILENT_S)? }),
    },
    Form {
        subject: SUBJECTS[1],
        sign: ">",
        takes: "a number up to 199 in a minute, an hour or a day (min, h or d)",
        example_value: "3/h",
        example: "faults > 3/h",
        read: rate,
    },
    Form {
        subject: SUBJECTS[2],
        sign: ">",
        takes: "0 to 99 per cent",
        example_value: "90 %",
        example: "flash > 90 %",
        read: |value| Some(Condition::Flash { over_percent: percent(value)? }),
    },
    Form {
        subject: SUBJECTS[3],
        sign: ">",
        takes: "0 to 99 per cent",
        example_value: "90 %",
        example: "memory > 90 %",
        read: |value| Some(Condition::Memory { over_percent: percent(value)? }),
    },
    Form {
        subject: SUBJECTS[4],
        sign: "!=",
        takes: "a version or its first numbers",
        example_value: "1.2",
        example: "version != 1.2",
        read: version,
    },
    Form {
        subject: SUBJECTS[5],
        sign: ">",
        takes: "an amount with up to six decimals, without its currency",
        example_value: "5",
        example: "bill > 5",
        read: |value| Some(Condition::Bill { over_millionths: amount(value)? }),
    },
    Form {
        subject: SUBJECTS[6],
        sign: ">",
        takes: "a time of 2 hours to 365 days in s, m, h or d",
        example_value: "2h",
        example: "clock > 2h",
        read: |value| Some(Condition::Clock { over_s: time(value, JUMP_S)? }),
    },
    Form {
        subject: SUBJECTS[7],
        sign: ">",
        takes: "0 to 99 per cent",
        example_value: "90 %",
        example: "devices > 90 %",
        read: |value| Some(Condition::Devices { over_percent: percent(value)? }),
    },
];

impl Condition {
    /// Whether a rule may say of which machine.
    pub fn may_name_a_machine(&self) -> bool {
        matches!(self, Self::Faults { .. } | Self::Version { .. } | Self::Bill { .. })
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let text = text.trim();
        let (subject, rest) = split(text, |letter| letter.is_ascii_alphanumeric() || letter == '_');
        let Some(form) = FORMS.iter().find(|form| form.subject == subject) else {
            let word = text.split_whitespace().next().unwrap_or("");
            let word = if subject.is_empty() { word } else { subject };
            return Err(ConditionError::Subject(word.to_string()));
        };
        let Form { subject, sign: needed, takes, example_value, example, read } = *form;
        let is_sign = |letter: char| letter.is_ascii_punctuation() && !matches!(letter, '"' | '.');
        let (sign, value) = split(rest.trim_start(), is_sign);
        if sign != needed {
            // Without a sign the next word stands in its place.
            let word = rest.split_whitespace().next().unwrap_or("");
            let sign = if sign.is_empty() { word } else { sign }.to_string();
            return Err(ConditionError::Sign { subject, sign, needed, example: example_value });
        }
        let value = value.trim();
        let wrong = || {
            let value = value.to_string();
            ConditionError::Value { subject, value, takes, example }
        };
        read(value).ok_or_else(wrong)
    }
}

/// The letters of `text` up to the first that isn't `of` a kind, and the rest.
fn split(text: &str, of: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|letter| !of(letter)).unwrap_or(text.len()))
}

/// A whole number, and what stands behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = split(text, |letter| letter.is_ascii_digit());
    Some((digits.parse().ok()?, rest.trim()))
}

/// A time within that range, in seconds.
fn time(text: &str, range_s: RangeInclusive<u64>) -> Option<u64> {
    let (count, unit) = number(text)?;
    let unit_s = match unit {
        "s" => 1,
        "m" | "min" => MINUTE_S,
        "h" => HOUR_S,
        "d" => DAY_S,
        _ => return None,
    };
    let time_s = count.checked_mul(unit_s)?;
    range_s.contains(&time_s).then_some(time_s)
}

/// A time in the largest unit of which it is whole.
fn written(time_s: u64) -> String {
    let units = [(DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m"), (1, "s")];
    let fitting = units.iter().find(|(unit_s, _)| time_s.is_multiple_of(*unit_s));
    let (unit_s, unit) = fitting.unwrap_or(&(1, "s"));
    format!("{}{unit}", time_s / unit_s)
}

fn rate(text: &str) -> Option<Condition> {
    let (over, rest) = number(text)?;
    let within_s = match rest.strip_prefix('/')?.trim() {
        "m" | "min" => MINUTE_S,
        "h" => HOUR_S,
        "d" => DAY_S,
        _ => return None,
    };
    (over <= FAULTS_MAX).then_some(Condition::Faults { over, within_s })
}

fn percent(text: &str) -> Option<u8> {
    let (percent, sign) = number(text)?;
    u8::try_from(percent).ok().filter(|percent| sign == "%" && *percent < 100)
}

fn version(text: &str) -> Option<Condition> {
    let is_part =
        |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | b'+');
    let is_good = text.bytes().next().is_some_and(|first| first.is_ascii_digit())
        && text.len() <= VERSION_BYTES_MAX
        && text.bytes().all(is_part)
        && !text.ends_with('.');
    is_good.then(|| Condition::Version { other_than: text.to_string() })
}

fn amount(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || part.len() > 6 {
        return None;
    }
    let (whole, part): (u128, u128) = (whole.parse().ok()?, format!("{part:0<6}").parse().ok()?);
    (whole <= BILL_MAX).then_some(whole * 1_000_000 + part)
}

impl fmt::Display for Condition {
    /// As a file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent { over_s } => write!(f, "silent > {}", written(*over_s)),
            Self::Clock { over_s } => write!(f, "clock > {}", written(*over_s)),
            Self::Faults { over, within_s } => {
                let unit = match *within_s {
                    MINUTE_S => "min",
                    HOUR_S => "h",
                    _ => "d",
                };
                write!(f, "faults > {over}/{unit}")
            }
            Self::Flash { over_percent } => write!(f, "flash > {over_percent} %"),
            Self::Memory { over_percent } => write!(f, "memory > {over_percent} %"),
            Self::Devices { over_percent } => write!(f, "devices > {over_percent} %"),
            Self::Version { other_than } => write!(f, "version != {other_than}"),
            Self::Bill { over_millionths } => {
                let (whole, part) = (over_millionths / 1_000_000, over_millionths % 1_000_000);
                let part = format!("{part:06}");
                match part.trim_end_matches('0') {
                    "" => write!(f, "bill > {whole}"),
                    part => write!(f, "bill > {whole}.{part}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Condition>().unwrap_err().to_string()
    }

    #[test]
    fn condition_is_read_however_it_is_spaced_and_written_in_one_way() {
        for (text, written) in [
            ("silent > 10m", "silent > 10m"),
            ("silent>600s", "silent > 10m"),
            ("  silent  >  24 h ", "silent > 1d"),
            ("silent > 90s", "silent > 90s"),
            ("faults > 3/h", "faults > 3/h"),
            ("faults>0 / d", "faults > 0/d"),
            ("faults > 199/m", "faults > 199/min"),
            ("flash > 90%", "flash > 90 %"),
            ("memory > 0 %", "memory > 0 %"),
            ("version != 1.2", "version != 1.2"),
            ("version!=1.2.3-rc+4", "version != 1.2.3-rc+4"),
            ("bill > 5", "bill > 5"),
            ("bill > 5.250", "bill > 5.25"),
            ("bill > 0.000001", "bill > 0.000001"),
            ("clock > 120m", "clock > 2h"),
            ("devices>90%", "devices > 90 %"),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(condition), "{text}");
        }
        assert_eq!("silent > 2h".parse(), Ok(Condition::Silent { over_s: 7_200 }));
        assert_eq!("bill > 5.25".parse(), Ok(Condition::Bill { over_millionths: 5_250_000 }));
    }

    #[test]
    fn word_that_no_rule_looks_at_is_named() {
        for (text, word) in [
            ("silence > 10m", "`silence`"),
            ("Silent > 10m", "`Silent`"),
            ("> 10m", "`>`"),
            ("flash_free > 3 %", "`flash_free`"),
            ("", "``"),
        ] {
            assert!(
                error(text).starts_with(&format!("{word} is nothing that a rule looks at")),
                "{text}"
            );
        }
    }

    #[test]
    fn sign_that_is_another_one_is_named_with_the_one_that_is_needed() {
        for (text, sign) in [
            ("silent < 10m", "<"),
            ("silent >= 10m", ">="),
            ("silent 10m", "10m"),
            ("silent", ""),
            ("version = 1.2", "="),
            ("version > 1.2", ">"),
            ("flash => 90 %", "=>"),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("`{sign}` stands behind")), "{text}: {error}");
        }
        assert!(error("version == 1.2").ends_with("write `version != 1.2`"));
    }

    #[test]
    fn value_that_is_none_is_named_with_one_that_is() {
        for (text, value) in [
            ("silent > 10", "10"),
            ("silent > ten m", "ten m"),
            ("silent > 10 minutes", "10 minutes"),
            ("silent > 59s", "59s"),
            ("silent > 30d", "30d"),
            ("silent > 18446744073709551615d", "18446744073709551615d"),
            ("silent > 99999999999999999999s", "99999999999999999999s"),
            ("faults > 3", "3"),
            ("faults > 3/w", "3/w"),
            ("faults > 200/h", "200/h"),
            ("faults > -1/h", "-1/h"),
            ("flash > 90", "90"),
            ("flash > 100 %", "100 %"),
            ("flash > 90 % now", "90 % now"),
            ("version != v1", "v1"),
            ("version != 1.", "1."),
            ("version != 1.2 or 1.3", "1.2 or 1.3"),
            ("bill > 5 EUR", "5 EUR"),
            ("bill > 5.", "5."),
            ("bill > 0.0000001", "0.0000001"),
            ("bill > 9999999999999", "9999999999999"),
            ("bill >", ""),
            ("clock > 1h", "1h"),
            ("clock > 366d", "366d"),
            ("devices > 100 %", "100 %"),
            ("devices > 9000", "9000"),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("`{value}` is no value for")), "{text}: {error}");
            let example = error.rsplit('`').nth(1).unwrap();
            assert!(example.parse::<Condition>().is_ok(), "{example}");
        }
    }
}
