//! Rollouts: a package to many devices in stages, as a state machine in the database.
//!
//! The hub decides which device is next and whether a gate holds. The devices carry it out: each asks for its
//! next step, and takes it only as far as the owner's mandate allows. A rollout without a mandate is carried out
//! by the owner's command, which goes no further than the plan that the owner signed.
//!
//! Whatever becomes of a rollout or of a device in it begins with an event, and [`states`] says what comes of it. Events are an
//! owner's act, a device's word, and the clock's tick.
//!
//! Invariants:
//! - A decision is committed before anybody is told of it: a hub or a command that dies at any step
//!   goes on from there.
//! - No device beyond the stage in force is ever named for an update.
//! - The package that a device had is written down, and is in the registry, before the device is updated.
//! - A step that was done already does nothing when it is done again.
//! - A question takes a number of steps that doesn't grow with the devices of the rollout, or of the hub: what it
//!   needs to know is kept (`rollout_counts`), and what is due is found by an index.
//! - Who reads changes nothing.

mod advance;
mod devices;
mod gates;
mod labels;
mod plan;
mod requests;
mod states;
mod ticks;
mod work;

use http::{Method, StatusCode};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::{Value, json};

use crate::exchange::{Exchange, Reply};
use crate::store::audit::{self, seconds};

pub use gates::{Gates, MetricGate, NoMetricGate};
pub use plan::{Plan, PlanError, SignedPlan};
pub(crate) use states::{DeviceState, Event, State};
pub(crate) use ticks::{open_after, tick};
pub(crate) use work::{owner_of_package, pace, work};

/// The most reasons to wait that an answer names.
const WAITS_MAX: i64 = 4;

/// A rollout as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Rollout {
    pub(crate) id: i64,
    pub(crate) machine: String,
    pub(crate) package_digest: String,
    pub(crate) version: String,
    pub(crate) state: State,
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
    /// The first device that may still keep the next stage waiting.
    awaited_from: i64,
    /// Since when it can't go on until its owner does something.
    stuck_unix_s: Option<i64>,
}

impl Rollout {
    /// How many devices may be updated now.
    fn reach(&self) -> i64 {
        self.stages.get(self.stage).copied().unwrap_or(0)
    }

    /// Whether no step will follow.
    fn is_over(&self) -> bool {
        self.state.is_over()
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
        (&Method::GET, [id]) => {
            with(connection, exchange, id, |rollout| described(connection, exchange, rollout.id))
        }
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
        (&Method::POST, [id, verb]) => match Event::of_verb(verb) {
            Some(act) => {
                with(connection, exchange, id, |rollout| steer(connection, exchange, &rollout, act))
            }
            None => nothing_here(),
        },
        _ => nothing_here(),
    }
}

fn nothing_here() -> Result<Reply, rusqlite::Error> {
    Ok(Reply::problem(StatusCode::NOT_FOUND, "there is nothing here"))
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
         failures_max, on_failure, ends_unix_s, mandate, stage_unix_s, gates, \
         awaited_from, stuck_unix_s FROM rollouts WHERE who = ?1 AND id = ?2";
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
            awaited_from: row.get(16)?,
            stuck_unix_s: row.get(17)?,
        })
    };
    connection.prepare_cached(query)?.query_row(params![who, id], read).optional()
}

/// How many devices of a rollout are in each state, as steps keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    of_states: [i64; DeviceState::ALL.len()],
    /// Those of the waiting ones that wait for something which only their owner can mend.
    pub(crate) held: i64,
}

impl Counts {
    /// The counts of the rollout number `id`.
    pub(crate) fn of(connection: &Connection, id: i64) -> Result<Self, rusqlite::Error> {
        let query = "SELECT state, devices FROM rollout_counts WHERE rollout = ?1";
        let mut statement = connection.prepare_cached(query)?;
        let mut rows = statement.query([id])?;
        let mut counts = Self::default();
        while let Some(row) = rows.next()? {
            let (word, devices): (String, i64) = (row.get(0)?, row.get(1)?);
            match DeviceState::ALL.iter().position(|state| state.word() == word) {
                Some(position) => counts.of_states[position] = devices,
                None => counts.held = devices,
            }
        }
        Ok(counts)
    }

    /// How many are in that state.
    pub(crate) fn count(&self, state: DeviceState) -> i64 {
        self.all().find(|(one, _)| *one == state).map_or(0, |(_, count)| count)
    }

    /// Each state and how many are in it, in the order in which devices pass them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (DeviceState, i64)> {
        DeviceState::ALL.into_iter().zip(self.of_states)
    }

    /// How many there are.
    fn sum(&self) -> i64 {
        self.of_states.iter().sum()
    }

    /// How many wait that may be updated now. Whatever doesn't wait was within the reach before.
    fn waiting_within(&self, reach: i64) -> i64 {
        let all = self.sum();
        reach.min(all) - (all - self.count(DeviceState::Waiting))
    }
}

/// Why devices of a rollout wait that its stage reaches: how many for which reason, the most frequent first.
pub(crate) fn waits(
    connection: &Connection,
    rollout: &Rollout,
    counts: &Counts,
) -> Result<Vec<(i64, String)>, rusqlite::Error> {
    let query =
        "SELECT devices, held FROM rollout_holds WHERE rollout = ?1 ORDER BY devices DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(query)?;
    let rows =
        statement.query_map([rollout.id, WAITS_MAX], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut waits: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
    let named: i64 = waits.iter().map(|(devices, _)| devices).sum();
    let others = [
        (counts.held - named, "other reasons, which the list of devices names"),
        (counts.waiting_within(rollout.reach()) - counts.held, "not reached, or not asked yet"),
    ];
    let others = others.into_iter().filter(|(devices, _)| *devices > 0 && !rollout.state.is_over());
    waits.extend(others.map(|(devices, reason)| (devices, reason.to_string())));
    Ok(waits)
}

/// Waits in words: `3 wait: counter 1.0.0, which runs there, isn't in the registry: push it`.
pub fn words_of(waits: &[(i64, String)]) -> Vec<String> {
    let words = |(devices, reason): &(i64, String)| match devices {
        1 => format!("1 waits: {reason}"),
        _ => format!("{devices} wait: {reason}"),
    };
    waits.iter().map(words).collect()
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
    let counts = Counts::of(connection, id)?;
    let waits = waits(connection, &rollout, &counts)?;
    let waits =
        waits.iter().map(|(devices, reason)| json!({ "devices": devices, "reason": reason }));
    let waits: Vec<Value> = waits.collect();
    let counts: serde_json::Map<String, Value> =
        counts.all().map(|(state, count)| (state.word().to_string(), json!(count))).collect();
    let body = json!({
        "id": rollout.id,
        "machine": rollout.machine,
        "package": rollout.package_digest,
        "version": rollout.version,
        "state": rollout.state.word(),
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
        "waits": waits,
    });
    Ok(Reply::json(StatusCode::OK, &body))
}

/// `POST …/pause`, `resume`, `abort` (devices stay as they are) and `roll-back`.
fn steer(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    act: Event,
) -> Result<Reply, rusqlite::Error> {
    const BY_ITS_OWNER: &str = "by its owner";
    let rollout = advance::advance(connection, exchange, rollout)?;
    if act.is_done_in(rollout.state) {
        return described(connection, exchange, rollout.id);
    }
    if rollout.state.after(act).is_none() {
        let verb = act.verb().unwrap_or_default();
        let text = format!("the rollout is {}; it can't {verb}", rollout.state.word());
        return Ok(Reply::problem(StatusCode::CONFLICT, &text));
    }
    match act {
        Event::RollBack => advance::roll_back(connection, exchange, &rollout, act, BY_ITS_OWNER)?,
        Event::Resume => {
            advance::forgive(connection, &rollout)?;
            enter(connection, exchange, &rollout, act, "")?;
        }
        _ => enter(connection, exchange, &rollout, act, BY_ITS_OWNER)?,
    }
    // Where no device can go back, it is over already.
    if let Some(rollout) =
        find(connection, &exchange.who, rollout.id)?.filter(|_| act == Event::RollBack)
    {
        advance::advance(connection, exchange, &rollout)?;
    }
    described(connection, exchange, rollout.id)
}

/// Moves a rollout to the state that an event leads to, and notes it. One that can't happen changes nothing.
fn enter(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    event: Event,
    reason: &str,
) -> Result<(), rusqlite::Error> {
    let Some(state) = rollout.state.after(event) else { return Ok(()) };
    let update = "UPDATE rollouts SET state = ?2, reason = ?3, stuck_unix_s = NULL WHERE id = ?1";
    connection.prepare_cached(update)?.execute(params![rollout.id, state, reason])?;
    note(connection, exchange, rollout.id, &format!("rollout is {}", state.word()), reason)
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

/// Takes a device out of the rollouts that are under way: those behind it move up.
pub(crate) fn leave(
    connection: &Connection,
    who: &str,
    device: &str,
) -> Result<(), rusqlite::Error> {
    let query = "SELECT d.rollout, d.position FROM rollout_devices d CROSS JOIN rollouts r ON r.id = d.rollout \
         WHERE d.device = ?1 AND r.who = ?2 AND r.state IN ('running', 'paused', 'rolling back')";
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map([device, who], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    for (rollout, position) in rows {
        let place = [rollout, position];
        let delete = "DELETE FROM rollout_devices WHERE rollout = ?1 AND position = ?2";
        connection.prepare_cached(delete)?.execute(place)?;
        let move_up = "UPDATE rollout_devices SET position = position - 1 WHERE rollout = ?1 AND position > ?2";
        connection.prepare_cached(move_up)?.execute(place)?;
        let looked_at = "UPDATE rollouts SET awaited_from = awaited_from - 1 WHERE id = ?1 AND awaited_from > ?2";
        connection.prepare_cached(looked_at)?.execute(place)?;
    }
    Ok(())
}

/// The moment of a request, as SQLite stores it.
fn now(exchange: &Exchange) -> i64 {
    seconds(exchange.unix_s)
}

#[cfg(test)]
mod tests;
