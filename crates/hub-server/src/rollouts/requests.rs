//! Starting a rollout: the owner's signed plan against what the hub knows.

use http::{StatusCode, header};
use tenure_wire::VerifyingKey;
use tenure_wire::printable::counted;

use super::plan::{Plan, PlanError, STAGES_FAULT, SignedPlan};
use super::{described, labels, note, now};
use crate::exchange::{Exchange, Reply};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// The most rollouts of one key.
const ROLLOUTS_OF_KEY_MAX: i64 = 10_000;
/// The longest that devices may be updated, in seconds: 90 days.
const LIFE_S_MAX: i64 = 90 * 24 * 60 * 60;

/// `POST /v1/rollouts`, whose body is a [`SignedPlan`].
pub(super) fn start(connection: &Connection, exchange: &Exchange) -> Result<Reply, sql::Error> {
    let signed: SignedPlan = match serde_json::from_slice(&exchange.body) {
        Ok(signed) => signed,
        Err(error) => return Ok(Reply::problem(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let refuse = |text: &str| Ok(Reply::problem(StatusCode::UNPROCESSABLE_ENTITY, text));
    let owner = exchange.who.parse::<VerifyingKey>().map_err(|_| PlanError::Signature);
    let opened = owner.and_then(|owner| Ok((owner, signed.open(&owner)?)));
    let (owner, plan) = match opened {
        Ok(opened) => opened,
        Err(error) => return refuse(&error.to_string()),
    };
    if !(1..=LIFE_S_MAX).contains(&plan.ends_unix_s.saturating_sub(now(exchange))) {
        return refuse("a rollout ends within 90 days, and not before it began");
    }
    let package = "SELECT version, tenant FROM manifests WHERE who = ?1 AND package_digest = ?2";
    let names = params![exchange.who, plan.package.to_string()];
    let package: Option<(String, String)> = connection
        .statement(package)
        .query_row(names, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((version, tenant)) = package else {
        return refuse("push the package first: it isn't in your registry here");
    };
    if tenant != plan.tenant.to_string() {
        return refuse("the package is another tenant's than the plan says");
    }
    let mandate = match signed.open_mandate(&owner, &plan, &version) {
        Ok(mandate) => mandate,
        Err(error) => return refuse(&error.to_string()),
    };
    let devices = match plan.labels.is_empty() {
        true => plan.devices.iter().map(ToString::to_string).collect(),
        false if mandate.is_none() => return refuse("labels select devices by a mandate alone"),
        false => labels::devices(connection, &exchange.who, &plan.labels)?,
    };
    if devices.is_empty() {
        return refuse("no device that is listed here carries those labels");
    }
    let Some(reaches) = plan.reaches(devices.len()) else { return refuse(STAGES_FAULT) };
    if let Some(obstacle) = obstacle(connection, exchange, &plan, &devices)? {
        return refuse(&obstacle);
    }
    let id = insert(connection, exchange, (&plan, &signed, mandate), (&version, &reaches))?;
    fill(connection, id, &devices)?;
    let detail = format!("{} {version} to {}", plan.machine, counted(devices.len(), "device"));
    note(connection, exchange, id, "rollout started", &detail)?;
    let reply = described(connection, exchange, id)?;
    Ok(Reply { status: StatusCode::CREATED, ..reply }
        .with(header::LOCATION, format!("/v1/rollouts/{id}")))
}

/// The device that isn't there or is busy, or that there is no room.
fn obstacle(
    connection: &Connection,
    exchange: &Exchange,
    plan: &Plan,
    devices: &[String],
) -> Result<Option<String>, sql::Error> {
    let (who, machine) = (exchange.who.as_str(), plan.machine.as_str());
    let listed = connection
        .statement("SELECT 1 FROM devices WHERE name = ?1 AND owner = ?2 AND length(kept) > 0");
    for device in devices {
        if !listed.exists([device, who])? {
            return Ok(Some(format!("no device {device} of yours is listed here")));
        }
        if is_busy(connection, who, machine, device)? {
            return Ok(Some(format!("{device} is in another rollout of that machine")));
        }
    }
    let count = "SELECT count(*) FROM rollouts WHERE who = ?1";
    let count: i64 = connection.statement(count).query_row([who], |row| row.get(0))?;
    let is_full = count >= ROLLOUTS_OF_KEY_MAX;
    Ok(is_full.then(|| "a key has 10,000 rollouts here at most".into()))
}

/// Whether a rollout of that machine is under way on the device.
pub(super) fn is_busy(
    connection: &Connection,
    who: &str,
    machine: &str,
    device: &str,
) -> Result<bool, sql::Error> {
    let busy = "SELECT 1 FROM rollout_devices d CROSS JOIN rollouts r ON r.id = d.rollout WHERE r.who = ?1 \
         AND r.machine = ?2 AND r.state IN ('running', 'paused', 'rolling back') AND d.device = ?3";
    connection.statement(busy).exists([who, machine, device])
}

fn insert(
    connection: &Connection,
    exchange: &Exchange,
    (plan, signed, mandate): (&Plan, &SignedPlan, Option<Vec<u8>>),
    (version, reaches): (&str, &[i64]),
) -> Result<i64, sql::Error> {
    let insert = "INSERT INTO rollouts (who, machine, package_digest, version, plan, signature, state, reason, stages, \
         stage, soak_s, faults_max, failures_max, on_failure, began_unix_s, ends_unix_s, mandate, \
         stage_unix_s, labels, gates) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'running', '', ?7, 0, ?8, ?9, ?10, ?11, ?12, \
         ?13, ?14, ?12, ?15, ?16) RETURNING id";
    let row = params![
        exchange.who,
        plan.machine.as_str(),
        plan.package.to_string(),
        version,
        signed.plan,
        signed.signature,
        serde_json::json!(reaches).to_string(),
        plan.soak_s,
        plan.faults_max,
        plan.failures_max,
        if plan.pause_on_failure { "pause" } else { "roll back" },
        now(exchange),
        plan.ends_unix_s,
        mandate,
        (!plan.labels.is_empty()).then(|| labels::text_of(&plan.labels)),
        serde_json::json!(plan.gates).to_string(),
    ];
    connection.statement(insert).query_row(row, |row| row.get(0))
}

/// Gives a rollout its devices.
fn fill(connection: &Connection, id: i64, devices: &[String]) -> Result<(), sql::Error> {
    let insert = "INSERT INTO rollout_devices (rollout, position, device, state, reason, faults_before, faults) \
         VALUES (?1, ?2, ?3, 'waiting', '', 0, 0)";
    let insert = connection.statement(insert);
    for (position, device) in devices.iter().enumerate() {
        insert.execute(params![id, position as i64, device])?;
    }
    Ok(())
}

/// `GET …/plan`: the plan as it was signed.
pub(super) fn plan(connection: &Connection, id: i64) -> Result<SignedPlan, sql::Error> {
    let query = "SELECT plan, signature, mandate FROM rollouts WHERE id = ?1";
    let read = |row: &sql::Row<'_>| {
        let mandate: Option<Vec<u8>> = row.get(2)?;
        let signed = SignedPlan { plan: row.get(0)?, signature: row.get(1)?, mandate: None };
        Ok(match mandate {
            Some(mandate) => signed.with_mandate(&mandate),
            None => signed,
        })
    };
    connection.statement(query).query_row([id], read)
}
