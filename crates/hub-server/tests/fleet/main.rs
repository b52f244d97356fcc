//! Rollouts that devices carry out themselves: real nodes, a real hub on its database, nobody at a keyboard.

mod break_in;
mod placing;
mod reports;
pub(crate) mod rig;
mod touches;
mod worlds;

use rig::{Death, Fleet, mandate, package};
use serde_json::json;
use tenure_package::{Mandate, Selector};
use tenure_wire::hub::function;

pub(crate) const NAMES: [&str; 5] = ["attic", "barn", "cellar", "den", "entry"];

#[test]
fn good_version_reaches_all_devices_stage_by_stage_with_nobody_at_a_keyboard() {
    let mut fleet = Fleet::new(&NAMES);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let id = fleet.start(&good, &NAMES);
    fleet.pass(20);
    let [old, new] = ["1.0.0", "1.1.0"];
    assert_eq!(fleet.versions(), [new, old, old, old, old], "the canary alone");
    fleet.pass(30);
    assert_eq!(fleet.versions(), [new, new, new, old, old], "half of them");
    let state = fleet.drive(id);
    assert_eq!((state["state"].as_str(), fleet.versions()), (Some("done"), vec![new.into(); 5]));
    let refusals: Vec<_> = (0..5).flat_map(|device| fleet.refusals(device)).collect();
    assert_eq!(refusals, Vec::<String>::new());
}

#[test]
fn bad_version_is_pulled_back_from_the_canary_and_runs_on_no_other_device() {
    let mut fleet = Fleet::new(&NAMES);
    let bad = package("1.1.0", true);
    fleet.push(&bad);
    let id = fleet.start(&bad, &NAMES);
    let state = fleet.drive(id);
    assert_eq!(state["state"], "rolled back", "{state}");
    assert!(state["reason"].as_str().unwrap().contains("faults since the update"), "{state}");
    assert_eq!(fleet.devices[0].ran().last().map(String::as_str), Some("1.0.0"));
    let touched = |number: usize| fleet.devices[number].ran().contains(&"1.1.0".to_string());
    assert_eq!([0, 1, 2, 3, 4].map(touched), [true, false, false, false, false]);
}

#[test]
fn device_that_is_offline_holds_nobody_up_and_catches_up() {
    let mut fleet = Fleet::new(&NAMES);
    fleet.devices[1].is_online = false;
    fleet.pass(90);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let id = fleet.start(&good, &NAMES);
    fleet.pass(300);
    assert_eq!(fleet.versions(), ["1.1.0", "1.0.0", "1.1.0", "1.1.0", "1.1.0"]);
    assert_eq!(fleet.rollout(id)["state"], "running");
    fleet.devices[1].is_online = true;
    let state = fleet.drive(id);
    assert_eq!((state["state"].as_str(), fleet.versions()[1].as_str()), (Some("done"), "1.1.0"));
}

/// Lets the hub die once the first part of a package has left it.
fn die_amid_fetch(fleet: &mut Fleet) {
    fleet.hub.storage().death = Some((1, Death::HubAfterPart));
    while fleet.deaths == 0 {
        fleet.pass(1);
    }
}

#[test]
fn fetch_goes_on_where_it_stopped_after_its_hub_died() {
    let mut fleet = Fleet::new(&NAMES[..1]);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let parts = good.len().div_ceil(tenure_wire::rollout::PART_BYTES_MAX);
    assert!(parts >= 3, "{parts} parts are too few to stop between");
    let id = fleet.start(&good, &NAMES[..1]);
    die_amid_fetch(&mut fleet);
    let state = fleet.drive(id);
    assert_eq!((state["state"].as_str(), fleet.versions()[0].as_str()), (Some("done"), "1.1.0"));
    assert_eq!(fleet.asked(function::PART), parts - 1, "the first part was not fetched again");
}

#[test]
fn rollout_goes_on_whichever_question_the_hub_or_the_device_dies_at() {
    for death in [Death::HubBeforeCommit, Death::HubAfterCommit, Death::Device] {
        for (is_bad, questions) in [(false, 8), (true, 11)] {
            for question in 1..=questions {
                let mut fleet = Fleet::new(&NAMES[..1]);
                let new = package("1.1.0", is_bad);
                fleet.push(&new);
                let id = fleet.start(&new, &NAMES[..1]);
                fleet.hub.storage().death = Some((question, death));
                let state = fleet.drive(id);
                let end = if is_bad { ("rolled back", "1.0.0") } else { ("done", "1.1.0") };
                let is = (state["state"].as_str().unwrap(), fleet.versions()[0].clone());
                assert_eq!((is.0, is.1.as_str()), end, "{death:?} at {question}: {state}");
                assert_eq!(fleet.deaths, 1, "{death:?} at {question}");
            }
        }
    }
}

/// A device that hears no answer tells half a minute later what it saw then, which says nothing of the time between.
#[test]
fn bad_version_does_not_count_as_good_because_an_answer_was_lost_while_it_failed() {
    for question in 1..=8 {
        let mut fleet = Fleet::new(&NAMES[..1]);
        let bad = package("1.1.0", true);
        fleet.push(&bad);
        let id = fleet.start(&bad, &NAMES[..1]);
        fleet.hub.storage().death = Some((question, Death::Answer));
        let state = fleet.drive(id);
        assert_eq!(state["state"], "rolled back", "no answer to question {question}: {state}");
        assert_eq!(fleet.hub.storage().death, None, "there are fewer questions than {question}");
    }
}

#[test]
fn paused_rollout_updates_no_further_device_and_aborted_one_stays_as_it_is() {
    let mut fleet = Fleet::new(&NAMES);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let id = fleet.start(&good, &NAMES);
    fleet.pass(10);
    assert_eq!(fleet.ask("POST", &format!("/v1/rollouts/{id}/pause"), &[]).0, 200);
    fleet.pass(200);
    let [old, new] = ["1.0.0", "1.1.0"];
    assert_eq!(fleet.versions(), [new, old, old, old, old]);
    assert_eq!(fleet.ask("POST", &format!("/v1/rollouts/{id}/resume"), &[]).0, 200);
    fleet.pass(20);
    assert_eq!(fleet.ask("POST", &format!("/v1/rollouts/{id}/abort"), &[]).0, 200);
    let before = fleet.versions();
    fleet.pass(200);
    assert_eq!(fleet.versions(), before);
    assert_eq!(fleet.ask("POST", &format!("/v1/rollouts/{id}/roll-back"), &[]).0, 200);
    assert_eq!(fleet.drive(id)["state"], "rolled back");
    assert_eq!(fleet.versions(), vec![old; 5]);
}

#[test]
fn machine_that_its_owner_placed_by_hand_is_not_taken_back_to_an_older_version() {
    let mut fleet = Fleet::new(&NAMES[..2]);
    let good = package("1.1.0", false);
    fleet.push(&good);
    fleet.install(0, &package("2.0.0", false), 2);
    let id = fleet.start(&good, &NAMES[..2]);
    fleet.pass(300);
    assert_eq!(fleet.versions(), ["2.0.0", "1.0.0"], "the canary has a later version");
    let (_, devices) = fleet.ask("GET", &format!("/v1/rollouts/{id}"), &[]);
    assert_eq!(devices["devices"]["waiting"], 2, "{devices}");
}

#[test]
fn devices_are_selected_by_their_labels_and_one_that_comes_later_takes_part() {
    let mut fleet = Fleet::new(&NAMES[..4]);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let labels = Selector::Labels(vec!["row=r0".parse().unwrap()]);
    let mandate = Mandate { devices: labels, ..mandate(&good, &[], 5) };
    let (status, answer) = fleet.post(&mandate, &[]);
    assert_eq!((status, &answer["devices"]["waiting"]), (201, &json!(2)), "{answer}");
    fleet.add(NAMES[4], 4);
    let state = fleet.drive(answer["id"].as_i64().unwrap());
    assert_eq!((&state["state"], &state["devices"]["healthy"]), (&json!("done"), &json!(3)));
    assert_eq!(fleet.versions(), ["1.1.0", "1.0.0", "1.1.0", "1.0.0", "1.1.0"]);
    let nobody = Selector::Labels(vec!["row=r9".parse().unwrap()]);
    let (status, answer) = fleet.post(&Mandate { devices: nobody, number: 6, ..mandate }, &[]);
    assert_eq!(
        (status, &answer["detail"]),
        (422, &json!("no device that is listed here carries those labels"))
    );
}

#[test]
fn owners_installation_is_not_disturbed_by_a_fetch() {
    let mut fleet = Fleet::new(&NAMES[..1]);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let id = fleet.start(&good, &NAMES[..1]);
    die_amid_fetch(&mut fleet);
    fleet.install(0, &package("1.0.5", false), 2);
    let state = fleet.drive(id);
    assert_eq!((state["state"].as_str(), fleet.versions()[0].as_str()), (Some("done"), "1.1.0"));
}
