//! The states of alarms in the database: raised by the clock, acknowledged by a person, over.

use http::StatusCode;
use serde::Deserialize;
use tenure_wire::printable::printable;
use utoipa::ToSchema;

use super::queue;
use super::rules::Rule;
use super::seen::Seen;
use crate::exchange::{Exchange, Reply, no_room};
use crate::names::{NAME_CHARS_MAX, is_same};
use crate::store::audit::{self, seconds};
use crate::store::forgetting::{self, Over};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};
use crate::store::steady;

/// The longest word, in characters.
const WORD_CHARS_MAX: usize = 256;
/// How long alarms are kept that are over, in seconds: 90 days; and how many of them.
const KEPT_S: i64 = 90 * 24 * 60 * 60;
const KEPT_MAX: i64 = 100_000;
/// The most alarms that are shown beside the list of all.
const SHOWN_MAX: i64 = 100;

/// A state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has said anything yet.
    Raised,
    /// Somebody looks after it.
    Acknowledged,
    /// Its reason is gone.
    Over,
}

/// What happens to an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A person says a word.
    Acknowledgement,
    /// The rule's condition doesn't hold any more.
    Calm,
}

impl State {
    /// The word in the database and on pages.
    const fn word(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Acknowledged => "acknowledged",
            Self::Over => "over",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        [Self::Raised, Self::Acknowledged, Self::Over]
            .into_iter()
            .find(|state| state.word() == word)
    }

    /// The state after `event`; `None` where that can't happen.
    const fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Raised, Event::Acknowledgement) => Some(Self::Acknowledged),
            (Self::Raised | Self::Acknowledged, Event::Calm) => Some(Self::Over),
            _ => None,
        }
    }
}

/// An alarm that isn't over, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub(crate) id: i64,
    pub(crate) rule: String,
    pub(crate) condition: String,
    pub(crate) device: String,
    pub(crate) detail: String,
    pub(crate) raised_unix_s: u64,
    /// Who acknowledged it, and with which word.
    pub(crate) acknowledged: Option<(String, String)>,
}

/// The word of a person who looks after an alarm.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Acknowledgement {
    /// The person's name. Where a person of the key is signed in it is that one's, whatever stands here.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub(crate) by: String,
    /// The word.
    #[schema(max_length = 256)]
    pub(crate) word: String,
}

impl Acknowledgement {
    /// The same as it is kept; `None` if one of them is empty or too long.
    fn kept(&self) -> Option<Self> {
        let kept = |text: &str, chars_max: usize| {
            let text = printable(text.trim());
            (!text.is_empty() && text.chars().count() <= chars_max).then_some(text)
        };
        let (by, word) = (kept(&self.by, NAME_CHARS_MAX)?, kept(&self.word, WORD_CHARS_MAX)?);
        Some(Self { by, word })
    }
}

/// The alarms of `rule` that aren't over: each with its number, its device, and the owner that this had then.
///
/// # Errors
/// The database fails.
pub(super) fn open_of_rule(
    connection: &Connection,
    rule: &str,
) -> Result<Vec<(i64, String, String)>, sql::Error> {
    let query = "SELECT id, device, owner FROM rule_alarms WHERE rule = ?1 AND state <> 'over' ORDER BY device";
    connection.statement(query).query_map([rule], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

/// All rules of which an alarm isn't over.
///
/// # Errors
/// The database fails.
pub(super) fn open_rules(connection: &Connection) -> Result<Vec<String>, sql::Error> {
    let query = "SELECT DISTINCT rule FROM rule_alarms WHERE state <> 'over' ORDER BY rule";
    connection.statement(query).query_map([], |row| row.get(0))
}

/// The alarms of `who` that aren't over, the newest first: as many as a page shows.
///
/// # Errors
/// The database fails.
pub(crate) fn open_of_owner(connection: &Connection, who: &str) -> Result<Vec<Alarm>, sql::Error> {
    let query = "SELECT id, rule, condition, device, detail, raised_unix_s, acknowledged_by, acknowledged_word \
         FROM rule_alarms WHERE owner = ?1 AND state <> 'over' \
         ORDER BY CASE state WHEN 'raised' THEN 0 ELSE 1 END, id DESC LIMIT ?2";
    connection.statement(query).query_map(params![who, SHOWN_MAX], |row| {
        let (by, word): (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
        Ok(Alarm {
            id: row.get(0)?,
            rule: row.get(1)?,
            condition: row.get(2)?,
            device: row.get(3)?,
            detail: row.get(4)?,
            raised_unix_s: row.get::<i64>(5)?.unsigned_abs(),
            acknowledged: by.zip(word),
        })
    })
}

/// Raises an alarm, unless there is one. Returns its number if it is new.
///
/// # Errors
/// The database fails.
pub(super) fn raise(
    connection: &Connection,
    rule: &Rule,
    seen: &Seen,
    unix_s: u64,
) -> Result<Option<i64>, sql::Error> {
    let insert = "INSERT INTO rule_alarms (rule, condition, owner, device, detail, state, raised_unix_s) \
         VALUES (?1, ?2, ?3, ?4, ?5, 'raised', ?6) ON CONFLICT DO NOTHING RETURNING id";
    let (name, condition) = (rule.name.as_str(), rule.when.to_string());
    let Seen { device, owner, detail } = seen;
    let row = params![name, condition, owner, device, detail, seconds(unix_s)];
    let id = connection.statement(insert).query_row(row, |row| row.get(0)).optional()?;
    if id.is_some() {
        let detail = format!("{name} ({condition}): {detail}");
        let (who, by, action) = ("hub", "", "alarm raised");
        let (subject, detail, owner) = (device.as_str(), detail.as_str(), owner.as_str());
        let event = audit::Event { unix_s, who, by, action, subject, detail, owner };
        audit::append(connection, &event)?;
    }
    Ok(id)
}

/// Says that an alarm is over, and why. Returns whether that is new.
///
/// # Errors
/// The database fails.
pub(super) fn end(
    connection: &Connection,
    id: i64,
    why: &str,
    unix_s: u64,
) -> Result<bool, sql::Error> {
    let query = "SELECT state, rule, device, owner FROM rule_alarms WHERE id = ?1";
    let read = |row: &sql::Row<'_>| {
        Ok((
            row.get::<String>(0)?,
            row.get::<String>(1)?,
            row.get::<String>(2)?,
            row.get::<String>(3)?,
        ))
    };
    let found = connection.statement(query).query_row([id], read).optional()?;
    let Some((state, rule, device, owner)) = found else { return Ok(false) };
    let Some(state) = State::of_word(&state).and_then(|state| state.after(Event::Calm)) else {
        return Ok(false);
    };
    let update = "UPDATE rule_alarms SET state = ?2, over_unix_s = ?3 WHERE id = ?1";
    connection.statement(update).execute(params![id, state.word(), seconds(unix_s)])?;
    let (who, by, action, detail) = ("hub", "", "alarm over", format!("{rule}: {why}"));
    let (subject, detail, owner) = (&*device, &*detail, &*owner);
    audit::append(connection, &audit::Event { unix_s, who, by, action, subject, detail, owner })?;
    Ok(true)
}

/// Forgets alarms that have been over for long.
///
/// # Errors
/// The database fails.
pub(super) fn forget(connection: &Connection, unix_s: u64) -> Result<(), sql::Error> {
    let over = Over {
        table: "rule_alarms",
        owner: "owner",
        condition: "state = 'over' AND (over_unix_s < ?1 OR over_unix_s < \
             (SELECT over_unix_s FROM rule_alarms WHERE state = 'over' ORDER BY over_unix_s DESC LIMIT 1 OFFSET ?2))",
        one: "alarm",
    };
    let steady = steady::unix_s(connection, seconds(unix_s))?;
    forgetting::forget(connection, &over, params![steady - KEPT_S, KEPT_MAX], unix_s)
}

/// Answers `POST /v1/rule-alarms/ID/acknowledge`, in the transaction that is under way.
///
/// # Errors
/// The database fails.
pub(crate) fn answer(
    connection: &Connection,
    exchange: &Exchange,
    id: &str,
) -> Result<Reply, sql::Error> {
    let Ok(mut said) = serde_json::from_slice::<Acknowledgement>(&exchange.body) else {
        let text = "the body is {\"by\": \"a person's name\", \"word\": \"what is done about it\"}";
        return Ok(Reply::problem(StatusCode::BAD_REQUEST, text));
    };
    if !exchange.person.is_empty() {
        said.by.clone_from(&exchange.person);
    } else if let Some(name) = person_like(connection, &exchange.who, &said.by)? {
        let text =
            format!("{name} is a person here, who says so with a pass of the own; name yourself");
        return Ok(Reply::problem(StatusCode::UNPROCESSABLE_ENTITY, &text));
    }
    if let Some(refusal) = no_room(connection)? {
        return Ok(refusal);
    }
    let Some(said) = said.kept() else {
        let text = "`by` is a name of 1 to 64 letters, `word` a line of 1 to 256";
        return Ok(Reply::problem(StatusCode::UNPROCESSABLE_ENTITY, text));
    };
    let query =
        "SELECT state, rule, device, acknowledged_by FROM rule_alarms WHERE id = ?1 AND owner = ?2";
    let read = |row: &sql::Row<'_>| {
        let by: Option<String> = row.get(3)?;
        Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<String>(2)?, by))
    };
    let found = match id.parse::<i64>() {
        Ok(id) => {
            let query = connection.statement(query);
            query.query_row(params![id, exchange.who], read).optional()?.map(|row| (id, row))
        }
        Err(_) => None,
    };
    let Some((id, (state, rule, device, by))) = found else {
        return Ok(Reply::problem(StatusCode::NOT_FOUND, "there is no such alarm"));
    };
    let next = State::of_word(&state).and_then(|state| state.after(Event::Acknowledgement));
    let Some(next) = next else {
        let text = match by {
            Some(by) if state == State::Acknowledged.word() => {
                format!("{by} acknowledged it already")
            }
            _ => format!("it is {state}"),
        };
        return Ok(Reply::problem(StatusCode::CONFLICT, &text));
    };
    let Acknowledgement { by, word } = &said;
    let update = "UPDATE rule_alarms SET state = ?2, acknowledged_unix_s = ?3, acknowledged_by = ?4, \
         acknowledged_word = ?5 WHERE id = ?1";
    let row = params![id, next.word(), seconds(exchange.unix_s), by, word];
    connection.statement(update).execute(row)?;
    let detail = format!("{rule}, {by}: {word}");
    audit::append(
        connection,
        &audit::Event {
            unix_s: exchange.unix_s,
            who: &exchange.who,
            by: &exchange.by,
            action: "alarm acknowledged",
            subject: &device,
            detail: &detail,
            owner: &exchange.who,
        },
    )?;
    queue::put_to_the_rule(connection, id, exchange.unix_s)?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// The person of the key `who` whose name reads like that one.
fn person_like(
    connection: &Connection,
    who: &str,
    name: &str,
) -> Result<Option<String>, sql::Error> {
    let query = "SELECT name FROM people WHERE owner = ?1";
    let people: Vec<String> = connection.statement(query).query_map([who], |row| row.get(0))?;
    Ok(people.into_iter().find(|person| is_same(person, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarm_goes_from_state_to_state_as_the_documentation_says() {
        let mut lines = String::new();
        for state in [State::Raised, State::Acknowledged, State::Over] {
            for (event, words) in [
                (Event::Acknowledgement, "a person acknowledges it"),
                (Event::Calm, "its condition doesn't hold any more"),
            ] {
                if let Some(next) = state.after(event) {
                    lines += &format!("{:<12} ── {words} ──> {}\n", state.word(), next.word());
                }
            }
        }
        let documented = include_str!("../../../../docs/hub.md");
        assert!(documented.contains(&lines), "docs/hub.md lacks:\n{lines}");
    }

    #[test]
    fn acknowledgement_is_a_name_and_a_word_and_nothing_that_a_terminal_obeys() {
        let said =
            |by: &str, word: &str| Acknowledgement { by: by.into(), word: word.into() }.kept();
        assert_eq!(said(" Ada ", "on my way").unwrap().by, "Ada");
        assert!(!said("Ada", "a\u{1b}[2Jb").unwrap().word.contains('\u{1b}'));
        let long = "a".repeat(WORD_CHARS_MAX + 1);
        for (by, word) in
            [("", "word"), (" ", "word"), ("Ada", ""), ("Ada", &*long), (&*long, "word")]
        {
            assert_eq!(said(by, word), None, "{by} {word}");
        }
    }
}
