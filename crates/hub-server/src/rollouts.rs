//! Rollouts: a package to many devices in stages, as a state machine in the database.
//!
//! The hub decides which device is next and whether a gate holds. The devices carry it out: each asks for its
//! next step, and takes it only as far as the owner's mandate allows. A rollout without a mandate is carried out
//! by the owner's command, which goes no further than the plan that the owner signed.
//!
//! Invariants:
//! - A decision is committed before anybody is told of it: a hub or a command that dies at any step
//!   goes on from there.
//! - No device beyond the stage in force is ever named for an update.
//! - The package that a device had is written down, and is in the registry, before the device is updated.
//! - A step that was done already does nothing when it is done again.

mod advance;
mod devices;
mod gates;
mod labels;
mod plan;
mod requests;
mod work;

use http::{Method, StatusCode};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::{Value, json};

use crate::audit::{self, seconds};
use crate::exchange::{Exchange, Reply};

pub use gates::{Gates, MetricGate, NoMetricGate};
pub use plan::{Plan, PlanError, SignedPlan};
pub(crate) use work::{owner_of_package, pace, work};

/// A rollout as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Rollout {
    pub(crate) id: i64,
    pub(crate) machine: String,
    pub(crate) package_digest: String,
    pub(crate) version: String,
    pub(crate) state: String,
    pub(crate) reason: String,
    /// How many devices each stage reaches in all.
    pub(crate) stages: Vec<i64>,
    /// The stage in force.
    pub(crate) stage: usize,
    pub(crate) soak_s: i64,
    pub(crate) faults_max: i64,
    /// The gates on what devices report.
    pub(crate) gates: Gates,
    pub(crate) failures_max: i64,
    pub(crate) on_failure: String,
    pub(crate) ends_unix_s: i64,
    /// The mandate that its devices follow, as the owner signed it; `None` if the owner's command carries it out.
    pub(crate) mandate: Option<Vec<u8>>,
    /// When the stage in force began.
    pub(crate) stage_unix_s: i64,
}

impl Rollout {
    /// How many devices may be updated now.
    fn reach(&self) -> i64 {
        self.stages.get(self.stage).copied().unwrap_or(0)
    }

    /// Whether no step will follow.
    fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "done" | "rolled back" | "aborted" | "ended")
    }
}

/// Answers a request under `/v1/rollouts`, in the transaction that is under way.
///
/// # Errors
/// SQLite fails.
pub(crate) fn answer(
    connection: &Connection,
    exchange: &Exchange,
) -> Result<Reply, rusqlite::Error> {
    let segments: Vec<&str> = exchange.segments.iter().skip(2).map(String::as_str).collect();
    match (&exchange.method, &segments[..]) {
        (&Method::POST, []) => requests::start(connection, exchange),
        (&Method::GET, [id]) => with(connection, exchange, id, |rollout| {
            advance::advance(connection, exchange, &rollout)?;
            described(connection, exchange, rollout.id)
        }),
        (&Method::GET, [id, "plan"]) => with(connection, exchange, id, |rollout| {
            let plan = requests::plan(connection, rollout.id)?;
            Ok(Reply::json(StatusCode::OK, &json!(plan)))
        }),
        (&Method::POST, [id, "next"]) => with(connection, exchange, id, |rollout| {
            let rollout = advance::advance(connection, exchange, &rollout)?;
            devices::next(connection, exchange, &rollout)
        }),
        (&Method::POST, [id, "devices", device]) => with(connection, exchange, id, |rollout| {
            let reply = devices::report(connection, exchange, &rollout, device)?;
            advance::advance(connection, exchange, &rollout)?;
            Ok(reply)
        }),
        (&Method::POST, [id, verb @ ("pause" | "resume" | "abort" | "roll-back")]) => {
            with(connection, exchange, id, |rollout| steer(connection, exchange, &rollout, verb))
        }
        _ => Ok(Reply::problem(StatusCode::NOT_FOUND, "there is nothing here")),
    }
}

fn with(
    connection: &Connection,
    exchange: &Exchange,
    id: &str,
    action: impl FnOnce(Rollout) -> Result<Reply, rusqlite::Error>,
) -> Result<Reply, rusqlite::Error> {
    let found = id.parse().ok().map(|id| find(connection, &exchange.who, id)).transpose()?;
    match found.flatten() {
        Some(rollout) => action(rollout),
        None => Ok(Reply::problem(StatusCode::NOT_FOUND, "there is no such rollout")),
    }
}

/// The rollout number `id` of `who`.
pub(crate) fn find(
    connection: &Connection,
    who: &str,
    id: i64,
) -> Result<Option<Rollout>, rusqlite::Error> {
    let query = "SELECT id, machine, package_digest, version, state, reason, stages, stage, soak_s, faults_max, \
         failures_max, on_failure, ends_unix_s, mandate, stage_unix_s, gates FROM rollouts WHERE who = ?1 AND id = ?2";
    let read = |row: &rusqlite::Row<'_>| {
        let (stages, gates): (String, String) = (row.get(6)?, row.get(15)?);
        Ok(Rollout {
            id: row.get(0)?,
            machine: row.get(1)?,
            package_digest: row.get(2)?,
            version: row.get(3)?,
            state: row.get(4)?,
            reason: row.get(5)?,
            stages: serde_json::from_str(&stages).unwrap_or_default(),
            stage: usize::try_from(row.get::<_, i64>(7)?).unwrap_or(0),
            soak_s: row.get(8)?,
            faults_max: row.get(9)?,
            gates: serde_json::from_str(&gates).unwrap_or_default(),
            failures_max: row.get(10)?,
            on_failure: row.get(11)?,
            ends_unix_s: row.get(12)?,
            mandate: row.get(13)?,
            stage_unix_s: row.get(14)?,
        })
    };
    connection.prepare_cached(query)?.query_row(params![who, id], read).optional()
}

/// How many devices of a rollout are in each state, in the order in which they pass them.
pub(crate) fn counts(
    connection: &Connection,
    id: i64,
) -> Result<Vec<(String, i64)>, rusqlite::Error> {
    const STATES: [&str; 7] =
        ["waiting", "updating", "soaking", "healthy", "failed", "reverting", "reverted"];
    let query = "SELECT count(*) FROM rollout_devices WHERE rollout = ?1 AND state = ?2";
    let mut statement = connection.prepare_cached(query)?;
    let mut count = |state: &str| statement.query_row(params![id, state], |row| row.get(0));
    STATES.into_iter().map(|state| Ok((state.to_string(), count(state)?))).collect()
}

/// A rollout in JSON, as it is now.
fn described(
    connection: &Connection,
    exchange: &Exchange,
    id: i64,
) -> Result<Reply, rusqlite::Error> {
    let Some(rollout) = find(connection, &exchange.who, id)? else {
        return Ok(Reply::problem(StatusCode::NOT_FOUND, "there is no such rollout"));
    };
    let counts: serde_json::Map<String, Value> =
        counts(connection, id)?.into_iter().map(|(state, count)| (state, json!(count))).collect();
    let body = json!({
        "id": rollout.id,
        "machine": rollout.machine,
        "package": rollout.package_digest,
        "version": rollout.version,
        "state": rollout.state,
        "reason": rollout.reason,
        "stage": rollout.stage + 1,
        "stages": rollout.stages,
        "soak_s": rollout.soak_s,
        "faults_max": rollout.faults_max,
        "gates": rollout.gates,
        "failures_max": rollout.failures_max,
        "on_failure": rollout.on_failure,
        "ends_unix_s": rollout.ends_unix_s,
        "is_over": rollout.is_over(),
        "carried_out_by": if rollout.mandate.is_some() { "devices" } else { "command" },
        "devices": counts,
    });
    Ok(Reply::json(StatusCode::OK, &body))
}

/// `POST …/pause`, `resume`, `abort` (devices stay as they are) and `roll-back`.
fn steer(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    verb: &str,
) -> Result<Reply, rusqlite::Error> {
    let rollout = advance::advance(connection, exchange, rollout)?;
    let conflict = |text: &str| Ok(Reply::problem(StatusCode::CONFLICT, text));
    match (verb, rollout.state.as_str()) {
        ("pause", "paused") | ("resume", "running") | ("abort", "aborted") => {}
        ("roll-back", "rolling back" | "rolled back") => {}
        ("pause", "running") => enter(connection, exchange, &rollout, "paused", "by its owner")?,
        ("resume", "paused") => {
            advance::forgive(connection, &rollout)?;
            enter(connection, exchange, &rollout, "running", "")?;
        }
        ("abort", "running" | "paused" | "rolling back") => {
            enter(connection, exchange, &rollout, "aborted", "by its owner")?;
        }
        ("roll-back", "running" | "paused" | "done" | "ended" | "aborted") => {
            advance::roll_back(connection, exchange, &rollout, "by its owner")?;
            // Where no device can go back, it is over already.
            if let Some(rollout) = find(connection, &exchange.who, rollout.id)? {
                advance::advance(connection, exchange, &rollout)?;
            }
        }
        (_, state) => return conflict(&format!("the rollout is {state}; it can't {verb}")),
    }
    described(connection, exchange, rollout.id)
}

/// Moves a rollout to another state, and notes it.
fn enter(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    state: &str,
    reason: &str,
) -> Result<(), rusqlite::Error> {
    let update = "UPDATE rollouts SET state = ?2, reason = ?3 WHERE id = ?1";
    connection.prepare_cached(update)?.execute(params![rollout.id, state, reason])?;
    note(connection, exchange, rollout.id, &format!("rollout is {state}"), reason)
}

fn note(
    connection: &Connection,
    exchange: &Exchange,
    id: i64,
    action: &str,
    detail: &str,
) -> Result<(), rusqlite::Error> {
    let (unix_s, who) = (exchange.unix_s, exchange.who.as_str());
    let subject = format!("rollout {id}");
    let event = audit::Event { unix_s, who, action, subject: &subject, detail, owner: who };
    audit::append(connection, &event)
}

/// Whether the registry of `who` holds the package with this digest.
fn is_kept(connection: &Connection, who: &str, package: &str) -> Result<bool, rusqlite::Error> {
    let query = "SELECT 1 FROM manifests WHERE who = ?1 AND package_digest = ?2";
    connection.prepare_cached(query)?.exists([who, package])
}

/// Whether a rollout that isn't over may still need the package of the manifest in row `manifest`: as the
/// one it brings, or as one that it puts back.
pub(crate) fn needs(
    connection: &Connection,
    who: &str,
    manifest: i64,
) -> Result<bool, rusqlite::Error> {
    let query = "SELECT 1 FROM manifests m JOIN rollouts r ON r.who = m.who \
         WHERE m.id = ?2 AND m.who = ?1 AND r.state IN ('running', 'paused', 'rolling back') \
         AND (r.package_digest = m.package_digest OR EXISTS (SELECT 1 FROM rollout_devices d \
         WHERE d.rollout = r.id AND d.was = m.package_digest))";
    connection.prepare_cached(query)?.exists(params![who, manifest])
}

/// The moment of a request, as SQLite stores it.
fn now(exchange: &Exchange) -> i64 {
    seconds(exchange.unix_s)
}
