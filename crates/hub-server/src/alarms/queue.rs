//! What is to be told of alarms, until a receiver took it or it was given up: a queue in the database for each server of
//! webhooks and each mailbox, with tries that lie farther and farther apart.
//!
//! Invariants:
//! - A message is in the queue from the transaction on in which its alarm changed, and until its receiver took it or it was
//!   given up: it outlasts the process.
//! - The queue is bounded for each receiver. What is given up or makes room stands in the audit log.
//! - A message is the same with each try.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use tenure_crypto::sha256;
use tenure_wire::Name;

use super::place::THE_HUB;
use crate::devices::receipts::time;
use crate::exchange::encoded;
use crate::store::audit::{self, seconds};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// The most messages that wait for one receiver; then the oldest makes room.
const WAITING_MAX: i64 = 1_000;
/// The most messages that are sent in one turn, to all receivers together.
const AT_ONCE: i64 = 8;
/// How long nobody else sends a message that is being sent, in seconds: longer than any receiver has for its answer.
pub(super) const CLAIMED_S: i64 = 120;
/// When a message is sent again after each failure, in seconds: the example of a schedule of standard-webhooks 1.0.0.
const AGAIN_S: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// Stands in the place of a receiver's name where whoever changed the alarm doesn't know the rules. No name is empty.
const WHOM_THE_RULE_TELLS: &str = "";

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    row: i64,
    /// The receiver's name in the file.
    pub(super) target: String,
    /// The message's own id, the same with each try.
    pub(super) message: String,
    owner: String,
    /// [`Told`] in JSON.
    pub(super) body: String,
    tries: i64,
}

/// What became of an alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// `alarm.` and its state.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// When, as RFC 3339 has it.
    pub(super) timestamp: String,
    pub(super) data: Data,
}

/// The alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Data {
    pub(super) id: i64,
    pub(super) rule: String,
    pub(super) condition: String,
    pub(super) owner: String,
    /// The device's name; empty for the hub itself.
    pub(super) device: String,
    /// What was seen.
    pub(super) detail: String,
    pub(super) state: String,
    /// When it was raised, as RFC 3339 has it.
    pub(super) raised: String,
    /// The device's page, or the page of alarms, where the hub knows the address of its pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// Who acknowledged it, if anybody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) acknowledged: Option<Acknowledged>,
}

/// Who looks after an alarm, and with which word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Acknowledged {
    pub(super) by: String,
    pub(super) word: String,
}

/// What came of a message.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) waiting: Waiting,
    pub(super) result: Result<(), Refusal>,
}

/// Why a receiver didn't take a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) words: String,
    /// Whether it wants no more of it.
    pub(super) is_final: bool,
}

impl Refusal {
    /// One after which the same is tried again.
    pub(super) fn passing(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_final: false }
    }
}

impl Waiting {
    /// The same message with the address of its device's page, below that of the hub's pages. It is added when the message
    /// is sent: whoever changes an alarm needn't know where pages are.
    pub(super) fn linked(self, pages_url: &str) -> Self {
        let Some(mut told) = Told::read(&self.body) else { return self };
        told.data.url = Some(match told.data.device.as_str() {
            THE_HUB => format!("{pages_url}/alarms"),
            device => format!("{pages_url}/devices/{}", encoded(device)),
        });
        Self { body: serde_json::json!(told).to_string(), ..self }
    }
}

impl Told {
    /// What the message says, if it is one.
    pub(super) fn read(body: &str) -> Option<Self> {
        serde_json::from_str(body).ok()
    }
}

/// Puts a message on what became of the alarm number `alarm` into the queue of each receiver in `tell`.
///
/// # Errors
/// The database fails.
pub(super) fn put(
    connection: &Connection,
    alarm: i64,
    tell: &[Name],
    unix_s: u64,
) -> Result<(), sql::Error> {
    let targets: Vec<&str> = tell.iter().map(Name::as_str).collect();
    put_for(connection, alarm, &targets, unix_s)
}

/// The same for whomever the alarm's rule tells, which whoever looks at the rules knows.
///
/// # Errors
/// The database fails.
pub(super) fn put_to_the_rule(
    connection: &Connection,
    alarm: i64,
    unix_s: u64,
) -> Result<(), sql::Error> {
    put_for(connection, alarm, &[WHOM_THE_RULE_TELLS], unix_s)
}

fn put_for(
    connection: &Connection,
    alarm: i64,
    targets: &[&str],
    unix_s: u64,
) -> Result<(), sql::Error> {
    if targets.is_empty() {
        return Ok(());
    }
    let Some(told) = told(connection, alarm, unix_s)? else { return Ok(()) };
    let body = serde_json::json!(told).to_string();
    targets.iter().try_for_each(|target| {
        insert(connection, (*target, told.data.owner.as_str(), body.as_str()), unix_s)
    })
}

/// The alarm as it is now.
fn told(connection: &Connection, alarm: i64, unix_s: u64) -> Result<Option<Told>, sql::Error> {
    let query = "SELECT rule, condition, owner, device, detail, state, raised_unix_s, acknowledged_by, \
         acknowledged_word FROM rule_alarms WHERE id = ?1";
    let read = |row: &sql::Row<'_>| {
        let raised: i64 = row.get(6)?;
        let (by, word): (Option<String>, Option<String>) = (row.get(7)?, row.get(8)?);
        Ok(Data {
            id: alarm,
            rule: row.get(0)?,
            condition: row.get(1)?,
            owner: row.get(2)?,
            device: row.get(3)?,
            detail: row.get(4)?,
            state: row.get(5)?,
            raised: time(raised.unsigned_abs()),
            url: None,
            acknowledged: by.zip(word).map(|(by, word)| Acknowledged { by, word }),
        })
    };
    let data: Option<Data> = connection.statement(query).query_row([alarm], read).optional()?;
    Ok(data.map(|data| {
        let kind = format!("alarm.{}", data.state);
        Told { kind, timestamp: time(unix_s), data }
    }))
}

fn insert(
    connection: &Connection,
    (target, owner, body): (&str, &str, &str),
    unix_s: u64,
) -> Result<(), sql::Error> {
    make_room(connection, target, unix_s)?;
    // The same in each try of this transaction, and another one for whatever else is told.
    let digest = sha256(&[target.as_bytes(), b"\n", body.as_bytes()]);
    let message = format!("msg_{}", HEXLOWER.encode(&digest.0[..16]));
    let insert = "INSERT INTO webhooks (target, message, owner, body, tries, next_unix_s) \
         VALUES (?1, ?2, ?3, ?4, 0, ?5)";
    let row = params![target, message, owner, body, seconds(unix_s)];
    connection.statement(insert).execute(row).map(drop)
}

/// Drops the oldest message for a receiver, if there is no room for another one.
fn make_room(connection: &Connection, target: &str, unix_s: u64) -> Result<(), sql::Error> {
    let oldest = "SELECT id, message, owner FROM webhooks WHERE target = ?1 \
         AND (SELECT count(*) FROM webhooks WHERE target = ?1) >= ?2 ORDER BY id LIMIT 1";
    let read =
        |row: &sql::Row<'_>| Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?));
    let oldest = connection.statement(oldest).query_row(params![target, WAITING_MAX], read);
    let Some((row, message, owner)) = oldest.optional()? else { return Ok(()) };
    delete(connection, row)?;
    let detail = format!("{message}: over {WAITING_MAX} wait");
    note(connection, ("message dropped", target, &detail, &owner), unix_s)
}

/// The messages that are due.
///
/// # Errors
/// The database fails.
pub(super) fn due(connection: &Connection, unix_s: u64) -> Result<Vec<Waiting>, sql::Error> {
    let query = "SELECT id, target, message, owner, body, tries FROM webhooks WHERE next_unix_s <= ?1 \
         ORDER BY next_unix_s, id LIMIT ?2";
    connection.statement(query).query_map([seconds(unix_s), AT_ONCE], |row| {
        Ok(Waiting {
            row: row.get(0)?,
            target: row.get(1)?,
            message: row.get(2)?,
            owner: row.get(3)?,
            body: row.get(4)?,
            tries: row.get(5)?,
        })
    })
}

/// Whom messages go to, as the operator's file says now.
pub(super) trait Receivers {
    /// Whether the file names this receiver.
    fn knows(&self, name: &str) -> bool;

    /// Whom the rule of this name tells.
    fn told_by(&self, rule: &str) -> &[Name];
}

/// Keeps messages from being sent by others while they are sent, also by another process or after a kill. Those for receivers
/// that aren't in the file any more are dropped, and those for whomever a rule tells are put into the queues of these.
///
/// # Errors
/// The database fails.
pub(super) fn claim(
    connection: &Connection,
    due: &[Waiting],
    receivers: &impl Receivers,
    unix_s: u64,
) -> Result<(), sql::Error> {
    for waiting in due {
        let Waiting { row, target, message, owner, body, .. } = waiting;
        if target == WHOM_THE_RULE_TELLS {
            delete(connection, *row)?;
            let Some(told) = Told::read(body) else { continue };
            for target in receivers.told_by(&told.data.rule) {
                insert(connection, (target.as_str(), owner, body), unix_s)?;
            }
        } else if receivers.knows(target) {
            let update = "UPDATE webhooks SET next_unix_s = ?2 WHERE id = ?1";
            connection.statement(update).execute([*row, seconds(unix_s) + CLAIMED_S])?;
        } else {
            delete(connection, *row)?;
            let detail = format!("{message}: the file names no such receiver any more");
            note(connection, ("message dropped", target, &detail, owner), unix_s)?;
        }
    }
    Ok(())
}

/// Notes what came of a message, in the transaction that is under way.
///
/// # Errors
/// The database fails.
pub(super) fn settle(
    connection: &Connection,
    outcome: &Outcome,
    unix_s: u64,
) -> Result<(), sql::Error> {
    let Outcome { waiting: Waiting { row, target, message, owner, tries, .. }, result } = outcome;
    let Err(Refusal { words, is_final }) = result else { return delete(connection, *row) };
    let again_s = usize::try_from(*tries).ok().and_then(|tries| AGAIN_S.get(tries).copied());
    match again_s.filter(|_| !is_final) {
        Some(again_s) => {
            let next = seconds(unix_s) + jittered(again_s);
            let update = "UPDATE webhooks SET tries = tries + 1, next_unix_s = ?2 WHERE id = ?1";
            connection.statement(update).execute([*row, next])?;
            let detail = format!("{message}: {words}");
            note(connection, ("message failed", target, &detail, owner), unix_s)
        }
        None => {
            delete(connection, *row)?;
            let detail = format!("{message}, after {} tries: {words}", tries + 1);
            note(connection, ("message given up", target, &detail, owner), unix_s)
        }
    }
}

/// A time up to a quarter longer, so that what failed together isn't sent again together.
fn jittered(again_s: i64) -> i64 {
    let mut random = [0];
    // Without randomness it is the time itself.
    let _ = getrandom::fill(&mut random);
    again_s + again_s * i64::from(random[0]) / 1_024
}

fn delete(connection: &Connection, row: i64) -> Result<(), sql::Error> {
    connection.statement("DELETE FROM webhooks WHERE id = ?1").execute([row]).map(drop)
}

fn note(
    connection: &Connection,
    (action, subject, detail, owner): (&str, &str, &str, &str),
    unix_s: u64,
) -> Result<(), sql::Error> {
    let event = audit::Event { unix_s, who: "hub", by: "", action, subject, detail, owner };
    audit::append(connection, &event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_sent_again_a_little_later_than_the_schedule_says() {
        for again_s in AGAIN_S {
            assert!((again_s..=again_s + again_s / 4).contains(&jittered(again_s)));
        }
    }
}
