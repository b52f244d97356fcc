//! The cost of a device's and a person's call, however large the fleet is and however many are signed in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_crypto::SigningKey;
use tenure_hub::{Accepted, Kept, Storage as _};
use tenure_wire::control::RoomStatus;
use tenure_wire::directory::{DeviceRecord, Enrolment, SignedRecord};
use tenure_wire::report::DeviceReport;
use tenure_wire::{Address, Epoch, PublicKey, Signature, VerifyingKey};

use super::*;

const NOW: u64 = 1_900_000_000;
const HUB: PublicKey = PublicKey([3; 32]);
/// The key of a command's session.
const SESSION: PublicKey = PublicKey([4; 32]);
/// The passes of each owner that are good, for each device of the fleet.
const PASSES_PER_DEVICE: u32 = 4;

/// A database in which so many devices are listed.
struct Scene {
    _folder: tempfile::TempDir,
    database: Database,
    unix_s: u64,
}

fn owner() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn key(number: u32) -> PublicKey {
    let mut key = [9; 32];
    key[..4].copy_from_slice(&number.to_be_bytes());
    PublicKey(key)
}

/// A record as it was accepted; nobody looks at its signatures any more.
fn record(number: u32, expires_unix_s: u64) -> DeviceRecord {
    let device = format!("device-{number}").parse().unwrap();
    let enrolment = Enrolment { device, device_key: VerifyingKey(key(number).0), number: 1 };
    DeviceRecord {
        owner: owner().verifying_key(),
        enrolment_signature: Signature::from_bytes(&[0; 64]),
        enrolment,
        sequence: expires_unix_s,
        expires_unix_s,
        epoch: Epoch([7; 8]),
        addresses: Vec::new(),
        device_machine: key(number),
        machines: vec![("counter".parse().unwrap(), key(1_000_000 + number))],
        succession: None,
    }
}

impl Scene {
    fn new(devices: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::open(folder.path().join("hub.sqlite")).unwrap();
        database.admit(vec![owner().verifying_key()], None);
        let mut scene = Self { _folder: folder, database, unix_s: NOW };
        for number in 0..devices {
            scene.register(number);
        }
        let connection = scene.database.connection.sqlite();
        let pass = "INSERT INTO passes (secret_hash, kind, who, name, scopes, made_unix_s, expires_unix_s) \
             VALUES (randomblob(32), 'session', ?1, '', '', ?2, ?2 + 600)";
        let revoked = "INSERT INTO revoked_devices (device_key, owner) VALUES (?1, ?2)";
        for number in 0..devices {
            let who = key(number).to_string();
            for _ in 0..PASSES_PER_DEVICE {
                connection.execute(pass, rusqlite::params![who, NOW as i64]).unwrap();
            }
            let gone = key(2_000_000 + number).to_string();
            connection.execute(revoked, [gone, owner().verifying_key().to_string()]).unwrap();
        }
        scene.database.commit().unwrap();
        scene
    }

    fn register(&mut self, number: u32) {
        let record = record(number, self.unix_s + 60);
        let signature = Signature::from_bytes(&[0; 64]);
        let signed = SignedRecord { bytes: vec![0; 200], signature };
        let kept = Kept { record: signed, seen_at: Address::Line(1) };
        assert!(!self.database.is_revoked(&record).unwrap());
        let (unix_s, ends_unix_s) = (self.unix_s, record.expires_unix_s);
        let accepted = Accepted { kept: &kept, record: &record, unix_s, ends_unix_s };
        self.database.put(&accepted).unwrap();
    }

    fn call<T: DeserializeOwned>(
        &mut self,
        peer: &PublicKey,
        function: &str,
        parameter: &[u8],
    ) -> T {
        let call = ServiceCall { peer, hub: &HUB, function, parameter, unix_s: self.unix_s };
        let answer = self.database.call(&call).unwrap().unwrap();
        postcard::from_bytes(&answer).unwrap()
    }

    fn report(&mut self, number: u32) -> Reported {
        let room = RoomStatus {
            memory_bytes_promised: 1,
            memory_bytes_max: 2,
            store_bytes_used: 3,
            store_bytes_max: 4,
            code_bytes_used: 5,
            code_bytes_max: 6,
            store_erases: 7,
        };
        let report = Report {
            boot: 1,
            number: self.unix_s,
            device: DeviceReport {
                version: "0.1.0".into(),
                uptime_s: 1,
                room,
                heap: None,
                neighbours: None,
            },
            machines: Vec::new(),
            faults: Vec::new(),
            faults_lost: 0,
        };
        let parameter = postcard::to_allocvec(&report).unwrap();
        let answer: Answer<Reported> = self.call(&key(number), function::REPORT, &parameter);
        answer.unwrap()
    }

    /// How many instructions SQLite's machine carries out for `action` and the commit, the second time.
    fn steps_of(&mut self, action: fn(&mut Self)) -> u64 {
        let steps = Arc::new(AtomicU64::new(0));
        self.unix_s += 2;
        action(self);
        self.database.commit().unwrap();
        self.unix_s += 2;
        let counted = steps.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        self.database.connection.sqlite().progress_handler(1, Some(count));
        action(self);
        self.database.commit().unwrap();
        self.database.connection.sqlite().progress_handler(0, None::<fn() -> bool>);
        steps.load(Ordering::Relaxed)
    }
}

#[test]
fn call_takes_as_many_steps_in_a_large_fleet_as_in_a_small_one() {
    type Action = (&'static str, fn(&mut Scene));
    let actions: [Action; 6] = [
        ("a device renews its record", |scene| scene.register(1)),
        ("a device reports", |scene| {
            scene.report(1);
        }),
        ("a device asks for its step", |scene| {
            let query = WorkQuery { seen: None, labels: None };
            let parameter = postcard::to_allocvec(&query).unwrap();
            let _: Work = scene.call::<Answer<Work>>(&key(1), function::WORK, &parameter).unwrap();
        }),
        ("a device asks who watches its log", |scene| {
            let share = LogShare { boot: 1, lines: Vec::new(), next: 0 };
            let parameter = postcard::to_allocvec(&share).unwrap();
            let wish: Answer<LogWish> = scene.call(&key(1), function::LOG, &parameter);
            assert_eq!(wish.unwrap().from, None);
        }),
        ("somebody signs in", |scene| {
            let request = sign_in::request(&owner(), HUB, SESSION, Access::Session);
            let parameter = postcard::to_allocvec(&request).unwrap();
            let pass: Answer<Pass> = scene.call(&SESSION, function::SIGN_IN, &parameter);
            assert!(!pass.unwrap().secret.is_empty());
        }),
        ("the clock ticks", |scene| {
            let unix_s = scene.unix_s;
            scene.database.tick(unix_s).unwrap();
            assert!(scene.database.forgotten().unwrap().is_empty());
        }),
    ];
    let mut scenes = [Scene::new(32), Scene::new(1_024)];
    for (what, action) in actions {
        let [small, large] = scenes.each_mut().map(|scene| scene.steps_of(action));
        assert!(small > 3, "{what}: {small} steps were counted");
        assert!(large <= small + small / 4, "{what}: {large} steps, and {small} in a small fleet");
    }
}

#[test]
fn pace_of_reports_goes_by_the_figure_of_listed_devices() {
    let mut scene = Scene::new(2);
    assert_eq!(scene.report(1).again_s, 60);
    let grown = "UPDATE figures SET value = 100000 WHERE name = 'devices'";
    scene.database.connection.sqlite().execute(grown, []).unwrap();
    scene.unix_s += 2;
    assert_eq!(scene.report(1).again_s, 100, "1,000 reports a second come in all");
}
