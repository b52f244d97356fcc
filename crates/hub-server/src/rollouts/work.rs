//! The work of rollouts as devices ask for it: the next step of a device, and the parts of packages.
//!
//! A device is told of its own steps alone, and is served the packages that these name, and no other.

use http::{HeaderMap, Method};
use tenure_package::Mandate;
use tenure_wire::hub::{Answer, HubRefusal};
use tenure_wire::limits::LABELS_MAX;
use tenure_wire::rollout::{Delivery, Labels, Seen, Sight, Step, Task, Work, WorkQuery};
use tenure_wire::{PublicKey, Version};

use super::devices::{self, AGAIN_S, Part as Place, Saw};
use super::{DeviceState, Rollout, State, advance, find, labels, now};
use crate::exchange::Exchange;
use crate::registry;
use crate::store::figures;
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// How soon a device asks again that has a step to take or to tell of, in seconds.
const AGAIN_NOW_S: u32 = 1;
/// How often a device is looked at that soaks, at the most, in seconds.
const AGAIN_SOAKING_S: i64 = 5;
/// How many questions a second of devices without a step the hub wants to answer.
const QUESTIONS_PER_S: i64 = 200;
/// The shortest and the longest time between two questions of a device without a step, in seconds.
const AGAIN_IDLE_S: (i64, i64) = (5, 600);
/// The most rollouts of one device that are looked through for a step.
const ROLLOUTS_MAX: i64 = 8;

/// A listed device.
struct Device {
    name: String,
    owner: String,
    labels: Option<String>,
}

/// Takes what a device saw, and returns its next step.
///
/// # Errors
/// The database fails; or inside, the caller is no device.
pub(crate) fn work(
    connection: &Connection,
    caller: &PublicKey,
    query: &WorkQuery,
    unix_s: u64,
    hub_hears_since_unix_s: u64,
) -> Result<Answer<Work>, sql::Error> {
    let Some(mut device) = device(connection, caller)? else {
        return Ok(Err(HubRefusal::Stranger));
    };
    let exchange = exchange_of(&device.owner, unix_s, hub_hears_since_unix_s);
    if let Some(Labels(labels)) = &query.labels {
        let labels = labels.get(..LABELS_MAX).unwrap_or(labels);
        labels::store(connection, &device.name, labels)?;
        device.labels = Some(labels::text_of(labels));
    }
    if let Some(seen) = &query.seen {
        take(connection, &exchange, &device, seen)?;
    }
    if let Some(has) = &device.labels {
        labels::join(connection, &device.owner, &device.name, has)?;
    }
    let (step, again_s) = next(connection, &exchange, &device)?;
    Ok(Ok(Work { step, again_s, wants_labels: device.labels.is_none() }))
}

/// The next step of a device, and how soon it asks again. A look at a device that soaks comes after all else.
fn next(
    connection: &Connection,
    exchange: &Exchange,
    device: &Device,
) -> Result<(Option<Step>, u32), sql::Error> {
    let mut look = None;
    for id in under_way(connection, device)? {
        let Some(rollout) = find(connection, &device.owner, id)? else { continue };
        let rollout = advance::advance(connection, exchange, &rollout)?;
        let Some(place) = devices::part(connection, &rollout, &device.name)? else { continue };
        match task(connection, exchange, &rollout, &place)? {
            Some((task, again_s)) if place.state == DeviceState::Soaking => {
                look = look.or(Some((step(&rollout, task), again_s)));
            }
            Some((task, again_s)) => return Ok((step(&rollout, task), again_s)),
            None => {}
        }
    }
    match look {
        Some(look) => Ok(look),
        None => Ok((None, pace(connection)?)),
    }
}

/// The owner in whose registry the package lies that a step of a rollout which is under way on the caller needs.
///
/// # Errors
/// The database fails; or inside, the caller is no device, or needs no such package.
pub(crate) fn owner_of_package(
    connection: &Connection,
    caller: &PublicKey,
    package: &str,
) -> Result<Answer<String>, sql::Error> {
    let Some(device) = device(connection, caller)? else { return Ok(Err(HubRefusal::Stranger)) };
    let needs = "SELECT 1 FROM rollouts r CROSS JOIN rollout_devices d ON d.rollout = r.id AND d.device = ?1 \
         WHERE r.who = ?2 AND r.mandate IS NOT NULL AND r.state IN ('running', 'paused', 'rolling back') AND ( \
         (r.state = 'running' AND d.state = 'updating' AND r.package_digest = ?3) OR \
         (r.state = 'rolling back' AND d.state = 'reverting' AND d.was = ?3))";
    let names = [&device.name, &device.owner, package];
    let is_needed = connection.statement(needs).exists(names)?;
    Ok(if is_needed { Ok(device.owner) } else { Err(HubRefusal::NotNeeded) })
}

fn device(connection: &Connection, caller: &PublicKey) -> Result<Option<Device>, sql::Error> {
    let query =
        "SELECT name, owner, labels FROM devices WHERE machine_key = ?1 AND length(kept) > 0";
    let read = |row: &sql::Row<'_>| {
        Ok(Device { name: row.get(0)?, owner: row.get(1)?, labels: row.get(2)? })
    };
    connection.statement(query).query_row([caller.to_string()], read).optional()
}

/// The request that a device's question or the clock's tick comes to, in the name of the owner.
pub(super) fn exchange_of(owner: &str, unix_s: u64, hub_hears_since_unix_s: u64) -> Exchange {
    Exchange {
        method: Method::POST,
        segments: Vec::new(),
        parameters: Vec::new(),
        headers: HeaderMap::new(),
        body: Vec::new(),
        who: owner.to_string(),
        by: String::new(),
        person: String::new(),
        unix_s,
        hub_hears_since_unix_s,
        is_noted: true,
    }
}

/// The rollouts that are under way on a device, the one longest not heard of first.
fn under_way(connection: &Connection, device: &Device) -> Result<Vec<i64>, sql::Error> {
    let query = "SELECT r.id FROM rollouts r CROSS JOIN rollout_devices d ON d.rollout = r.id AND d.device = ?1 \
         WHERE r.who = ?2 AND r.mandate IS NOT NULL \
         AND r.state IN ('running', 'paused', 'rolling back') \
         AND d.state IN ('waiting', 'updating', 'soaking', 'reverting') \
         ORDER BY coalesce(d.tried_unix_s, 0), r.id LIMIT ?3";
    let statement = connection.statement(query);
    statement.query_map(params![device.name, device.owner, ROLLOUTS_MAX], |row| row.get(0))
}

/// Takes what a device saw of its machine in a rollout.
fn take(
    connection: &Connection,
    exchange: &Exchange,
    device: &Device,
    seen: &Seen,
) -> Result<(), sql::Error> {
    let id = i64::try_from(seen.rollout).unwrap_or(-1);
    let Some(rollout) = find(connection, &device.owner, id)? else { return Ok(()) };
    if rollout.mandate.is_none() || rollout.is_over() {
        return Ok(());
    }
    let rollout = advance::advance(connection, exchange, &rollout)?;
    let Some(place) = devices::part(connection, &rollout, &device.name)? else { return Ok(()) };
    let saw = match &seen.sight {
        Sight::Machine { package, version, faults, state, repute } => {
            let has = package.to_string();
            if place.state == DeviceState::Waiting {
                let before = match obstacle(&rollout, &device.owner, &has, *version) {
                    Some(reason) => Saw::Held { reason },
                    None => Saw::Before { has: has.clone(), version: Some(*version) },
                };
                devices::see(connection, exchange, &rollout, &device.name, &before)?;
            }
            let faults = i64::try_from(*faults).unwrap_or(i64::MAX);
            Saw::Machine { has, faults, state: state.clone(), repute: repute.clone() }
        }
        Sight::Missing => {
            if place.state == DeviceState::Waiting && places(&rollout, &device.owner) {
                let before = Saw::Before { has: String::new(), version: None };
                devices::see(connection, exchange, &rollout, &device.name, &before)?;
            }
            Saw::None { reason: format!("it has no machine {}", rollout.machine) }
        }
        Sight::Refused { reason } => Saw::Refused { reason: reason.clone() },
    };
    devices::see(connection, exchange, &rollout, &device.name, &saw)?;
    advance::advance(connection, exchange, &rollout).map(drop)
}

/// Whether the mandate of a rollout places a machine on devices that have none of its name.
fn places(rollout: &Rollout, owner: &str) -> bool {
    let bytes = rollout.mandate.as_deref().unwrap_or_default();
    let mandate = owner.parse().ok().and_then(|owner| Mandate::verify(bytes, &owner).ok());
    mandate.is_some_and(|mandate| mandate.placed.is_some())
}

/// The reason for which a machine that has that package isn't updated.
fn obstacle(rollout: &Rollout, owner: &str, has: &str, version: Version) -> Option<String> {
    let bytes = rollout.mandate.as_deref().unwrap_or_default();
    let mandate = owner.parse().ok().and_then(|owner| Mandate::verify(bytes, &owner).ok());
    let Some(Mandate { from, version: to, .. }) = mandate else {
        return Some("the mandate that is stored here isn't its owner's".into());
    };
    let is_updated = has == rollout.package_digest || (from..=to).contains(&version);
    (!is_updated).then(|| format!("it has {version}, and the plan updates {from} to {to}"))
}

/// The task that is due on a device in a rollout, and how soon the device asks again.
fn task(
    connection: &Connection,
    exchange: &Exchange,
    rollout: &Rollout,
    place: &Place,
) -> Result<Option<(Task, u32)>, sql::Error> {
    let delivery = |package: &str| -> Result<Option<Delivery>, sql::Error> {
        let bytes = registry::package_length(connection, &exchange.who, package)?;
        let (Some(mandate), Some(bytes), Ok(package)) =
            (rollout.mandate.clone(), bytes, package.parse())
        else {
            return Ok(None);
        };
        Ok(Some(Delivery { mandate, package, bytes }))
    };
    let tried_s = now(exchange) - AGAIN_S;
    let is_due = place.tried_unix_s.is_none_or(|tried| tried <= tried_s);
    let task = match (rollout.state, place.state) {
        (State::RollingBack, DeviceState::Reverting) if is_due => {
            match (place.was.as_deref().unwrap_or_default(), &rollout.mandate) {
                // It had none.
                ("", Some(mandate)) => Some(Task::Remove { mandate: mandate.clone() }),
                (was, _) => delivery(was)?.map(Task::PutBack),
            }
        }
        (State::Running, DeviceState::Updating) => {
            delivery(&rollout.package_digest)?.map(Task::Update)
        }
        (State::Running, DeviceState::Waiting)
            if is_due && devices::may_begin(rollout, place, now(exchange)) =>
        {
            Some(Task::Look)
        }
        (State::Running | State::Paused, DeviceState::Soaking) => {
            let again_s = rollout.soak_s.clamp(1, AGAIN_SOAKING_S);
            return Ok(Some((Task::Look, u32::try_from(again_s).unwrap_or(AGAIN_NOW_S))));
        }
        _ => None,
    };
    Ok(task.map(|task| (task, AGAIN_NOW_S)))
}

/// The step as it is told; `None` for a rollout whose machine has no name, which none has.
fn step(rollout: &Rollout, task: Task) -> Option<Step> {
    let (number, machine) = (u64::try_from(rollout.id).ok()?, rollout.machine.parse().ok()?);
    Some(Step { rollout: number, machine, task })
}

/// How soon a device without a step asks again: the more devices there are, the later.
///
/// # Errors
/// The database fails.
pub(crate) fn pace(connection: &Connection) -> Result<u32, sql::Error> {
    let count = figures::devices(connection)?;
    let (least, most) = AGAIN_IDLE_S;
    Ok(u32::try_from((count / QUESTIONS_PER_S).clamp(least, most)).unwrap_or(u32::MAX))
}
