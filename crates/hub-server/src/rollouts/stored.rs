//! A rollout as it is stored.

use super::{Gates, State};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

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
    pub(super) awaited_from: i64,
    /// Since when it can't go on until its owner does something.
    pub(super) stuck_unix_s: Option<i64>,
}

impl Rollout {
    /// How many devices may be updated now.
    pub(super) fn reach(&self) -> i64 {
        self.stages.get(self.stage).copied().unwrap_or(0)
    }

    /// Whether no step will follow.
    pub(super) fn is_over(&self) -> bool {
        self.state.is_over()
    }
}

/// The rollout number `id` of `who`.
pub(crate) fn find(
    connection: &Connection,
    who: &str,
    id: i64,
) -> Result<Option<Rollout>, sql::Error> {
    let query = "SELECT id, machine, package_digest, version, state, reason, stages, stage, soak_s, faults_max, \
         failures_max, on_failure, ends_unix_s, mandate, stage_unix_s, gates, \
         awaited_from, stuck_unix_s FROM rollouts WHERE who = ?1 AND id = ?2";
    let read = |row: &sql::Row<'_>| {
        let (stages, gates): (String, String) = (row.get(6)?, row.get(15)?);
        Ok(Rollout {
            id: row.get(0)?,
            machine: row.get(1)?,
            package_digest: row.get(2)?,
            version: row.get(3)?,
            state: row.get(4)?,
            reason: row.get(5)?,
            stages: serde_json::from_str(&stages).unwrap_or_default(),
            stage: usize::try_from(row.get::<i64>(7)?).unwrap_or(0),
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
    connection.statement(query).query_row(params![who, id], read).optional()
}
