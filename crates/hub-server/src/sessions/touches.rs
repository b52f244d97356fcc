//! Devices that touched, as the database knows of them: when they were heard and until when they are in force, which is written for
//! many at once in one statement, before what stands there ends.

use tenure_hub::{Heard, Left};

use crate::store::audit::seconds;
use crate::store::sql::{self, Connection, Dialect, Next, Value, Words};

/// A device that was deleted meanwhile stays so, and what another hub heard later counts.
const STORE: Words = Words::each(
    "UPDATE devices AS d SET heard_unix_s = n.heard, expires_unix_s = n.ends, steady_unix_s = ?2 FROM (SELECT \
     json_extract(value, '$[0]') AS name, json_extract(value, '$[1]') AS heard, json_extract(value, '$[2]') AS ends \
     FROM json_each(?1)) AS n WHERE d.name = n.name AND d.expires_unix_s < n.ends AND length(d.kept) > 0",
    "UPDATE devices AS d SET heard_unix_s = n.heard, expires_unix_s = n.ends, steady_unix_s = ?4 \
     FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS BIGINT[])) AS n (name, heard, ends) \
     WHERE d.name = n.name AND d.expires_unix_s < n.ends AND length(d.kept) > 0",
);

/// Stores that devices were heard; the steady clock shows `steady`.
///
/// # Errors
/// The database fails.
pub(super) fn store(
    connection: &Connection,
    heard: &[Heard],
    steady: i64,
) -> Result<(), sql::Error> {
    let dialect = connection.dialect();
    let statement = connection.statement(STORE.of(dialect));
    let stored = match dialect {
        Dialect::Sqlite => {
            let row = |one: &Heard| (one.device.to_string(), one.heard_unix_s, one.ends_unix_s);
            let rows: Vec<_> = heard.iter().map(row).collect();
            let rows = serde_json::json!(rows).to_string();
            let parameters: &[Value<'_>] = &[Value::Text(&rows), Value::Integer(steady)];
            statement.execute(parameters)
        }
        Dialect::Postgres => {
            let integer = |unix_s: u64| Value::Integer(seconds(unix_s));
            let names: Vec<_> = heard.iter().map(|one| Value::Text(one.device.as_str())).collect();
            let times: Vec<_> = heard.iter().map(|one| integer(one.heard_unix_s)).collect();
            let ends: Vec<_> = heard.iter().map(|one| integer(one.ends_unix_s)).collect();
            let parameters: &[Value<'_>] = &[
                Value::Array(&names),
                Value::Array(&times),
                Value::Array(&ends),
                Value::Integer(steady),
            ];
            statement.execute(parameters)
        }
    };
    stored.map(drop)
}

/// The devices as an earlier run left them.
///
/// # Errors
/// The database fails.
pub(super) fn left(connection: &Connection) -> Result<Vec<Left>, sql::Error> {
    let all = "SELECT name, heard_unix_s, expires_unix_s, expires_unix_s >= (SELECT max(heard_unix_s) FROM devices) \
         FROM devices WHERE length(kept) > 0";
    let mut left = Vec::new();
    connection.statement(all).each([], |row| {
        let (heard, ends): (i64, i64) = (row.get(1)?, row.get(2)?);
        let was_there = row.get(3)?;
        // A name that can't be read is none that a device has.
        if let Ok(device) = row.get::<String>(0)?.parse() {
            let (heard_unix_s, ends_unix_s) = (heard.unsigned_abs(), ends.unsigned_abs());
            left.push(Left { device, heard_unix_s, ends_unix_s, was_there });
        }
        Ok(Next::Row)
    })?;
    Ok(left)
}
