//! What is told of a rollout over HTTP and in sessions, with the form of it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::{Counts, Gates, Rollout};

/// A rollout as it is now.
#[derive(Serialize, ToSchema)]
#[schema(as = Rollout)]
pub(crate) struct Told {
    id: i64,
    machine: String,
    /// The digest of the package.
    package: String,
    version: String,
    state: String,
    reason: String,
    /// The number of the stage, from 1 on.
    stage: usize,
    /// How many devices each stage reaches.
    stages: Vec<i64>,
    soak_s: i64,
    gates: Gates,
    faults_max: i64,
    failures_max: i64,
    /// `pause` or `roll back`.
    on_failure: String,
    ends_unix_s: i64,
    is_over: bool,
    carried_out_by: CarriedOutBy,
    /// How many devices there are in each state.
    devices: BTreeMap<&'static str, i64>,
    waits: Vec<Waits>,
}

/// Those who carry a rollout out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CarriedOutBy {
    Devices,
    Command,
}

/// Devices that wait, and for what.
#[derive(Serialize, ToSchema)]
struct Waits {
    devices: i64,
    reason: String,
}

/// The steps that are due.
#[derive(Serialize, ToSchema)]
pub(crate) struct Next {
    state: String,
    reason: String,
    is_over: bool,
    machine: String,
    tasks: Vec<Task>,
}

/// A step on a device.
#[derive(Serialize, ToSchema)]
pub(super) struct Task {
    pub(super) device: String,
    pub(super) action: Action,
    /// The digest of the package.
    pub(super) package: String,
}

/// What is to be done on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Update,
    Look,
    Revert,
}

impl Told {
    pub(super) fn of(rollout: &Rollout, counts: &Counts, waits: Vec<(i64, String)>) -> Self {
        let waits = waits.into_iter().map(|(devices, reason)| Waits { devices, reason });
        Self {
            id: rollout.id,
            machine: rollout.machine.clone(),
            package: rollout.package_digest.clone(),
            version: rollout.version.clone(),
            state: rollout.state.word().into(),
            reason: rollout.reason.clone(),
            stage: rollout.stage + 1,
            stages: rollout.stages.clone(),
            soak_s: rollout.soak_s,
            gates: rollout.gates.clone(),
            faults_max: rollout.faults_max,
            failures_max: rollout.failures_max,
            on_failure: rollout.on_failure.clone(),
            ends_unix_s: rollout.ends_unix_s,
            is_over: rollout.is_over(),
            carried_out_by: match rollout.mandate {
                Some(_) => CarriedOutBy::Devices,
                None => CarriedOutBy::Command,
            },
            devices: counts.all().map(|(state, count)| (state.word(), count)).collect(),
            waits: waits.collect(),
        }
    }
}

impl Next {
    pub(super) fn of(rollout: &Rollout, tasks: Vec<Task>) -> Self {
        Self {
            state: rollout.state.word().into(),
            reason: rollout.reason.clone(),
            is_over: rollout.is_over(),
            machine: rollout.machine.clone(),
            tasks,
        }
    }
}
