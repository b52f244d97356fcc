//! The steps that a rollout takes by itself: gates, stages, its end.

use rusqlite::{Connection, params};

use super::{Rollout, enter, find, note, now};
use crate::exchange::Exchange;

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
            let is_in_flight = count(connection, rollout, "state IN ('updating', 'soaking')")? > 0;
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

/// A device that was updated and whose record ran out since has missed its heartbeats.
fn note_silent(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<(), rusqlite::Error> {
    let update = "UPDATE rollout_devices SET state = 'failed', reason = 'missed its heartbeats after the update' \
         WHERE rollout = ?1 AND state = 'soaking' AND NOT EXISTS (SELECT 1 FROM devices d \
         WHERE d.name = rollout_devices.device AND d.owner = ?2 AND d.expires_unix_s >= ?3)";
    let now = now(exchange);
    connection.prepare_cached(update)?.execute(params![rollout.id, exchange.who, now]).map(drop)
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

/// Begins to give every device that was touched what it had before.
pub(super) fn roll_back(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    reason: &str,
) -> Result<(), rusqlite::Error> {
    let revert = "UPDATE rollout_devices SET state = 'reverting', tried_unix_s = NULL WHERE rollout = ?1 \
         AND was IS NOT NULL AND state IN ('updating', 'soaking', 'healthy', 'failed')";
    connection.prepare_cached(revert)?.execute([rollout.id])?;
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
    let is_open =
        within("state IN ('updating', 'soaking') OR (state = 'waiting' AND tried_unix_s IS NULL)")?
            > 0;
    if is_last || is_open || within("state = 'healthy'")? == 0 {
        return Ok(false);
    }
    let update = "UPDATE rollouts SET stage = stage + 1 WHERE id = ?1";
    connection.prepare_cached(update)?.execute([rollout.id])?;
    let detail = format!("stage {} of {}", rollout.stage + 2, rollout.stages.len());
    note(connection, exchange, rollout.id, "rollout goes on", &detail)?;
    Ok(true)
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
