//! The steps that a rollout takes by itself: gates, stages, its end.

use rusqlite::{Connection, params};

use super::{Rollout, enter, find, note, now};
use crate::audit::seconds;
use crate::exchange::Exchange;

/// How long a device that updates itself may be silent, in seconds.
const SILENT_S: i64 = 600;
/// How long a stage waits for listed devices that don't ask, in seconds: they may be of an older version.
const AWAITED_S: i64 = 1800;

/// Takes every step that is due, and returns the rollout as it is then.
///
/// # Errors
/// SQLite fails.
pub(super) fn advance(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<Rollout, rusqlite::Error> {
    let mut rollout = rollout.clone();
    // A step leads to the next stage or another state, and there are fewer of both than this.
    for _ in 0..64 {
        if rollout.is_over() || !step(connection, exchange, &rollout)? {
            break;
        }
        let Some(moved) = find(connection, &exchange.who, rollout.id)? else { break };
        rollout = moved;
    }
    Ok(rollout)
}

/// Takes one step; returns whether there was one to take.
fn step(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<bool, rusqlite::Error> {
    let has_ended = now(exchange) >= rollout.ends_unix_s;
    match rollout.state.as_str() {
        "running" | "paused" => {
            note_silent(connection, exchange, rollout)?;
            let failures = count(connection, rollout, "state = 'failed'")?;
            if failures > rollout.failures_max && rollout.state == "running" {
                fail(connection, exchange, rollout, failures)?;
                return Ok(true);
            }
            // A device that soaks is watched beyond the end, and rolled back if it must be.
            let is_in_flight = count(connection, rollout, in_flight(rollout))? > 0;
            if count(connection, rollout, "state NOT IN ('healthy', 'failed')")? == 0 {
                enter(connection, exchange, rollout, "done", "")?;
                return Ok(true);
            }
            if has_ended && !is_in_flight {
                enter(connection, exchange, rollout, "ended", "its time is over")?;
                return Ok(true);
            }
            Ok(rollout.state == "running" && next_stage(connection, exchange, rollout)?)
        }
        "rolling back" if count(connection, rollout, "state = 'reverting'")? == 0 => {
            let reason = rollout.reason.clone();
            enter(connection, exchange, rollout, "rolled back", &reason)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The devices that are in the middle of their update. One that does it by itself was named and may be off, and
/// its mandate ends with the rollout.
fn in_flight(rollout: &Rollout) -> &'static str {
    match rollout.mandate {
        Some(_) => "state = 'soaking'",
        None => "state IN ('updating', 'soaking')",
    }
}

/// A device that was updated and whose record ran out since has missed its heartbeats. One that was silent for
/// longer while it updated itself may have started the new version and not have come back. Silence counts only
/// while the hub could hear: each device has the life of a record again after the hub was away.
fn note_silent(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<(), rusqlite::Error> {
    let now = now(exchange);
    fail_silent(
        connection,
        exchange,
        rollout,
        "soaking",
        "missed its heartbeats after the update",
        now,
    )?;
    if rollout.mandate.is_none() {
        return Ok(());
    }
    let long_ago = now - SILENT_S;
    fail_silent(
        connection,
        exchange,
        rollout,
        "updating",
        "went silent during the update",
        long_ago,
    )
}

/// The devices in that state fail that should have been heard by `by_unix_s`: their records were over by then, and the
/// hub had heard for as long as a record lasts.
fn fail_silent(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    state: &str,
    reason: &str,
    by_unix_s: i64,
) -> Result<(), rusqlite::Error> {
    let update = "UPDATE rollout_devices SET state = 'failed', reason = ?5 \
         WHERE rollout = ?1 AND state = ?4 AND NOT EXISTS (SELECT 1 FROM devices d \
         WHERE d.name = rollout_devices.device AND d.owner = ?2 \
         AND max(d.expires_unix_s, ?6 + d.expires_unix_s - d.heard_unix_s) >= ?3)";
    let hears_since = seconds(exchange.hub_hears_since_unix_s);
    let row = params![rollout.id, exchange.who, by_unix_s, state, reason, hears_since];
    connection.prepare_cached(update)?.execute(row).map(drop)
}

/// A gate failed: pauses or rolls back.
fn fail(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    failures: i64,
) -> Result<(), rusqlite::Error> {
    let first = "SELECT device || ': ' || reason FROM rollout_devices \
         WHERE rollout = ?1 AND state = 'failed' ORDER BY position LIMIT 1";
    let first: String =
        connection.prepare_cached(first)?.query_row([rollout.id], |row| row.get(0))?;
    let reason = match failures {
        1 => first,
        _ => format!("{first}; {} more", failures - 1),
    };
    match rollout.on_failure.as_str() {
        "pause" => enter(connection, exchange, rollout, "paused", &reason),
        _ => roll_back(connection, exchange, rollout, &reason),
    }
}

/// Begins to give every device that was touched what it had before. One whose package is kept no more fails: nobody
/// could deliver it, and the rollout would never be over.
pub(super) fn roll_back(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    reason: &str,
) -> Result<(), rusqlite::Error> {
    const TOUCHED: &str =
        "was IS NOT NULL AND state IN ('updating', 'soaking', 'healthy', 'failed')";
    let fail = format!(
        "UPDATE rollout_devices SET state = 'failed', reason = 'the package ' || was || ', which it had before, is \
         not in the registry: push it and install it there' WHERE rollout = ?1 AND {TOUCHED} AND was <> '' \
         AND NOT EXISTS (SELECT 1 FROM manifests m WHERE m.who = ?2 AND m.package_digest = was)"
    );
    let lost = connection.prepare_cached(&fail)?.execute(params![rollout.id, exchange.who])?;
    let revert = format!(
        "UPDATE rollout_devices SET state = 'reverting', tried_unix_s = NULL WHERE rollout = ?1 AND {TOUCHED} \
         AND (was = '' OR EXISTS (SELECT 1 FROM manifests m WHERE m.who = ?2 AND m.package_digest = was))"
    );
    connection.prepare_cached(&revert)?.execute(params![rollout.id, exchange.who])?;
    let reason = match lost {
        0 => reason.to_string(),
        _ => format!("{reason}; {lost} can't go back: the package before is not in the registry"),
    };
    let reason = reason.as_str();
    enter(connection, exchange, rollout, "rolling back", reason)
}

/// The owner goes on in spite of devices that failed: they count as done, and as no failure any more.
pub(super) fn forgive(connection: &Connection, rollout: &Rollout) -> Result<(), rusqlite::Error> {
    let update = "UPDATE rollout_devices SET state = 'healthy', reason = 'failed, and its owner went on' \
         WHERE rollout = ?1 AND state = 'failed' AND was IS NOT NULL";
    connection.prepare_cached(update)?.execute([rollout.id]).map(drop)
}

/// Begins the next stage if the one in force has done well: no device of it is under way, at least one
/// is healthy, and who is missing couldn't be reached.
fn next_stage(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<bool, rusqlite::Error> {
    let reach = rollout.reach();
    let within = |condition: &str| {
        count(connection, rollout, &format!("position < {reach} AND ({condition})"))
    };
    let is_last = rollout.stage + 1 >= rollout.stages.len();
    let is_open = within("state IN ('updating', 'soaking')")?
        + within(&format!(
            "state = 'waiting' AND tried_unix_s IS NULL AND {}",
            is_awaited(exchange, rollout)
        ))?
        > 0;
    if is_last || is_open || within("state = 'healthy'")? == 0 {
        return Ok(false);
    }
    let update = "UPDATE rollouts SET stage = stage + 1, stage_unix_s = ?2 WHERE id = ?1";
    connection.prepare_cached(update)?.execute(params![rollout.id, now(exchange)])?;
    let detail = format!("stage {} of {}", rollout.stage + 2, rollout.stages.len());
    note(connection, exchange, rollout.id, "rollout goes on", &detail)?;
    Ok(true)
}

/// Whether a device that nobody tried yet keeps the next stage waiting. The command tries each; a device that
/// asks by itself is awaited if it is listed, for a while.
fn is_awaited(exchange: &Exchange, rollout: &Rollout) -> String {
    let now = now(exchange);
    if rollout.mandate.is_none() {
        return "true".into();
    }
    if now >= rollout.stage_unix_s + AWAITED_S {
        return "false".into();
    }
    format!(
        "EXISTS (SELECT 1 FROM devices d WHERE d.name = rollout_devices.device AND d.expires_unix_s >= {now})"
    )
}

/// How many devices of a rollout meet a condition, which is one of ours.
fn count(
    connection: &Connection,
    rollout: &Rollout,
    condition: &str,
) -> Result<i64, rusqlite::Error> {
    let query =
        format!("SELECT count(*) FROM rollout_devices WHERE rollout = ?1 AND ({condition})");
    connection.prepare_cached(&query)?.query_row([rollout.id], |row| row.get(0))
}
