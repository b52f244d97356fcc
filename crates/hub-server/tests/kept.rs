//! What a hub acknowledged is there afterwards, whatever other programs do with its file meanwhile.

#[path = "world/records.rs"]
mod records;
mod world;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use records::{put, sequences};
use tenure_hub::Storage as _;
use tenure_hub_server::{Database, DatabaseError};
use tenure_wire::hub::{Access, Scope};
use world::watching::watching;
use world::{World, now, owner};

/// Names the database to the process that looks at it.
const LOOKED_AT: &str = "TENURE_TEST_LOOKED_AT";
/// The first byte of the lock that a connection of SQLite holds as long as it is open (`SHARED_FIRST` of its `os.h`).
const SHARED_FIRST: &str = "1073741826";

/// Not a test by itself: another program that looks at the database of [`database_that_another_program_closes_keeps_what_comes_after`],
/// and says how many tokens there are.
#[test]
fn onlooker() {
    let Ok(path) = std::env::var(LOOKED_AT) else { return };
    let database = rusqlite::Connection::open(Path::new(&path)).unwrap();
    let tokens = "SELECT count(*) FROM passes WHERE kind = 'token'";
    let tokens: i64 = database.query_row(tokens, [], |row| row.get(0)).unwrap();
    println!("\ntokens {tokens}");
}

/// How many tokens another process finds in the database, which closes it then.
fn tokens_seen_from_outside(path: &Path) -> usize {
    let looked = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "onlooker", "--nocapture"])
        .env(LOOKED_AT, path)
        .output()
        .unwrap();
    let text = String::from_utf8(looked.stdout).unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("tokens "));
    count.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// A hub in a folder whose pages were asked for, by more than one connection to its database.
fn asked() -> (World, PathBuf) {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    let token = world.token(&owner(1));
    for path in ["/ready", "/devices", "/v1/devices", "/audit", "/ready"] {
        world.get(path, &[&cookie]);
        world.get(path, &[&token]);
    }
    let path = PathBuf::from(world.place.address());
    (world, path)
}

/// the kernel drops all locks of a process on a file as it closes any descriptor of it.
#[test]
fn hub_whose_pages_were_asked_for_still_holds_its_lock() {
    let (_world, path) = asked();
    let Ok(locks) = fs::read_to_string("/proc/locks") else { return };
    let (process, inode) = (std::process::id().to_string(), fs::metadata(&path).unwrap().ino());
    let is_ours = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |index: usize| words.get(index).copied().unwrap_or_default();
        at(4) == process && at(5).ends_with(&format!(":{inode}")) && at(6) == SHARED_FIRST
    };
    assert!(locks.lines().any(|line| is_ours(&line)), "of {process} on {inode}: {locks}");
}

/// the last one that closes a database deletes its log, and without locks another program is the last one.
#[test]
fn database_that_another_program_closes_keeps_what_comes_after() {
    let (mut world, path) = asked();
    assert_eq!(tokens_seen_from_outside(&path), 1);
    for count in 2..5 {
        world.token(&owner(1));
        assert_eq!(tokens_seen_from_outside(&path), count);
    }
}

/// D-12.
#[test]
fn hub_whose_file_was_replaced_acknowledges_nothing_more() {
    let mut world = World::with_fleet();
    let path = PathBuf::from(world.place.address());
    world.database.check_place().unwrap();
    let copy = path.with_extension("copy");
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
    let refused = world.database.check_place().unwrap_err().to_string();
    assert!(refused.contains("isn't the file any more"), "{refused}");
    world.list_until(1, 13, "shed-2", world::now() + 600);
    assert!(world.database.commit().is_err());
    fs::remove_file(&path).unwrap();
    assert!(world.database.check_place().is_err());
}

const DAY_S: u64 = 24 * 60 * 60;

/// A hub that took note of its clock, and whose device `attic` reported a fault.
fn with_history() -> World {
    let mut world = World::with_fleet();
    world.database.tick(now()).unwrap();
    world.commit();
    let fault = format!(
        "INSERT INTO faults (device, boot, number, machine, happened_unix_s, text) \
         VALUES ('attic', 1, 1, 'thermostat', {}, 'unreachable')",
        now()
    );
    world.write_by_hand(&fault);
    world
}

/// The names of the devices that may be forgotten at that time.
fn forgettable(world: &mut World, at: u64) -> Vec<String> {
    let names = world.database.forgettable(at - 30 * DAY_S, 30 * DAY_S).unwrap().unwrap();
    let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

fn count(world: &mut World, path: &str, number: u8) -> usize {
    let token = world.token(&owner(number));
    world.get(path, &[&token]).json()["items"].as_array().unwrap().len()
}

/// D-1: the clock alone went on, as it does while all are off.
#[test]
fn device_is_forgotten_after_a_month_in_which_the_hub_heard_and_keeps_its_history() {
    let mut world = with_history();
    let later = now() + 31 * DAY_S;
    world.database.tick(later).unwrap();
    world.commit();
    assert_eq!(forgettable(&mut world, later), [""; 0]);
    world.write_by_hand(&format!("UPDATE clocks SET unix_s = {later} WHERE name = 'steady'"));
    assert_eq!(forgettable(&mut world, later), ["attic", "cellar", "shed"]);
    world.keep(|world| world.database.delete(&"attic".parse().unwrap()).unwrap());
    world.keep(|world| world.database.delete(&"cellar".parse().unwrap()).unwrap());
    assert_eq!(count(&mut world, "/v1/devices", 1), 0);
    assert_eq!(count(&mut world, "/v1/faults", 1), 1, "it has an end of its own");
    assert_eq!(world.place.rows("SELECT value FROM figures WHERE name = 'devices'"), ["1"]);
    assert_eq!(world.place.rows("SELECT name FROM devices WHERE owner <> ''").len(), 2);
    let noted = "SELECT subject FROM audit WHERE action = 'forgotten' ORDER BY number";
    assert_eq!(world.place.rows(noted), ["attic", "cellar"]);
    assert_eq!(world.database.records().unwrap().len(), 1, "the shed");

    world.list(1, 10, "attic");
    assert_eq!(count(&mut world, "/v1/devices", 1), 1);
    assert_eq!(count(&mut world, "/v1/faults", 1), 1, "it is back, and so is its history");
    assert!(world.database.verify_audit().unwrap().is_ok());
}

/// The name was free, and is another's now.
#[test]
fn device_with_the_name_of_one_that_was_forgotten_has_nothing_of_its_history() {
    let mut world = with_history();
    world.keep(|world| world.database.delete(&"attic".parse().unwrap()).unwrap());
    world.list(2, 14, "attic");
    for number in [1, 2] {
        assert_eq!(count(&mut world, "/v1/faults", number), 0, "of owner {number}");
    }
    assert_eq!(count(&mut world, "/v1/devices", 2), 2);
}

/// D-1: all passes were deleted by a clock that was a year ahead for less than a minute.
#[test]
fn token_that_is_over_by_a_clock_that_is_wrong_is_good_once_the_clock_is_right() {
    let mut world = with_history();
    let token = world.token(&owner(1));
    let later = now() + 400 * DAY_S;
    world.database.tick(later).unwrap();
    world.pass_at(&owner(1), Access::Session, later);
    assert_eq!(world.get("/v1/devices", &[&token]).status, 200);
    world.write_by_hand(&format!("UPDATE clocks SET unix_s = {later} WHERE name = 'steady'"));
    world.pass_at(&owner(1), Access::Session, later);
    assert_eq!(world.get("/v1/devices", &[&token]).status, 401);
    let noted = "SELECT count(*) FROM audit WHERE action = 'forgot a token that is over'";
    assert_eq!(world.place.rows(noted), ["1"]);
}

/// D-14: a device whose record was taken by a clock that was ahead isn't there until then.
#[test]
fn record_of_a_time_that_never_came_is_over_once_the_clock_is_back() {
    let mut world = with_history();
    let ahead = now() + 365 * DAY_S;
    world.database.tick(ahead).unwrap();
    world.commit();
    world.write_by_hand(&format!(
        "UPDATE devices SET heard_unix_s = {ahead}, expires_unix_s = {ahead} + 60 WHERE name = 'attic'"
    ));
    world.database.tick(now()).unwrap();
    world.commit();
    let states = "SELECT name FROM devices WHERE expires_unix_s > unixepoch() + 86400";
    assert_eq!(world.place.rows(states), [""; 0]);
    let heard = "SELECT count(*) FROM devices WHERE heard_unix_s <= unixepoch() + 60";
    assert_eq!(world.place.rows(heard), ["3"]);
}

/// Nothing waits for such a time, and no pass is good until then.
#[test]
fn what_was_noted_at_a_time_that_never_came_counts_as_noted_when_the_clock_is_back() {
    let mut world = with_history();
    let ahead = now() + 400 * DAY_S;
    world.database.tick(ahead).unwrap();
    world.commit();
    world.pass_at(&owner(1), world::token_access(vec![Scope::Read]), ahead);
    let token = world.token(&owner(2));
    for noted in [
        format!("UPDATE faults SET happened_unix_s = {ahead}"),
        format!("INSERT INTO uploads VALUES ('1', 'somebody', 'a', {ahead})"),
        format!(
            "INSERT INTO machine_reports VALUES ('attic', 'thermostat', 1, {}, 'p', '1', 'running', 'good', \
             0, 0, 0, 0, 0, 0, 0, {ahead}, 0, 0, 0)",
            now()
        ),
        format!("INSERT INTO webhooks VALUES (1, 'ops', 'm', 'o', '{{}}', 1, {ahead} + 300)"),
        format!("INSERT INTO webhooks VALUES (2, 'ops', 'm', 'o', '{{}}', 1, {} + 80000)", now()),
    ] {
        world.write_by_hand(&noted);
    }
    world.database.tick(now()).unwrap();
    world.commit();
    for (table, moment) in [
        ("passes", "made_unix_s"),
        ("passes", "expires_unix_s - 90 * 86400"),
        ("faults", "happened_unix_s"),
        ("machine_reports", "package_unix_s"),
        ("uploads", "began_unix_s"),
    ] {
        let beyond = format!("SELECT count(*) FROM {table} WHERE {moment} > unixepoch() + 60");
        assert_eq!(world.place.rows(&beyond), ["0"], "{moment} of {table}");
    }
    let waiting = "SELECT id FROM webhooks WHERE next_unix_s > unixepoch() + 60";
    assert_eq!(world.place.rows(waiting), ["2"], "it waits for its next try");
    assert_eq!(world.get("/v1/devices", &[&token]).status, 200, "it was made before");
    let good = "SELECT count(*) FROM passes WHERE kind = 'token' AND expires_unix_s > unixepoch()";
    assert_eq!(world.place.rows(good), ["2"]);
}

/// A disk that was full as the clock went back leaves no such time, either.
#[test]
fn clock_that_is_back_is_noted_again_where_the_commit_of_that_failed() {
    let mut world = with_history();
    let ahead = now() + 400 * DAY_S;
    world.database.tick(ahead).unwrap();
    world.commit();
    world.write_by_hand(&format!("UPDATE faults SET happened_unix_s = {ahead}"));
    let path = PathBuf::from(world.place.address());
    let aside = path.with_extension("aside");
    world.database.tick(now()).unwrap();
    fs::rename(&path, &aside).unwrap();
    assert!(world.database.commit().is_err());
    fs::rename(&aside, &path).unwrap();
    world.database.tick(now()).unwrap();
    world.commit();
    let beyond = "SELECT count(*) FROM faults WHERE happened_unix_s > unixepoch() + 60";
    assert_eq!(world.place.rows(beyond), ["0"]);
}

#[test]
fn whatever_is_forgotten_by_time_is_counted_in_the_audit_log() {
    let mut world = with_history();
    world.cookie(&owner(1));
    let token = world.token(&owner(1));
    let push = |world: &World, bytes: &[u8]| {
        let path = format!("/v2/a/blobs/uploads/?digest={}", world::digest(bytes));
        assert_eq!(world.request_bytes("POST", &path, &[&token], bytes).status, 201);
    };
    let upload = |world: &World| {
        assert_eq!(world.request("POST", "/v2/a/blobs/uploads/", &[&token], "").status, 202);
    };
    push(&world, b"one");
    push(&world, b"two");
    upload(&world);
    let long_ago = now() - 100 * DAY_S;
    for over in [
        format!("UPDATE passes SET expires_unix_s = {long_ago} WHERE kind = 'page'"),
        format!("UPDATE blobs SET taken_unix_s = {long_ago}"),
        format!("UPDATE uploads SET began_unix_s = {long_ago}"),
        "UPDATE sweeps SET swept_unix_s = 0".into(),
        format!(
            "INSERT INTO rule_alarms (rule, condition, owner, device, detail, state, raised_unix_s, over_unix_s) \
             VALUES ('away', 'silent > 10m', 'somebody', 'attic', '', 'over', {long_ago}, {long_ago})"
        ),
    ] {
        world.write_by_hand(&over);
    }
    world.pass(&owner(2), Access::Session).unwrap();
    upload(&world);
    watching(&world, Vec::new()).turn(now()).unwrap();
    let noted =
        "SELECT detail FROM audit WHERE action = 'forgotten, as it was over' ORDER BY number";
    assert_eq!(world.place.rows(noted), ["1 sign-in", "1 upload", "2 blobs", "1 alarm"]);
    assert!(world.database.verify_audit().unwrap().is_ok());
}

#[test]
fn jump_of_the_clock_is_told_by_ready_and_stands_in_the_audit_log() {
    let mut world = World::with_fleet();
    for at in [now() - 2 * DAY_S, now()] {
        world.database.tick(at).unwrap();
        world.commit();
    }
    world.database.running().hear(now());
    let ready = world.get("/ready", &[]);
    assert_eq!(ready.status, 200);
    assert!(ready.body.starts_with("ready\nthe clock went ahead by 2days"), "{}", ready.body);
    assert_eq!(world.place.rows("SELECT action FROM audit WHERE who = 'hub'"), ["clock jumped"]);
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// A database with the record number `sequence` of the attic, and its log, as they are left by a process that is killed.
fn killed(folder: &Path, sequence: u64) -> PathBuf {
    let (lived, left) = (folder.join("lived.sqlite"), folder.join("hub.sqlite"));
    let mut database = Database::open(&lived).unwrap();
    assert!(put(&mut database, "attic", sequence));
    database.commit().unwrap();
    for suffix in ["", "-wal"] {
        fs::copy(beside(&lived, suffix), beside(&left, suffix)).unwrap();
    }
    left
}

/// D-2: the log of before, folded into the copy, ruined it.
#[test]
fn copy_that_was_put_beside_the_log_of_before_is_refused_until_it_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.sqlite");
    let mut old = Database::open(folder.path().join("old.sqlite")).unwrap();
    assert!(put(&mut old, "cellar", 7));
    old.commit().unwrap();
    Database::back_up(&folder.path().join("old.sqlite"), &copy).unwrap();
    let path = killed(folder.path(), 1);
    fs::copy(&copy, &path).unwrap();
    let refused = Database::open(&path);
    assert!(matches!(refused, Err(DatabaseError::CopyBesideLog(_))));
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&path).unwrap(), "nothing was folded into it");
    Database::restore(&copy, &path).unwrap();
    for _ in 0..2 {
        let mut database = Database::open(&path).unwrap();
        assert_eq!(sequences(&mut database), [("cellar".to_string(), 7)]);
        assert!(matches!(Database::restore(&copy, &path), Err(DatabaseError::InUse(_))));
    }
    // A hub that took it up and was killed leaves its own log.
    let path = killed(folder.path(), 2);
    assert_eq!(sequences(&mut Database::open(&path).unwrap()), [("attic".to_string(), 2)]);
}

#[test]
fn copy_that_is_damaged_or_no_hubs_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("hub.sqlite"), folder.path().join("copy.sqlite"));
    let mut database = Database::open(&path).unwrap();
    assert!(put(&mut database, "attic", 1));
    database.commit().unwrap();
    Database::back_up(&path, &copy).unwrap();
    drop(database);
    let whole = fs::read(&copy).unwrap();
    let mut damaged = whole.clone();
    damaged[4096..].fill(0xA5);
    for bytes in [&damaged[..], &whole[..4096], b"no database", &[]] {
        fs::write(&copy, bytes).unwrap();
        assert!(Database::restore(&copy, &path).is_err(), "{} bytes", bytes.len());
        let mut database = Database::open(&path).unwrap();
        assert_eq!(sequences(&mut database), [("attic".to_string(), 1)]);
    }
    let left = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("restored")));
}

/// D-8: a file system after a crash may have made it so.
#[test]
fn database_that_is_gone_or_empty_is_not_taken_for_a_new_hub() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.sqlite");
    let mut database = Database::open(&path).unwrap();
    assert!(put(&mut database, "attic", 1));
    database.commit().unwrap();
    let copy = folder.path().join("copy.sqlite");
    Database::back_up(&path, &copy).unwrap();
    drop(database);
    fs::write(&path, "").unwrap();
    assert!(matches!(Database::open(&path), Err(DatabaseError::Gone(_))));
    fs::remove_file(&path).unwrap();
    assert!(matches!(Database::open(&path), Err(DatabaseError::Gone(_))));
    assert!(!path.exists());
    Database::restore(&copy, &path).unwrap();
    assert_eq!(sequences(&mut Database::open(&path).unwrap()), [("attic".to_string(), 1)]);
    // One whose making broke off before there was anything is made.
    let other = folder.path().join("other.sqlite");
    fs::write(&other, "").unwrap();
    fs::write(other.with_extension("lock"), "").unwrap();
    Database::open(&other).unwrap();
}

/// D-7: its journal was changed before anybody looked whose it was.
#[test]
fn database_of_another_program_is_refused_and_left_byte_for_byte_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a file of % others.sqlite");
    let others = rusqlite::Connection::open(&path).unwrap();
    others
        .execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')")
        .unwrap();
    drop(others);
    let before = fs::read(&path).unwrap();
    assert!(matches!(Database::open(&path), Err(DatabaseError::Foreign)));
    assert_eq!(before, fs::read(&path).unwrap());
    assert!(!beside(&path, "-wal").exists() && !beside(&path, "-shm").exists());
}

/// D-4: a start that writes needs room on the disk.
#[test]
fn start_of_a_hub_writes_nothing_where_nothing_is_due() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.sqlite");
    drop(Database::open(&path).unwrap());
    let watching = rusqlite::Connection::open(&path).unwrap();
    let version =
        || -> i64 { watching.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap() };
    let before = version();
    drop(Database::open(&path).unwrap());
    assert_eq!(version(), before);
}

/// D-16.
#[test]
fn backup_begins_beside_no_journal_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("hub.sqlite"), folder.path().join("copy.sqlite"));
    let _database = Database::open(&path).unwrap();
    fs::write(beside(&copy, "-journal"), "of another one").unwrap();
    Database::back_up(&path, &copy).unwrap();
    assert!(!beside(&copy, "-journal").exists());
}
