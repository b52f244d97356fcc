//! What every engine of the hub's database is held to, each case on each engine.

#[path = "world/place.rs"]
mod place;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use tenure_crypto::{Seed, SigningKey};
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::socket_at;
use tenure_hub::{Accepted, Kept, Storage};
use tenure_hub_server::{Broken, Database, DatabaseError, Location, Server};
use tenure_testbed::{Cluster, wait_until};
use tenure_wire::directory::{DeviceRecord, Enrolment};
use tenure_wire::{Address, Epoch, PublicKey};

use place::Place;

const NOW: u64 = 1_800_000_000;
/// Names the database to the process that is killed.
const VICTIM: &str = "TENURE_TEST_VICTIM";

/// Each case as a test of each engine.
macro_rules! on_each_engine {
    ($($case:ident)+) => {
        mod sqlite {
            $(#[test] fn $case() { super::$case(&super::Place::in_a_folder()); })+
        }
        mod postgres {
            $(#[test] fn $case() {
                if let Some(place) = super::Place::on_a_server() {
                    super::$case(&place);
                }
            })+
        }
    };
}

on_each_engine! {
    what_was_committed_is_there_after_a_restart_and_the_rest_is_not
    write_that_fails_takes_the_whole_batch_back_and_the_next_one_counts
    process_that_is_killed_while_it_writes_loses_nothing_acknowledged
    records_come_in_the_order_of_their_bytes
    second_process_is_refused_while_the_first_one_runs
    audit_log_shows_where_it_was_changed
    database_of_another_program_or_a_newer_version_is_refused_and_left_alone
    reader_changes_nothing
}

fn record(name: &str, sequence: u64) -> (Kept, DeviceRecord) {
    let owner = SigningKey::from_bytes(&[1; 32]);
    let seed = Seed::from_bytes(&[9; 32]);
    let device_key = seed.device_signing_key().verifying_key();
    let enrolment = Enrolment { device: name.parse().unwrap(), device_key, number: 1 };
    let record = DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: enrol(&owner, &enrolment),
        enrolment,
        sequence,
        expires_unix_s: NOW + 60,
        epoch: Epoch([7; 8]),
        addresses: Vec::new(),
        device_machine: seed.device_secret().public_key(),
        machines: vec![("thermostat".parse().unwrap(), PublicKey([5; 32]))],
        succession: None,
    };
    let signed = seal(&seed.device_signing_key(), &record);
    (Kept { record: signed, seen_at: Address::Udp(socket_at(3)) }, record)
}

fn put(database: &mut dyn Storage, name: &str, sequence: u64) -> bool {
    let (kept, record) = record(name, sequence);
    database.put(&Accepted { kept: &kept, record: &record, unix_s: NOW }).is_ok()
}

fn sequences(database: &mut Database) -> Vec<(String, u64)> {
    let records = database.records().unwrap().into_iter().map(|kept| {
        let record = tenure_directory::open_whenever(&kept.record).unwrap();
        (record.enrolment.device.to_string(), record.sequence)
    });
    records.collect()
}

fn names(database: &mut Database) -> Vec<String> {
    sequences(database).into_iter().map(|(name, _)| name).collect()
}

fn what_was_committed_is_there_after_a_restart_and_the_rest_is_not(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    assert_eq!(database.seed().unwrap(), None);
    database.set_seed(&[7; 32]).unwrap();
    assert!(put(&mut database, "attic", 1));
    database.commit().unwrap();
    assert!(put(&mut database, "attic", 2) && put(&mut database, "cellar", 1));
    drop(database);
    let mut database = Database::open(place.location()).unwrap();
    assert_eq!(database.seed().unwrap(), Some([7; 32]));
    assert_eq!(sequences(&mut database), [("attic".to_string(), 1)]);
    database.delete(&"attic".parse().unwrap()).unwrap();
    database.commit().unwrap();
    assert_eq!(sequences(&mut database), []);
}

fn write_that_fails_takes_the_whole_batch_back_and_the_next_one_counts(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    database.set_seed(&[7; 32]).unwrap();
    database.commit().unwrap();
    assert!(put(&mut database, "attic", 1));
    database.set_seed(&[8; 32]).unwrap_err();
    assert!(!put(&mut database, "barn", 1), "after a write that failed");
    database.commit().unwrap_err();
    assert_eq!(names(&mut database), Vec::<String>::new());
    assert!(put(&mut database, "cellar", 1));
    database.commit().unwrap();
    assert_eq!(names(&mut database), ["cellar"]);
    assert_eq!(database.verify_audit().unwrap().unwrap().unwrap().number, 1);
}

/// Not a test by itself: the process that [`process_that_is_killed_while_it_writes_loses_nothing_acknowledged`]
/// starts and kills. It says each number after its commit.
#[test]
fn victim() {
    let Ok(victim) = std::env::var(VICTIM) else { return };
    let mut database = Database::open(located(&victim)).unwrap();
    let first = sequences(&mut database).iter().map(|(_, sequence)| *sequence).max().unwrap_or(0);
    for sequence in first + 1.. {
        for device in 0..4 {
            assert!(put(&mut database, &format!("device-{device}"), sequence));
        }
        database.commit().unwrap();
        println!("\ncommitted {sequence}");
    }
}

fn located(text: &str) -> Location {
    match text.starts_with("postgres://") {
        true => Location::server(Server::at(text, None).unwrap()),
        false => std::path::Path::new(text).into(),
    }
}

fn process_that_is_killed_while_it_writes_loses_nothing_acknowledged(place: &Place) {
    let mut acknowledged = 0;
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env(VICTIM, place.address())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = lines.filter_map(|line| line.ok()?.strip_prefix("committed ")?.parse().ok());
        for number in numbers.take(10 + 7 * round) {
            acknowledged = number;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut database = Database::open(place.location()).unwrap();
        let kept = sequences(&mut database);
        assert_eq!(kept.len(), 4);
        assert!(kept.iter().all(|(_, sequence)| *sequence == kept[0].1), "all or none: {kept:?}");
        assert!(kept[0].1 >= acknowledged, "{} after {acknowledged}", kept[0].1);
        assert_eq!(database.verify_audit().unwrap().unwrap().unwrap().number, 4);
    }
    assert!(acknowledged > 0);
}

fn records_come_in_the_order_of_their_bytes(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    for name in ["b-1", "b1", "a2", "b", "a-z", "a10"] {
        assert!(put(&mut database, name, 1));
    }
    database.commit().unwrap();
    assert_eq!(names(&mut database), ["a-z", "a10", "a2", "b", "b-1", "b1"]);
}

fn second_process_is_refused_while_the_first_one_runs(place: &Place) {
    let first = Database::open(place.location()).unwrap();
    let refused = Database::open(place.location()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("another process"), "{refused}");
    Database::read(place.location()).unwrap();
    drop(first);
    Database::open(place.location()).unwrap();
}

fn audit_log_shows_where_it_was_changed(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    for name in ["attic", "barn", "cellar", "den"] {
        assert!(put(&mut database, name, 1));
    }
    database.commit().unwrap();
    assert_eq!(database.verify_audit().unwrap().unwrap().unwrap().number, 4);
    place.write_by_hand("UPDATE audit SET subject = 'other' WHERE number = 3");
    assert_eq!(database.verify_audit().unwrap(), Err(Broken { number: 3 }));
    place.write_by_hand("DELETE FROM audit WHERE number = 2");
    assert_eq!(database.verify_audit().unwrap(), Err(Broken { number: 2 }));
    place.write_by_hand("DELETE FROM audit WHERE number > 1");
    assert_eq!(database.verify_audit().unwrap().unwrap().unwrap().number, 1, "cut off at the end");
}

fn database_of_another_program_or_a_newer_version_is_refused_and_left_alone(place: &Place) {
    let others = match place {
        Place::Folder(_) => Place::in_a_folder(),
        Place::Server { .. } => Place::on_a_server().unwrap(),
    };
    others.write_by_hand("CREATE TABLE cats (name TEXT)");
    assert!(matches!(Database::open(others.location()), Err(DatabaseError::Foreign)));
    others.write_by_hand("INSERT INTO cats VALUES ('Tom')");
    drop(Database::open(place.location()).unwrap());
    match place {
        Place::Folder(_) => place.write_by_hand("PRAGMA user_version = 999"),
        Place::Server { .. } => place.write_by_hand(
            "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
             VALUES (999, 'later', '2030-01-01T00:00:00Z', '1')",
        ),
    }
    let newer = Database::open(place.location());
    assert!(matches!(newer, Err(DatabaseError::Newer { version: 999, .. })));
}

fn reader_changes_nothing(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    assert!(put(&mut database, "attic", 1));
    database.commit().unwrap();
    let mut reader = Database::read(place.location()).unwrap();
    assert_eq!(names(&mut reader), ["attic"]);
    assert!(!put(&mut reader, "barn", 1));
    reader.commit().unwrap_err();
    assert_eq!(names(&mut database), ["attic"]);
}

#[test]
fn server_that_is_killed_is_away_until_it_is_back_and_nothing_acknowledged_is_lost() {
    let Some(mut cluster) = Cluster::start() else { return };
    let database = cluster.database();
    let location = Location::server(Server::at(&cluster.address(&database), None).unwrap());
    let mut hub = Database::open(&location).unwrap();
    for round in 1..4 {
        assert!(put(&mut hub, "attic", round));
        hub.commit().unwrap();
        // In the middle of a batch.
        assert!(put(&mut hub, "barn", round));
        cluster.kill();
        hub.commit().unwrap_err();
        let away = hub.records().unwrap_err().to_string();
        assert!(away.contains("try again"), "{away}");
        assert!(!put(&mut hub, "cellar", round));
        hub.commit().unwrap_err();
        cluster.wake();
        let kept = wait_until(|| hub.records());
        assert_eq!(kept.len(), 1);
        assert_eq!(sequences(&mut hub), [("attic".to_string(), round)]);
    }
    assert_eq!(hub.verify_audit().unwrap().unwrap().unwrap().number, 1);
}

#[test]
fn hub_that_lost_its_connection_writes_nothing_once_another_one_runs() {
    let Some(place) = Place::on_a_server() else { return };
    let Place::Server { cluster, database } = &place else { unreachable!("a place on a server") };
    let mut first = Database::open(place.location()).unwrap();
    assert!(put(&mut first, "attic", 1));
    first.commit().unwrap();
    let cut = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' \
         AND application_name = 'tenure hub'"
    );
    cluster.sql("postgres", &cut);
    let mut second = Database::open(place.location()).unwrap();
    assert!(put(&mut second, "attic", 2));
    second.commit().unwrap();
    for _ in 0..3 {
        assert!(!put(&mut first, "attic", 3), "it lost the lock with its connection");
        first.commit().unwrap_err();
    }
    assert_eq!(sequences(&mut second), [("attic".to_string(), 2)]);
    drop(second);
    wait_until(|| {
        put(&mut first, "attic", 4);
        first.commit()
    });
    assert_eq!(sequences(&mut first), [("attic".to_string(), 4)]);
}

#[test]
fn way_to_a_server_is_encrypted_and_shown_a_certificate_that_is_trusted() {
    // Of this process alone, so that the usual port is free there.
    let [_, .., high, low] = std::process::id().to_be_bytes();
    let host = format!("127.77.{high}.{low}");
    let made = rcgen::generate_simple_self_signed([host.clone()]).unwrap();
    let other = rcgen::generate_simple_self_signed([host.clone()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let listens = format!("listen_addresses={host}");
    let settings =
        [listens.as_str(), "ssl=on", "ssl_cert_file=../server.crt", "ssl_key_file=../server.key"];
    let files = [("server.crt", certificate.as_str()), ("server.key", key.as_str())];
    let Some(cluster) = Cluster::start_with(&settings, &files) else { return };
    let folder = tempfile::tempdir().unwrap();
    let authority = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (trusted, untrusted) =
        (authority("trusted.pem", &certificate), authority("other.pem", &other.cert.pem()));
    let database = cluster.database();
    let address = format!("postgres://hub@{host}/{database}?sslmode=require");
    let at = |authority| Location::server(Server::at(&address, Some(authority)).unwrap());
    let refused = Database::open(at(&untrusted)).map(drop).unwrap_err().to_string();
    assert!(refused.contains("certificate"), "{refused}");
    let mut hub = Database::open(at(&trusted)).unwrap();
    assert!(put(&mut hub, "attic", 1));
    hub.commit().unwrap();
    let encrypted = "SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
         WHERE a.application_name = 'tenure hub'";
    assert_eq!(cluster.sql("postgres", encrypted).trim(), "t");
}
