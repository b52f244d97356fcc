//! The devices of a rollout: what is to be done with which, and what the owner's command saw there.

use http::StatusCode;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Deserialize;
use serde_json::{Value, json};

use super::gates::Verdict;
use super::{Rollout, is_kept, now};
use crate::exchange::{Exchange, Reply};

/// The most devices that one answer names.
const AT_ONCE: i64 = 16;
/// How long a device that was named isn't named again, in seconds.
pub(super) const AGAIN_S: i64 = 20;
/// How long after its soak a device may owe the reports that its gates need, in seconds.
const UNTOLD_S: i64 = 600;

/// The body of `POST …/devices/NAME`: what the command saw on the device.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "saw")]
pub(super) enum Saw {
    /// It will be updated now; its machine has the package `has`, or there is none.
    Before { has: String },
    /// The machine, as the device lists it.
    Machine { has: String, faults: i64, state: String, repute: String },
    /// The device refused the package.
    Refused { reason: String },
    /// It couldn't be reached, or holds no such machine.
    Missing { reason: String },
    /// The device itself says that it holds no such machine.
    #[serde(skip)]
    None { reason: String },
}

/// A device's part in a rollout.
pub(super) struct Part {
    pub(super) state: String,
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
) -> Result<Reply, rusqlite::Error> {
    let now = now(exchange);
    if rollout.mandate.is_some() {
        return Ok(Reply::json(StatusCode::OK, &named(rollout, &[])));
    }
    // Devices to roll back and to look at come before any further update; none beyond the stage or the end.
    // The one tried longest ago comes first, so that devices that are offline keep no other waiting.
    let query = "SELECT device, state, was FROM rollout_devices WHERE rollout = ?1 \
         AND (tried_unix_s IS NULL OR tried_unix_s <= ?2 OR state = 'soaking') AND ( \
         (?3 = 'rolling back' AND state = 'reverting') OR \
         (?3 IN ('running', 'paused') AND state = 'soaking') OR \
         (?3 = 'running' AND state = 'updating') OR \
         (?3 = 'running' AND state = 'waiting' AND position < ?4 AND ?5 < ?6)) \
         ORDER BY state = 'waiting', state = 'updating', ifnull(tried_unix_s, 0), position LIMIT ?7";
    let mut statement = connection.prepare_cached(query)?;
    let chosen = params![
        rollout.id,
        now - AGAIN_S,
        rollout.state,
        rollout.reach(),
        now,
        rollout.ends_unix_s,
        AT_ONCE
    ];
    let target = rollout.package_digest.as_str();
    let task = |row: &rusqlite::Row<'_>| {
        let (device, state): (String, String) = (row.get(0)?, row.get(1)?);
        let was: Option<String> = row.get(2)?;
        let (action, package) = match state.as_str() {
            "reverting" => ("revert", was.unwrap_or_default()),
            "soaking" => ("look", target.to_string()),
            _ => ("update", target.to_string()),
        };
        Ok((device, action, package))
    };
    let tasks: Vec<(String, &str, String)> =
        statement.query_map(chosen, task)?.collect::<Result<_, _>>()?;
    let tried = "UPDATE rollout_devices SET tried_unix_s = ?3 WHERE rollout = ?1 AND device = ?2";
    let mut tried = connection.prepare_cached(tried)?;
    for (device, action, _) in &tasks {
        // A look claims nothing.
        if *action == "revert" {
            tried.execute(params![rollout.id, device, now])?;
        }
    }
    Ok(Reply::json(StatusCode::OK, &named(rollout, &tasks)))
}

/// The answer that names `tasks`: a device, what is to be done, and with which package.
fn named(rollout: &Rollout, tasks: &[(String, &str, String)]) -> Value {
    let object = |(device, action, package): &(String, &str, String)| json!({ "device": device, "action": action, "package": package });
    let tasks: Vec<Value> = tasks.iter().map(object).collect();
    json!({
        "state": rollout.state,
        "reason": rollout.reason,
        "is_over": rollout.is_over(),
        "machine": rollout.machine,
        "tasks": tasks,
    })
}

/// `POST …/devices/NAME`.
pub(super) fn report(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    device: &str,
) -> Result<Reply, rusqlite::Error> {
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
) -> Result<Reply, rusqlite::Error> {
    let Some(part) = part(connection, rollout, device)? else {
        return Ok(Reply::problem(StatusCode::NOT_FOUND, "that device isn't in this rollout"));
    };
    let now = now(exchange);
    let set = |state: &str, reason: &str| {
        let update = "UPDATE rollout_devices SET state = ?3, reason = ?4, tried_unix_s = ?5 \
             WHERE rollout = ?1 AND device = ?2";
        let reason: String = reason.chars().take(200).collect();
        let row = params![rollout.id, device, state, reason, now];
        connection.prepare_cached(update)?.execute(row).map(drop)
    };
    match saw {
        Saw::Before { has } => {
            if !may_begin(rollout, &part, now) {
                let text =
                    format!("the device is {} in a rollout that is {}", part.state, rollout.state);
                return Ok(Reply::problem(StatusCode::CONFLICT, &text));
            }
            if !has.is_empty()
                && *has != rollout.package_digest
                && !is_kept(connection, &exchange.who, has)?
            {
                let reason = "its package isn't in the registry, so it couldn't be rolled back";
                set("waiting", reason)?;
                return Ok(Reply::problem(StatusCode::CONFLICT, reason));
            }
            let update = "UPDATE rollout_devices SET was = coalesce(was, ?3) WHERE rollout = ?1 AND device = ?2";
            connection.prepare_cached(update)?.execute(params![rollout.id, device, has])?;
            set("updating", "")?;
        }
        Saw::Machine { has, faults, state, repute } => {
            let seen = Seen { has, faults: *faults, state, repute };
            seen.judge(connection, rollout, device, &part, now, &set)?;
        }
        // A device that nobody asked to update decides nothing for the others.
        Saw::Refused { reason } if part.state == "updating" || may_begin(rollout, &part, now) => {
            set("failed", &format!("refused the package: {reason}"))?;
        }
        Saw::None { .. } if part.state == "reverting" && part.was.as_deref() == Some("") => {
            set("reverted", "")?;
        }
        Saw::None { .. } if part.state == "soaking" => set("failed", "the machine is gone")?,
        Saw::Refused { reason } | Saw::Missing { reason } | Saw::None { reason } => {
            set(&part.state, reason)?;
        }
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// Whether a device may be updated now: never beyond the stage in force, nor in any other state than
/// running, nor after the end.
pub(super) fn may_begin(rollout: &Rollout, part: &Part, now: i64) -> bool {
    rollout.state == "running"
        && part.position < rollout.reach()
        && now < rollout.ends_unix_s
        && matches!(part.state.as_str(), "waiting" | "updating")
}

/// A machine as its device lists it.
struct Seen<'a> {
    has: &'a str,
    faults: i64,
    state: &'a str,
    repute: &'a str,
}

impl Seen<'_> {
    fn judge(
        &self,
        connection: &Connection,
        rollout: &Rollout,
        device: &str,
        part: &Part,
        now: i64,
        set: &dyn Fn(&str, &str) -> Result<(), rusqlite::Error>,
    ) -> Result<(), rusqlite::Error> {
        let has_target = self.has == rollout.package_digest;
        match part.state.as_str() {
            "updating" if has_target => {
                let update = "UPDATE rollout_devices SET updated_unix_s = ?3, faults_before = ?4, faults = 0 \
                     WHERE rollout = ?1 AND device = ?2";
                let row = params![rollout.id, device, now, self.faults];
                connection.prepare_cached(update)?.execute(row)?;
                set("soaking", "")
            }
            "soaking" => {
                let faults = (self.faults - part.faults_before).max(0);
                let update =
                    "UPDATE rollout_devices SET faults = ?3 WHERE rollout = ?1 AND device = ?2";
                connection.prepare_cached(update)?.execute(params![rollout.id, device, faults])?;
                let since = now - part.updated_unix_s.unwrap_or(now);
                match self.failure(rollout, has_target, faults) {
                    Some(reason) => set("failed", &reason),
                    None => {
                        let updated = part.updated_unix_s.unwrap_or(now);
                        match rollout.gates.judge(connection, rollout, device, updated)? {
                            Verdict::Fails(reason) => set("failed", &reason),
                            Verdict::Unknown(reason) if since >= rollout.soak_s + UNTOLD_S => {
                                set("failed", &reason)
                            }
                            Verdict::Unknown(reason) => set("soaking", &reason),
                            Verdict::Holds if since >= rollout.soak_s => set("healthy", ""),
                            Verdict::Holds => set("soaking", ""),
                        }
                    }
                }
            }
            "reverting" if part.was.as_deref() == Some(self.has) => set("reverted", ""),
            _ => Ok(()),
        }
    }

    /// The gate that a machine fails.
    fn failure(&self, rollout: &Rollout, has_target: bool, faults: i64) -> Option<String> {
        if !has_target {
            Some("has another package than the one it was updated to".into())
        } else if self.repute == "banned" {
            Some("was banned for its faults".into())
        } else if faults > rollout.faults_max {
            Some(format!("{faults} faults since the update, {} are allowed", rollout.faults_max))
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
) -> Result<Option<Part>, rusqlite::Error> {
    let query = "SELECT state, was, faults_before, updated_unix_s, tried_unix_s, position FROM rollout_devices \
         WHERE rollout = ?1 AND device = ?2";
    let part = |row: &rusqlite::Row<'_>| {
        Ok(Part {
            state: row.get(0)?,
            was: row.get(1)?,
            faults_before: row.get(2)?,
            updated_unix_s: row.get(3)?,
            tried_unix_s: row.get(4)?,
            position: row.get(5)?,
        })
    };
    connection.prepare_cached(query)?.query_row(params![rollout.id, device], part).optional()
}
