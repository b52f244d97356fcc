//! Reports that are forged, heard twice, too long, or meant to fill the hub.

use super::world;

use serde_json::Value;
use tenure_hub::{Failure, ServiceCall, Storage as _};
use tenure_wire::control::RoomStatus;
use tenure_wire::hub::{Answer, HubRefusal, function};
use tenure_wire::report::{DeviceReport, FaultReport, MachineReport, Report, Reported};
use tenure_wire::{Digest, PublicKey};
use world::place::Place;
use world::{HUB, World, device, now, owner};

fn report(number: u64) -> Report {
    let room = RoomStatus {
        memory_bytes_promised: 1_000,
        memory_bytes_max: 2_000,
        store_bytes_used: 950,
        store_bytes_max: 1_000,
        code_bytes_used: 5,
        code_bytes_max: 6,
        store_erases: 90_000,
    };
    let device = DeviceReport {
        version: "0.1.0".into(),
        uptime_s: 60,
        room,
        heap: None,
        neighbours: Some(2),
    };
    let machines = vec![machine("thermostat", 10)];
    Report { boot: 3, number, device, machines, faults: Vec::new(), faults_lost: 0 }
}

fn machine(name: &str, calls: u64) -> MachineReport {
    MachineReport {
        name: name.parse().unwrap(),
        package: Digest([5; 32]),
        version: "1.0.0".parse().unwrap(),
        state: "idle".into(),
        repute: "good".into(),
        queue_length: 0,
        tasks_done: calls,
        fuel_used: 100 * calls,
        waited_max_us: 7,
        memory_bytes: 64,
        memory_bytes_max: 65_536,
        stored_bytes: 0,
        metrics: vec![("rate".parse().unwrap(), -4)],
    }
}

fn fault(number: u64, text: &str) -> FaultReport {
    FaultReport { number, machine: "thermostat".parse().unwrap(), unix_s: None, text: text.into() }
}

/// The key by which the device number `number` speaks to its hub.
fn key(number: u8) -> PublicKey {
    device(number).device_secret().public_key()
}

fn tell(world: &mut World, from: PublicKey, report: &Report, at: u64) -> Answer<Reported> {
    world.call_from(from, function::REPORT, report, at)
}

fn items(world: &mut World, path: &str) -> Vec<Value> {
    let token = world.token(&owner(1));
    world.get(path, &[&token]).json()["items"].as_array().unwrap().clone()
}

#[test]
fn report_shows_on_the_lists_and_on_the_page_of_its_device() {
    let mut world = World::with_fleet();
    let mut first = report(0);
    first.faults = vec![fault(4, "<script>alert(1)</script> \u{1b}[2J")];
    assert_eq!(
        tell(&mut world, key(10), &first, now() - 60),
        Ok(Reported { again_s: 60, wants_all: false })
    );
    let second = Report { machines: vec![machine("thermostat", 30)], ..report(1) };
    tell(&mut world, key(10), &second, now()).unwrap();

    let known = items(&mut world, "/v1/machines?device=attic");
    assert_eq!((&known[0]["state"], &known[0]["calls"]), (&"idle".into(), &30.into()));
    assert_eq!(known[0]["fuel_per_call"], 100);
    let used: i64 = items(&mut world, "/v1/machine-use?span_s=86400")
        .iter()
        .map(|one| one["calls"].as_i64().unwrap())
        .sum();
    assert_eq!(used, 30);
    assert_eq!(items(&mut world, "/v1/machine-metrics")[0]["value"], -4);
    assert_eq!(items(&mut world, "/v1/device-reports")[0]["store_erases"], 90_000);
    let mut alarms: Vec<String> = items(&mut world, "/v1/alarms")
        .iter()
        .map(|alarm| alarm["alarm"].as_str().unwrap().to_string())
        .collect();
    alarms.sort();
    assert_eq!(alarms, ["faults", "store", "wear"]);

    let cookie = world.cookie(&owner(1));
    let page = world.get("/devices/attic", &[&cookie]).body;
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"), "escaped");
    assert!(!page.contains('\u{1b}'), "nothing that a terminal obeys");
    assert!(
        page.contains("<svg role=\"img\" aria-label=\"thermostat: fuel"),
        "a chart that has a name"
    );
    let token = world.token(&owner(2));
    for path in
        ["/v1/machine-use", "/v1/machine-metrics", "/v1/device-reports", "/v1/faults", "/v1/alarms"]
    {
        let rows = world.get(path, &[&token]).json()["items"].clone();
        assert_eq!(rows, Value::Array(vec![]), "{path} of another owner");
    }
}

#[test]
fn faults_that_are_alike_are_one_issue_by_package_and_version() {
    let mut world = World::with_fleet();
    let place = "unreachable in function 7 at 0x41";
    let (began, later, last) = (now() - 4_000, now() - 3_000, now() - 60);
    let failing = |number, faults| Report { faults, ..report(number) };
    let twice = failing(0, vec![fault(4, place), fault(5, place)]);
    tell(&mut world, key(10), &twice, began).unwrap();
    tell(&mut world, key(11), &failing(0, vec![fault(4, place)]), later).unwrap();
    // An update, of which the hub knows the name by now.
    let newer = MachineReport {
        package: Digest([6; 32]),
        version: "1.1.0".parse().unwrap(),
        ..machine("thermostat", 1)
    };
    let updated = Report { machines: vec![newer], ..failing(1, vec![fault(9, place)]) };
    tell(&mut world, key(11), &updated, last).unwrap();

    let issues = items(&mut world, "/v1/fault-issues");
    let [new, old] = &issues[..] else { panic!("two issues: {issues:?}") };
    let numbers = |issue: &Value| ["faults", "devices", "running"].map(|name| issue[name].clone());
    assert_eq!((&new["version"], numbers(new)), (&"1.1.0".into(), [1, 1, 1].map(Value::from)));
    assert_eq!((&old["version"], numbers(old)), (&"1.0.0".into(), [3, 2, 1].map(Value::from)));
    assert_eq!((&old["package"], &old["text"]), (&"thermostat".into(), &place.into()));
    assert_eq!((&old["first"], &old["last"]), (&began.into(), &later.into()));
    assert_eq!((&old["device"], &old["machine"]), (&"cellar".into(), &"thermostat".into()));

    let mut count = |path: &str| items(&mut world, path).len();
    assert_eq!(count("/v1/fault-issues?within_s=1800"), 1);
    assert_eq!(count("/v1/fault-issues?package=thermostat&limit=1&skip=1"), 1);
    assert_eq!(count("/v1/fault-issues?package=other"), 0);
    let token = world.token(&owner(1));
    assert_eq!(world.get("/v1/fault-issues?within_s=soon", &[&token]).status, 400);
    assert_eq!(world.get("/v1/faults?within_s=1800", &[&token]).status, 400, "of issues alone");
}

#[test]
fn issues_are_made_of_the_newest_20_000_faults_alone() {
    let mut world = World::with_fleet();
    // Another owner's are newer, and push none of these out.
    for (device, last) in [("attic", now() - 30_000), ("shed", now())] {
        let faults = format!(
            "INSERT INTO faults (device, boot, number, machine, happened_unix_s, text, owner) \
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20100) \
             SELECT '{device}', 1, n, 'thermostat', {last} - n, CASE WHEN n <= 20000 THEN 'new' ELSE 'old' END, \
             (SELECT owner FROM devices WHERE name = '{device}') FROM n"
        );
        world.write_by_hand(&faults);
    }
    let issues = items(&mut world, "/v1/fault-issues");
    assert_eq!(issues.len(), 1, "{issues:?}");
    assert_eq!((&issues[0]["text"], &issues[0]["faults"]), (&"new".into(), &20_000.into()));
}

#[test]
fn fault_that_the_version_before_issues_took_is_one_of_its_owner() {
    let place = Place::in_a_folder();
    let old = rusqlite::Connection::open(place.address()).unwrap();
    let migrations = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for step in 1..=15 {
        let step = std::fs::read_to_string(migrations.join(format!("{step}.sql"))).unwrap();
        old.execute_batch(&step).unwrap();
    }
    old.execute_batch("PRAGMA application_id = 0x546E4862; PRAGMA user_version = 15").unwrap();
    let listed = "INSERT INTO devices (name, owner, device_key, machine_key, seen_at, machines, first_unix_s, \
         heard_unix_s, expires_unix_s, kept) VALUES ('attic', ?1, ?2, '', '', 0, 7, 7, 7, x'00')";
    let keys = [owner(1).verifying_key(), device(10).device_signing_key().verifying_key()];
    old.execute(listed, keys.map(|key| key.to_string())).unwrap();
    let fault =
        "INSERT INTO faults VALUES ('attic', 1, 1, 'thermostat', unixepoch() - 60, 'unreachable')";
    old.execute(fault, []).unwrap();
    drop(old);
    let mut world = World::at(place).and_fleet();
    let issues = items(&mut world, "/v1/fault-issues");
    let [issue] = &issues[..] else { panic!("one issue: {issues:?}") };
    assert_eq!((&issue["package"], &issue["device"]), (&"thermostat".into(), &"attic".into()));
    assert!(issue["version"].is_null() && issue["running"].is_null(), "{issue}");
    let token = world.token(&owner(2));
    assert_eq!(world.get("/v1/fault-issues", &[&token]).json()["items"], Value::Array(vec![]));
}

#[test]
fn fault_of_a_device_itself_is_one_issue_of_all_devices() {
    let mut world = World::with_fleet();
    let text = "damaged flash: acknowledged changes that can't be read any more: 2";
    for (number, name) in [(10, "attic"), (11, "cellar")] {
        let own = FaultReport { machine: name.parse().unwrap(), ..fault(1, text) };
        let at = now() - u64::from(number);
        tell(&mut world, key(number), &Report { faults: vec![own], ..report(0) }, at).unwrap();
    }
    let issues = items(&mut world, "/v1/fault-issues");
    assert_eq!(issues.len(), 1, "{issues:?}");
    let issue = &issues[0];
    assert_eq!((&issue["devices"], &issue["device"]), (&2.into(), &"attic".into()));
    for name in ["package", "version", "machine", "running", "digest"] {
        assert!(issue[name].is_null(), "{name}: {issue}");
    }
}

#[test]
fn each_device_counts_once_by_its_gravest_reason() {
    let mut world = World::new();
    for (number, name) in (10..).zip(["attic", "barn", "cellar", "den", "entry", "flat", "gable"]) {
        world.list(1, number, name);
    }
    world.list_until(1, 17, "hall", now() - 60);
    world.commit();
    let well = || {
        let mut well = report(0);
        (well.device.room.store_bytes_used, well.device.room.store_erases) = (5, 7);
        well
    };
    let banned = MachineReport { repute: "banned".into(), ..machine("thermostat", 1) };
    let told = [
        (10, well()),
        (11, Report { faults: vec![fault(1, "unreachable")], ..well() }),
        (12, Report { machines: vec![banned], faults: vec![fault(1, "unreachable")], ..well() }),
        (
            13,
            Report { faults: vec![fault(1, "damaged flash: acknowledged changes that")], ..well() },
        ),
        (14, Report { faults: vec![fault(1, "trap: its image in flash is damaged")], ..well() }),
        (15, report(0)),
        (17, Report { faults: vec![fault(1, "unreachable")], ..well() }),
    ];
    for (number, report) in &told {
        tell(&mut world, key(*number), report, now() - u64::from(*number)).unwrap();
    }
    let states = items(&mut world, "/v1/fleet-states");
    let line = |row: &Value| {
        let word = |name: &str| row[name].as_str().unwrap_or("-").to_string();
        format!("{} {} {} {}", word("state"), word("reason"), row["devices"], word("device"))
    };
    assert_eq!(
        states.iter().map(line).collect::<Vec<_>>(),
        [
            "silent away 1 hall",
            "unwell lost-changes 1 den",
            "unwell damaged-flash 1 entry",
            "unwell banned 1 cellar",
            "unwell faults 1 barn",
            "unwell store-full 1 flat",
            "well - 2 attic",
        ]
    );
    let versions = items(&mut world, "/v1/fleet-versions");
    assert_eq!((&versions[0]["version"], &versions[0]["devices"]), (&"0.1.0".into(), &7.into()));
    assert_eq!((&versions[1]["version"], &versions[1]["device"]), (&Value::Null, &"gable".into()));
    let token = world.token(&owner(2));
    for path in ["/v1/fault-issues", "/v1/fleet-states", "/v1/fleet-versions", "/v1/open-alarms"] {
        let rows = world.get(path, &[&token]).json()["items"].clone();
        assert_eq!(rows, Value::Array(vec![]), "{path} of another owner");
    }
}

#[test]
fn report_of_a_key_that_is_no_listed_device_is_refused() {
    let mut world = World::with_fleet();
    assert_eq!(tell(&mut world, key(99), &report(0), now()), Err(HubRefusal::Stranger));
    let of_owner = owner(1).verifying_key();
    assert_eq!(
        tell(&mut world, PublicKey(of_owner.0), &report(0), now()),
        Err(HubRefusal::Stranger)
    );
    // Whatever one device says, it says of itself.
    tell(&mut world, key(12), &report(0), now()).unwrap();
    assert_eq!(items(&mut world, "/v1/device-reports"), Vec::<Value>::new());
}

#[test]
fn report_that_is_heard_again_or_late_changes_nothing() {
    let mut world = World::with_fleet();
    let at = now() - 100;
    let (first, second) =
        (report(0), Report { machines: vec![machine("thermostat", 30)], ..report(1) });
    for (report, at) in [(&first, at), (&second, at + 1), (&second, at + 2), (&first, at + 3)] {
        tell(&mut world, key(10), report, at).unwrap();
    }
    let known = items(&mut world, "/v1/machines?device=attic");
    assert_eq!((&known[0]["calls"], &known[0]["reported"]), (&30.into(), &(at + 1).into()));
    let faulty = Report { faults: vec![fault(1, "once")], ..report(2) };
    let again = Report { number: 3, ..faulty.clone() };
    tell(&mut world, key(10), &faulty, at + 4).unwrap();
    tell(&mut world, key(10), &again, at + 5).unwrap();
    assert_eq!(
        items(&mut world, "/v1/faults").len(),
        1,
        "a fault is told until it is known, and kept once"
    );
}

#[test]
fn one_report_of_a_device_is_taken_in_a_second() {
    let mut world = World::with_fleet();
    let at = now();
    tell(&mut world, key(10), &report(0), at).unwrap();
    assert_eq!(tell(&mut world, key(10), &report(1), at), Err(HubRefusal::TooMany));
    tell(&mut world, key(11), &report(1), at).unwrap();
}

#[test]
fn device_that_lies_without_bounds_fills_nothing_and_breaks_no_sum() {
    let mut world = World::with_fleet();
    let began = now() - 4_000;
    for round in 0..200 {
        let name = |index: u64| format!("m-{round}-{index}");
        let machines = (0..32).map(|index| MachineReport {
            tasks_done: u64::MAX,
            fuel_used: u64::MAX,
            waited_max_us: u64::MAX,
            state: "x".repeat(500),
            ..machine(&name(index), 1)
        });
        let faults = (0..8).map(|index| fault(u64::MAX - round * 8 - index, &"y".repeat(900)));
        let lie =
            Report { machines: machines.collect(), faults: faults.collect(), ..report(round) };
        tell(&mut world, key(10), &lie, began + round * 10).unwrap();
    }
    let (machines, faults) = (
        items(&mut world, "/v1/machine-use?limit=1000&span_s=86400"),
        items(&mut world, "/v1/faults?limit=1000"),
    );
    assert!(machines.len() <= 2 * 65, "{} machines in two days at most", machines.len());
    assert!(faults.len() <= 208, "{} faults", faults.len());
    assert!(faults.iter().all(|fault| fault["text"].as_str().unwrap().len() <= 256));
    let too_many = Report {
        machines: (0..33).map(|index| machine(&format!("n-{index}"), 1)).collect(),
        ..report(900)
    };
    assert_eq!(tell(&mut world, key(10), &too_many, now()), Err(HubRefusal::Malformed));
}

#[test]
fn clock_that_jumps_loses_no_report_and_shortens_no_retention() {
    let mut world = World::with_fleet();
    let at = now();
    tell(&mut world, key(10), &report(0), at - 10).unwrap();
    // A year ahead, and back.
    for (number, at) in [(1, at + 31_536_000), (2, at), (3, 0), (4, at + 1)] {
        let report =
            Report { machines: vec![machine("thermostat", 10 * (number + 1))], ..report(number) };
        tell(&mut world, key(10), &report, at).unwrap();
    }
    let known = items(&mut world, "/v1/machines?device=attic");
    assert_eq!((&known[0]["calls"], &known[0]["reported"]), (&50.into(), &(at + 1).into()));
    let used = items(&mut world, "/v1/machine-use?span_s=86400");
    let calls: i64 = used.iter().map(|one| one["calls"].as_i64().unwrap()).sum();
    assert!(calls <= 50, "{used:?}");
}

#[test]
fn history_is_thinned_as_it_ages() {
    let mut world = World::with_fleet();
    let began = now() - 40 * 86_400;
    for (number, hours) in (0..40 * 24).step_by(6).enumerate() {
        let at = began + hours * 3_600;
        let report = Report {
            machines: vec![machine("thermostat", number as u64 + 1)],
            ..report(number as u64)
        };
        tell(&mut world, key(10), &report, at).unwrap();
    }
    let count = |world: &mut World, span: u32| {
        items(world, &format!("/v1/machine-use?limit=1000&span_s={span}")).len()
    };
    assert!((7..=9).contains(&count(&mut world, 300)), "two days of four a day");
    assert!((118..=122).contains(&count(&mut world, 3_600)), "thirty days");
    assert!((39..=41).contains(&count(&mut world, 86_400)), "all of it");
}

#[test]
fn device_of_another_key_under_the_name_begins_with_an_empty_page() {
    let mut world = World::with_fleet();
    tell(&mut world, key(10), &report(0), now()).unwrap();
    assert_eq!(items(&mut world, "/v1/device-reports").len(), 1);
    world.list(1, 20, "attic");
    assert_eq!(items(&mut world, "/v1/device-reports"), Vec::<Value>::new());
    assert_eq!(tell(&mut world, key(10), &report(1), now()), Err(HubRefusal::Stranger));
}

#[test]
fn full_disk_takes_no_report_in_part_and_the_next_one_once_there_is_room() {
    let mut world = World::with_fleet();
    let before = now() - 10_000;
    tell(&mut world, key(10), &report(0), before).unwrap();
    // The disk that has room for one report more, but not for what comes after it.
    let full = (1..).find(|pages| {
        world.database.limit_pages(Some(*pages)).unwrap();
        tell(&mut world, key(10), &report(0), before).is_ok()
    });
    world.database.limit_pages(full).unwrap();
    let mut last_taken = before;
    let refused = (1..1_000).find(|number| {
        let faults = (0..8).map(|index| fault(number * 8 + index, &"z".repeat(256))).collect();
        let report = postcard::to_allocvec(&Report { faults, ..report(*number) }).unwrap();
        let (peer, function) = (&key(10), function::REPORT);
        let unix_s = before + number;
        let call = ServiceCall { peer, hub: &HUB, function, parameter: &report, unix_s };
        let (is_taken, kept) = loop {
            let answer = world.database.call(&call).unwrap().unwrap();
            let is_taken = postcard::from_bytes::<Answer<Reported>>(&answer).unwrap().is_ok();
            let kept = world.database.commit();
            let is_put_off = kept.as_ref().is_err_and(|error| error.failure != Failure::Refused);
            if !is_put_off || world.place.way().is_none() {
                break (is_taken, kept);
            }
        };
        assert!(kept.is_ok() || !is_taken, "what is taken is on the disk");
        if is_taken {
            last_taken = before + number;
        }
        !is_taken
    });
    assert!(refused.is_some() && last_taken > before, "some fit, and then one doesn't");
    let reported = |world: &mut World| items(world, "/v1/device-reports")[0]["reported"].clone();
    world.database.limit_pages(None).unwrap();
    assert_eq!(reported(&mut world), last_taken, "nothing of the report that didn't fit");
    tell(&mut world, key(10), &report(2_000), before + 2_000).unwrap();
    assert_eq!(reported(&mut world), before + 2_000);
}
