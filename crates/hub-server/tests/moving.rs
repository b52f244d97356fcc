//! A hub's records move from a folder to PostgreSQL and back, whole, and however often the move breaks off.

mod world;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use tenure_crypto::sha256;
use tenure_hub::Storage as _;
use tenure_hub_server::{Copied, Database, DatabaseError, Location, MoveError, Server};
use tenure_testbed::wait_until;
use tenure_wire::Digest;
use tenure_wire::hub::Access;

use world::place::Place;
use world::{World, owner, receipt};

/// Names both databases to the process that is killed.
const MOVER: &str = "TENURE_TEST_MOVER";

/// A hub with devices, receipts, packages, sign-ins and tokens, whose process has ended.
fn lived_in() -> Place {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let mut world = World::with_fleet();
    world.database.set_seed(&[NEXT.fetch_add(1, Ordering::Relaxed); 32]).unwrap();
    world.commit();
    let first = receipt(10, 1, 1, 0, Digest([0; 32]), 5);
    let second = receipt(10, 1, 1, 1, sha256(&[&first]), 7);
    world.hand_in(vec![first, second]).unwrap();
    let token = world.token(&owner(1));
    world.pass(&owner(2), Access::Page).unwrap();
    for repository in ["a", "b"] {
        let path = format!("/v2/{repository}/blobs/uploads/?digest={}", digest_of(b"{}"));
        assert_eq!(world.request("POST", &path, &[&token], "{}").status, 201);
    }
    for filler in [
        "INSERT INTO rollouts (who, machine, package_digest, version, plan, signature, state, reason, stages, stage, \
         soak_s, faults_max, failures_max, on_failure, began_unix_s, ends_unix_s) VALUES \
         ('w', 'm', 'p', '1.0.0', '', '', 'running', '', '[1]', 0, 1, 0, 0, 'pause', 0, 9)",
        "INSERT INTO rollout_devices (rollout, position, device, state, reason, faults_before, faults, held) \
         SELECT max(id), 0, 'attic', 'waiting', '', 0, 0, 'push it' FROM rollouts",
        "INSERT INTO faults (device, boot, number, machine, happened_unix_s, text) \
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 3000) \
         SELECT 'attic', 1, n, 'thermostat', n, 'unreachable' FROM n",
    ] {
        world.write_by_hand(filler);
    }
    world.leave()
}

fn digest_of(bytes: &[u8]) -> String {
    tenure_hub_server::registry_digest(bytes)
}

fn moved(from: &Location, to: &Location) -> Result<Vec<Copied>, MoveError> {
    let mut copied = Vec::new();
    Database::move_all(from, to, &mut |table| copied.push(table.clone()))?;
    Ok(copied)
}

fn names(database: &mut Database) -> Vec<String> {
    let records = database.records().unwrap().into_iter();
    let name = |kept: tenure_hub::Kept| {
        tenure_directory::open_whenever(&kept.record).unwrap().enrolment.device.to_string()
    };
    records.map(name).collect()
}

#[test]
fn records_move_to_postgres_and_back_with_their_audit_log() {
    let Some(server) = Place::on_a_server() else { return };
    let folder = lived_in();
    let there = moved(&folder.location(), &server.location()).unwrap();
    let rows = |table: &str| there.iter().find(|copied| copied.table == table).unwrap().rows;
    assert_eq!((rows("devices"), rows("receipts"), rows("faults")), (3, 2, 3000));
    assert!(rows("audit") >= 5 && rows("passes") >= 2 && rows("blobs") == 1);
    let held = server.rows("SELECT held, devices FROM rollout_holds");
    assert_eq!(held, ["push it 1"]);
    assert_eq!(server.rows("SELECT value FROM figures"), ["3"]);
    let kept = Database::retire(&folder.location()).unwrap();
    assert!(std::path::Path::new(&kept).is_file() && kept.ends_with("hub.sqlite.moved"));
    assert!(matches!(moved(&folder.location(), &server.location()), Err(MoveError::Empty(_))));

    let mut database = Database::open(server.location()).unwrap();
    assert_eq!(names(&mut database), ["attic", "cellar", "shed"]);
    let last = database.verify_audit().unwrap().unwrap().unwrap();
    drop(database);
    // Numbers go on behind those that were moved.
    server.write_by_hand(
        "INSERT INTO passes (secret_hash, kind, who, name, scopes, made_unix_s, expires_unix_s) \
         VALUES (decode(repeat('07', 32), 'hex'), 'token', 'w', '', '', 0, 0)",
    );
    server.write_by_hand("DELETE FROM passes WHERE who = 'w'");

    let back = Place::in_a_folder();
    let here = moved(&server.location(), &back.location()).unwrap();
    assert_eq!(here, there);
    Database::retire(&server.location()).unwrap();
    let refused = Database::open(server.location()).map(drop);
    assert!(matches!(refused, Err(DatabaseError::Moved)));
    let mut database = Database::open(back.location()).unwrap();
    assert_eq!(names(&mut database), ["attic", "cellar", "shed"]);
    assert_eq!(database.verify_audit().unwrap().unwrap(), Some(last));
}

/// Not a test by itself: the process that [`move_that_is_killed_goes_on_where_it_stopped`] starts and kills.
#[test]
fn mover() {
    let Ok(places) = std::env::var(MOVER) else { return };
    let (from, to) = places.split_once(' ').unwrap();
    let from = std::path::Path::new(from).into();
    moved(&from, &Location::server(Server::at(to, None).unwrap())).unwrap();
}

#[test]
fn move_that_is_killed_goes_on_where_it_stopped() {
    let Some(server) = Place::on_a_server() else { return };
    let folder = lived_in();
    drop(Database::open(server.location()).unwrap());
    for least in [1, 700, 1_400, 2_100] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "mover"])
            .env(MOVER, format!("{} {}", folder.address(), server.address()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until(|| {
            let rows: u64 = server.rows("SELECT count(*) FROM faults")[0].parse().unwrap();
            let is_over = child.try_wait().unwrap().is_some();
            if is_over || rows >= least { Ok(()) } else { Err(format!("{rows} rows are there")) }
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let whole = moved(&folder.location(), &server.location()).unwrap();
    let faults = whole.iter().find(|copied| copied.table == "faults").unwrap();
    assert_eq!(faults.rows, 3000);
    assert_eq!(server.rows("SELECT count(*) FROM faults"), ["3000"]);
}

#[test]
fn database_that_runs_or_holds_another_hub_or_went_on_is_left_alone() {
    let Some(server) = Place::on_a_server() else { return };
    let (folder, other) = (lived_in(), lived_in());
    let running = Database::open(folder.location()).unwrap();
    let refused = moved(&folder.location(), &server.location());
    assert!(matches!(refused, Err(MoveError::From(DatabaseError::InUse(_)))));
    drop(running);
    moved(&folder.location(), &server.location()).unwrap();
    let refused = moved(&other.location(), &server.location());
    assert!(matches!(refused, Err(MoveError::Taken(_))), "of another identity");
    let went_on = "UPDATE audit SET hash = decode(repeat('07', 32), 'hex') WHERE number = \
         (SELECT max(number) FROM audit)";
    server.write_by_hand(went_on);
    assert!(matches!(moved(&folder.location(), &server.location()), Err(MoveError::Taken(_))));
    let nothing = Place::in_a_folder();
    assert!(matches!(moved(&nothing.location(), &server.location()), Err(MoveError::Empty(_))));
}

#[test]
fn row_that_was_changed_on_the_way_is_found_before_anything_is_retired() {
    let Some(server) = Place::on_a_server() else { return };
    let folder = lived_in();
    moved(&folder.location(), &server.location()).unwrap();
    server.write_by_hand("UPDATE receipts SET fuel = fuel + 1 WHERE number = 1");
    let found = moved(&folder.location(), &server.location());
    assert!(matches!(found, Err(MoveError::Differs { table: "receipts", .. })));
}
