//! Webhooks: what becomes of an alarm, told to servers of the operator's file as the Standard Webhooks specification says
//! (standard-webhooks 1.0.0): an id, a time and a signature beside each message, and tries that lie farther and farther apart.
//!
//! Invariants:
//! - A message is in the queue from the transaction on in which its alarm changed, and until a server took it or it was given
//!   up: it outlasts the process.
//! - The queue is bounded for each server. What is given up or makes room stands in the audit log.
//! - Requests go by [`Reach`]: a name leads to the public network alone, and no redirect is followed.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use serde_json::json;
use tenure_crypto::{hmac_sha256, sha256};
use tenure_hal::Instant;
use tenure_kernel::{Ask, CallId, OutgoingVisit, Visited};
use tenure_reach::Reach;
use tenure_wire::{MachineId, Name, Url};

use crate::devices::receipts::time;
use crate::store::audit::{self, seconds};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// The most messages that wait for one server; then the oldest makes room.
const WAITING_MAX: i64 = 1_000;
/// The most messages that are sent in one turn, to all servers together.
const AT_ONCE: i64 = 8;
/// How long a server has for its answer, in milliseconds; the specification advises 15 to 30 seconds.
const ANSWER_MS: u64 = 20_000;
/// How long nobody else sends a message that is being sent, in seconds: longer than an answer takes.
const CLAIMED_S: i64 = 120;
/// When a message is sent again after each failure, in seconds: the specification's example of a schedule.
const AGAIN_S: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
const _: () = assert!(CLAIMED_S.unsigned_abs() * 1_000 > 2 * ANSWER_MS);
/// The bytes of a secret; the specification asks for 24 to 64.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A server that is told of alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The name by which rules mean it.
    pub name: Name,
    /// Where messages are posted.
    pub url: Url,
    /// What they are signed with.
    pub secret: WebhookSecret,
}

/// The secret that a server knows, too: `whsec_`, and 24 to 64 bytes in base64.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// A text is no secret of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret is `whsec_` and 24 to 64 bytes in base64; `openssl rand -base64 32` makes such bytes"
)]
pub struct NoWebhookSecret;

impl FromStr for WebhookSecret {
    type Err = NoWebhookSecret;

    fn from_str(text: &str) -> Result<Self, NoWebhookSecret> {
        let text = text.strip_prefix("whsec_").ok_or(NoWebhookSecret)?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(|_| NoWebhookSecret)?;
        if SECRET_BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(NoWebhookSecret) }
    }
}

impl fmt::Debug for WebhookSecret {
    /// Without the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    /// The signature of a message, as its header has it: of the id, the time and the body with dots between.
    fn sign(&self, id: &str, unix_s: u64, body: &str) -> String {
        let head = format!("{id}.{unix_s}.");
        let mac = hmac_sha256(&self.0, &[head.as_bytes(), body.as_bytes()]);
        format!("v1,{}", BASE64.encode(&mac))
    }
}

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    row: i64,
    target: String,
    /// The message's own id, the same with each try.
    message: String,
    owner: String,
    body: String,
    tries: i64,
}

/// A message whose answer isn't there yet.
#[derive(Debug)]
pub(super) struct Sent {
    call: CallId,
    waiting: Waiting,
}

/// What came of a message.
#[derive(Debug)]
pub(super) struct Outcome {
    waiting: Waiting,
    result: Result<(), Refusal>,
}

/// Why a server didn't take a message.
#[derive(Debug)]
struct Refusal {
    words: String,
    /// Whether it wants no more of it.
    is_final: bool,
}

/// Puts a message on what became of the alarm number `alarm` into the queue of each server in `tell`.
///
/// # Errors
/// The database fails.
pub(super) fn put(
    connection: &Connection,
    alarm: i64,
    tell: &[Name],
    unix_s: u64,
) -> Result<(), sql::Error> {
    if tell.is_empty() {
        return Ok(());
    }
    let query = "SELECT rule, condition, owner, device, detail, state, raised_unix_s FROM rule_alarms WHERE id = ?1";
    let texts = |row: &sql::Row<'_>| {
        let mut texts = Vec::new();
        for column in 0..6 {
            texts.push(row.get::<String>(column)?);
        }
        Ok((texts, row.get::<i64>(6)?))
    };
    let found = connection.statement(query).query_row([alarm], texts).optional()?;
    let Some((texts, raised)) = found else { return Ok(()) };
    let [rule, condition, owner, device, detail, state] = &texts[..] else { return Ok(()) };
    let body = json!({
        "type": format!("alarm.{state}"),
        "timestamp": time(unix_s),
        "data": {
            "id": alarm,
            "rule": rule,
            "condition": condition,
            "owner": owner,
            "device": device,
            "detail": detail,
            "state": state,
            "raised": time(raised.unsigned_abs()),
        },
    });
    let body = body.to_string();
    for target in tell {
        let target = target.as_str();
        make_room(connection, target, unix_s)?;
        // The same in each try of this transaction, and another one for whatever else is told.
        let digest = sha256(&[target.as_bytes(), b"\n", body.as_bytes()]);
        let message = format!("msg_{}", data_encoding::HEXLOWER.encode(&digest.0[..16]));
        let insert = "INSERT INTO webhooks (target, message, owner, body, tries, next_unix_s) \
             VALUES (?1, ?2, ?3, ?4, 0, ?5)";
        let row = params![target, message, owner, body, seconds(unix_s)];
        connection.statement(insert).execute(row)?;
    }
    Ok(())
}

/// Drops the oldest message for a server, if there is no room for another one.
fn make_room(connection: &Connection, target: &str, unix_s: u64) -> Result<(), sql::Error> {
    let oldest = "SELECT id, message, owner FROM webhooks WHERE target = ?1 \
         AND (SELECT count(*) FROM webhooks WHERE target = ?1) >= ?2 ORDER BY id LIMIT 1";
    let read =
        |row: &sql::Row<'_>| Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?));
    let oldest = connection.statement(oldest).query_row(params![target, WAITING_MAX], read);
    let Some((row, message, owner)) = oldest.optional()? else { return Ok(()) };
    delete(connection, row)?;
    let detail = format!("{message}: over {WAITING_MAX} wait");
    note(connection, ("webhook dropped", target, &detail, &owner), unix_s)
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

/// Keeps messages from being sent by others while they are sent, also by another process or after a kill. Those for servers
/// that aren't in the file any more are dropped.
///
/// # Errors
/// The database fails.
pub(super) fn claim(
    connection: &Connection,
    due: &[Waiting],
    known: &[Webhook],
    unix_s: u64,
) -> Result<(), sql::Error> {
    for Waiting { row, target, message, owner, .. } in due {
        if known.iter().all(|webhook| webhook.name.as_str() != target) {
            delete(connection, *row)?;
            let detail = format!("{message}: the file names no such server any more");
            note(connection, ("webhook dropped", target, &detail, owner), unix_s)?;
            continue;
        }
        let update = "UPDATE webhooks SET next_unix_s = ?2 WHERE id = ?1";
        connection.statement(update).execute([*row, seconds(unix_s) + CLAIMED_S])?;
    }
    Ok(())
}

/// Sends a message under the number `call` of its request, if its server is known.
pub(super) fn send(
    reach: &mut Reach,
    known: &[Webhook],
    waiting: Waiting,
    call: CallId,
    unix_s: u64,
) -> Option<Sent> {
    let named = |(_, webhook): &(usize, &Webhook)| webhook.name.as_str() == waiting.target;
    let (index, webhook) = known.iter().enumerate().find(named)?;
    let Waiting { message, body, .. } = &waiting;
    let signature = webhook.secret.sign(message, unix_s, body);
    let request = format!(
        "content-type: application/json\r\nwebhook-id: {message}\r\nwebhook-timestamp: {unix_s}\r\n\
         webhook-signature: {signature}\r\n\r\n{body}"
    );
    // Each server has a thread of its own, so that one that is slow keeps no other waiting.
    let mut from = MachineId([0; 12]);
    from.0[..8].copy_from_slice(&(index as u64).to_be_bytes());
    let method = "POST".parse().ok()?;
    let ask =
        Ask::Request { method, url: webhook.url.clone(), message: Some(request.into_bytes()) };
    let visit = OutgoingVisit {
        id: call,
        from,
        ask,
        // A redirect leads to what is granted, which is nothing.
        granted: Vec::new(),
        deadline: Instant::from_millis(ANSWER_MS),
        attempts: 1,
    };
    reach.visit(Instant::BOOT, visit);
    Some(Sent { call, waiting })
}

/// What came of the messages under way whose requests have ended.
pub(super) fn ended(reach: &mut Reach, under_way: &mut Vec<Sent>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while let Some(visited) = reach.visited() {
        if let Some(place) = under_way.iter().position(|sent| sent.call == visited.id) {
            let Sent { waiting, .. } = under_way.swap_remove(place);
            outcomes.push(Outcome { waiting, result: taken(&visited) });
        }
    }
    outcomes
}

/// Whether a server took the message: by a status of success, and by nothing else.
fn taken(visited: &Visited) -> Result<(), Refusal> {
    let refused = |words: String, is_final| Err(Refusal { words, is_final });
    let Ok(Some(answer)) = &visited.result else {
        return refused(String::from_utf8_lossy(&visited.words).into_owned(), false);
    };
    // `HTTP/1.1 204 `, as `reach` tells it.
    let status = answer.split(|byte| *byte == b' ').nth(1);
    match status.and_then(|status| std::str::from_utf8(status).ok()) {
        Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
        Some("410") => refused("the server answered 410: it wants no more".into(), true),
        Some(status) if status.starts_with('3') => {
            refused(format!("the server answered {status}; no redirect is followed"), false)
        }
        Some(status) => refused(format!("the server answered {status}"), false),
        None => refused("the server's answer has no status".into(), false),
    }
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
            note(connection, ("webhook failed", target, &detail, owner), unix_s)
        }
        None => {
            delete(connection, *row)?;
            let detail = format!("{message}, after {} tries: {words}", tries + 1);
            note(connection, ("webhook given up", target, &detail, owner), unix_s)
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
    let event = audit::Event { unix_s, who: "hub", action, subject, detail, owner };
    audit::append(connection, &event)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries (standard-webhooks, `libraries/*/tests`).
    #[test]
    fn message_is_signed_as_the_reference_libraries_sign_it() {
        let secret: WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let body = r#"{"test": 2432232314}"#;
        assert_eq!(
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }

    #[test]
    fn text_that_is_no_secret_is_refused() {
        let short = format!("whsec_{}", BASE64.encode(&[1; 23]));
        let long = format!("whsec_{}", BASE64.encode(&[1; 65]));
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_=", &*short, &*long] {
            assert_eq!(text.parse::<WebhookSecret>(), Err(NoWebhookSecret), "{text}");
        }
        assert!(format!("whsec_{}", BASE64.encode(&[1; 24])).parse::<WebhookSecret>().is_ok());
    }

    #[test]
    fn message_is_sent_again_a_little_later_than_the_schedule_says() {
        for again_s in AGAIN_S {
            assert!((again_s..=again_s + again_s / 4).contains(&jittered(again_s)));
        }
    }
}
