//! Labels: what devices say of themselves, and the rollouts that select devices by them.
//!
//! The hub's list of labels is a convenience: each device checks its own labels against the mandate.

use tenure_wire::Label;

use super::requests::is_busy;
use crate::store::sql::{self, Connection, params};

/// Labels as the database has them.
pub(crate) fn text_of(labels: &[Label]) -> String {
    let mut words: Vec<String> = labels.iter().map(Label::to_string).collect();
    words.sort();
    words.dedup();
    words.join(" ")
}

/// Whether a device with the labels `has` carries all of those in `wanted`.
pub(crate) fn carries(has: &str, wanted: &str) -> bool {
    wanted.split(' ').all(|label| has.split(' ').any(|known| known == label))
}

/// Stores what a device says of itself.
pub(super) fn store(
    connection: &Connection,
    device: &str,
    labels: &[Label],
) -> Result<(), sql::Error> {
    let update = "UPDATE devices SET labels = ?2 WHERE name = ?1 AND labels IS DISTINCT FROM ?2";
    connection.statement(update).execute([device, &text_of(labels)]).map(drop)
}

/// The devices of `who` that carry all of `labels`, by name.
pub(super) fn devices(
    connection: &Connection,
    who: &str,
    labels: &[Label],
) -> Result<Vec<String>, sql::Error> {
    let wanted = text_of(labels);
    let query = "SELECT name, labels FROM devices WHERE owner = ?1 AND labels IS NOT NULL AND length(kept) > 0 ORDER BY name";
    let statement = connection.statement(query);
    let rows: Vec<(String, String)> =
        statement.query_map([who], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.into_iter().filter(|(_, has)| carries(has, &wanted)).map(|(name, _)| name).collect())
}

/// Puts a device behind the others of each running rollout whose labels it carries, unless it is in one of that
/// machine already.
pub(super) fn join(
    connection: &Connection,
    who: &str,
    device: &str,
    has: &str,
) -> Result<(), sql::Error> {
    let query = "SELECT r.id, r.machine, r.labels FROM rollouts r WHERE r.who = ?1 AND r.labels IS NOT NULL \
         AND r.state = 'running' AND NOT EXISTS (SELECT 1 FROM rollout_devices d \
         WHERE d.rollout = r.id AND d.device = ?2)";
    let statement = connection.statement(query);
    let rows: Vec<(i64, String, String)> =
        statement.query_map([who, device], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    for (id, machine, wanted) in rows {
        if !carries(has, &wanted) || is_busy(connection, who, &machine, device)? {
            continue;
        }
        let insert = "INSERT INTO rollout_devices (rollout, position, device, state, reason, faults_before, faults) \
             VALUES (?1, coalesce((SELECT position + 1 FROM rollout_devices WHERE rollout = ?1 \
             ORDER BY position DESC LIMIT 1), 0), ?2, 'waiting', '', 0, 0)";
        connection.statement(insert).execute(params![id, device])?;
    }
    Ok(())
}
