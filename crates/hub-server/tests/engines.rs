//! What every engine of the hub's database is held to, each case on each engine, and once more on a server whose statements
//! fail and whose connections break now and then.

#[path = "world/place.rs"]
mod place;
#[path = "world/records.rs"]
mod records;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use tenure_hub::{Changes, Failure, Heard, Kept, Left, ServiceCall, Storage, Stored};
use tenure_hub_server::{Broken, Database, DatabaseError, Location, Server, answer_beside};
use tenure_testbed::{Cluster, Shaken, wait_until};
use tenure_wire::hub::{Answer, function};
use tenure_wire::rollout::{Labels, Work, WorkQuery};
use tenure_wire::{NoResult, PublicKey};

use place::Place;
use records::{NOW, in_words, put, renewal, sequences};

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
        mod shaken {
            $(#[test] fn $case() {
                if let Some(place) = super::Place::shaken_by(super::Shaken::to) {
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
    audit_log_shows_where_it_was_changed
    database_of_another_program_or_a_newer_version_is_refused_and_left_alone
    reader_changes_nothing
    devices_that_touched_are_there_for_longer_and_none_that_is_gone_comes_back
}

/// Has a database keep what `write` writes: again and again while others are in the way of it, as a hub does.
fn keep(place: &Place, database: &mut Database, mut write: impl FnMut(&mut Database)) {
    loop {
        write(database);
        match database.commit() {
            Ok(()) => return,
            Err(error) => place.put_off(&error),
        }
    }
}

/// Has it keep records of the devices of those names.
fn keep_devices(place: &Place, database: &mut Database, names: &[&str], sequence: u64) {
    keep(place, database, |database| {
        // The commit fails as well, if one of them does.
        names.iter().for_each(|name| _ = put(database, name, sequence));
    });
}

/// The devices of all records, with their numbers.
fn kept(place: &Place, database: &mut Database) -> Vec<(String, u64)> {
    in_words(place.read(|| database.records()))
}

fn names(place: &Place, database: &mut Database) -> Vec<String> {
    kept(place, database).into_iter().map(|(name, _)| name).collect()
}

/// The number of the last entry of the audit log, which is whole.
fn audited(place: &Place, database: &Database) -> u64 {
    place.read(|| database.verify_audit()).unwrap().unwrap().number
}

fn what_was_committed_is_there_after_a_restart_and_the_rest_is_not(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    assert_eq!(place.read(|| database.seed()), None);
    keep(place, &mut database, |database| {
        let _ = database.set_seed(&[7; 32]);
        let _ = put(database, "attic", 1);
    });
    for (name, sequence) in [("attic", 2), ("cellar", 1)] {
        assert!(put(&mut database, name, sequence) || place.way().is_some());
    }
    drop(database);
    let mut database = Database::open(place.location()).unwrap();
    assert_eq!(place.read(|| database.seed()), Some([7; 32]));
    assert_eq!(kept(place, &mut database), [("attic".to_string(), 1)]);
    let attic = "attic".parse().unwrap();
    keep(place, &mut database, |database| _ = database.delete(&attic));
    assert_eq!(kept(place, &mut database), []);
}

fn write_that_fails_takes_the_whole_batch_back_and_the_next_one_counts(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    keep(place, &mut database, |database| _ = database.set_seed(&[7; 32]));
    loop {
        assert!(put(&mut database, "attic", 1) || place.way().is_some());
        database.set_seed(&[8; 32]).unwrap_err();
        assert!(!put(&mut database, "barn", 1), "after a write that failed");
        let error = database.commit().unwrap_err();
        if error.failure == Failure::Refused {
            break;
        }
        place.put_off(&error);
    }
    assert_eq!(names(place, &mut database), Vec::<String>::new());
    keep_devices(place, &mut database, &["cellar"], 1);
    assert_eq!(names(place, &mut database), ["cellar"]);
    assert_eq!(audited(place, &database), 1);
}

/// Not a test by itself: the process that [`process_that_is_killed_while_it_writes_loses_nothing_acknowledged`]
/// starts and kills. It says each number after its commit.
#[test]
fn victim() {
    let Ok(victim) = std::env::var(VICTIM) else { return };
    let mut database = Database::open(located(&victim)).unwrap();
    let first = sequences(&mut database).iter().map(|(_, sequence)| *sequence).max().unwrap_or(0);
    for sequence in first + 1.. {
        loop {
            for device in 0..4 {
                let _ = put(&mut database, &format!("device-{device}"), sequence);
            }
            match database.commit() {
                Ok(()) => break,
                Err(error) => assert_ne!(error.failure, Failure::Refused, "{error}"),
            }
        }
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
    keep_devices(place, &mut database, &["b-1", "b1", "a2", "b", "a-z", "a10"], 1);
    assert_eq!(names(place, &mut database), ["a-z", "a10", "a2", "b", "b-1", "b1"]);
}

#[test]
fn hubs_share_a_server_and_nobody_moves_its_records_meanwhile() {
    let Some(place) = Place::on_a_server() else { return };
    let [first, second] = [(); 2].map(|()| Database::open(place.location()).unwrap());
    for hubs in [vec![first], vec![second]] {
        let refused = Database::retire(&place.location()).unwrap_err().to_string();
        assert!(refused.contains("another process runs the hub"), "{refused}");
        drop(hubs);
    }
    Database::retire(&place.location()).unwrap();
    let moved = Database::open(place.location()).map(drop);
    assert!(matches!(moved, Err(DatabaseError::Moved)));
}

fn audit_log_shows_where_it_was_changed(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    keep_devices(place, &mut database, &["attic", "barn", "cellar", "den"], 1);
    assert_eq!(audited(place, &database), 4);
    let broken = || place.read(|| database.verify_audit()).unwrap_err();
    place.write_by_hand("UPDATE audit SET subject = 'other' WHERE number = 3");
    assert_eq!(broken(), Broken { number: 3 });
    place.write_by_hand("DELETE FROM audit WHERE number = 2");
    assert_eq!(broken(), Broken { number: 2 });
    place.write_by_hand("DELETE FROM audit WHERE number > 1");
    assert_eq!(audited(place, &database), 1, "cut off at the end");
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
    keep_devices(place, &mut database, &["attic"], 1);
    let mut reader = Database::read(place.location()).unwrap();
    assert_eq!(names(place, &mut reader), ["attic"]);
    assert!(!put(&mut reader, "barn", 1));
    reader.commit().unwrap_err();
    assert_eq!(names(place, &mut database), ["attic"]);
}

/// A device that was heard so long after [`NOW`], and may be silent for a minute.
fn heard(name: &str, after_s: u64) -> Heard {
    let heard_unix_s = NOW + after_s;
    Heard { device: name.parse().unwrap(), heard_unix_s, ends_unix_s: heard_unix_s + 60 }
}

fn devices_that_touched_are_there_for_longer_and_none_that_is_gone_comes_back(place: &Place) {
    let mut database = Database::open(place.location()).unwrap();
    keep_devices(place, &mut database, &["attic", "barn", "cellar"], 1);
    let cellar = "cellar".parse().unwrap();
    keep(place, &mut database, |database| _ = database.delete(&cellar));
    let touched = [("attic", 70), ("cellar", 70), ("nobody", 70)].map(|(name, at)| heard(name, at));
    // What another hub heard before is no news.
    for touched in [&touched[..], &[heard("attic", 20)]] {
        place.read(|| database.heard(touched).and_then(|()| database.commit()));
    }
    let ends = format!(
        "SELECT name || ' ' || (expires_unix_s - {NOW}) FROM devices WHERE length(kept) > 0 ORDER BY name"
    );
    assert_eq!(place.rows(&ends), ["attic 130", "barn 60"]);
    let left = place.read(|| database.left());
    let attic = "attic".parse().unwrap();
    let ends = [&attic, &cellar].map(|device| place.read(|| database.ends(device)));
    if matches!(place, Place::Server { .. }) {
        assert_eq!(ends, [Some(NOW + 130), Some(0)]);
        return assert!(left.is_empty(), "others may hear them");
    }
    assert_eq!(ends, [None; 2], "there is one hub");
    let mut left: Vec<_> = left
        .into_iter()
        .map(|Left { device, heard_unix_s, ends_unix_s, was_there }| {
            (device.to_string(), heard_unix_s - NOW, ends_unix_s - NOW, was_there)
        })
        .collect();
    left.sort();
    let expected = [("attic", 70, 130, true), ("barn", 0, 60, false)];
    assert_eq!(left, expected.map(|(name, from, to, is)| (name.to_string(), from, to, is)));
}

#[test]
fn touches_of_many_devices_are_one_round_trip_to_a_server() {
    let Some(Place::Server { cluster, database, .. }) = Place::on_a_server() else { return };
    let way = Shaken::quiet(cluster);
    let location = Location::server(Server::at(&way.address(&database), None).unwrap());
    let mut hub = Database::open(location).unwrap();
    let names: Vec<String> = (0..64).map(|number| format!("device-{number:02}")).collect();
    assert!(names.iter().all(|name| put(&mut hub, name, 1)));
    hub.commit().unwrap();
    let touched = |at| names.iter().map(|name| heard(name, at)).collect::<Vec<_>>();
    hub.heard(&touched(10)).unwrap();
    let before = way.requests();
    hub.heard(&touched(50)).unwrap();
    assert_eq!(way.requests() - before, 1, "once it is prepared");
    hub.commit().unwrap();
    let ends = format!("SELECT DISTINCT expires_unix_s - {NOW} FROM devices");
    assert_eq!(cluster.sql(&database, &ends).trim(), "110");
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

/// A server says of each row for which its disk has no room that it is full; it answers questions as before.
#[test]
fn server_whose_disk_is_full_keeps_nothing_new_and_its_connection_goes_on_reading() {
    let Some(place) = Place::on_a_server() else { return };
    let Place::Server { cluster, database, .. } = &place else { unreachable!("on a server") };
    let mut hub = Database::open(place.location()).unwrap();
    keep_devices(&place, &mut hub, &["attic"], 1);
    cluster.sql(
        database,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$",
    );
    cluster.sql(
        database,
        "CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON devices FOR EACH ROW EXECUTE FUNCTION full_disk()",
    );
    let connections = || {
        let ask = format!(
            "SELECT pid FROM pg_stat_activity WHERE datname = '{database}' AND application_name = 'tenure hub'"
        );
        cluster.sql("postgres", &ask)
    };
    let before = connections();
    for round in 2..5 {
        assert!(!put(&mut hub, "barn", round));
        let error = hub.commit().unwrap_err();
        assert_eq!(error.failure, Failure::Away, "{error}");
        assert_eq!(names(&place, &mut hub), ["attic"]);
    }
    assert_eq!(connections(), before, "the connection is as good as before");
    cluster.sql(database, "DROP TRIGGER full_disk ON devices");
    keep_devices(&place, &mut hub, &["barn"], 5);
    assert_eq!(names(&place, &mut hub), ["attic", "barn"]);
    assert_eq!(audited(&place, &hub), 2);
}

/// Ends all connections of hubs to a database, as the server does with those of a process that stands still in a
/// transaction.
fn cut(place: &Place) {
    let Place::Server { cluster, database, .. } = place else {
        unreachable!("a place on a server")
    };
    let cut = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' \
         AND application_name = 'tenure hub'"
    );
    cluster.sql("postgres", &cut);
}

/// A rollout that is under way, and over at [`NOW`].
fn begin_rollout(place: &Place) {
    for statement in [
        format!(
            "INSERT INTO rollouts (who, machine, package_digest, version, plan, signature, state, reason, stages, stage, \
             soak_s, faults_max, failures_max, on_failure, began_unix_s, ends_unix_s) VALUES \
             ('w', 'm', 'p', '1.0.0', '', '', 'running', '', '[1]', 0, 1, 0, 0, 'pause', 0, {NOW})"
        ),
        "INSERT INTO rollout_devices (rollout, position, device, state, reason, faults_before, faults) \
         SELECT max(id), 0, 'attic', 'waiting', '', 0, 0 FROM rollouts"
            .to_string(),
    ] {
        place.write_by_hand(&statement);
    }
}

/// Does what is due by the clock at that time; whether the hub did anything, and whether that counts.
fn tick(hub: &mut Database, unix_s: u64) -> (bool, bool) {
    let did = hub.tick(unix_s).unwrap();
    (did, hub.commit().is_ok())
}

/// The same of a hub that lost its connection; whether it did anything.
fn tick_once_there(hub: &mut Database, unix_s: u64) -> bool {
    wait_until(|| {
        let did = hub.tick(unix_s);
        let counts = hub.commit();
        did.and_then(|did| counts.map(|()| did))
    })
}

#[test]
fn what_is_due_is_done_by_one_hub_and_once_and_by_another_when_that_one_is_gone_or_stands_still() {
    let Some(place) = Place::on_a_server() else { return };
    let [mut first, mut second] = [(); 2].map(|()| Database::open(place.location()).unwrap());
    begin_rollout(&place);
    let number = || place.rows("SELECT number FROM leases");
    let states = || place.rows("SELECT state FROM rollouts ORDER BY id");
    let ended = || place.rows("SELECT count(*) FROM audit WHERE action LIKE 'rollout%'");
    let expire = || place.write_by_hand("UPDATE leases SET ends_at = 'epoch'");
    assert_eq!(tick(&mut first, NOW - 1), (true, true));
    assert_eq!(tick(&mut second, NOW), (false, true), "the first one does it");
    assert_eq!(
        (number(), states(), ended()),
        (vec!["1".into()], vec!["running".into()], vec!["0".into()])
    );

    // The first one stands still in the middle of a step, until the server ends its connection.
    assert!(first.tick(NOW).unwrap());
    cut(&place);
    expire();
    assert!(tick_once_there(&mut second, NOW - 1), "it has its turn");
    first.commit().unwrap_err();
    assert_eq!(
        (number(), states(), ended()),
        (vec!["2".into()], vec!["running".into()], vec!["0".into()])
    );
    assert!(!tick_once_there(&mut first, NOW), "it lost its turn");
    assert_eq!(tick(&mut second, NOW), (true, true));
    assert_eq!((states(), ended()), (vec!["ended".into()], vec!["1".into()]));

    // A holder that is killed is followed once its time is over.
    begin_rollout(&place);
    std::mem::forget(second);
    assert_eq!(tick(&mut first, NOW), (false, true));
    expire();
    assert_eq!(tick(&mut first, NOW), (true, true));
    assert_eq!((number(), ended()), (vec!["3".into()], vec!["2".into()]));

    // One that ends gives it back.
    begin_rollout(&place);
    drop(first);
    let mut third = Database::open(place.location()).unwrap();
    assert_eq!(tick(&mut third, NOW), (true, true));
    assert_eq!((number(), ended()), (vec!["4".into()], vec!["3".into()]));
}

/// Whoever took it may be gone since.
#[test]
fn lease_of_a_time_that_never_came_is_nobodys() {
    let Some(place) = Place::on_a_server() else { return };
    let [mut first, mut second] = [(); 2].map(|()| Database::open(place.location()).unwrap());
    begin_rollout(&place);
    assert_eq!(tick(&mut first, NOW - 1), (true, true));
    assert_eq!(tick(&mut second, NOW), (false, true));
    place.write_by_hand("UPDATE leases SET ends_at = ends_at + interval '400 days'");
    assert_eq!(tick(&mut second, NOW), (true, true));
    assert_eq!(place.rows("SELECT state FROM rollouts"), ["ended"]);
}

#[test]
fn step_that_two_hubs_take_at_once_counts_once() {
    let Some(place) = Place::on_a_server() else { return };
    let [mut first, mut second] = [(); 2].map(|()| Database::open(place.location()).unwrap());
    begin_rollout(&place);
    for hub in [&mut first, &mut second] {
        assert!(hub.tick(NOW - 1).is_ok());
        hub.commit().unwrap();
    }
    // The lease of the first one is over while it is in the middle of a step.
    place.write_by_hand("UPDATE leases SET ends_at = 'epoch'");
    assert!(first.tick(NOW).unwrap());
    let step = std::thread::spawn(move || {
        let did = second.tick(NOW);
        (did, second.commit())
    });
    // The second one waits for the row of the lease, for half a second at most.
    wait_until(|| {
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
             AND datname = current_database()";
        let is_so = step.is_finished() || place.rows(waits) == ["1"];
        if is_so { Ok(()) } else { Err("nobody waits") }
    });
    first.commit().unwrap();
    let (did, counts) = step.join().unwrap();
    assert!(!did.is_ok_and(|did| did) || counts.is_err(), "one of both");
    assert_eq!(place.rows("SELECT state FROM rollouts"), ["ended"]);
    assert_eq!(place.rows("SELECT count(*) FROM audit WHERE action LIKE 'rollout%'"), ["1"]);
}

/// The changes of other hubs: whether they are all devices, and each name with its number.
fn changes(hub: &mut Database) -> (bool, Vec<(String, Option<u64>)>) {
    // A statement that a busy computer holds up is given again.
    let Changes { are_all, devices } = wait_until(|| hub.changes());
    let sequence = |kept: Kept| tenure_directory::open_whenever(&kept.record).unwrap().sequence;
    let mut devices: Vec<_> =
        devices.into_iter().map(|(name, kept)| (name.to_string(), kept.map(sequence))).collect();
    devices.sort();
    (are_all, devices)
}

#[test]
fn what_one_hub_writes_the_others_hear_of_in_whatever_order_transactions_end() {
    let Some(place) = Place::on_a_server() else { return };
    let [mut first, mut second, mut third] =
        [(); 3].map(|()| Database::open(place.location()).unwrap());
    assert!(put(&mut first, "attic", 1));
    first.commit().unwrap();
    let name = |name: &str, sequence| (name.to_string(), sequence);
    assert_eq!(changes(&mut third), (true, vec![name("attic", Some(1))]), "all, at first");
    // A change may be told again while a transaction is under way anywhere on the server.
    let (are_all, _) = changes(&mut third);
    assert!(!are_all, "it follows");
    // The transaction that began first ends last.
    assert!(put(&mut first, "attic", 2));
    assert!(put(&mut second, "barn", 1));
    second.commit().unwrap();
    let (_, heard) = changes(&mut third);
    assert!(heard.contains(&name("barn", Some(1))), "{heard:?}");
    assert!(!heard.contains(&name("attic", Some(2))), "it isn't committed: {heard:?}");
    first.commit().unwrap();
    let (are_all, heard) = changes(&mut third);
    assert!(!are_all && heard.contains(&name("attic", Some(2))), "{heard:?}");
    // Those of a hub's own aren't told.
    changes(&mut second);
    assert!(put(&mut second, "cellar", 1));
    second.commit().unwrap();
    let (_, heard) = changes(&mut second);
    assert!(!heard.iter().any(|(name, _)| name == "cellar"), "{heard:?}");
    second.delete(&"barn".parse().unwrap()).unwrap();
    second.commit().unwrap();
    let (_, heard) = changes(&mut third);
    assert!(heard.contains(&name("barn", None)) && heard.contains(&name("cellar", Some(1))));
    // One that lost its connection may have missed some.
    cut(&place);
    let heard = wait_until(|| match third.changes() {
        Ok(Changes { are_all: true, devices }) => Ok(devices.len()),
        Ok(_) => Err("the connection is still there".to_string()),
        Err(error) => Err(error.to_string()),
    });
    assert_eq!(heard, 2);
}

#[test]
fn two_hubs_that_hear_a_device_at_once_keep_its_newest_record_and_the_other_is_told_to_try_again() {
    let Some(place) = Place::on_a_server() else { return };
    let [mut first, mut second] = [(); 2].map(|()| Database::open(place.location()).unwrap());
    assert!(put(&mut first, "attic", 1));
    first.commit().unwrap();
    let attic = "attic".parse().unwrap();
    let sequence = |stored: Stored| match stored {
        Stored::Now(Some(kept)) => tenure_directory::open_whenever(&kept.record).unwrap().sequence,
        other => panic!("{other:?}"),
    };
    // Both look at the same record before they write theirs.
    assert_eq!(sequence(first.stored(&attic).unwrap()), 1);
    assert_eq!(sequence(second.stored(&attic).unwrap()), 1);
    assert!(put(&mut first, "attic", 3));
    first.commit().unwrap();
    let written = put(&mut second, "attic", 2);
    let error = second.commit().unwrap_err();
    assert!(!written && error.failure == Failure::Conflict, "{error:?}");
    assert_eq!(sequence(second.stored(&attic).unwrap()), 3);
    second.commit().unwrap();
}

#[test]
fn renewals_of_a_turn_are_one_round_trip_and_each_is_compared_with_what_stands_there() {
    let Some(Place::Server { cluster, database, .. }) = Place::on_a_server() else { return };
    let way = Shaken::quiet(cluster);
    let location = Location::server(Server::at(&way.address(&database), None).unwrap());
    let mut hub = Database::open(location).unwrap();
    let names: Vec<String> = (0..64).map(|number| format!("device-{number:02}")).collect();
    assert!(names.iter().all(|name| put(&mut hub, name, 1)));
    hub.commit().unwrap();
    let renew = |hub: &mut Database, before, sequence| {
        let renewals: Vec<_> = names.iter().map(|name| renewal(name, before, sequence)).collect();
        hub.renew(&renewals, NOW + 20).unwrap()
    };
    assert_eq!(renew(&mut hub, 1, 2), [true; 64]);
    let before = way.requests();
    assert_eq!(renew(&mut hub, 2, 3), [true; 64]);
    assert_eq!(way.requests() - before, 1, "once it is prepared");
    assert!(sequences(&mut hub).iter().all(|(_, sequence)| *sequence == 3));
    // One is another's by now, and another one revoked.
    let mut other =
        Database::open(Place::Server { cluster, database: database.clone(), way: None }.location())
            .unwrap();
    assert_eq!(other.renew(&[renewal("device-07", 3, 9)], NOW).unwrap(), [true]);
    cluster.sql(
        &database,
        "INSERT INTO revoked_devices SELECT device_key, owner FROM devices LIMIT 1",
    );
    let of_others = renew(&mut hub, 3, 4);
    assert_eq!(of_others, [false; 64], "all have one key here, which is revoked");
    cluster.sql(&database, "DELETE FROM revoked_devices");
    let kept = renew(&mut hub, 3, 4);
    let expected: Vec<bool> = names.iter().map(|name| name != "device-07").collect();
    assert_eq!(kept, expected);
    assert!(sequences(&mut hub).contains(&("device-07".to_string(), 9)));
    // The others hear of them as of any change.
    let (_, heard) = changes(&mut other);
    assert!(heard.contains(&("device-08".to_string(), Some(4))), "{heard:?}");
}

#[test]
fn calls_beside_the_directory_are_answered_once_what_they_wrote_is_safe() {
    for place in [Place::on_a_server(), Place::shaken_by(Shaken::to)] {
        let Some(place) = place else { return };
        let mut hub = wait_until(|| Database::open(place.location()));
        keep_devices(&place, &mut hub, &["attic"], 1);
        wait_until(|| answer_beside(&mut hub, &place.location()));
        let (peer, hub_key) = (records::device_machine(), PublicKey([3; 32]));
        let mut ask = |number: u64, function: &str| {
            let label = format!("round=n{number}").parse().unwrap();
            let query = WorkQuery { labels: Some(Labels(vec![label])), seen: None };
            let parameter = postcard::to_allocvec(&query).unwrap();
            let call = ServiceCall {
                peer: &peer,
                hub: &hub_key,
                function,
                parameter: &parameter,
                unix_s: NOW,
            };
            assert!(hub.hand_over(number, &call));
            wait_until(|| match hub.answers().pop() {
                Some((answered, answer)) if answered == number => Ok(answer),
                other => Err(format!("{other:?}")),
            })
        };
        assert_eq!(ask(0, "nothing"), Err(NoResult::NoSuchFunction));
        for number in 1..10 {
            let answer = ask(number, function::WORK);
            if place.way().is_some() && answer == Err(NoResult::OutcomeUnknown) {
                continue;
            }
            let answer: Answer<Work> = postcard::from_bytes(&answer.unwrap().unwrap()).unwrap();
            if place.way().is_none() || answer.is_ok() {
                answer.unwrap();
                assert_eq!(place.rows("SELECT labels FROM devices"), [format!("round=n{number}")]);
            }
        }
    }
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
