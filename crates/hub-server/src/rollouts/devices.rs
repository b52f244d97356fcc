//! The devices of a rollout: what is to be done with which, and what the owner's command saw there.

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tenure_wire::Version;
use tenure_wire::printable::counted;
use utoipa::ToSchema;

use super::gates::Verdict;
use super::states::DeviceEvent;
use super::told::{Action, Next, Task};
use super::{DeviceState, Rollout, State, heard_from, now};
use crate::exchange::{Exchange, Reply};
use crate::registry;
use crate::store::space::{self, Keeps};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// The most devices that one answer names.
const AT_ONCE: i64 = 16;
/// How long a device that was named isn't named again, in seconds.
pub(super) const AGAIN_S: i64 = 20;
/// How long after the sight before it one of a device's own may come, so that it can't be of before that, in seconds: a
/// device that soaks looks each few seconds, and one that hears no answer sends what it saw then once more after 30.
const FRESH_S: i64 = 20;
/// How long after its soak a device may owe the reports that its gates need, in seconds.
const UNTOLD_S: i64 = 600;
/// The longest reason that is kept.
const REASON_CHARS_MAX: usize = 200;

/// The body of `POST …/devices/NAME`: what the command saw on the device.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "saw")]
#[schema(as = Report)]
pub(crate) enum Saw {
    /// It will be updated now; its machine has the package `has`, or there is none.
    Before {
        /// The digest of the machine's package, or nothing.
        has: String,
        /// The version of that package, if the machine is one.
        #[serde(default)]
        #[schema(value_type = Option<String>)]
        version: Option<Version>,
    },
    /// The machine, as the device lists it.
    Machine { has: String, faults: i64, state: String, repute: String },
    /// The device refused the package.
    Refused { reason: String },
    /// It couldn't be reached.
    Missing { reason: String },
    /// Its machine isn't one that the plan updates, until its owner does something.
    Held { reason: String },
    /// The device itself says that it holds no such machine.
    #[serde(skip)]
    None { reason: String },
}

/// A device's part in a rollout.
pub(super) struct Part {
    pub(super) state: DeviceState,
    pub(super) was: Option<String>,
    faults_before: i64,
    updated_unix_s: Option<i64>,
    pub(super) tried_unix_s: Option<i64>,
    position: i64,
}

/// `POST …/next`: what is to be done now, and by when to ask again.
pub(super) fn next(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
) -> Result<Reply, sql::Error> {
    let now = now(exchange);
    if rollout.mandate.is_some() {
        return Ok(Reply::json(StatusCode::OK, &json!(Next::of(rollout, Vec::new()))));
    }
    // Devices to roll back and to look at come before any further update; none beyond the stage or the end.
    // The one tried longest ago comes first, so that devices that are offline keep no other waiting.
    let may_update = rollout.state == State::Running;
    let may_begin = may_update && now < rollout.ends_unix_s;
    let is_watched = matches!(rollout.state, State::Running | State::Paused);
    let (tried_long_ago, ever) = ("<= ?3", "<= 9223372036854775807");
    let groups = [
        (rollout.state == State::RollingBack, DeviceState::Reverting, "IS NULL"),
        (rollout.state == State::RollingBack, DeviceState::Reverting, tried_long_ago),
        (is_watched, DeviceState::Soaking, "IS NULL"),
        (is_watched, DeviceState::Soaking, ever),
        (may_update, DeviceState::Updating, "IS NULL"),
        (may_update, DeviceState::Updating, tried_long_ago),
        (may_begin, DeviceState::Waiting, "IS NULL"),
        (may_begin, DeviceState::Waiting, tried_long_ago),
    ];
    let mut tasks: Vec<Task> = Vec::new();
    for (is_asked, state, tried) in groups {
        let left = AT_ONCE - tasks.len() as i64;
        if is_asked && left > 0 {
            tasks.extend(due(connection, rollout, state, tried, now - AGAIN_S, left)?);
        }
    }
    // Neither a look nor an update claims anything.
    for task in tasks.iter().filter(|task| task.action == Action::Revert) {
        tried(connection, rollout, &task.device, now)?;
    }
    Ok(Reply::json(StatusCode::OK, &json!(Next::of(rollout, tasks))))
}

/// The devices in that state that are due, the one tried longest ago first, at most so many: what is to be done there,
/// and with which package.
fn due(
    connection: &Connection,
    rollout: &Rollout,
    state: DeviceState,
    tried: &str,
    tried_by: i64,
    most: i64,
) -> Result<Vec<Task>, sql::Error> {
    // Each is a stretch of one index, so that no device is looked at that isn't due.
    let query = format!(
        "SELECT device, was FROM rollout_devices WHERE rollout = ?1 AND state = ?2 AND tried_unix_s {tried} \
         AND position < ?4 AND ?3 = ?3 ORDER BY tried_unix_s, position LIMIT ?5"
    );
    let statement = connection.statement(&query);
    let reach = if state == DeviceState::Waiting { rollout.reach() } else { i64::MAX };
    let target = rollout.package_digest.as_str();
    let task = |row: &sql::Row<'_>| {
        let (device, was): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let (action, package) = match state {
            DeviceState::Reverting => (Action::Revert, was.unwrap_or_default()),
            DeviceState::Soaking => (Action::Look, target.to_string()),
            _ => (Action::Update, target.to_string()),
        };
        Ok(Task { device, action, package })
    };
    statement.query_map(params![rollout.id, state, tried_by, reach, most], task)
}

/// `POST …/devices/NAME`.
pub(super) fn report(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    device: &str,
) -> Result<Reply, sql::Error> {
    let saw: Saw = match serde_json::from_slice(&exchange.body) {
        Ok(saw) => saw,
        Err(error) => return Ok(Reply::problem(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    if rollout.mandate.is_some() {
        let text = "the devices carry this rollout out and report themselves";
        return Ok(Reply::problem(StatusCode::CONFLICT, text));
    }
    see(connection, exchange, rollout, device, &saw)
}

/// Takes what was seen on a device.
pub(super) fn see(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    device: &str,
    saw: &Saw,
) -> Result<Reply, sql::Error> {
    let Some(part) = part(connection, rollout, device)? else {
        return Ok(Reply::problem(StatusCode::NOT_FOUND, "that device isn't in this rollout"));
    };
    let now = now(exchange);
    let happens = |event: DeviceEvent, reason: &str| -> Result<(), sql::Error> {
        enter(connection, rollout, device, part.state, event, reason)?;
        tried(connection, rollout, device, now)
    };
    let told = |reason: &str, held: &str| -> Result<(), sql::Error> {
        note(connection, rollout, device, reason, held)?;
        tried(connection, rollout, device, now)
    };
    let waits_for = |reason: &str| {
        let is_reached = part.state == DeviceState::Waiting && part.position < rollout.reach();
        told(reason, if is_reached { reason } else { "" })
    };
    match saw {
        Saw::Before { has, version } => {
            if !may_begin(rollout, &part, now) {
                let (state, of) = (part.state.word(), rollout.state.word());
                let text = format!("the device is {state} in a rollout that is {of}");
                return Ok(Reply::problem(StatusCode::CONFLICT, &text));
            }
            if !has.is_empty()
                && *has != rollout.package_digest
                && !registry::has_package(connection, &exchange.who, has)?
            {
                let which = match version {
                    Some(version) => format!("{} {version}", rollout.machine),
                    None => format!("the package {has}"),
                };
                let reason = format!("{which}, which runs there, isn't in the registry: push it");
                waits_for(&reason)?;
                return Ok(Reply::problem(StatusCode::CONFLICT, &reason));
            }
            let update = "UPDATE rollout_devices SET was = coalesce(was, ?3) WHERE rollout = ?1 AND device = ?2";
            connection.statement(update).execute(params![rollout.id, device, has])?;
            happens(DeviceEvent::Begins, "")?;
        }
        Saw::Machine { has, faults, state, repute } => {
            let seen = Seen { has, faults: *faults, state, repute };
            if let Some((event, reason)) =
                seen.judge(connection, exchange, rollout, device, &part)?
            {
                match event {
                    Some(event) => happens(event, &reason)?,
                    None => told(&reason, "")?,
                }
            }
        }
        // A device that nobody asked to update decides nothing for the others.
        Saw::Refused { reason }
            if part.state == DeviceState::Updating || may_begin(rollout, &part, now) =>
        {
            happens(DeviceEvent::Refuses, &format!("refused the package: {reason}"))?;
        }
        Saw::None { .. }
            if part.state == DeviceState::Reverting && part.was.as_deref() == Some("") =>
        {
            happens(DeviceEvent::IsBack, "")?;
        }
        Saw::None { .. } if part.state == DeviceState::Soaking => {
            happens(DeviceEvent::Fails, "the machine is gone")?;
        }
        Saw::None { reason } | Saw::Held { reason } => waits_for(reason)?,
        Saw::Refused { reason } | Saw::Missing { reason } => told(reason, "")?,
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// Moves a device to the state that an event leads to. One that can't happen changes nothing.
pub(super) fn enter(
    connection: &Connection,
    rollout: &Rollout,
    device: &str,
    state: DeviceState,
    event: DeviceEvent,
    reason: &str,
) -> Result<(), sql::Error> {
    let Some(state) = state.after(event) else { return Ok(()) };
    // Whether such a device is heard is looked at from now on.
    let is_watched = matches!(state, DeviceState::Updating | DeviceState::Soaking);
    let update = "UPDATE rollout_devices SET state = ?3, reason = ?4, held = '', check_unix_s = ?5 \
         WHERE rollout = ?1 AND device = ?2";
    let row = params![rollout.id, device, state, cut(reason), is_watched.then_some(0)];
    connection.statement(update).execute(row).map(drop)
}

/// Notes why a device is where it is, and what it waits for if only its owner can mend that.
fn note(
    connection: &Connection,
    rollout: &Rollout,
    device: &str,
    reason: &str,
    held: &str,
) -> Result<(), sql::Error> {
    let update =
        "UPDATE rollout_devices SET reason = ?3, held = ?4 WHERE rollout = ?1 AND device = ?2";
    let row = params![rollout.id, device, cut(reason), cut(held)];
    connection.statement(update).execute(row).map(drop)
}

/// Notes when somebody last told of a device.
fn tried(
    connection: &Connection,
    rollout: &Rollout,
    device: &str,
    now: i64,
) -> Result<(), sql::Error> {
    let update = "UPDATE rollout_devices SET tried_unix_s = ?3 WHERE rollout = ?1 AND device = ?2";
    connection.statement(update).execute(params![rollout.id, device, now]).map(drop)
}

/// A reason, which a device may have given, as long as it is kept.
fn cut(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}

/// Whether a device may be updated now: never beyond the stage in force, nor in any other state than
/// running, nor after the end.
pub(super) fn may_begin(rollout: &Rollout, part: &Part, now: i64) -> bool {
    rollout.state == State::Running
        && part.position < rollout.reach()
        && now < rollout.ends_unix_s
        && part.state.after(DeviceEvent::Begins).is_some()
}

/// A machine as its device lists it.
struct Seen<'a> {
    has: &'a str,
    faults: i64,
    state: &'a str,
    repute: &'a str,
}

impl Seen<'_> {
    /// The meaning of this for the device, with the reason: an event, or nothing that changes where it is. `None` if there
    /// is nothing to note.
    fn judge(
        &self,
        connection: &Connection,
        exchange: &Exchange,
        rollout: &Rollout,
        device: &str,
        part: &Part,
    ) -> Result<Option<(Option<DeviceEvent>, String)>, sql::Error> {
        let now = now(exchange);
        let has_target = self.has == rollout.package_digest;
        match part.state {
            DeviceState::Updating if has_target => {
                let update = "UPDATE rollout_devices SET updated_unix_s = ?3, faults_before = ?4, faults = 0 \
                     WHERE rollout = ?1 AND device = ?2";
                let row = params![rollout.id, device, now, self.faults];
                connection.statement(update).execute(row)?;
                Ok(Some((Some(DeviceEvent::Updated), String::new())))
            }
            DeviceState::Soaking => {
                let faults = (self.faults - part.faults_before).max(0);
                let update =
                    "UPDATE rollout_devices SET faults = ?3 WHERE rollout = ?1 AND device = ?2";
                connection.statement(update).execute(params![rollout.id, device, faults])?;
                let updated = part.updated_unix_s.unwrap_or(now);
                let since = now - updated;
                // The owner's command looks as it tells.
                let is_fresh = rollout.mandate.is_none()
                    || part.tried_unix_s.is_some_and(|tried| now - tried <= FRESH_S);
                let verdict = match self.failure(rollout, has_target, faults) {
                    Some(reason) => Verdict::Fails(reason),
                    None => rollout.gates.judge(connection, rollout, device, updated)?,
                };
                Ok(Some(match verdict {
                    Verdict::Fails(reason) => (Some(DeviceEvent::Fails), reason),
                    // A report that the hub couldn't hear, or had no room for, is missing by no fault of the device.
                    Verdict::Unknown(reason)
                        if now - heard_from(exchange, updated) >= rollout.soak_s + UNTOLD_S
                            && space::is_left(connection, Keeps::History, space::REPORT_BYTES)? =>
                    {
                        (Some(DeviceEvent::Fails), reason)
                    }
                    Verdict::Unknown(reason) => (None, reason),
                    Verdict::Holds if since >= rollout.soak_s && is_fresh => {
                        (Some(DeviceEvent::Soaked), String::new())
                    }
                    Verdict::Holds => (None, String::new()),
                }))
            }
            DeviceState::Reverting if part.was.as_deref() == Some(self.has) => {
                Ok(Some((Some(DeviceEvent::IsBack), String::new())))
            }
            _ => Ok(None),
        }
    }

    /// The gate that a machine fails.
    fn failure(&self, rollout: &Rollout, has_target: bool, faults: i64) -> Option<String> {
        if !has_target {
            Some("has another package than the one it was updated to".into())
        } else if self.repute == "banned" {
            Some("was banned for its faults".into())
        } else if faults > rollout.faults_max {
            let (faults, most) = (counted(faults, "fault"), rollout.faults_max);
            let are = if most == 1 { "is" } else { "are" };
            Some(format!("{faults} since the update, {most} {are} allowed"))
        } else if self.state == "failed" {
            Some("failed, and doesn't run".into())
        } else {
            None
        }
    }
}

/// The part of a device in a rollout.
pub(super) fn part(
    connection: &Connection,
    rollout: &Rollout,
    device: &str,
) -> Result<Option<Part>, sql::Error> {
    let query = "SELECT state, was, faults_before, updated_unix_s, tried_unix_s, position FROM rollout_devices \
         WHERE rollout = ?1 AND device = ?2";
    let part = |row: &sql::Row<'_>| {
        Ok(Part {
            state: row.get(0)?,
            was: row.get(1)?,
            faults_before: row.get(2)?,
            updated_unix_s: row.get(3)?,
            tried_unix_s: row.get(4)?,
            position: row.get(5)?,
        })
    };
    connection.statement(query).query_row(params![rollout.id, device], part).optional()
}
