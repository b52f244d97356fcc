//! Requests that are sent again because their answer was lost: the header `Idempotency-Key`
//! (draft-ietf-httpapi-idempotency-key-header).
//!
//! The answer is stored in the transaction of what the request did, so that both last or neither does.

use http::{HeaderName, StatusCode, header};
use tenure_crypto::sha256;

use crate::exchange::{Exchange, Reply};
use crate::store::audit::seconds;
use crate::store::sql::{self, Connection, OptionalExtension as _, params};
use crate::store::steady;

/// The header.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How long an answer is kept, in seconds: a day.
const KEPT_S: i64 = 24 * 60 * 60;
/// The most answers of one key that are kept; then the oldest makes room.
const KEPT_MAX: i64 = 1_000;
/// The longest value of the header, in bytes.
const VALUE_BYTES_MAX: usize = 255;

/// Runs `action`, unless the same request was answered before: then returns that answer.
///
/// # Errors
/// The database fails.
pub(crate) fn once(
    connection: &Connection,
    exchange: &Exchange,
    action: impl FnOnce() -> Result<Reply, sql::Error>,
) -> Result<Reply, sql::Error> {
    if !exchange.headers.contains_key(&IDEMPOTENCY_KEY) {
        return action();
    }
    let value = exchange.header(&IDEMPOTENCY_KEY).unwrap_or("");
    if value.is_empty() || value.len() > VALUE_BYTES_MAX {
        let text = "Idempotency-Key is 1 to 255 characters of ASCII";
        return Ok(Reply::problem(StatusCode::BAD_REQUEST, text));
    }
    let request = request_digest(exchange);
    let known = "SELECT request, status, content_type, location, body FROM answers \
         WHERE who = ?1 AND value = ?2 AND made_unix_s > ?3";
    let now = seconds(exchange.unix_s);
    let row = params![exchange.who, value, now - KEPT_S];
    let read = |row: &sql::Row<'_>| {
        let status = StatusCode::from_u16(row.get(1)?).unwrap_or(StatusCode::OK);
        let mut reply = Reply { body: row.get(4)?, ..Reply::empty(status) };
        for (index, name) in [(2, header::CONTENT_TYPE), (3, header::LOCATION)] {
            if let Some(text) = row.get::<Option<String>>(index)? {
                reply = reply.with(name, text);
            }
        }
        Ok((row.get::<String>(0)?, reply))
    };
    match connection.statement(known).query_row(row, read).optional()? {
        Some((known, reply)) if known == request => return Ok(reply),
        Some(_) => {
            let text = "that Idempotency-Key was used for another request";
            return Ok(Reply::problem(StatusCode::UNPROCESSABLE_ENTITY, text));
        }
        None => {}
    }
    let reply = action()?;
    // A refusal may be followed by the same request once its reason is gone.
    if reply.status.is_success() {
        keep(connection, exchange, (value, &request), &reply)?;
    }
    Ok(reply)
}

/// The digest of method, path and body.
fn request_digest(exchange: &Exchange) -> String {
    let head = format!("{} /{}\n", exchange.method, exchange.segments.join("/"));
    sha256(&[head.as_bytes(), &exchange.body]).to_string()
}

fn keep(
    connection: &Connection,
    exchange: &Exchange,
    (value, request): (&str, &str),
    reply: &Reply,
) -> Result<(), sql::Error> {
    let insert = "INSERT INTO answers (who, value, request, status, content_type, location, body, \
         made_unix_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (who, value) DO UPDATE SET \
         request = excluded.request, status = excluded.status, content_type = excluded.content_type, \
         location = excluded.location, body = excluded.body, made_unix_s = excluded.made_unix_s";
    let of = |name: HeaderName| {
        reply.headers.iter().find(|(known, _)| *known == name).map(|(_, text)| text)
    };
    let now = seconds(exchange.unix_s);
    connection.statement(insert).execute(params![
        exchange.who,
        value,
        request,
        reply.status.as_u16(),
        of(header::CONTENT_TYPE),
        of(header::LOCATION),
        reply.body,
        now,
    ])?;
    let delete = "DELETE FROM answers WHERE who = ?1 AND (made_unix_s <= ?2 OR made_unix_s < \
         (SELECT made_unix_s FROM answers WHERE who = ?1 ORDER BY made_unix_s DESC LIMIT 1 OFFSET ?3))";
    let steady = steady::unix_s(connection, now)?;
    let row = params![exchange.who, steady - KEPT_S, KEPT_MAX - 1];
    connection.statement(delete).execute(row).map(drop)
}
