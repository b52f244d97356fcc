//! Rollouts of real nodes by a real hub that doesn't hear of some commits that were done.

use serde_json::Value;
use tenure_testbed::Shaken;

use crate::fleet::NAMES;
use crate::fleet::rig::{Fleet, Place, package};

/// How often a rollout gets another quarter of an hour: devices that were put off come again after half a minute.
const LONGER: usize = 4;

/// A hub whose database is reached by such a way, and its devices; none without PostgreSQL.
fn shaken() -> Option<Fleet> {
    Some(Fleet::at(Place::shaken_by(Shaken::losing_commits)?, &NAMES))
}

/// Rolls version 1.1.0 out, which may be bad; returns how the rollout ended, and what the audit log tells of it all, without
/// times, order and circumstances, as how many faults there were until the hub heard of them.
fn rolled_out(fleet: &mut Fleet, is_bad: bool) -> (Value, Vec<String>) {
    let new = package("1.1.0", is_bad);
    fleet.push(&new);
    let id = fleet.start(&new, &NAMES);
    let mut state = fleet.drive(id);
    for _ in 0..LONGER {
        if state["is_over"] == true {
            break;
        }
        state = fleet.drive(id);
    }
    let told = "SELECT who, action, owner, subject FROM audit ORDER BY 1, 2, 3, 4";
    // A number that the database gave to a try that failed isn't given again.
    let number = format!("rollout {id}");
    let told = fleet.rows(told).iter().map(|entry| entry.replace(&number, "rollout")).collect();
    (state, told)
}

#[test]
fn good_version_reaches_all_devices_and_each_step_is_written_down_once() {
    let Some(mut fleet) = shaken() else { return };
    let (state, told) = rolled_out(&mut fleet, false);
    let (_, calm) = rolled_out(&mut Fleet::new(&NAMES), false);
    let new = vec!["1.1.0".to_string(); NAMES.len()];
    assert_eq!((state["state"].as_str(), fleet.versions()), (Some("done"), new), "{state}");
    assert_eq!(told, calm);
    let counted = fleet.rows("SELECT state, devices FROM rollout_counts WHERE devices > 0");
    assert_eq!(counted, ["healthy 5"]);
    let counted = fleet.rows("SELECT value FROM figures WHERE name = 'devices'");
    assert_eq!(counted, ["5"]);
}

#[test]
fn bad_version_is_pulled_back_from_the_canary_and_runs_on_no_other_device() {
    let Some(mut fleet) = shaken() else { return };
    let (state, told) = rolled_out(&mut fleet, true);
    let (_, calm) = rolled_out(&mut Fleet::new(&NAMES), true);
    assert_eq!(state["state"], "rolled back", "{state}");
    assert_eq!(told, calm);
    let touched = |number: usize| fleet.devices[number].ran().contains(&"1.1.0".to_string());
    assert_eq!([0, 1, 2, 3, 4].map(touched), [true, false, false, false, false]);
}
