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
mod counts;
mod devices;
mod gates;
mod labels;
mod plan;
mod requests;
mod states;
mod stored;
mod ticks;
mod told;
mod work;

use http::{Method, StatusCode};
use serde_json::json;

use crate::exchange::{Exchange, Reply};
use crate::store::audit::{self, seconds};
use crate::store::sql::{self, Connection, params};

pub use counts::words_of;
pub(crate) use counts::{Counts, waits};
pub(crate) use devices::Saw;
pub use gates::{Gates, MetricGate, NoMetricGate};
pub(crate) use labels::{carries, text_of};
pub use plan::{Plan, PlanError, SignedPlan};
pub(crate) use states::{DeviceState, Event, State};
pub(crate) use stored::{Rollout, find};
pub(crate) use ticks::{open_after, tick};
pub(crate) use told::{Next, Told};
pub(crate) use work::{owner_of_package, pace, work};

/// Answers a request under `/v1/rollouts`, in the transaction that is under way.
///
/// # Errors
/// The database fails.
pub(crate) fn answer(connection: &Connection, exchange: &Exchange) -> Result<Reply, sql::Error> {
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

fn nothing_here() -> Result<Reply, sql::Error> {
    Ok(Reply::problem(StatusCode::NOT_FOUND, "there is nothing here"))
}

fn with(
    connection: &Connection,
    exchange: &Exchange,
    id: &str,
    action: impl FnOnce(Rollout) -> Result<Reply, sql::Error>,
) -> Result<Reply, sql::Error> {
    let found = id.parse().ok().map(|id| find(connection, &exchange.who, id)).transpose()?;
    match found.flatten() {
        Some(rollout) => action(rollout),
        None => Ok(Reply::problem(StatusCode::NOT_FOUND, "there is no such rollout")),
    }
}

/// A rollout in JSON, as it is now.
fn described(connection: &Connection, exchange: &Exchange, id: i64) -> Result<Reply, sql::Error> {
    let Some(rollout) = find(connection, &exchange.who, id)? else {
        return Ok(Reply::problem(StatusCode::NOT_FOUND, "there is no such rollout"));
    };
    let counts = Counts::of(connection, id)?;
    let waits = waits(connection, &rollout, &counts)?;
    Ok(Reply::json(StatusCode::OK, &json!(Told::of(&rollout, &counts, waits))))
}

/// `POST …/pause`, `resume`, `abort` (devices stay as they are) and `roll-back`.
fn steer(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    act: Event,
) -> Result<Reply, sql::Error> {
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
) -> Result<(), sql::Error> {
    let Some(state) = rollout.state.after(event) else { return Ok(()) };
    let update = "UPDATE rollouts SET state = ?2, reason = ?3, stuck_unix_s = NULL WHERE id = ?1";
    connection.statement(update).execute(params![rollout.id, state, reason])?;
    note(connection, exchange, rollout.id, &format!("rollout is {}", state.word()), reason)
}

fn note(
    connection: &Connection,
    exchange: &Exchange,
    id: i64,
    action: &str,
    detail: &str,
) -> Result<(), sql::Error> {
    let (unix_s, who) = (exchange.unix_s, exchange.who.as_str());
    let subject = format!("rollout {id}");
    let by = exchange.by.as_str();
    let event = audit::Event { unix_s, who, by, action, subject: &subject, detail, owner: who };
    audit::append(connection, &event)
}

/// Takes a device out of the rollouts that are under way: those behind it move up.
pub(crate) fn leave(connection: &Connection, who: &str, device: &str) -> Result<(), sql::Error> {
    let query = "SELECT d.rollout, d.position FROM rollout_devices d CROSS JOIN rollouts r ON r.id = d.rollout \
         WHERE d.device = ?1 AND r.who = ?2 AND r.state IN ('running', 'paused', 'rolling back')";
    let statement = connection.statement(query);
    let rows: Vec<(i64, i64)> =
        statement.query_map([device, who], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (rollout, position) in rows {
        let place = [rollout, position];
        let delete = "DELETE FROM rollout_devices WHERE rollout = ?1 AND position = ?2";
        connection.statement(delete).execute(place)?;
        let move_up = "UPDATE rollout_devices SET position = position - 1 WHERE rollout = ?1 AND position > ?2";
        connection.statement(move_up).execute(place)?;
        let looked_at = "UPDATE rollouts SET awaited_from = awaited_from - 1 WHERE id = ?1 AND awaited_from > ?2";
        connection.statement(looked_at).execute(place)?;
    }
    Ok(())
}

/// The moment of a request, as the database stores it.
fn now(exchange: &Exchange) -> i64 {
    seconds(exchange.unix_s)
}

/// The later of that moment and of the one since which the hub has heard: what was to come in between may have come.
fn heard_from(exchange: &Exchange, unix_s: i64) -> i64 {
    unix_s.max(seconds(exchange.hub_hears_since_unix_s))
}

#[cfg(test)]
mod tests;
