//! Rollouts as the owner's command drives them, with hubs and commands that die at every step.

use super::world;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tenure_hub_server::{Gates, Plan, SignedPlan};
use tenure_package::{Package, Revocations, RevokedDevice};
use tenure_wire::control::RoomStatus;
use tenure_wire::hub::{Access, Answer, HubRefusal, Request, Response, function};
use tenure_wire::report::{DeviceReport, MachineReport, Report, Reported};
use tenure_wire::rollout::{Work, WorkQuery};
use world::{World, device, owner, package, push};

const OLD: u8 = 1;
const GOOD: u8 = 2;
const BAD: u8 = 3;
const DEVICES: [&str; 5] = ["attic", "barn", "cellar", "den", "entry"];

/// The way in which a step goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// The hub dies before its commit.
    BeforeCommit,
    /// The hub dies after its commit, and nobody gets the answer.
    AfterCommit,
}

/// Devices that hold one machine each, and the owner's command that drives a rollout over them.
struct Fleet {
    world: World,
    clock: u64,
    /// Whether the hub takes note of when it hears, as its process does.
    hears: bool,
    /// The pass of the command, and when it got it.
    pass: Option<(String, u64)>,
    /// The version that each device has.
    versions: BTreeMap<String, u8>,
    /// Devices that nobody reaches.
    offline: Vec<String>,
    /// Devices that don't come back once they are updated.
    broken: Vec<String>,
    /// The step at which somebody dies.
    death: Option<(usize, Death)>,
    steps: usize,
    /// The most devices that had another version than the old one at once.
    touched_most: usize,
}

/// Nobody answered: the command begins anew.
struct Died;

fn digest(version: u8) -> String {
    Package::parse(&package(&format!("{version}.0.0"))).unwrap().digest().to_string()
}

impl Fleet {
    fn new() -> Self {
        let mut world = World::new();
        let token = world.token(&owner(1));
        for version in [OLD, GOOD, BAD] {
            let pushed = push(&world, &token, "counter", &package(&format!("{version}.0.0")));
            assert_eq!(pushed.status, 201);
        }
        let versions = DEVICES.iter().map(|name| ((*name).to_string(), OLD)).collect();
        let (clock, offline, broken) = (world::now(), Vec::new(), Vec::new());
        let mut fleet = Self {
            world,
            clock,
            hears: false,
            pass: None,
            versions,
            offline,
            broken,
            death: None,
            steps: 0,
            touched_most: 0,
        };
        fleet.beat();
        fleet
    }

    /// Devices that are well renew their records.
    fn beat(&mut self) {
        for (number, name) in DEVICES.iter().enumerate() {
            let is_gone = self.offline.iter().chain(&self.broken).any(|gone| gone == name);
            if !is_gone {
                let expires = self.clock + 60;
                self.world.list_until(1, 10 + number as u8, name, expires);
            }
        }
        self.world.commit();
    }

    /// One request in a session, whose answer may be lost.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<(u16, Value), Died> {
        self.ask_with(method, path, body.to_string().into_bytes())
    }

    fn ask_with(&mut self, method: &str, path: &str, body: Vec<u8>) -> Result<(u16, Value), Died> {
        let pass = self.pass.take().filter(|(_, made)| self.clock < made + 500);
        let (pass, made) = pass.unwrap_or_else(|| {
            let pass = self.world.pass_at(&owner(1), Access::Session, self.clock);
            (pass.secret, self.clock)
        });
        self.pass = Some((pass.clone(), made));
        let request =
            Request { pass, method: method.into(), path: path.into(), headers: Vec::new(), body };
        self.steps += 1;
        let death = self.death.filter(|(at, _)| *at == self.steps).map(|(_, death)| death);
        let is_kept = death != Some(Death::BeforeCommit);
        let answer: Answer<Response> =
            self.world.call_at(function::REQUEST, &request, self.clock, is_kept);
        if death.is_some() {
            self.world.die();
            return Err(Died);
        }
        let answer = answer.unwrap();
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()))
    }

    fn plan(&self, version: u8) -> Plan {
        Plan {
            machine: "counter".parse().unwrap(),
            package: digest(version).parse().unwrap(),
            tenant: owner(50).verifying_key(),
            from: "0.0.0".parse().unwrap(),
            devices: DEVICES.iter().map(|name| name.parse().unwrap()).collect(),
            labels: Vec::new(),
            stages: vec!["1".into(), "50%".into()],
            soak_s: 30,
            faults_max: 0,
            gates: Gates::default(),
            failures_max: 0,
            pause_on_failure: false,
            ends_unix_s: self.clock as i64 + 86_400,
        }
    }

    fn post(&mut self, plan: &Plan) -> (u16, Value) {
        let signed = SignedPlan::sign(plan, &owner(1));
        self.ask("POST", "/v1/rollouts", &json!(signed)).ok().unwrap()
    }

    fn start(&mut self, version: u8) -> i64 {
        let plan = self.plan(version);
        let (status, started) = self.post(&plan);
        assert_eq!(status, 201, "{started}");
        started["id"].as_i64().unwrap()
    }

    /// Tells the hub how the machine on `device` does; a bad version faults.
    fn look(&mut self, id: i64, device: &str) -> Result<(), Died> {
        let version = self.versions[device];
        let faults = if version == BAD { 3 } else { 0 };
        let saw = json!({ "saw": "machine", "has": digest(version), "faults": faults, "state": "idle", "repute": "good" });
        self.report(id, device, &saw).map(drop)
    }

    fn report(&mut self, id: i64, device: &str, saw: &Value) -> Result<u16, Died> {
        let path = format!("/v1/rollouts/{id}/devices/{device}");
        self.ask("POST", &path, saw).map(|(status, _)| status)
    }

    /// The attic reports its machine, whose longest wait since that boot and its last update is `waited_max_us`.
    fn tell(&mut self, boot: u32, waited_max_us: u64) {
        let version = self.versions["attic"];
        let machine = MachineReport {
            name: "counter".parse().unwrap(),
            package: digest(version).parse().unwrap(),
            version: format!("{version}.0.0").parse().unwrap(),
            state: "idle".into(),
            repute: "good".into(),
            queue_length: 0,
            tasks_done: 1,
            fuel_used: 100,
            waited_max_us,
            memory_bytes: 64,
            memory_bytes_max: 65_536,
            stored_bytes: 0,
            metrics: Vec::new(),
        };
        let room = RoomStatus {
            memory_bytes_promised: 0,
            memory_bytes_max: 0,
            store_bytes_used: 0,
            store_bytes_max: 0,
            code_bytes_used: 0,
            code_bytes_max: 0,
            store_erases: 0,
        };
        let version = "0.1.0".into();
        let device_report =
            DeviceReport { version, uptime_s: 60, room, heap: None, neighbours: None };
        let report = Report {
            boot,
            number: self.clock,
            device: device_report,
            machines: vec![machine],
            faults: Vec::new(),
            faults_lost: 0,
        };
        let attic = device(10).device_secret().public_key();
        let answer: Answer<Reported> =
            self.world.call_from(attic, function::REPORT, &report, self.clock);
        answer.unwrap();
    }

    /// One round of the command: asks what to do, and does it.
    fn round(&mut self, id: i64) -> Result<Value, Died> {
        let (status, next) = self.ask("POST", &format!("/v1/rollouts/{id}/next"), &Value::Null)?;
        assert_eq!(status, 200, "{next}");
        for task in next["tasks"].as_array().unwrap() {
            let device = task["device"].as_str().unwrap().to_string();
            if self.offline.contains(&device) || self.broken.contains(&device) {
                let saw = json!({ "saw": "missing", "reason": "unreachable" });
                self.report(id, &device, &saw)?;
                continue;
            }
            let package = task["package"].as_str().unwrap();
            if task["action"] == "update" {
                let before = json!({ "saw": "before", "has": digest(self.versions[&device]) });
                if self.report(id, &device, &before)? != 204 {
                    continue;
                }
            }
            if task["action"] != "look" {
                let version = [OLD, GOOD, BAD].into_iter().find(|one| digest(*one) == package);
                self.versions.insert(device.clone(), version.unwrap());
                let touched = self.versions.values().filter(|version| **version != OLD).count();
                self.touched_most = self.touched_most.max(touched);
                // The first answer to an update is of a machine that had no time to fail.
                let saw = json!({ "saw": "machine", "has": package, "faults": 0, "state": "idle", "repute": "good" });
                self.report(id, &device, &saw)?;
            } else {
                self.look(id, &device)?;
            }
        }
        Ok(next)
    }

    /// Drives a rollout for so many rounds of 10 seconds, or until it is over; returns how it is.
    fn drive(&mut self, id: i64, rounds: usize) -> Value {
        for _ in 0..rounds {
            self.clock += 10;
            self.hear();
            self.beat();
            let is_over = self.round(id).is_ok_and(|next| next["is_over"] == true);
            if is_over {
                break;
            }
        }
        self.death = None;
        let (_, state) = self.ask("GET", &format!("/v1/rollouts/{id}"), &Value::Null).ok().unwrap();
        state
    }

    /// The hub hears now, if it takes note of that.
    fn hear(&self) {
        if self.hears {
            self.world.database.running().hear(self.clock);
        }
    }

    fn all_have(&self, version: u8) -> bool {
        self.versions.values().all(|one| *one == version)
    }
}

#[test]
fn good_version_reaches_all_devices_stage_by_stage() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 2);
    assert_eq!(fleet.touched_most, 1, "the canary alone");
    let (_, states) = fleet.ask("GET", "/v1/fleet-states", &Value::Null).ok().unwrap();
    let state =
        |at: usize| ["state", "devices", "device"].map(|name| states["items"][at][name].clone());
    assert_eq!(state(0), [json!("updating"), json!(1), json!("attic")]);
    assert_eq!(state(1), [json!("well"), json!(4), json!("barn")]);
    let half_way = fleet.drive(id, 4);
    assert_eq!((half_way["stage"].as_i64(), fleet.touched_most), (Some(2), 3), "{half_way}");
    let state = fleet.drive(id, 60);
    assert_eq!((&state["state"], fleet.all_have(GOOD)), (&json!("done"), true), "{state}");
    assert_eq!(state["devices"]["healthy"], 5);
}

#[test]
fn bad_version_is_pulled_back_from_the_canary_and_reaches_no_other_device() {
    let mut fleet = Fleet::new();
    let id = fleet.start(BAD);
    let state = fleet.drive(id, 60);
    assert_eq!((&state["state"], fleet.all_have(OLD)), (&json!("rolled back"), true), "{state}");
    assert_eq!(state["reason"], "attic: 3 faults since the update, 0 are allowed");
    assert_eq!(fleet.touched_most, 1);
}

/// Desk 12: the page of a device proposed the version that the gate had just taken back.
#[test]
fn version_that_a_rollout_took_back_is_not_proposed_on_the_pages_of_devices() {
    let mut fleet = Fleet::new();
    let cookie = fleet.world.cookie(&owner(1));
    let token = fleet.world.token(&owner(1));
    let listed = fleet.world.get("/v1/packages", &[&token]).json();
    let manifest = |version: u8| {
        let items = listed["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["package_digest"] == digest(version)).unwrap();
        item["digest"].as_str().unwrap().to_string()
    };
    let (good, bad) = (manifest(GOOD), manifest(BAD));
    let proposes = |fleet: &mut Fleet| {
        let page = fleet.world.get("/devices/attic", &[&cookie]);
        assert_eq!(page.status, 200);
        (page.body.contains(&good), page.body.contains(&bad), page.body.contains("took back"))
    };
    assert_eq!(proposes(&mut fleet), (false, true, false), "the newest one");
    let id = fleet.start(BAD);
    fleet.drive(id, 60);
    assert_eq!(proposes(&mut fleet), (true, false, true));
}

#[test]
fn rollout_goes_on_whichever_step_the_hub_or_the_command_dies_at() {
    let start = |fleet: &mut Fleet, version: u8| {
        let mut plan = fleet.plan(version);
        plan.devices.truncate(3);
        (plan.stages, plan.soak_s) = (vec!["1".into()], 10);
        fleet.post(&plan).1["id"].as_i64().unwrap()
    };
    for (version, end, steps_least) in [(GOOD, "done", 12), (BAD, "rolled back", 8)] {
        let mut undisturbed = Fleet::new();
        let id = start(&mut undisturbed, version);
        undisturbed.drive(id, 100);
        let (steps, touched) = (undisturbed.steps, undisturbed.touched_most);
        assert!(steps >= steps_least, "{steps} steps to die at");
        for death in [Death::BeforeCommit, Death::AfterCommit] {
            for at in 2..=steps {
                let mut fleet = Fleet::new();
                let id = start(&mut fleet, version);
                fleet.death = Some((at, death));
                let state = fleet.drive(id, 100);
                assert_eq!(state["state"], end, "{death:?} at {at}: {state}");
                let last = if version == GOOD { GOOD } else { OLD };
                let reached = DEVICES[..3].iter().map(|device| fleet.versions[*device]);
                assert!(reached.eq([last; 3]), "{death:?} at {at}: {:?}", fleet.versions);
                assert_eq!(fleet.touched_most, touched, "{death:?} at {at}");
            }
        }
    }
}

#[test]
fn device_that_is_silent_after_the_update_fails_the_gate() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 1);
    fleet.broken = vec!["attic".into()];
    let state = fleet.drive(id, 12);
    assert_eq!(state["state"], "rolling back", "it can't be reached yet: {state}");
    assert_eq!(state["reason"], "attic: missed its heartbeats after the update");
    fleet.broken.clear();
    let state = fleet.drive(id, 12);
    assert_eq!((&state["state"], fleet.all_have(OLD)), (&json!("rolled back"), true), "{state}");
}

#[test]
fn silence_while_the_hub_was_away_fails_nobody_and_silence_afterwards_does() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 1);
    // Nobody could be heard; the command is the first who asks.
    fleet.clock += 3_600;
    fleet.hears = true;
    fleet.hear();
    let next = fleet.round(id).ok().unwrap();
    assert_eq!(next["state"], "running", "{next}");
    let state = fleet.drive(id, 60);
    assert_eq!((&state["state"], fleet.all_have(GOOD)), (&json!("done"), true), "{state}");

    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 1);
    fleet.broken = vec!["attic".into()];
    fleet.clock += 3_600;
    fleet.hears = true;
    fleet.hear();
    let state = fleet.drive(id, 60);
    assert_eq!(state["reason"], "attic: missed its heartbeats after the update", "{state}");
}

/// Whoever asks may come before the thread that hears.
#[test]
fn hub_that_stood_still_pulls_no_healthy_rollout_back_as_it_wakes() {
    let mut fleet = Fleet::new();
    fleet.hears = true;
    let id = fleet.start(GOOD);
    fleet.drive(id, 1);
    fleet.clock += 80;
    let next = fleet.round(id).ok().unwrap();
    assert_eq!(next["state"], "running", "{next}");
    let state = fleet.drive(id, 60);
    assert_eq!((&state["state"], fleet.all_have(GOOD)), (&json!("done"), true), "{state}");
}

#[test]
fn device_that_nobody_asked_to_update_pulls_nothing_back_by_its_refusal() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 1);
    let refused = json!({ "saw": "refused", "reason": "I don't like it" });
    assert_eq!(fleet.report(id, "entry", &refused).ok(), Some(204));
    let state = fleet.drive(id, 2);
    assert_eq!((&state["state"], &state["devices"]["failed"]), (&json!("running"), &json!(0)));
    assert_eq!(fleet.drive(id, 60)["state"], "done", "it is asked later, and takes it");
}

/// Rolls out to the attic, whose waits may be 50 ms. The longest wait that is reported is `before` until the update,
/// `first` in the first report after it, and `after` from the second on, which is of the boot `boot`.
fn roll_out_with_waits(before: u64, [first, after]: [u64; 2], boot: u32) -> Value {
    let mut fleet = Fleet::new();
    fleet.tell(0, before);
    let mut plan = fleet.plan(GOOD);
    plan.devices.truncate(1);
    plan.stages = vec!["1".into()];
    plan.gates.waited_us_max = Some(50_000);
    let id = fleet.post(&plan).1["id"].as_i64().unwrap();
    let mut reports_after = 0;
    for _ in 0..30 {
        let state = fleet.drive(id, 1);
        if ["done", "rolled back"].iter().any(|end| state["state"] == *end) {
            return state;
        }
        // A second later than the last request, as the next report of a device may be.
        fleet.clock += 1;
        reports_after += usize::from(fleet.versions["attic"] == GOOD);
        match reports_after {
            0 => fleet.tell(0, before),
            1 => fleet.tell(0, first),
            _ => fleet.tell(boot, after),
        }
    }
    panic!("the rollout isn't over after 30 reports");
}

/// A gate of reports waits for one as long as the hub could hear it, and no longer.
#[test]
fn report_that_the_hub_could_not_hear_is_no_failure_of_its_device() {
    let mut fleet = Fleet::new();
    fleet.hears = true;
    let mut plan = fleet.plan(GOOD);
    plan.devices.truncate(1);
    plan.stages = vec!["1".into()];
    plan.gates.waited_us_max = Some(50_000);
    let id = fleet.post(&plan).1["id"].as_i64().unwrap();
    fleet.drive(id, 2);
    assert_eq!(fleet.versions["attic"], GOOD);
    fleet.clock += 3_600;
    let state = fleet.drive(id, 2);
    assert_eq!(state["state"], "running", "{state}");
    let state = fleet.drive(id, 100);
    assert_eq!(state["reason"], "attic: it hasn't reported since its update", "{state}");
}

#[test]
fn version_that_waits_longer_than_its_gate_allows_is_pulled_back() {
    let at_the_bound = roll_out_with_waits(7, [7, 50_000], 0);
    assert_eq!(at_the_bound["state"], "done", "{at_the_bound}");
    let beyond = roll_out_with_waits(7, [7, 50_001], 0);
    assert_eq!(beyond["state"], "rolled back", "{beyond}");
    assert_eq!(beyond["reason"], "attic: waited 50001 µs, 50000 are allowed");
    // The old version's waits aren't the new one's, which begin at 0.
    let inherited = roll_out_with_waits(60_000, [0, 7], 0);
    assert_eq!(inherited["state"], "done", "{inherited}");
    // Its own count in the same boot and in the next, also where the old version waited longer.
    for boot in [0, 1] {
        let own = roll_out_with_waits(60_000, [0, 55_000], boot);
        assert_eq!(own["reason"], "attic: waited 55000 µs, 50000 are allowed");
    }
    // The wait came before the first report of the new version, and none after it was longer.
    for before in [7, 60_000] {
        let early = roll_out_with_waits(before, [55_000; 2], 0);
        assert_eq!(early["reason"], "attic: waited 55000 µs, 50000 are allowed");
    }
    // A boot lost it, and the reports of before had told it.
    let lost = roll_out_with_waits(7, [55_000, 7], 1);
    assert_eq!(lost["reason"], "attic: waited 55000 µs, 50000 are allowed");
}

#[test]
fn device_that_is_offline_holds_nobody_up_and_catches_up() {
    let mut fleet = Fleet::new();
    fleet.offline = vec!["barn".into()];
    let id = fleet.start(GOOD);
    let state = fleet.drive(id, 60);
    assert_eq!((&state["state"], &state["devices"]["healthy"]), (&json!("running"), &json!(4)));
    fleet.offline.clear();
    let state = fleet.drive(id, 60);
    assert_eq!((&state["state"], fleet.all_have(GOOD)), (&json!("done"), true), "{state}");
}

#[test]
fn paused_rollout_updates_nothing_and_aborted_one_stays_as_it_is() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 2);
    let verb = |fleet: &mut Fleet, verb: &str| {
        let path = format!("/v1/rollouts/{id}/{verb}");
        fleet.ask("POST", &path, &Value::Null).ok().unwrap().0
    };
    assert_eq!(verb(&mut fleet, "pause"), 200);
    assert_eq!(fleet.drive(id, 30)["state"], "paused");
    assert_eq!(fleet.touched_most, 1);
    let before = json!({ "saw": "before", "has": digest(OLD) });
    assert_eq!(fleet.report(id, "barn", &before).ok(), Some(409), "a paused one updates nothing");
    assert_eq!(verb(&mut fleet, "resume"), 200);
    fleet.drive(id, 5);
    assert_eq!(fleet.report(id, "entry", &before).ok(), Some(409), "it is beyond the stage");
    assert_eq!(verb(&mut fleet, "abort"), 200);
    let touched = fleet.touched_most;
    assert_eq!(fleet.drive(id, 30)["state"], "aborted");
    assert_eq!((fleet.touched_most, verb(&mut fleet, "resume")), (touched, 409));
    assert_eq!(verb(&mut fleet, "roll-back"), 200);
    assert_eq!((fleet.drive(id, 30)["state"] == "rolled back", fleet.all_have(OLD)), (true, true));
}

#[test]
fn revoked_device_is_in_no_rollout_is_not_listed_and_not_answered() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 1);
    let barn = device(11);
    let machine = barn.device_secret().public_key();
    let list = |number: u64, owner: &tenure_crypto::SigningKey| {
        let revoked = RevokedDevice {
            name: "barn".parse().unwrap(),
            key: barn.device_signing_key().verifying_key(),
            machine,
        };
        Revocations { number, devices: vec![revoked], ..Revocations::default() }
            .sign(owner)
            .unwrap()
    };
    let tell = |fleet: &mut Fleet, list: Vec<u8>| {
        fleet.ask_with("POST", "/v1/revocations", list).ok().unwrap().0
    };
    let query = WorkQuery { seen: None, labels: None };
    let asks = |fleet: &mut Fleet| -> Answer<Work> {
        fleet.world.call_from(machine, function::WORK, &query, fleet.clock)
    };
    assert_eq!(tell(&mut fleet, list(2, &owner(2))), 422, "of another owner");
    assert!(asks(&mut fleet).is_ok());
    assert_eq!(tell(&mut fleet, list(2, &owner(1))), 204);
    assert_eq!(tell(&mut fleet, list(2, &owner(1))), 204, "again");
    assert_eq!(tell(&mut fleet, list(1, &owner(1))), 409, "an older one");
    assert_eq!(asks(&mut fleet), Err(HubRefusal::Stranger));
    fleet.offline = vec!["barn".into()];
    let (_, devices) = fleet.ask("GET", "/v1/devices", &Value::Null).ok().unwrap();
    assert!(!devices.to_string().contains("barn"), "{devices}");
    let state = fleet.drive(id, 60);
    assert_eq!(
        (&state["state"], &state["devices"]["healthy"]),
        (&json!("done"), &json!(4)),
        "{state}"
    );
    assert_eq!(fleet.versions["barn"], OLD);
    let plan = fleet.plan(BAD);
    let (status, refused) = fleet.post(&plan);
    assert_eq!(status, 422, "{refused}");
}

#[test]
fn roll_back_to_a_package_that_is_deleted_fails_there_and_is_over() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    assert_eq!(fleet.drive(id, 120)["state"], "done");
    fleet.world.commit();
    let gone = digest(OLD);
    fleet.world.write_by_hand(&format!("DELETE FROM manifests WHERE package_digest = '{gone}'"));
    let roll_back = format!("/v1/rollouts/{id}/roll-back");
    let (status, rolled) = fleet.ask("POST", &roll_back, &Value::Null).ok().unwrap();
    assert_eq!((status, &rolled["is_over"]), (200, &json!(true)), "{rolled}");
    assert_eq!(rolled["devices"]["failed"], json!(DEVICES.len()), "{rolled}");
    assert!(rolled["reason"].as_str().unwrap().contains("not in the registry"), "{rolled}");
    let cookie = fleet.world.cookie(&owner(1));
    let page = fleet.world.get(&format!("/rollouts/{id}"), &[&cookie]).body;
    assert!(page.contains(&format!("the package {gone}")), "{page}");
    // The machine isn't busy any more.
    fleet.start(BAD);
}

#[test]
fn rollout_whose_time_is_over_updates_nothing_more() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 2);
    fleet.clock += 86_400;
    let state = fleet.drive(id, 30);
    assert_eq!((&state["state"], fleet.touched_most), (&json!("ended"), 1), "{state}");
}

#[test]
fn device_whose_package_could_not_be_put_back_is_not_updated() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    let before = json!({ "saw": "before", "has": digest(9) });
    assert_eq!(fleet.report(id, "attic", &before).ok(), Some(409));
}

#[test]
fn requests_that_make_no_sense_start_nothing() {
    let mut fleet = Fleet::new();
    let good = fleet.plan(GOOD);
    type Fault = fn(&mut Plan);
    let faults: [Fault; 12] = [
        |plan| plan.devices.clear(),
        |plan| plan.devices[1] = plan.devices[0].clone(),
        |plan| plan.devices[0] = "nowhere".parse().unwrap(),
        |plan| plan.package = digest(9).parse().unwrap(),
        |plan| plan.tenant = owner(51).verifying_key(),
        |plan| plan.stages = vec!["6".into()],
        |plan| plan.stages = vec!["0".into()],
        |plan| plan.stages = vec!["101%".into()],
        |plan| plan.stages = vec!["2".into(), "1".into()],
        |plan| plan.soak_s = 0,
        |plan| plan.ends_unix_s = i64::MAX,
        |plan| plan.faults_max = -1,
    ];
    for (index, fault) in faults.iter().enumerate() {
        let mut plan = good.clone();
        fault(&mut plan);
        let (status, answer) = fleet.post(&plan);
        assert_eq!(status, 422, "fault {index}: {answer}");
    }
    let mut forged = SignedPlan::sign(&good, &owner(1));
    forged.plan = forged.plan.replace("\"1\"", "\"5\"");
    let (status, answer) = fleet.ask("POST", "/v1/rollouts", &json!(forged)).ok().unwrap();
    assert_eq!((status, &answer["detail"]), (422, &json!("the plan isn't signed by its owner")));
    assert_eq!(fleet.ask("POST", "/v1/rollouts", &json!("x")).ok().unwrap().0, 400);
    assert_eq!(fleet.post(&good).0, 201);
    let (status, answer) = fleet.post(&good);
    assert_eq!(status, 422, "two rollouts would fight over a machine: {answer}");
}

#[test]
fn rollout_is_its_owners_alone_and_a_token_needs_its_scope() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    let (mine, other) = (fleet.world.token(&owner(1)), fleet.world.token(&owner(1)));
    assert_eq!(fleet.world.get(&format!("/v1/rollouts/{id}"), &[&mine]).status, 200);
    fleet.world.list(2, 20, "shed");
    let stranger = fleet.world.token(&owner(2));
    assert_eq!(fleet.world.get(&format!("/v1/rollouts/{id}"), &[&stranger]).status, 404);
    let abort = format!("/v1/rollouts/{id}/abort");
    assert_eq!(fleet.world.request("POST", &abort, &[&stranger], "").status, 404);
    let read = fleet.world.token_for(&owner(1), vec![tenure_wire::hub::Scope::Read]);
    assert_eq!(fleet.world.request("POST", &abort, &[&read], "").status, 403);
    assert_eq!(fleet.world.request("POST", &abort, &[&other], "").status, 200);
    let cookie = fleet.world.cookie(&owner(1));
    let page = fleet.world.get(&format!("/rollouts/{id}"), &[&cookie]);
    assert!(page.status == 200 && page.body.contains("aborted"), "{}", page.body);
    assert!(fleet.world.get("/rollouts", &[&cookie]).body.contains("counter"));
    let foreign = ["sec-fetch-site: cross-site", cookie.as_str()];
    assert_eq!(
        fleet.world.request("POST", &format!("/rollouts/{id}/pause"), &foreign, "").status,
        403
    );
    let own = ["sec-fetch-site: same-origin", cookie.as_str()];
    let rolled = fleet.world.request("POST", &format!("/rollouts/{id}/roll-back"), &own, "");
    assert_eq!(rolled.status, 303, "{}", rolled.body);
}

#[test]
fn every_path_with_a_name_in_it_in_the_openapi_document_answers() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD).to_string();
    let token = fleet.world.token(&owner(1));
    let document = fleet.world.get("/v1/openapi.json", &[]).json();
    let paths = document["paths"].as_object().unwrap().clone();
    let mut count = 0;
    // A log is a stream that doesn't end; people and passes have a test of their own.
    let others = ["/v1/people/", "/v1/passes/"];
    let is_one = |path: &str| {
        path.contains('{')
            && !path.ends_with("/log")
            && !others.iter().any(|below| path.starts_with(below))
    };
    for (path, methods) in paths.iter().filter(|(path, _)| is_one(path)) {
        let place = path.replace("{id}", &id).replace("{device}", "attic");
        let place = place.replace("{digest}", &digest(GOOD));
        for (method, operation) in methods.as_object().unwrap() {
            let body = json!({ "saw": "missing", "reason": "" }).to_string();
            let body = if path.ends_with("{device}") { body.as_str() } else { "" };
            let status =
                fleet.world.request(&method.to_uppercase(), &place, &[&token], body).status;
            let is_described = !operation["responses"][status.to_string()].is_null();
            assert!(is_described && status != 404, "{method} {place}: {status}");
            count += 1;
        }
    }
    assert_eq!(count, 10, "of rollouts, packages and alarms");
}

#[test]
fn package_that_a_rollout_may_put_back_is_not_deleted_until_it_is_over() {
    let mut fleet = Fleet::new();
    let id = fleet.start(GOOD);
    fleet.drive(id, 1);
    let token = fleet.world.token(&owner(1));
    let listed = fleet.world.get("/v1/packages", &[&token]).json();
    let delete = |fleet: &Fleet, version: u8| {
        let items = listed["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["package_digest"] == digest(version)).unwrap();
        let path = format!("/v2/counter/manifests/{}", item["digest"].as_str().unwrap());
        fleet.world.request("DELETE", &path, &[&token], "").status
    };
    assert_eq!([OLD, GOOD, BAD].map(|version| delete(&fleet, version)), [403, 403, 202]);
    fleet.drive(id, 60);
    assert_eq!([OLD, GOOD].map(|version| delete(&fleet, version)), [202, 202]);
}

#[test]
fn request_that_is_sent_again_with_its_idempotency_key_starts_one_rollout() {
    let mut fleet = Fleet::new();
    let token = fleet.world.token(&owner(1));
    let key = "idempotency-key: \"8e03978e-40d5-43dd-bc93-6894a57f9324\"";
    let plan = |fleet: &Fleet, version| {
        json!(SignedPlan::sign(&fleet.plan(version), &owner(1))).to_string()
    };
    let (good, bad) = (plan(&fleet, GOOD), plan(&fleet, BAD));
    let first = fleet.world.request("POST", "/v1/rollouts", &[&token, key], &good);
    fleet.world.die();
    let again = fleet.world.request("POST", "/v1/rollouts", &[&token, key], &good);
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!((&first.body, first.header("location")), (&again.body, again.header("location")));
    let rollouts = fleet.world.get("/v1/rollouts", &[&token]).json();
    assert_eq!(rollouts["items"].as_array().unwrap().len(), 1);
    assert_eq!(fleet.world.request("POST", "/v1/rollouts", &[&token, key], &bad).status, 422);
    // Without the key, or by somebody else, it is another request.
    assert_eq!(
        fleet.world.request("POST", "/v1/rollouts", &[&token], &good).status,
        422,
        "the devices are busy"
    );
    let other = fleet.world.token(&owner(1));
    assert_eq!(fleet.world.request("POST", "/v1/rollouts/1/pause", &[&other, key], "").status, 422);
    let long = format!("idempotency-key: {}", "x".repeat(256));
    assert_eq!(
        fleet.world.request("POST", "/v1/rollouts/1/pause", &[&token, &long], "").status,
        400
    );
    // A refusal isn't kept: the same request goes through once its reason is gone.
    let later = "idempotency-key: later";
    let start =
        |fleet: &Fleet| fleet.world.request("POST", "/v1/rollouts", &[&token, later], &bad).status;
    assert_eq!(start(&fleet), 422);
    assert_eq!(fleet.world.request("POST", "/v1/rollouts/1/abort", &[&token], "").status, 200);
    assert_eq!(start(&fleet), 201);
}
