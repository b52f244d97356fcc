//! The counts of a rollout and the cost of a question, whatever happened and however large the fleet is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::params;
use tenure_wire::PublicKey;
use tenure_wire::hub::HubRefusal;
use tenure_wire::rollout::{Labels, Seen as Told, Sight, WorkQuery};

use super::devices::Saw;
use super::states::DeviceEvent;
use super::*;
use crate::store::Database;

const NOW: i64 = 1_900_000_000;
const OWNER: &str = "ownerownerowner";
const TARGET: &str = "sha256:aaaa";
const OLD: &str = "sha256:bbbb";
const LOST: &str = "sha256:cccc";

/// A hub's database with a fleet in one rollout.
struct Scene {
    _folder: tempfile::TempDir,
    database: Database,
    now: i64,
}

fn key(number: u32) -> PublicKey {
    let mut key = [9; 32];
    key[..4].copy_from_slice(&number.to_be_bytes());
    PublicKey(key)
}

fn name(number: i64) -> String {
    format!("device-{number}")
}

impl Scene {
    /// A fleet of so many listed devices, in a rollout that has a stage for half of them and one for all.
    fn new(devices: i64, is_by_devices: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("hub.sqlite")).unwrap();
        let connection = database.connection.sqlite();
        connection.execute_batch("BEGIN").unwrap();
        let listed = "INSERT INTO devices (name, owner, device_key, machine_key, seen_at, machines, first_unix_s, \
             heard_unix_s, expires_unix_s, kept, labels) VALUES (?1, ?2, ?1, ?3, '', 0, ?4, ?4, ?4 + 60, x'00', '')";
        let filled = "INSERT INTO rollout_devices (rollout, position, device, state, reason, faults_before, faults) \
             VALUES (1, ?1, ?2, 'waiting', '', 0, 0)";
        for package in [TARGET, OLD] {
            let pushed = "INSERT INTO manifests (who, repository, digest, media_type, artifact_type, annotations, \
                 bytes, pushed_unix_s, package_digest) VALUES (?1, 'r', ?2, '', '', '{}', x'00', 0, ?2)";
            connection.execute(pushed, [OWNER, package]).unwrap();
        }
        let started = "INSERT INTO rollouts (id, who, machine, package_digest, version, plan, signature, state, reason, \
             stages, stage, soak_s, faults_max, failures_max, on_failure, began_unix_s, ends_unix_s, mandate, \
             stage_unix_s) VALUES (1, ?1, 'counter', ?2, '2.0.0', '', '', 'running', '', ?3, 0, 30, 0, 2, \
             'roll back', ?4, ?4 + 86400, ?5, ?4)";
        let stages = format!("[{}, {devices}]", devices / 2);
        let mandate = is_by_devices.then_some(vec![0_u8]);
        connection.execute(started, params![OWNER, TARGET, stages, NOW, mandate]).unwrap();
        for number in 0..devices {
            let key = key(number as u32).to_string();
            connection.execute(listed, params![name(number), OWNER, key, NOW]).unwrap();
            connection.execute(filled, params![number, name(number)]).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        Self { _folder: folder, database, now: NOW }
    }

    fn connection(&self) -> &Connection {
        &self.database.connection
    }

    fn sqlite(&self) -> &rusqlite::Connection {
        self.database.connection.sqlite()
    }

    fn exchange(&self) -> Exchange {
        work::exchange_of(OWNER, self.now as u64, 0)
    }

    fn rollout(&self) -> Rollout {
        find(self.connection(), OWNER, 1).unwrap().unwrap()
    }

    fn see(&self, device: &str, saw: &Saw) {
        let exchange = self.exchange();
        let rollout = advance::advance(self.connection(), &exchange, &self.rollout()).unwrap();
        devices::see(self.connection(), &exchange, &rollout, device, saw).unwrap();
        advance::advance(self.connection(), &exchange, &self.rollout()).unwrap();
    }

    /// A device's question, as its endpoint asks it.
    fn ask(&self, number: u32, sight: Option<Sight>) -> tenure_wire::rollout::Work {
        let seen = sight.map(|sight| Told { rollout: 1, sight });
        let query = WorkQuery { seen, labels: Some(Labels(Vec::new())) };
        work(self.connection(), &key(number), &query, self.now as u64, 0).unwrap().unwrap()
    }

    /// All devices are in that state, and none is due to be looked at.
    fn put_all(&self, state: DeviceState) {
        let update = "UPDATE rollout_devices SET state = ?1, was = ?2, updated_unix_s = ?3, check_unix_s = ?4";
        let due = matches!(state, DeviceState::Soaking).then_some(self.now + 60);
        self.sqlite().execute(update, params![state.word(), OLD, self.now, due]).unwrap();
        let again = "UPDATE rollouts SET state = 'running', stage = 0, stuck_unix_s = NULL, awaited_from = 0";
        self.sqlite().execute(again, []).unwrap();
    }

    /// How many instructions SQLite's machine carries out for `action`, the second time that it is done.
    /// A count of a whole table is one of them, however large it is.
    fn steps_of(&self, action: impl Fn()) -> u64 {
        let steps = Arc::new(AtomicU64::new(0));
        action();
        let counted = steps.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        self.sqlite().progress_handler(1, Some(count));
        action();
        self.sqlite().progress_handler(0, None::<fn() -> bool>);
        steps.load(Ordering::Relaxed)
    }

    fn check_counts(&self, what: &str) {
        let rows = |query: &str| -> Vec<(String, i64)> {
            let mut statement = self.sqlite().prepare(query).unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.collect::<Result<_, _>>().unwrap()
        };
        let kept = rows(
            "SELECT state, devices FROM rollout_counts WHERE devices <> 0 AND state <> 'held' ORDER BY 1",
        );
        let counted =
            rows("SELECT state, count(*) FROM rollout_devices GROUP BY state ORDER BY state");
        assert_eq!(kept, counted, "{what}");
        let kept = rows("SELECT held, devices FROM rollout_holds ORDER BY held");
        let counted = rows(
            "SELECT held, count(*) FROM rollout_devices WHERE held <> '' GROUP BY held ORDER BY held",
        );
        assert_eq!(kept, counted, "{what}");
        let held: i64 = counted.iter().map(|(_, devices)| devices).sum();
        assert_eq!(Counts::of(self.connection(), 1).unwrap().held, held, "{what}");
        let odd = rows(
            "SELECT device, position FROM rollout_devices WHERE held <> '' AND state <> 'waiting'",
        );
        assert_eq!(odd, [], "only who waits is held: {what}");
    }
}

#[test]
fn question_takes_as_many_steps_in_a_large_fleet_as_in_a_small_one() {
    type Action = (&'static str, DeviceState, bool, fn(&Scene));
    let actions: [Action; 7] = [
        ("a soaking device asks", DeviceState::Soaking, true, |scene| drop(scene.ask(1, None))),
        ("a waiting device asks", DeviceState::Waiting, true, |scene| drop(scene.ask(1, None))),
        ("a healthy device asks", DeviceState::Healthy, true, |scene| drop(scene.ask(1, None))),
        ("a waiting device can't be updated", DeviceState::Waiting, true, |scene| {
            drop(scene.ask(1, Some(Sight::Refused { reason: "no".into() })));
        }),
        ("somebody looks", DeviceState::Soaking, true, |scene| {
            described(scene.connection(), &scene.exchange(), 1).unwrap();
        }),
        ("the clock ticks", DeviceState::Soaking, true, |scene| {
            let open = open_after(scene.connection(), 0).unwrap();
            tick(scene.connection(), &open, scene.now as u64, 0).unwrap();
        }),
        ("the command asks what to do", DeviceState::Soaking, false, |scene| {
            let rollout = advance::advance(scene.connection(), &scene.exchange(), &scene.rollout());
            devices::next(scene.connection(), &scene.exchange(), &rollout.unwrap()).unwrap();
        }),
    ];
    let scenes = [(64, true), (64, false), (2_048, true), (2_048, false)];
    let scenes = scenes.map(|(devices, is_by_devices)| Scene::new(devices, is_by_devices));
    for (what, state, is_by_devices, action) in actions {
        let steps = |large: usize| {
            let scene = &scenes[2 * large + usize::from(!is_by_devices)];
            scene.put_all(state);
            let steps = scene.steps_of(|| action(scene));
            scene.put_all(DeviceState::Waiting);
            steps
        };
        let (small, large) = (steps(0), steps(1));
        assert!(small > 10, "{what}: {small} steps were counted");
        // A fleet of 32 times as many is as much work, but for a level of a tree here and there.
        assert!(large <= small + small / 4, "{what}: {large} steps, and {small} in a small fleet");
    }
}

#[test]
fn question_takes_as_many_steps_however_many_rollouts_a_device_was_in() {
    let scene = Scene::new(64, true);
    let ask = || drop(scene.ask(1, None));
    let needs = || {
        let needed = owner_of_package(scene.connection(), &key(1), TARGET).unwrap();
        assert_eq!(needed, Err(HubRefusal::NotNeeded), "it waits");
    };
    let fresh = (scene.steps_of(ask), scene.steps_of(needs));
    let copied = "INSERT INTO rollouts (id, who, machine, package_digest, version, plan, signature, state, reason, \
         stages, stage, soak_s, faults_max, failures_max, on_failure, began_unix_s, ends_unix_s, mandate, stage_unix_s) \
         SELECT ?1, who, machine, package_digest, version, plan, signature, ?2, reason, stages, stage, soak_s, \
         faults_max, failures_max, on_failure, began_unix_s, ends_unix_s, mandate, stage_unix_s FROM rollouts WHERE id = 1";
    let was_in = "INSERT INTO rollout_devices (rollout, position, device, state, reason, faults_before, faults) \
         VALUES (?1, 0, ?2, 'waiting', '', 0, 0)";
    let over = [State::Done, State::RolledBack, State::Aborted, State::Ended];
    for (number, state) in (2..=1_000).zip(over.iter().cycle()) {
        scene.sqlite().execute(copied, params![number, state.word()]).unwrap();
        scene.sqlite().execute(was_in, params![number, name(1)]).unwrap();
    }
    let old = (scene.steps_of(ask), scene.steps_of(needs));
    assert!(fresh.0 > 10 && fresh.1 > 10, "{fresh:?} steps were counted");
    assert!(old.0 <= fresh.0 + fresh.0 / 4, "a question: {old:?} steps, and {fresh:?} before");
    assert!(old.1 <= fresh.1 + fresh.1 / 4, "a package: {old:?} steps, and {fresh:?} before");
}

#[test]
fn silence_is_looked_for_a_few_devices_at_a_time_and_found() {
    let mut scene = Scene::new(400, true);
    scene.put_all(DeviceState::Soaking);
    scene.sqlite().execute("UPDATE rollouts SET failures_max = 1000", []).unwrap();
    scene.now += 62;
    let renew =
        "UPDATE devices SET heard_unix_s = ?1, expires_unix_s = ?1 + 60 WHERE name <> 'device-399'";
    scene.sqlite().execute(renew, [scene.now]).unwrap();
    let failed = |scene: &Scene| {
        let counts = Counts::of(scene.connection(), 1).unwrap();
        counts.count(DeviceState::Failed)
    };
    for _ in 0..8 {
        drop(scene.ask(1, None));
    }
    assert_eq!(failed(&scene), 1, "the one that was silent");
    let due = "SELECT count(*) FROM rollout_devices WHERE check_unix_s <= ?1";
    let due: i64 = scene.sqlite().query_row(due, [scene.now], |row| row.get(0)).unwrap();
    assert_eq!(due, 0, "each of the others is looked at when its record runs out");
}

#[test]
fn counts_are_those_of_a_recount_after_whatever_happened() {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut draw = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let mut ends: Vec<&str> = Vec::new();
    for round in 0..60 {
        let mut scene = Scene::new(6, round % 2 == 0);
        for step in 0..80 {
            scene.now += draw(40) as i64;
            let alive = format!("device-{}", draw(6));
            let renew =
                "UPDATE devices SET heard_unix_s = ?1, expires_unix_s = ?1 + 60 WHERE name <> ?2";
            scene.sqlite().execute(renew, params![scene.now, alive]).unwrap();
            let device = name(draw(7) as i64);
            let has = [TARGET, OLD, LOST][draw(3) as usize].to_string();
            let version = [None, Some("1.0.0".parse().unwrap())][draw(2) as usize];
            let what = match draw(12) {
                0..=3 => {
                    scene.see(&device, &Saw::Before { has, version });
                    "before"
                }
                4..=6 => {
                    let faults = i64::from(draw(20) == 0);
                    let (state, repute) = ("idle".into(), "good".into());
                    scene.see(&device, &Saw::Machine { has, faults, state, repute });
                    "machine"
                }
                7 => {
                    let reason = "x".repeat(draw(300) as usize);
                    scene.see(&device, &Saw::Held { reason });
                    "held"
                }
                8 => {
                    let saw = match draw(3) {
                        0 => Saw::Missing { reason: "unreachable".into() },
                        1 => Saw::None { reason: "it has no machine counter".into() },
                        _ => Saw::Refused { reason: "no".into() },
                    };
                    scene.see(&device, &saw);
                    "missing"
                }
                9 => {
                    let act = [Event::Pause, Event::Resume, Event::RollBack, Event::Abort];
                    let act = act[(draw(11) as usize).min(10) * 4 / 11];
                    if draw(3) > 0 || act != Event::Abort {
                        steer(scene.connection(), &scene.exchange(), &scene.rollout(), act)
                            .unwrap();
                    }
                    "an act"
                }
                10 => {
                    let late = "INSERT OR IGNORE INTO rollout_devices (rollout, position, device, state, reason, \
                         faults_before, faults) VALUES (1, 6, 'device-6', 'waiting', '', 0, 0)";
                    scene.sqlite().execute(late, []).unwrap();
                    "one more"
                }
                _ => {
                    let open = open_after(scene.connection(), 0).unwrap();
                    tick(scene.connection(), &open, scene.now as u64, 0).unwrap();
                    "a tick"
                }
            };
            scene.check_counts(&format!("round {round}, step {step}: {what}"));
        }
        ends.push(scene.rollout().state.word());
        scene.sqlite().execute("DELETE FROM rollout_devices WHERE position < 3", []).unwrap();
        scene.check_counts("some are gone");
    }
    assert!(ends.iter().any(|end| *end != ends[0]), "they end in different ways: {ends:?}");
}

#[test]
fn looking_at_a_rollout_writes_nothing() {
    let mut scene = Scene::new(4, true);
    scene.put_all(DeviceState::Soaking);
    // Silent, and its time is over: a step would be due.
    scene.now += 200_000;
    let changes = |scene: &Scene| scene.sqlite().total_changes();
    let before = changes(&scene);
    described(scene.connection(), &scene.exchange(), 1).unwrap();
    let mut asked = scene.exchange();
    asked.method = Method::GET;
    asked.segments = ["v1", "rollouts", "1"].map(String::from).to_vec();
    answer(scene.connection(), &asked).unwrap();
    assert_eq!(changes(&scene), before);
    let open = open_after(scene.connection(), 0).unwrap();
    tick(scene.connection(), &open, scene.now as u64, 0).unwrap();
    assert!(changes(&scene) > before && scene.rollout().state != State::Running, "a tick does");
}

#[test]
fn rollout_that_waits_for_its_owner_says_why_and_ends_and_goes_on_in_time() {
    let lost = || Saw::Before { has: LOST.into(), version: Some("1.0.0".parse().unwrap()) };
    let told = |scene: &Scene| {
        let reply = described(scene.connection(), &scene.exchange(), 1).unwrap();
        serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap()
    };
    for owner_pushes in [false, true] {
        let mut scene = Scene::new(6, false);
        for device in 0..3 {
            scene.see(&name(device), &lost());
        }
        scene.see(&name(5), &lost());
        let status = told(&scene);
        let reason = "counter 1.0.0, which runs there, isn't in the registry: push it";
        assert_eq!(status["waits"], json!([{ "devices": 3, "reason": reason }]), "{status}");
        assert_eq!((&status["state"], &status["is_over"]), (&json!("running"), &json!(false)));
        scene.now += 1_700;
        if owner_pushes {
            scene.see(&name(0), &Saw::Before { has: OLD.into(), version: None });
        }
        scene.now += 200;
        scene.see("nobody", &Saw::Missing { reason: String::new() });
        let status = told(&scene);
        if owner_pushes {
            assert_eq!(status["state"], "running", "{status}");
        } else {
            assert_eq!(
                (&status["state"], &status["reason"]),
                (&json!("ended"), &json!(format!("3 wait: {reason}")))
            );
        }
    }
    // Without anybody to mend it there is nothing to wait for: who is merely offline may come back.
    let mut scene = Scene::new(6, false);
    scene.see(&name(0), &Saw::Missing { reason: "unreachable".into() });
    scene.now += 80_000;
    scene.see(&name(1), &Saw::Missing { reason: "unreachable".into() });
    let status = told(&scene);
    assert_eq!(
        status["waits"],
        json!([{ "devices": 3, "reason": "not reached, or not asked yet" }])
    );
    assert_eq!(status["state"], "running");
    scene.now += 10_000;
    scene.see(&name(1), &Saw::Missing { reason: "unreachable".into() });
    assert_eq!(told(&scene)["reason"], "its time is over; 3 wait: not reached, or not asked yet");
}

#[test]
fn what_is_written_for_many_devices_at_once_is_what_happens_to_each() {
    for event in [DeviceEvent::GoesBack, DeviceEvent::CannotGoBack, DeviceEvent::Forgiven] {
        let possible = DeviceState::ALL.into_iter().filter(|state| state.after(event).is_some());
        let words: Vec<String> = possible.map(|state| format!("'{}'", state.word())).collect();
        assert_eq!(event.possible_in(), format!("({})", words.join(", ")));
    }
}
