//! The renewals of a turn in one statement, at a server: a round trip for all of them, whatever it takes.
//!
//! Each is compared with what the hub believes to stand there and set in its place, in a transaction of its own kind: one row is
//! enough for that, so that none is in the way of another (PostgreSQL 15, 13.2.1: a row that was changed meanwhile is looked at
//! once more).

use std::collections::BTreeSet;

use tenure_hub::{Kept, Renewal};
use tenure_wire::carried::Shown;

use crate::store::audit::seconds;
use crate::store::sql::{self, Connection, Next, Value};

const RENEW: &str = "UPDATE devices d SET seen_at = n.seen_at, expires_unix_s = n.expires_unix_s, kept = n.kept, \
     heard_unix_s = ?6, steady_unix_s = ?7, way = CASE WHEN d.seen_at = n.seen_at THEN d.way ELSE '' END \
     FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BYTEA[]), CAST(?3 AS BYTEA[]), CAST(?4 AS TEXT[]), CAST(?5 AS BIGINT[])) \
     AS n (name, before, kept, seen_at, expires_unix_s) \
     WHERE d.name = n.name AND d.kept = n.before AND NOT EXISTS (SELECT 1 FROM revoked_devices r \
     WHERE r.device_key = d.device_key AND r.owner = d.owner) RETURNING d.name";

/// Stores those whose records before stand there, at the moment `now`, when the steady clock shows `steady`; returns of each
/// whether it did.
///
/// # Errors
/// The database fails.
pub(super) fn renew(
    connection: &Connection,
    renewals: &[Renewal],
    now: i64,
    steady: i64,
) -> Result<Vec<bool>, sql::Error> {
    let bytes = |kept: &Kept| postcard::to_allocvec(kept).unwrap_or_default();
    let rows: Vec<_> = renewals.iter().map(|one| (bytes(&one.before), bytes(&one.kept))).collect();
    let places: Vec<String> =
        renewals.iter().map(|one| Shown(&one.kept.seen_at).to_string()).collect();
    let names: Vec<Value<'_>> =
        renewals.iter().map(|one| Value::Text(one.device.as_str())).collect();
    let before: Vec<Value<'_>> = rows.iter().map(|(before, _)| Value::Blob(before)).collect();
    let kept: Vec<Value<'_>> = rows.iter().map(|(_, kept)| Value::Blob(kept)).collect();
    let places: Vec<Value<'_>> = places.iter().map(|place| Value::Text(place)).collect();
    let ends: Vec<Value<'_>> =
        renewals.iter().map(|one| Value::Integer(seconds(one.ends_unix_s))).collect();
    let parameters: &[Value<'_>] = &[
        Value::Array(&names),
        Value::Array(&before),
        Value::Array(&kept),
        Value::Array(&places),
        Value::Array(&ends),
        Value::Integer(now),
        Value::Integer(steady),
    ];
    let mut done = BTreeSet::new();
    connection.statement(RENEW).each(parameters, |row| {
        done.insert(row.get::<String>(0)?);
        Ok(Next::Row)
    })?;
    Ok(renewals.iter().map(|one| done.contains(one.device.as_str())).collect())
}
