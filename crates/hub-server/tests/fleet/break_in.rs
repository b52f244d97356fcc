//! A hub that was broken into, its process and its database: what devices do with what it says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tenure_crypto::SigningKey;
use tenure_hub_server::Database;
use tenure_package::{Mandate, Selector};
use tenure_wire::Digest;
use tenure_wire::hub::{Answer, function};
use tenure_wire::live_log::{LogShare, LogWish};
use tenure_wire::rollout::{
    Delivery, PART_BYTES_MAX, Part, PartQuery, Seen, Sight, Step, Task, Work, WorkQuery,
};

use super::rig::{BEGAN_UNIX_S, Fleet, MACHINE, Rogue, digest, mandate, owner, package};

const NAMES: [&str; 1] = ["attic"];

/// An attacker's words, which the hub says again and again.
struct Lie {
    mandate: Vec<u8>,
    machine: &'static str,
    package: Digest,
    is_back: bool,
    /// The bytes that it delivers.
    bytes: Vec<u8>,
}

impl Lie {
    fn new(mandate: Vec<u8>, bytes: &[u8]) -> Self {
        let package = digest(bytes);
        Self { mandate, machine: MACHINE, package, is_back: false, bytes: bytes.to_vec() }
    }

    fn told(self) -> Rogue {
        Box::new(move |call, _: &mut Database| match call.function {
            function::WORK => {
                let delivery = Delivery {
                    mandate: self.mandate.clone(),
                    package: self.package,
                    bytes: self.bytes.len() as u32,
                };
                let task =
                    if self.is_back { Task::PutBack(delivery) } else { Task::Update(delivery) };
                let step = Step { rollout: 1, machine: self.machine.parse().unwrap(), task };
                let work: Answer<Work> =
                    Ok(Work { step: Some(step), again_s: 0, wants_labels: false });
                Some(postcard::to_allocvec(&work).unwrap())
            }
            function::PART => {
                let query: PartQuery = postcard::from_bytes(call.parameter).unwrap();
                let rest = &self.bytes[query.offset as usize..];
                let bytes = rest[..rest.len().min(PART_BYTES_MAX)].to_vec();
                let part: Answer<Part> = Ok(Part { bytes });
                Some(postcard::to_allocvec(&part).unwrap())
            }
            _ => None,
        })
    }
}

/// The first reason for which a device refuses that lie; it goes on running what it had.
fn refused(fleet: &mut Fleet, lie: Lie) -> String {
    let (before, known) = (fleet.versions(), fleet.refusals(0).len());
    fleet.hub.storage().rogue = Some(lie.told());
    // After several fetches in vain it waits for minutes before the next one.
    for _ in 0..20 {
        fleet.pass(30);
        if fleet.refusals(0).len() > known {
            break;
        }
    }
    fleet.hub.storage().rogue = None;
    assert_eq!(fleet.versions(), before, "it runs what it ran");
    let reasons = fleet.refusals(0);
    assert!(reasons.len() > known, "it took the step");
    reasons[known].clone()
}

fn signed(mandate: &Mandate) -> Vec<u8> {
    mandate.sign(&owner()).unwrap()
}

#[test]
fn forged_altered_expired_and_wider_mandates_are_refused_by_name() {
    let mut fleet = Fleet::new(&NAMES);
    let new = package("1.1.0", false);
    let good = mandate(&new, &NAMES, 5);
    let thief = SigningKey::from_bytes(&[66; 32]);

    let forged = refused(&mut fleet, Lie::new(good.sign(&thief).unwrap(), &new));
    assert!(forged.contains("by an owner who doesn't hold this device"), "{forged}");

    let mut altered = signed(&good);
    // The last byte of what was signed: the end of the time to put it back.
    let at = altered.len() - 65;
    altered[at] ^= 1;
    let altered = refused(&mut fleet, Lie::new(altered, &new));
    assert!(altered.contains("was not signed by the owner it names"), "{altered}");

    let cut = signed(&good)[..100].to_vec();
    let cut = refused(&mut fleet, Lie::new(cut, &new));
    assert!(cut.contains("not signed") || cut.contains("cut off"), "{cut}");

    let expired = Mandate { ends_unix_s: BEGAN_UNIX_S, ..good.clone() };
    let expired = refused(&mut fleet, Lie::new(signed(&expired), &new));
    assert!(expired.contains("the mandate ended at 1795000000"), "{expired}");

    let other_package = package("1.2.0", false);
    let wider = refused(&mut fleet, Lie::new(signed(&good), &other_package));
    assert!(wider.contains("the mandate is for the package"), "{wider}");

    let other_machine = Lie { machine: "door", ..Lie::new(signed(&good), &new) };
    let wider = refused(&mut fleet, other_machine);
    assert!(wider.contains("the mandate is for the machine counter"), "{wider}");

    let elsewhere = mandate(&new, &["cellar"], 5);
    let wider = refused(&mut fleet, Lie::new(signed(&elsewhere), &new));
    assert!(wider.contains("isn't for the device attic"), "{wider}");

    let labels = vec!["row=r1".parse().unwrap()];
    let elsewhere = Mandate { devices: Selector::Labels(labels), ..good.clone() };
    let wider = refused(&mut fleet, Lie::new(signed(&elsewhere), &new));
    assert!(wider.contains("isn't for the device attic"), "{wider}");

    let later = Mandate { from: "1.0.1".parse().unwrap(), ..good.clone() };
    let wider = refused(&mut fleet, Lie::new(signed(&later), &new));
    assert!(wider.contains("the machine has 1.0.0, and the mandate updates 1.0.1"), "{wider}");

    let other_tenant = Mandate { tenant: thief.verifying_key(), ..good.clone() };
    let wider = refused(&mut fleet, Lie::new(signed(&other_tenant), &new));
    assert!(wider.contains("for a machine of"), "{wider}");

    let back = Lie { is_back: true, ..Lie::new(signed(&good), &new) };
    let wider = refused(&mut fleet, back);
    assert!(wider.contains("wasn't updated by that mandate"), "{wider}");
}

#[test]
fn mandate_ends_on_a_device_without_a_clock_though_the_hub_holds_the_time_back() {
    let mut fleet = Fleet::new(&NAMES);
    let (began, new) = (fleet.unix_s(), package("1.1.0", false));
    let good = Mandate { ends_unix_s: began + 600, ..mandate(&new, &NAMES, 5) };
    fleet.hub_stands_at = Some(began);
    fleet.pass(2_000);
    let late = refused(&mut fleet, Lie::new(signed(&good), &new));
    assert!(late.contains("the mandate ended"), "{late}");
    // Nor does a start help, with which the device forgets all that it was told.
    fleet.restart_device(0);
    fleet.pass(10);
    let late = refused(&mut fleet, Lie::new(signed(&good), &new));
    assert!(late.contains("the mandate ended"), "{late}");
    // Time in which it is off is all that can be hidden from it.
    let longer = Mandate { ends_unix_s: began + 4_000, number: 6, ..good };
    fleet.hub.storage().rogue = Some(Lie::new(signed(&longer), &new).told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.1.0"], "it hasn't ended for a device that was on");
}

#[test]
fn package_that_is_not_the_one_that_was_mandated_is_dropped() {
    let mut fleet = Fleet::new(&NAMES);
    let (new, other) = (package("1.1.0", false), package("1.1.0", true));
    let mandate = signed(&mandate(&new, &NAMES, 5));
    let swapped = Lie { package: digest(&new), ..Lie::new(mandate.clone(), &other) };
    let swapped = refused(&mut fleet, swapped);
    assert!(swapped.contains("the hub delivered"), "{swapped}");
    let mut damaged = new.clone();
    damaged[5_000] ^= 1;
    let damaged = Lie { package: digest(&new), ..Lie::new(mandate.clone(), &new) }.with(damaged);
    let damaged = refused(&mut fleet, damaged);
    assert!(damaged.contains("sign") || damaged.contains("delivered"), "{damaged}");
    let endless = Lie { package: digest(&new), ..Lie::new(mandate, &new) }.with(vec![0; 300_000]);
    let endless = refused(&mut fleet, endless);
    assert!(endless.contains("the device takes"), "{endless}");
}

impl Lie {
    fn with(self, bytes: Vec<u8>) -> Self {
        Self { bytes, ..self }
    }
}

/// The hub holds the last part back until the mandate is over, or until the owner has placed the machine.
#[test]
fn package_that_a_hub_holds_back_until_its_mandate_is_over_is_not_taken() {
    let mut fleet = Fleet::new(&NAMES);
    let new = package("1.1.0", false);
    let ends_unix_s = fleet.unix_s() + 600;
    let mandate = Mandate { ends_unix_s, ..mandate(&new, &NAMES, 5) };
    let is_held = Arc::new(AtomicBool::new(true));
    let mut tell = Lie::new(signed(&mandate), &new).told();
    let holds = Arc::clone(&is_held);
    let last = new.len().saturating_sub(1) / PART_BYTES_MAX * PART_BYTES_MAX;
    let rogue: Rogue = Box::new(move |call, database: &mut Database| {
        let query = postcard::from_bytes::<PartQuery>(call.parameter);
        let is_last = query.is_ok_and(|query| query.offset as usize == last);
        // No answer that can be read: the device asks again.
        if call.function == function::PART && is_last && holds.load(Ordering::Relaxed) {
            return Some(Vec::new());
        }
        tell(call, database)
    });
    fleet.hub.storage().rogue = Some(rogue);
    fleet.pass(60);
    assert_eq!(fleet.versions(), ["1.0.0"], "a part is missing");
    let known = fleet.refusals(0).len();
    fleet.pass(700);
    is_held.store(false, Ordering::Relaxed);
    fleet.pass(60);
    assert_eq!(fleet.versions(), ["1.0.0"], "it is too late");
    let refusals = fleet.refusals(0);
    assert!(refusals[known].contains("the mandate ended"), "{refusals:?}");
}

#[test]
fn hub_whose_packages_are_never_right_wears_the_staging_flash_ever_more_slowly() {
    let mut fleet = Fleet::new(&NAMES);
    let new = package("1.1.0", false);
    let mut damaged = new.clone();
    damaged[5_000] ^= 1;
    let lie = Lie { package: digest(&new), ..Lie::new(signed(&mandate(&new, &NAMES, 5)), &new) };
    let mut tell = lie.with(damaged).told();
    let begun = Arc::new(Mutex::new(0_u32));
    let counted = Arc::clone(&begun);
    let rogue: Rogue = Box::new(move |call, database: &mut Database| {
        if call.function == function::PART {
            let query: PartQuery = postcard::from_bytes(call.parameter).unwrap();
            *counted.lock().unwrap() += u32::from(query.offset == 0);
        }
        tell(call, database)
    });
    fleet.hub.storage().rogue = Some(rogue);
    fleet.pass(3_600);
    let hour = *begun.lock().unwrap();
    assert!((4..16).contains(&hour), "{hour} fetches within an hour");
    // What is right is taken in the end, after the longest wait at most.
    fleet.hub.storage().rogue = Some(Lie::new(signed(&mandate(&new, &NAMES, 5)), &new).told());
    fleet.pass(2 * 3_600);
    assert_eq!(fleet.versions(), ["1.1.0"]);
}

#[test]
fn mandate_counts_once_and_not_after_a_later_one_or_the_owners_own_hand() {
    let mut fleet = Fleet::new(&NAMES);
    let (old, new) = (package("1.0.0", false), package("1.1.0", false));
    let first = signed(&mandate(&new, &NAMES, 5));
    fleet.hub.storage().rogue = Some(Lie::new(first.clone(), &new).told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.1.0"], "the hub may choose when");
    let back = Lie { is_back: true, ..Lie::new(first.clone(), &old) };
    fleet.hub.storage().rogue = Some(back.told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.0.0"], "and may put it back");
    fleet.restart_device(0);
    fleet.pass(10);
    let again = refused(&mut fleet, Lie::new(first.clone(), &new));
    assert!(again.contains("was put back under that mandate already"), "{again}");

    let second = signed(&mandate(&new, &NAMES, 6));
    fleet.hub.storage().rogue = Some(Lie::new(second.clone(), &new).told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.1.0"]);
    let older = refused(&mut fleet, Lie::new(first, &new));
    assert!(
        older.contains("the mandate 5 is older than the last one that was followed, 6"),
        "{older}"
    );
    fleet.hub.storage().rogue = None;
    fleet.install(0, &package("1.0.5", false), 10);
    fleet.pass(5);
    let anew = refused(&mut fleet, Lie::new(second.clone(), &new));
    assert!(anew.contains("placed anew since"), "{anew}");
    let back = Lie { is_back: true, ..Lie::new(second, &old) };
    let anew = refused(&mut fleet, back);
    assert!(anew.contains("placed anew since"), "{anew}");
}

#[test]
fn mandate_of_before_the_owners_own_hand_changes_nothing_though_no_device_followed_it() {
    let mut fleet = Fleet::new(&NAMES);
    let new = package("1.1.0", false);
    fleet.install(0, &package("1.0.5", false), 7);
    fleet.pass(5);
    let error = refused(&mut fleet, Lie::new(signed(&mandate(&new, &NAMES, 6)), &new));
    assert!(error.contains("placed anew since"), "{error}");
    fleet.hub.storage().rogue = Some(Lie::new(signed(&mandate(&new, &NAMES, 8)), &new).told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.1.0"], "a mandate of after it counts");
}

/// The owner removed the machine, other machines were updated since, and the owner placed it again by hand: the
/// hub, or who recorded it, repeats the mandate of before.
#[test]
fn mandate_that_was_followed_does_not_count_again_for_a_machine_that_was_gone_meanwhile() {
    let mut fleet = Fleet::new(&NAMES);
    let (old, new) = (package("1.0.5", false), package("1.1.0", false));
    let first = signed(&mandate(&new, &NAMES, 5));
    fleet.hub.storage().rogue = Some(Lie::new(first.clone(), &new).told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.1.0"]);
    fleet.hub.storage().rogue = None;
    fleet.remove(0);
    fleet.install_as("door", 0, &package("1.0.1", false), 20);
    let other = package("1.0.9", false);
    let of_door = Mandate { machine: "door".parse().unwrap(), ..mandate(&other, &NAMES, 21) };
    let to_door = Lie { machine: "door", ..Lie::new(signed(&of_door), &other) };
    fleet.hub.storage().rogue = Some(to_door.told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.0.9"], "the other machine's counts");
    fleet.hub.storage().rogue = None;
    fleet.install(0, &old, 30);
    fleet.pass(5);
    assert_eq!(fleet.versions(), ["1.0.5"], "the owner's own hand");
    fleet.restart_device(0);
    fleet.pass(10);
    let again = refused(&mut fleet, Lie::new(first, &new));
    assert!(again.contains("followed for a machine that is gone"), "{again}");
    let later = signed(&mandate(&new, &NAMES, 31));
    fleet.hub.storage().rogue = Some(Lie::new(later, &new).told());
    fleet.pass(30);
    assert_eq!(fleet.versions(), ["1.1.0"], "a new word of the owner's counts");
}

#[test]
fn database_that_was_written_to_by_hand_changes_nothing_on_a_device() {
    let mut fleet = Fleet::new(&NAMES);
    let (new, bad) = (package("1.1.0", false), package("9.0.0", true));
    fleet.push(&new);
    fleet.push(&bad);
    let id = fleet.start(&new, &NAMES);
    let statements = [
        format!("UPDATE rollouts SET package_digest = '{}' WHERE id = {id}", digest(&bad)),
        "UPDATE rollouts SET mandate = CAST(substr(mandate, 1, 60) || zeroblob(200) AS BLOB)"
            .to_string(),
    ];
    for statement in statements {
        fleet.write_by_hand(&statement);
        fleet.pass(60);
        assert_eq!(fleet.versions(), ["1.0.0"], "{statement}");
        fleet.write_by_hand("UPDATE rollout_devices SET state = 'waiting', tried_unix_s = NULL");
        fleet.write_by_hand("UPDATE rollouts SET state = 'running'");
    }
    // The owner's own plan, with the mandate for another package.
    let other = mandate(&bad, &NAMES, 9);
    let (status, answer) = fleet.post(&other, &["cellar"]);
    assert_eq!(
        (status, &answer["detail"]),
        (422, &json!("the mandate and the plan differ: sign both anew"))
    );
}

#[test]
fn device_is_served_its_own_steps_and_packages_alone() {
    let mut fleet = Fleet::new(&["attic", "cellar"]);
    let new = package("1.1.0", false);
    fleet.push(&new);
    fleet.start(&new, &["attic"]);
    let cellar = fleet.devices[1].node.device_machine();
    let ask = |fleet: &mut Fleet, name: &str, parameter: Vec<u8>| {
        let unix_s = fleet.unix_s();
        let hub = fleet.hub.key();
        let database = &mut fleet.hub.storage().database;
        let parameter = parameter.as_slice();
        let call =
            tenure_hub::ServiceCall { peer: &cellar, hub: &hub, function: name, parameter, unix_s };
        tenure_hub::Storage::call(database, &call).unwrap().unwrap()
    };
    let seen = Seen { rollout: 1, sight: Sight::Refused { reason: "I am not in it".into() } };
    let query = postcard::to_allocvec(&WorkQuery { seen: Some(seen), labels: None }).unwrap();
    let work: Answer<Work> = postcard::from_bytes(&ask(&mut fleet, function::WORK, query)).unwrap();
    assert_eq!(work.unwrap().step, None);
    let query = PartQuery { package: digest(&new), offset: 0 };
    let query = postcard::to_allocvec(&query).unwrap();
    let part: Answer<Part> = postcard::from_bytes(&ask(&mut fleet, function::PART, query)).unwrap();
    assert_eq!(part, Err(tenure_wire::hub::HubRefusal::NotNeeded));
}

#[test]
fn hub_gets_the_logs_of_devices_whose_owner_shows_them_there_and_of_no_others() {
    let mut fleet = Fleet::new(&["attic", "barn"]);
    fleet.share_log(1);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    fleet.hub.storage().rogue = Some(Box::new(move |call, _: &mut Database| {
        if call.function != function::LOG {
            return None;
        }
        let share: LogShare = postcard::from_bytes(call.parameter).unwrap();
        let next = share.lines.last().map_or(0, |line| line.number + 1);
        let said = share.lines.into_iter().map(|line| line.message);
        heard.lock().unwrap().push((call.peer.to_string(), said.collect::<Vec<_>>()));
        let wish: Answer<LogWish> = Ok(LogWish { from: Some(next), again_s: 1 });
        Some(postcard::to_allocvec(&wish).unwrap())
    }));
    fleet.pass(20);
    fleet.install(1, &package("1.0.1", false), 2);
    let is_told = |words: &str| {
        told.lock().unwrap().iter().any(|(_, lines)| lines.iter().any(|line| line == words))
    };
    for _ in 0..60 {
        if !is_told("1.0.1") {
            fleet.pass(1);
        }
    }
    let told = told.lock().unwrap();
    let barn = fleet.rows("SELECT machine_key FROM devices WHERE name = 'barn'");
    assert!(told.iter().all(|(peer, _)| *peer == barn[0]), "the attic told: {told:?}");
    assert!(told[0].1.is_empty(), "nothing is told before the hub asks");
    let lines: Vec<&String> = told.iter().flat_map(|(_, lines)| lines).collect();
    assert!(lines.iter().any(|line| *line == "1.0.0"), "the log from its first line on: {lines:?}");
    assert!(lines.iter().any(|line| *line == "1.0.1"), "and on: {lines:?}");
}
