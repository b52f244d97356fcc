//! Mandates that place a machine on devices that have none of its name: a lease for many, signed once.

use serde_json::json;
use tenure_hub_server::Database;
use tenure_package::{Mandate, Placed, Selector};
use tenure_wire::hub::{Answer, function};
use tenure_wire::rollout::{Delivery, PART_BYTES_MAX, Part, PartQuery, Step, Task, Work};
use tenure_wire::{Share, Term};

use super::rig::{BEGAN_UNIX_S, Death, Fleet, MACHINE, Rogue, digest, mandate, owner, package};

const NAMES: [&str; 3] = ["attic", "barn", "cellar"];
/// The end of the leases.
const ENDS: u64 = BEGAN_UNIX_S + 1_000_000;

/// A mandate that places the machine, too.
fn placing(package: &[u8], devices: &[&str], number: u64) -> Mandate {
    let share = Share { tier: 3, tier_max: 3, ..Share::default() };
    let term = Term { signed_unix_s: BEGAN_UNIX_S, ends_unix_s: Some(ENDS), ..Term::default() };
    Mandate { placed: Some(Placed { share, term }), ..mandate(package, devices, number) }
}

/// The devices, of which those numbers have no machine.
fn fleet_without(numbers: &[usize]) -> Fleet {
    let mut fleet = Fleet::new(&NAMES);
    numbers.iter().for_each(|number| fleet.remove(*number));
    fleet
}

/// Posts a mandate, once the devices that it names are listed.
fn post(fleet: &mut Fleet, mandate: &Mandate, devices: &[&str]) -> i64 {
    let (mut status, mut answer) = fleet.post(mandate, devices);
    for _ in 0..30 {
        if status != 422 {
            break;
        }
        fleet.pass(1);
        (status, answer) = fleet.post(mandate, devices);
    }
    assert_eq!(status, 201, "{answer}");
    answer["id"].as_i64().unwrap()
}

#[test]
fn machine_is_placed_where_there_is_none_and_updated_where_there_is_one() {
    let mut fleet = fleet_without(&[0, 2]);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let number = fleet.unix_s();
    let id = post(&mut fleet, &placing(&good, &NAMES, number), &NAMES);
    fleet.pass(20);
    let placed = Some(("1.1.0".to_string(), 3, Some(ENDS), number));
    assert_eq!(fleet.machine(0), placed, "the canary");
    assert_eq!(fleet.machine(2), None);
    let state = fleet.drive(id);
    assert_eq!(
        (&state["state"], &state["devices"]["healthy"]),
        (&json!("done"), &json!(3)),
        "{state}"
    );
    assert_eq!((fleet.machine(0), fleet.machine(2)), (placed.clone(), placed));
    let (version, tier, end, _) = fleet.machine(1).unwrap();
    assert_eq!((version.as_str(), tier, end), ("1.1.0", Share::default().tier, None), "as it was");
}

#[test]
fn labels_select_devices_that_get_the_machine_and_one_that_comes_later() {
    let mut fleet = fleet_without(&[0, 1]);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let labels = Selector::Labels(vec!["row=r1".parse().unwrap()]);
    let number = fleet.unix_s();
    let mandate = Mandate { devices: labels, ..placing(&good, &[], number) };
    let id = post(&mut fleet, &mandate, &[]);
    fleet.add("door", 3);
    fleet.remove(3);
    let state = fleet.drive(id);
    assert_eq!(
        (&state["state"], &state["devices"]["healthy"]),
        (&json!("done"), &json!(2)),
        "{state}"
    );
    let has = |fleet: &mut Fleet, number| fleet.machine(number).map(|(version, ..)| version);
    assert_eq!(has(&mut fleet, 0), None, "its row is another one");
    assert_eq!(
        [1, 3].map(|number| has(&mut fleet, number)),
        [Some("1.1.0".into()), Some("1.1.0".into())]
    );
}

#[test]
fn bad_version_is_taken_away_where_there_was_none_before() {
    let mut fleet = fleet_without(&[0]);
    let bad = package("1.1.0", true);
    fleet.push(&bad);
    let number = fleet.unix_s();
    let id = post(&mut fleet, &placing(&bad, &NAMES, number), &NAMES);
    let state = fleet.drive(id);
    assert_eq!(state["state"], "rolled back", "{state}");
    assert_eq!(fleet.machine(0), None);
    let old: Vec<_> = [1, 2].map(|number| fleet.machine(number).unwrap().0).into();
    assert_eq!(old, ["1.0.0", "1.0.0"], "no other device was touched");
    let rows = fleet.rows("SELECT device, state FROM rollout_devices ORDER BY position");
    assert_eq!(rows, ["attic reverted", "barn waiting", "cellar waiting"]);
}

#[test]
fn placing_goes_on_whichever_question_the_hub_or_the_device_dies_at() {
    for death in [Death::HubBeforeCommit, Death::HubAfterCommit, Death::Device] {
        for (is_bad, questions) in [(false, 8), (true, 8)] {
            for question in 1..=questions {
                let mut fleet = Fleet::new(&NAMES[..1]);
                fleet.remove(0);
                let new = package("1.1.0", is_bad);
                fleet.push(&new);
                let number = fleet.unix_s();
                let id = post(&mut fleet, &placing(&new, &NAMES[..1], number), &NAMES[..1]);
                fleet.hub.storage().death = Some((question, death));
                let state = fleet.drive(id);
                let end = if is_bad { ("rolled back", None) } else { ("done", Some("1.1.0")) };
                let has = fleet.machine(0).map(|(version, ..)| version);
                let is = (state["state"].as_str().unwrap(), has.as_deref());
                assert_eq!(is, end, "{death:?} at {question}: {state}");
                assert_eq!(fleet.deaths, 1, "{death:?} at {question}");
            }
        }
    }
}

/// An attacker who broke into the hub repeats a task.
fn lie(task: Task, bytes: Vec<u8>) -> Rogue {
    Box::new(move |call, _: &mut Database| match call.function {
        function::WORK => {
            let step = Step { rollout: 1, machine: MACHINE.parse().unwrap(), task: task.clone() };
            let work: Answer<Work> = Ok(Work { step: Some(step), again_s: 0, wants_labels: false });
            Some(postcard::to_allocvec(&work).unwrap())
        }
        function::PART => {
            let query: PartQuery = postcard::from_bytes(call.parameter).unwrap();
            let rest = &bytes[query.offset as usize..];
            let part: Answer<Part> =
                Ok(Part { bytes: rest[..rest.len().min(PART_BYTES_MAX)].into() });
            Some(postcard::to_allocvec(&part).unwrap())
        }
        _ => None,
    })
}

fn update(mandate: &Mandate, bytes: &[u8]) -> Rogue {
    let mandate = mandate.sign(&owner()).unwrap();
    let delivery = Delivery { mandate, package: digest(bytes), bytes: bytes.len() as u32 };
    lie(Task::Update(delivery), bytes.to_vec())
}

fn remove(mandate: &Mandate) -> Rogue {
    lie(Task::Remove { mandate: mandate.sign(&owner()).unwrap() }, Vec::new())
}

/// Lets a rogue speak for a while; returns why the first device refused it first.
fn refused(fleet: &mut Fleet, rogue: Rogue) -> String {
    let (before, known) = (fleet.machine(0), fleet.refusals(0).len());
    fleet.hub.storage().rogue = Some(rogue);
    fleet.pass(30);
    fleet.hub.storage().rogue = None;
    assert_eq!(fleet.machine(0), before, "nothing changes");
    fleet.refusals(0).get(known).cloned().unwrap_or_default()
}

#[test]
fn hub_places_a_machine_no_wider_no_longer_and_no_more_often_than_its_owner_said() {
    let mut fleet = fleet_without(&[0]);
    let new = package("1.1.0", false);
    let good = placing(&new, &NAMES, 50);
    let check = |fleet: &mut Fleet, mandate: &Mandate, reason: &str| {
        let refusal = refused(fleet, update(mandate, &new));
        assert!(refusal.contains(reason), "{refusal:?}, and not {reason:?}");
    };
    check(&mut fleet, &Mandate { placed: None, ..good.clone() }, "counter");
    check(&mut fleet, &placing(&new, &["barn"], 50), "isn't for the device attic");
    check(&mut fleet, &Mandate { ends_unix_s: BEGAN_UNIX_S, ..good.clone() }, "the mandate ended");
    let other = package("1.2.0", false);
    let refusal = refused(&mut fleet, update(&good, &other));
    assert!(refusal.contains("the mandate is for the package"), "{refusal}");
    let liar = Mandate { version: "1.2.0".parse().unwrap(), ..good.clone() };
    check(&mut fleet, &liar, "the mandate says otherwise");
    fleet.hub.storage().rogue = Some(update(&good, &new));
    fleet.pass(30);
    assert_eq!(fleet.machine(0).unwrap().3, 50);
    fleet.hub.storage().rogue = None;
    // The owner removes it, and the hub, or who recorded it, says the mandate again.
    fleet.remove(0);
    fleet.restart_device(0);
    fleet.pass(5);
    assert_ne!(refused(&mut fleet, update(&good, &new)), "", "it says why");
    fleet.hub.storage().rogue = Some(update(&placing(&new, &NAMES, 51), &new));
    fleet.pass(30);
    assert_eq!(fleet.machine(0).unwrap().3, 51, "a new word of the owner's counts");
}

#[test]
fn mandate_that_was_followed_for_an_update_places_no_machine_after_its_removal() {
    let mut fleet = Fleet::new(&NAMES[..1]);
    let new = package("1.1.0", false);
    let mandate = placing(&new, &NAMES, 50);
    fleet.hub.storage().rogue = Some(update(&mandate, &new));
    fleet.pass(30);
    assert_eq!(fleet.machine(0).unwrap().0, "1.1.0");
    fleet.remove(0);
    let refusal = refused(&mut fleet, update(&mandate, &new));
    assert!(refusal.contains("followed for a machine that is gone"), "{refusal}");
}

#[test]
fn hub_takes_away_a_machine_that_its_mandate_placed_and_no_other() {
    let mut fleet = Fleet::new(&NAMES[..1]);
    let new = package("1.1.0", false);
    let good = placing(&new, &NAMES, 50);
    let refusal = refused(&mut fleet, remove(&good));
    assert!(refusal.contains("isn't the one that the mandate placed"), "{refusal}");
    fleet.remove(0);
    fleet.hub.storage().rogue = Some(update(&good, &new));
    fleet.pass(30);
    let plain = Mandate { placed: None, ..good.clone() };
    let over = Mandate { back_until_unix_s: BEGAN_UNIX_S, ..good.clone() };
    for wrong in [plain, placing(&new, &["barn"], 50), over, placing(&new, &NAMES, 51)] {
        assert_ne!(refused(&mut fleet, remove(&wrong)), "", "{wrong:?}");
    }
    // By its owner's own hand it has a later number.
    fleet.install(0, &package("1.0.5", false), 51);
    let refusal = refused(&mut fleet, remove(&good));
    assert!(refusal.contains("isn't the one that the mandate placed"), "{refusal}");
    let refusal = refused(&mut fleet, update(&good, &new));
    assert!(refusal.contains("placed anew"), "{refusal}");
}

#[test]
fn machine_that_is_gone_while_it_soaks_fails_its_gate() {
    let mut fleet = fleet_without(&[0]);
    let good = package("1.1.0", false);
    fleet.push(&good);
    let number = fleet.unix_s();
    let id = post(&mut fleet, &placing(&good, &NAMES, number), &NAMES);
    fleet.pass(12);
    assert!(fleet.machine(0).is_some());
    fleet.remove(0);
    let state = fleet.drive(id);
    let end = (state["state"].as_str(), state["reason"].as_str());
    assert_eq!(end, (Some("rolled back"), Some("attic: the machine is gone")));
}
