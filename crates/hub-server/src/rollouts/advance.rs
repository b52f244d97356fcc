//! The steps that a rollout takes by itself: gates, stages, its end.

use super::states::DeviceEvent;
use super::{
    Counts, DeviceState, Event, Rollout, State, devices, enter, find, heard_from, note, now,
};
use super::{waits, words_of};
use crate::exchange::Exchange;
use crate::store::audit::seconds;
use crate::store::sql::{self, Connection, Next, params};

/// How long a device that updates itself may be silent, in seconds.
const SILENT_S: i64 = 600;
/// How long a stage waits for listed devices that don't ask, in seconds: they may be of an older version.
const AWAITED_S: i64 = 1800;
/// How long a rollout waits for its owner before it ends, in seconds.
const STUCK_S: i64 = 1800;
/// How long a hub has heard without a gap, in seconds, until its clock ends a rollout: one that was set wrong for a while
/// doesn't.
const SURE_S: i64 = 3600;
/// The most devices that one step looks at.
const LOOKED_AT_MAX: i64 = 64;

/// Takes every step that is due, and returns the rollout as it is then.
///
/// # Errors
/// The database fails.
pub(super) fn advance(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<Rollout, sql::Error> {
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
) -> Result<bool, sql::Error> {
    let happens = |event: Event, reason: &str| {
        enter(connection, exchange, rollout, event, reason).map(|()| true)
    };
    if rollout.state == State::RollingBack {
        let counts = Counts::of(connection, rollout.id)?;
        let all_back = counts.count(DeviceState::Reverting) == 0;
        return if all_back { happens(Event::AllBack, &rollout.reason) } else { Ok(false) };
    }
    note_silent(connection, exchange, rollout)?;
    let counts = Counts::of(connection, rollout.id)?;
    let failed = counts.count(DeviceState::Failed);
    if failed > rollout.failures_max && rollout.state == State::Running {
        fail(connection, exchange, rollout, failed)?;
        return Ok(true);
    }
    if counts.count(DeviceState::Healthy) + failed == counts.sum() {
        return happens(Event::AllThrough, "");
    }
    let reasons = || -> Result<String, sql::Error> {
        Ok(words_of(&waits(connection, rollout, &counts)?).join("; "))
    };
    // A device that soaks is watched beyond the end, and rolled back if it must be.
    // Nothing begins any more (`may_begin`). It ends for good only by a clock that has been the same for a while.
    let is_sure = now(exchange) >= heard_from(exchange, 0) + SURE_S;
    if now(exchange) >= rollout.ends_unix_s && in_flight(rollout, &counts) == 0 && is_sure {
        return match reasons()? {
            words if words.is_empty() => happens(Event::TimeOver, "its time is over"),
            words => happens(Event::TimeOver, &format!("its time is over; {words}")),
        };
    }
    if rollout.state != State::Running {
        return Ok(false);
    }
    if next_stage(connection, exchange, rollout, &counts)? {
        return Ok(true);
    }
    match stuck_since(connection, exchange, rollout, &counts)? {
        Some(since) if now(exchange) >= heard_from(exchange, since) + STUCK_S => {
            happens(Event::Stuck, &reasons()?)
        }
        _ => Ok(false),
    }
}

/// How many devices are in the middle of their update. One that does it by itself was named and may be off, and
/// its mandate ends with the rollout.
fn in_flight(rollout: &Rollout, counts: &Counts) -> i64 {
    let soaking = counts.count(DeviceState::Soaking);
    match rollout.mandate {
        Some(_) => soaking,
        None => soaking + counts.count(DeviceState::Updating),
    }
}

/// Since when each device that the stage reaches is through or waits for its owner, so that nothing goes on; written
/// down when that changes.
fn stuck_since(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    counts: &Counts,
) -> Result<Option<i64>, sql::Error> {
    let waiting = counts.waiting_within(rollout.reach());
    let under_way = counts.count(DeviceState::Soaking) + counts.count(DeviceState::Updating);
    let is_stuck = under_way == 0 && waiting > 0 && counts.held >= waiting;
    if is_stuck == rollout.stuck_unix_s.is_some() {
        return Ok(rollout.stuck_unix_s);
    }
    let since = is_stuck.then(|| now(exchange));
    let update = "UPDATE rollouts SET stuck_unix_s = ?2 WHERE id = ?1";
    connection.statement(update).execute(params![rollout.id, since])?;
    Ok(since)
}

/// A device whose silence may mean that it failed.
struct Watched {
    device: String,
    state: DeviceState,
    /// Until when its record is good, and when the hub heard it last; `None` if it isn't listed any more.
    heard: Option<(i64, i64)>,
}

/// A device that was updated and whose record ran out since has missed its heartbeats. One that was silent for
/// longer while it updated itself may have started the new version and not have come back. Silence counts only
/// while the hub could hear: each device has the life of a record again after the hub was away.
///
/// Each device is looked at when its record runs out, as far as that was known when it was last looked at, and no
/// more at once than [`LOOKED_AT_MAX`].
fn note_silent(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<(), sql::Error> {
    let now = now(exchange);
    let due = "SELECT d.device, d.state, v.expires_unix_s, v.heard_unix_s FROM rollout_devices d \
         LEFT JOIN devices v ON v.name = d.device AND v.owner = ?2 \
         WHERE d.rollout = ?1 AND d.check_unix_s <= ?3 ORDER BY d.check_unix_s LIMIT ?4";
    let due = connection.statement(due);
    let read = |row: &sql::Row<'_>| {
        let (expires, heard): (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
        Ok(Watched { device: row.get(0)?, state: row.get(1)?, heard: expires.zip(heard) })
    };
    let row = params![rollout.id, exchange.who, now, LOOKED_AT_MAX];
    let rows: Vec<Watched> = due.query_map(row, read)?;
    let hears_since = seconds(exchange.hub_hears_since_unix_s);
    for Watched { device, state, heard } in rows {
        let (may_be_silent_s, reason) = match state {
            DeviceState::Soaking => (Some(0), "missed its heartbeats after the update"),
            DeviceState::Updating if rollout.mandate.is_some() => {
                (Some(SILENT_S), "went silent during the update")
            }
            _ => (None, ""),
        };
        let good_until = heard.zip(may_be_silent_s).map(|((expires, heard), may_be_silent_s)| {
            expires.max(hears_since + expires - heard) + may_be_silent_s
        });
        let again = good_until.filter(|until| *until >= now).map(|until| until + 1);
        if may_be_silent_s.is_none() || again.is_some() {
            let update =
                "UPDATE rollout_devices SET check_unix_s = ?3 WHERE rollout = ?1 AND device = ?2";
            connection.statement(update).execute(params![rollout.id, device, again])?;
        } else {
            devices::enter(connection, rollout, &device, state, DeviceEvent::Fails, reason)?;
        }
    }
    Ok(())
}

/// A gate failed: pauses or rolls back.
fn fail(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    failures: i64,
) -> Result<(), sql::Error> {
    let first = "SELECT device || ': ' || reason FROM rollout_devices \
         WHERE rollout = ?1 AND state = ?2 ORDER BY position LIMIT 1";
    let failed = params![rollout.id, DeviceState::Failed];
    let first: String = connection.statement(first).query_row(failed, |row| row.get(0))?;
    let reason = match failures {
        1 => first,
        _ => format!("{first}; {} more", failures - 1),
    };
    match rollout.on_failure.as_str() {
        "pause" => enter(connection, exchange, rollout, Event::FailsAndWaits, &reason),
        _ => roll_back(connection, exchange, rollout, Event::Fails, &reason),
    }
}

/// Begins to give every device that was touched what it had before. One whose package is kept no more fails: nobody
/// could deliver it, and the rollout would never be over.
pub(super) fn roll_back(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    event: Event,
    reason: &str,
) -> Result<(), sql::Error> {
    let (lost, back) = (DeviceEvent::CannotGoBack, DeviceEvent::GoesBack);
    let is_kept = "EXISTS (SELECT 1 FROM manifests m WHERE m.who = ?2 AND m.package_digest = was)";
    let fail = format!(
        "UPDATE rollout_devices SET state = ?3, check_unix_s = NULL, held = '', reason = 'the package ' || was || \
         ', which it had before, is not in the registry: push it and install it there' WHERE rollout = ?1 \
         AND was <> '' AND state IN {} AND NOT {is_kept}",
        lost.possible_in()
    );
    let names = params![rollout.id, exchange.who, lost.outcome()];
    let lost = connection.statement(&fail).execute(names)?;
    let revert = format!(
        "UPDATE rollout_devices SET state = ?3, check_unix_s = NULL, held = '', tried_unix_s = NULL \
         WHERE rollout = ?1 AND was IS NOT NULL AND state IN {} AND (was = '' OR {is_kept})",
        back.possible_in()
    );
    let names = params![rollout.id, exchange.who, back.outcome()];
    connection.statement(&revert).execute(names)?;
    match lost {
        0 => enter(connection, exchange, rollout, event, reason),
        _ => {
            let reason = format!(
                "{reason}; {lost} can't go back: the package before is not in the registry"
            );
            enter(connection, exchange, rollout, event, &reason)
        }
    }
}

/// The owner goes on in spite of devices that failed: they count as done, and as no failure any more.
pub(super) fn forgive(connection: &Connection, rollout: &Rollout) -> Result<(), sql::Error> {
    let update = format!(
        "UPDATE rollout_devices SET state = ?2, reason = 'failed, and its owner went on' \
         WHERE rollout = ?1 AND state IN {} AND was IS NOT NULL",
        DeviceEvent::Forgiven.possible_in()
    );
    let state = DeviceEvent::Forgiven.outcome();
    connection.statement(&update).execute(params![rollout.id, state]).map(drop)
}

/// Begins the next stage if the one in force has done well: no device of it is under way, at least one
/// is healthy, and who is missing couldn't be reached.
fn next_stage(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    counts: &Counts,
) -> Result<bool, sql::Error> {
    let is_last = rollout.stage + 1 >= rollout.stages.len();
    // Whatever was begun is within the reach.
    let under_way = counts.count(DeviceState::Updating) + counts.count(DeviceState::Soaking);
    if is_last
        || under_way > 0
        || counts.count(DeviceState::Healthy) == 0
        || somebody_is_awaited(connection, exchange, rollout)?
    {
        return Ok(false);
    }
    let update = "UPDATE rollouts SET stage = stage + 1, stage_unix_s = ?2, stuck_unix_s = NULL WHERE id = ?1";
    connection.statement(update).execute(params![rollout.id, now(exchange)])?;
    let detail = format!("stage {} of {}", rollout.stage + 2, rollout.stages.len());
    note(connection, exchange, rollout.id, "rollout goes on", &detail)?;
    Ok(true)
}

/// Whether a device that nobody tried yet keeps the next stage waiting. The command tries each; a device that
/// asks by itself is awaited if it is listed, for a while. Devices are looked at in their order, each that isn't
/// awaited once, and no more at once than [`LOOKED_AT_MAX`].
fn somebody_is_awaited(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<bool, sql::Error> {
    let now = now(exchange);
    let is_by_devices = rollout.mandate.is_some();
    if is_by_devices && now >= heard_from(exchange, rollout.stage_unix_s) + AWAITED_S {
        return Ok(false);
    }
    let untried = "SELECT d.position, EXISTS (SELECT 1 FROM devices v WHERE v.name = d.device \
         AND (v.expires_unix_s >= ?4 OR ?7 + v.expires_unix_s - v.heard_unix_s >= ?4)) FROM rollout_devices d WHERE d.rollout = ?1 AND d.state = ?5 \
         AND d.tried_unix_s IS NULL AND d.position >= ?2 AND d.position < ?3 ORDER BY d.position LIMIT ?6";
    let untried = connection.statement(untried);
    let (from, reach) = (rollout.awaited_from, rollout.reach());
    let (waiting, most) = (DeviceState::Waiting, LOOKED_AT_MAX);
    let (mut looked_at, mut awaited_from, mut is_awaited) = (0, from, false);
    // Whoever the hub couldn't hear may still be there.
    let hears_since = seconds(exchange.hub_hears_since_unix_s);
    untried.each(params![rollout.id, from, reach, now, waiting, most, hears_since], |row| {
        let (position, is_listed): (i64, bool) = (row.get(0)?, row.get(1)?);
        looked_at += 1;
        if is_listed || !is_by_devices {
            (awaited_from, is_awaited) = (position, true);
            return Ok(Next::Enough);
        }
        awaited_from = position + 1;
        Ok(Next::Row)
    })?;
    if awaited_from != from {
        let update = "UPDATE rollouts SET awaited_from = ?2 WHERE id = ?1";
        connection.statement(update).execute([rollout.id, awaited_from])?;
    }
    Ok(is_awaited || looked_at >= LOOKED_AT_MAX)
}
