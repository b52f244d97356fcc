//! A fleet to look at: devices that report, receipts with a bill, packages, and a rollout under way.

use serde_json::{Value, json};
use tenure_hub_server::{Gates, Plan, SignedPlan};
use tenure_package::{NO_RECEIPT, Package, digest_of_receipt};
use tenure_wire::Digest;
use tenure_wire::control::{LogLine, RoomStatus};
use tenure_wire::hub::{Answer, function};
use tenure_wire::live_log::{LogShare, LogWish};
use tenure_wire::report::{DeviceReport, FaultReport, MachineReport, Report, Reported};

use crate::world::{World, device, now, owner, package, push, receipt};

const DEVICES: [&str; 6] = ["attic", "barn", "cellar", "den", "entry", "garden-house-by-the-river"];

/// A hub with that fleet of owner 1.
pub(crate) fn world() -> World {
    let mut world = World::new();
    for (number, name) in DEVICES.iter().enumerate() {
        world.list(1, 10 + number as u8, name);
    }
    for step in 0..40_u64 {
        for number in 0..DEVICES.len() as u8 {
            report(&mut world, 10 + number, step, now() - (40 - step) * 600, Vec::new());
        }
    }
    log(&mut world, Vec::new());
    fault_of(&mut world, 12, "unreachable in function 7 at 0x41, called from 3 at 0x18");
    let first = receipt(10, 1, 1, 0, NO_RECEIPT, 2_000_000);
    let second = receipt(10, 1, 1, 1, digest_of_receipt(&first), 1_000_000);
    world.hand_in(vec![first, second]).unwrap();
    let token = world.token(&owner(1));
    for version in ["1.0.0", "1.1.0"] {
        assert_eq!(push(&world, &token, "thermostat", &package(version)).status, 201);
    }
    start_rollout(&world, &token);
    world
}

/// A fault of the machine on the attic that its device reports now.
pub(crate) fn fault(world: &mut World, text: &str) {
    fault_of(world, 10, text);
}

/// The attic asks whether its log is watched, with the lines that the hub doesn't have; returns the first wanted.
pub(crate) fn log(world: &mut World, lines: Vec<LogLine>) -> Option<u64> {
    let next = lines.last().map_or(0, |line| line.number + 1);
    let key = device(10).device_secret().public_key();
    let share = LogShare { boot: 4, lines, next };
    let answer: Answer<LogWish> = world.call_from(key, function::LOG, &share, now());
    answer.unwrap().from
}

/// A line of the attic's thermostat.
pub(crate) fn line(number: u64, message: &str) -> LogLine {
    LogLine {
        number,
        at_ms: number,
        machine: "thermostat".parse().unwrap(),
        level: "info".into(),
        message: message.into(),
        unix_s: Some(1_795_000_000),
        boot: 4,
    }
}

/// The canary of the rollout fails thrice, and is put back.
pub(crate) fn fail_rollout(world: &mut World) {
    let token = world.token(&owner(1));
    let (old, new) = (digest("1.0.0"), digest("1.1.0"));
    let machine = |has: &str, faults: u8| json!({ "saw": "machine", "has": has, "faults": faults, "state": "idle", "repute": "good" });
    let saws = [
        json!({ "saw": "before", "has": old }),
        machine(&new, 0),
        machine(&new, 3),
        machine(&old, 3),
    ];
    for saw in saws {
        post(world, &token, "/v1/rollouts/1/devices/attic", &saw, 204);
    }
}

fn fault_of(world: &mut World, number: u8, text: &str) {
    let fault = FaultReport {
        number: now(),
        machine: "thermostat".parse().unwrap(),
        unix_s: None,
        text: text.into(),
    };
    report(world, number, 40, now(), vec![fault]);
}

/// The device number `number` reports at that moment.
fn report(world: &mut World, number: u8, step: u64, unix_s: u64, faults: Vec<FaultReport>) {
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
        tasks_done: step * step,
        fuel_used: 1_300 * step * step,
        waited_max_us: 240,
        memory_bytes: 65_536,
        memory_bytes_max: 131_072,
        stored_bytes: 512,
        metrics: vec![("temperature".parse().unwrap(), 21)],
    };
    let device_report = DeviceReport {
        version: "0.1.0".into(),
        uptime_s: 600 * step,
        room,
        heap: None,
        neighbours: Some(2),
    };
    let report = Report {
        boot: 4,
        number: unix_s,
        device: device_report,
        machines: vec![machine],
        faults,
        faults_lost: 0,
    };
    let key = device(number).device_secret().public_key();
    let answer: Answer<Reported> = world.call_from(key, function::REPORT, &report, unix_s);
    answer.unwrap();
}

fn digest(version: &str) -> String {
    let digest: Digest = Package::parse(&package(version)).unwrap().digest();
    digest.to_string()
}

fn start_rollout(world: &World, token: &str) {
    let plan = Plan {
        machine: "thermostat".parse().unwrap(),
        package: digest("1.1.0").parse().unwrap(),
        tenant: owner(50).verifying_key(),
        from: "0.0.0".parse().unwrap(),
        devices: DEVICES.iter().map(|name| name.parse().unwrap()).collect(),
        labels: Vec::new(),
        stages: vec!["1".into(), "50%".into()],
        soak_s: 600,
        faults_max: 0,
        gates: Gates::default(),
        failures_max: 0,
        pause_on_failure: false,
        ends_unix_s: now() as i64 + 86_400,
    };
    post(world, token, "/v1/rollouts", &json!(SignedPlan::sign(&plan, &owner(1))), 201);
}

fn post(world: &World, token: &str, path: &str, body: &Value, status: u16) {
    let reply = world.request("POST", path, &[token], &body.to_string());
    assert_eq!(reply.status, status, "{}", reply.body);
}
