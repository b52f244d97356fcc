//! A small fleet, the same each time but for the clock and what is random.

use std::time::Duration;

use serde_json::json;
use tenure_hub_server::{Gates, Plan, SignedPlan};
use tenure_package::{NO_RECEIPT, Package, digest_of_receipt};
use tenure_wire::control::RoomStatus;
use tenure_wire::hub::{Answer, function};
use tenure_wire::report::{DeviceReport, FaultReport, MachineReport, Report, Reported};

use crate::world::{World, device, now, owner, package, push, receipt};

/// The span of a bar in a chart, in seconds.
const SPAN_S: u64 = 300;
/// How many reports of a device there are, one a second.
const REPORTS: u64 = 3;

/// Runs `action` with a hub whose fleet is one of owner 1: the attic and the cellar report, the den is silent. All
/// reports are of the bar in which it runs; it runs again if that bar ended meanwhile.
pub(crate) fn with_fleet<T>(action: impl Fn(&mut World) -> T) -> T {
    loop {
        let begins = now() / SPAN_S * SPAN_S;
        if now() <= begins + REPORTS {
            // The reports are of moments that are over.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        let done = action(&mut world(begins));
        if now() < begins + SPAN_S {
            return done;
        }
    }
}

/// Takes out of a text what the clock, the system's randomness and the port make of it.
pub(crate) fn without_chance(world: &World, pass: &str, text: &str) -> String {
    let audit = world.get("/v1/audit?limit=1000", &[pass]).json();
    let mut text = text.replace(&world.pages.to_string(), "HUB");
    for entry in audit["items"].as_array().unwrap() {
        text = text.replace(entry["hash"].as_str().unwrap(), "HASH");
    }
    without_times(&text)
}

/// The text with each moment, `2026-11-22T19:30:00Z` or `2026-11-22 19:30:00`, as `TIME`.
fn without_times(text: &str) -> String {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let is_moment = |bytes: &[u8]| {
        bytes.len() == FORM.len()
            && bytes.iter().zip(FORM).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b' '),
                form => byte == form,
            })
    };
    let (mut done, mut rest) = (String::new(), text);
    while let Some(next) = rest.chars().next() {
        if is_moment(rest.as_bytes().get(..FORM.len()).unwrap_or_default()) {
            done += "TIME";
            rest = &rest[FORM.len()..];
            rest = rest.strip_prefix('Z').unwrap_or(rest);
        } else {
            done.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    done
}

fn world(from_unix_s: u64) -> World {
    let mut world = World::new();
    world.list(1, 10, "attic");
    world.list(1, 11, "cellar");
    world.list_until(1, 12, "den", now() - 60);
    world.commit();
    for step in 1..REPORTS {
        report(&mut world, 10, step, from_unix_s + step, &[]);
        report(&mut world, 11, step, from_unix_s + step, &[]);
    }
    report(&mut world, 10, REPORTS, from_unix_s + REPORTS, &["unreachable in function 7 at 0x41"]);
    let first = receipt(10, 1, 1, 0, NO_RECEIPT, 2_000_000);
    // The one between is missing, which raises an alarm.
    let second = receipt(10, 1, 1, 1, digest_of_receipt(&first), 1_000_000);
    let third = receipt(10, 1, 1, 2, digest_of_receipt(&second), 500_000);
    world.hand_in(vec![first, third]).unwrap();
    let token = world.token(&owner(1));
    for version in ["1.0.0", "1.1.0"] {
        assert_eq!(push(&world, &token, "thermostat", &package(version)).status, 201);
    }
    start_rollout(&world, &token);
    world
}

fn report(world: &mut World, number: u8, step: u64, unix_s: u64, faults: &[&str]) {
    let room = RoomStatus {
        memory_bytes_promised: 180_000,
        memory_bytes_max: 4_194_304,
        store_bytes_used: 20_000 * u64::from(number),
        store_bytes_max: 310_000,
        code_bytes_used: 41_000,
        code_bytes_max: 1_048_576,
        store_erases: 120,
    };
    let machine = MachineReport {
        name: "thermostat".parse().unwrap(),
        package: digest("1.0.0").parse().unwrap(),
        version: "1.0.0".parse().unwrap(),
        state: "idle".into(),
        repute: "good".into(),
        queue_length: 0,
        tasks_done: 10 * step,
        fuel_used: 13_000 * step,
        waited_max_us: 240,
        memory_bytes: 65_536,
        memory_bytes_max: 131_072,
        stored_bytes: 512,
        metrics: vec![("temperature".parse().unwrap(), 21)],
    };
    let fault = |text: &&str| FaultReport {
        number: step,
        machine: "thermostat".parse().unwrap(),
        unix_s: None,
        text: (*text).into(),
    };
    let device_report = DeviceReport {
        version: "0.1.0".into(),
        uptime_s: 60 * step,
        room,
        heap: None,
        neighbours: Some(2),
    };
    let report = Report {
        boot: 4,
        number: step,
        device: device_report,
        machines: vec![machine],
        faults: faults.iter().map(fault).collect(),
        faults_lost: 0,
    };
    let key = device(number).device_secret().public_key();
    let answer: Answer<Reported> = world.call_from(key, function::REPORT, &report, unix_s);
    answer.unwrap();
}

/// The digest of that version of the package.
fn digest(version: &str) -> String {
    Package::parse(&package(version)).unwrap().digest().to_string()
}

fn start_rollout(world: &World, token: &str) {
    let plan = Plan {
        machine: "thermostat".parse().unwrap(),
        package: digest("1.1.0").parse().unwrap(),
        tenant: owner(50).verifying_key(),
        from: "0.0.0".parse().unwrap(),
        devices: ["attic", "cellar"].map(|name| name.parse().unwrap()).to_vec(),
        labels: Vec::new(),
        stages: vec!["1".into(), "100%".into()],
        soak_s: 600,
        faults_max: 0,
        gates: Gates::default(),
        failures_max: 0,
        pause_on_failure: false,
        ends_unix_s: now() as i64 + 86_400,
    };
    let signed = json!(SignedPlan::sign(&plan, &owner(1))).to_string();
    let reply = world.request("POST", "/v1/rollouts", &[token], &signed);
    assert_eq!(reply.status, 201, "{}", reply.body);
}
