//! The database: what was acknowledged is there after a kill, a full disk or a move from flash.

#[path = "world/records.rs"]
mod records;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tenure_hal::FlashGeometry;
use tenure_hal::simulated::{RamFlash, Random, Sequence};
use tenure_hub::{FlashStorage, Storage};
use tenure_hub_server::{Broken, Database, DatabaseError};

use records::{NOW, put, sequences};

/// Names the database to the process that is killed.
const VICTIM: &str = "TENURE_TEST_VICTIM";

fn path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("hub.sqlite")
}

#[test]
fn what_was_committed_is_there_after_a_restart_and_the_rest_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::open(path(&folder)).unwrap();
    database.set_seed(&[7; 32]).unwrap();
    assert!(put(&mut database, "attic", 1));
    database.commit().unwrap();
    assert!(put(&mut database, "attic", 2) && put(&mut database, "cellar", 1));
    drop(database);
    let mut database = Database::open(path(&folder)).unwrap();
    assert_eq!(database.seed().unwrap(), Some([7; 32]));
    assert_eq!(sequences(&mut database), [("attic".to_string(), 1)]);
}

/// Not a test by itself: the process that [`process_that_is_killed_while_it_writes_loses_nothing_acknowledged`]
/// starts and kills. It says each number after its commit.
#[test]
fn victim() {
    let Ok(path) = std::env::var(VICTIM) else { return };
    let mut database = Database::open(Path::new(&path)).unwrap();
    let first = sequences(&mut database).iter().map(|(_, sequence)| *sequence).max().unwrap_or(0);
    for sequence in first + 1.. {
        for device in 0..4 {
            assert!(put(&mut database, &format!("device-{device}"), sequence));
        }
        database.commit().unwrap();
        println!("\ncommitted {sequence}");
    }
}

#[test]
fn process_that_is_killed_while_it_writes_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env(VICTIM, path(&folder))
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
        let mut database = Database::open(path(&folder)).unwrap();
        let kept = sequences(&mut database);
        assert_eq!(kept.len(), 4);
        assert!(kept.iter().all(|(_, sequence)| *sequence == kept[0].1), "all or none: {kept:?}");
        assert!(kept[0].1 >= acknowledged, "{} after {acknowledged}", kept[0].1);
        assert_eq!(database.verify_audit().unwrap().unwrap().unwrap().number, 4);
    }
    assert!(acknowledged > 0);
}

/// The files of a database: itself, and its log.
#[derive(Clone, Default)]
struct Files {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Files {
    /// As they stand. Nobody but this process has them open, which loses its locks on them by that.
    fn at(path: &Path) -> Self {
        let log = fs::read(path.with_extension("sqlite-wal")).unwrap_or_default();
        Self { database: fs::read(path).unwrap(), log }
    }

    /// Starts a hub on what a power cut left, and returns the number that all its records have.
    fn taken_up(&self) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder);
        fs::write(&path, &self.database).unwrap();
        fs::write(path.with_extension("sqlite-wal"), &self.log).unwrap();
        let mut database = Database::open(&path).unwrap();
        let kept = sequences(&mut database);
        assert!(kept.iter().all(|(_, sequence)| *sequence == kept[0].1), "all or none: {kept:?}");
        assert!(database.verify_audit().unwrap().is_ok(), "its audit log is whole");
        kept[0].1
    }
}

/// What a power cut may leave of `before` while `after` is being written in its place: the sectors come to the disk in any
/// order, and of one that is being written the bytes that change are anything (sqlite.org/psow.html).
fn torn(random: &mut Random, before: &[u8], after: &[u8]) -> Vec<u8> {
    const SECTOR_BYTES: usize = 512;
    let mut left = before.to_vec();
    // A file may have grown before anything was written there.
    left.resize(before.len().max(after.len()), 0);
    for (old, new) in left.chunks_mut(SECTOR_BYTES).zip(after.chunks(SECTOR_BYTES)) {
        let written = &mut old[..new.len()];
        match random.below(8) {
            _ if *written == *new => {}
            0..=3 => written.copy_from_slice(new),
            4 => {
                let changing = written.iter_mut().zip(new).filter(|(old, new)| **old != **new);
                changing.for_each(|(old, _)| *old = random.number() as u8);
            }
            _ => {}
        }
    }
    left
}

/// Every commit waits for its log, and a checkpoint for the log before it changes the database: so a cut of power finds
/// either torn, and never both.
#[test]
fn power_cut_that_tears_the_log_or_the_database_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::open(path(&folder)).unwrap();
    let mut random = Random::new(56);
    let (mut before, mut checkpoints) = (Files::default(), 0);
    for sequence in 1_u64.. {
        assert!(sequence < 3_000, "a checkpoint comes now and then");
        for device in 0..4 {
            assert!(put(&mut database, &format!("device-{device}"), sequence));
        }
        database.commit().unwrap();
        let after = Files::at(&path(&folder));
        let has_changed = after.database != before.database && sequence > 1;
        let is_restarted = after.log.first_chunk::<32>() != before.log.first_chunk::<32>();
        let is_looked_at = sequence > 1 && (sequence.is_multiple_of(16) || is_restarted);
        let (cuts, tears) = (if is_looked_at { 4 } else { 0 }, if has_changed { 8 } else { 0 });
        for _ in 0..cuts {
            let log = torn(&mut random, &before.log, &after.log);
            let cut = Files { database: before.database.clone(), log };
            let kept = cut.taken_up();
            assert!(kept + 1 >= sequence, "{kept} while {sequence} was written");
        }
        for _ in 0..tears {
            let database = torn(&mut random, &before.database, &after.database);
            let cut = Files { database, log: after.log.clone() };
            assert_eq!(cut.taken_up(), sequence, "it was acknowledged");
        }
        checkpoints += u32::from(has_changed);
        before = after;
        if checkpoints == 2 && is_restarted {
            return;
        }
    }
}

#[test]
fn full_disk_refuses_the_whole_batch_and_writes_go_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::open(path(&folder)).unwrap();
    assert!(put(&mut database, "attic", 1));
    database.commit().unwrap();
    let pages = rusqlite::Connection::open(path(&folder)).unwrap();
    let pages: u32 = pages.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    database.limit_pages(Some(pages + 60)).unwrap();
    let mut count = 0;
    while put(&mut database, &format!("device-{count}"), 1) {
        count += 1;
        assert!(count < 10_000, "the limit is never met");
    }
    assert!(count > 0, "some of the batch were written before");
    assert!(!put(&mut database, "cellar", 1), "nothing more counts in this batch");
    assert!(database.commit().is_err());
    // D-17: what devices say isn't known from now on.
    assert!(!database.keeps_records());
    assert_eq!(sequences(&mut database), [("attic".to_string(), 1)]);
    database.limit_pages(None).unwrap();
    database.commit().unwrap();
    assert!(!database.keeps_records(), "no record was kept");
    assert!(put(&mut database, "cellar", 1));
    database.commit().unwrap();
    assert!(database.keeps_records());
    assert_eq!(sequences(&mut database).len(), 2);
}

#[test]
fn records_and_identity_of_a_flash_file_are_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = FlashGeometry { sector_bytes: 4096, sector_count: 64, program_bytes: 4 };
    let mut flash = FlashStorage::open(RamFlash::new(geometry), &mut Sequence(1)).unwrap();
    flash.set_seed(&[8; 32]).unwrap();
    assert!(put(&mut flash, "attic", 5) && put(&mut flash, "cellar", 6));
    let mut database = Database::open(path(&folder)).unwrap();
    assert_eq!(database.import(&mut flash, NOW).unwrap(), 2);
    drop(database);
    let mut database = Database::open(path(&folder)).unwrap();
    assert_eq!(database.seed().unwrap(), Some([8; 32]));
    assert_eq!(sequences(&mut database), [("attic".to_string(), 5), ("cellar".to_string(), 6)]);
}

#[test]
fn second_process_on_the_same_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = Database::open(path(&folder)).unwrap();
    assert!(matches!(Database::open(path(&folder)), Err(DatabaseError::InUse(_))));
    drop(first);
    Database::open(path(&folder)).unwrap();
}

#[test]
fn backup_of_a_running_hub_is_a_whole_database_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::open(path(&folder)).unwrap();
    database.set_seed(&[7; 32]).unwrap();
    assert!(put(&mut database, "attic", 1));
    database.commit().unwrap();
    assert!(put(&mut database, "attic", 2), "a transaction is under way");
    let copy = folder.path().join("copy.sqlite");
    Database::back_up(&path(&folder), &copy).unwrap();
    assert!(Database::back_up(&path(&folder), &copy).is_err(), "it exists");
    database.commit().unwrap();
    let mut copied = Database::open(&copy).unwrap();
    assert_eq!(copied.seed().unwrap(), Some([7; 32]));
    assert_eq!(sequences(&mut copied), [("attic".to_string(), 1)]);
    let missing = folder.path().join("missing.sqlite");
    assert!(Database::back_up(&missing, &folder.path().join("other")).is_err());
    assert!(!missing.exists(), "a backup makes no database");
}

/// A backup in steps begins anew after each write of another connection, unless it holds its snapshot.
#[test]
fn backup_beside_a_writer_that_never_stops_ends_and_is_of_one_moment() {
    const COMMITS_MAX: u64 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(path(&folder)).unwrap();
    let writer = rusqlite::Connection::open(path(&folder)).unwrap();
    writer.pragma_update(None, "synchronous", "OFF").unwrap();
    let ballast = "CREATE TABLE ballast (bytes BLOB); \
         INSERT INTO ballast WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 16) \
         SELECT zeroblob(1 << 20) FROM n; \
         CREATE TABLE pair (one INTEGER, two INTEGER); INSERT INTO pair VALUES (0, 0)";
    writer.execute_batch(ballast).unwrap();
    let (begun, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let copy = folder.path().join("copy.sqlite");
    std::thread::scope(|scope| {
        let (begun, ended) = (&begun, &ended);
        scope.spawn(move || {
            for _ in 0..COMMITS_MAX {
                writer.execute("UPDATE pair SET one = one + 1, two = two + 1", []).unwrap();
                begun.fetch_add(1, Ordering::Relaxed);
                if ended.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        while begun.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        Database::back_up(&path(&folder), &copy).unwrap();
        ended.store(true, Ordering::Relaxed);
    });
    assert!(begun.into_inner() < COMMITS_MAX, "it ended before the writer did");
    drop(database);
    let copied = rusqlite::Connection::open(&copy).unwrap();
    let pair = copied.query_row("SELECT one, two FROM pair", [], |row| {
        Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?))
    });
    let (one, two) = pair.unwrap();
    assert!(one == two && one > 0, "{one} and {two}");
}

#[test]
fn database_of_a_newer_version_or_of_another_program_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    drop(Database::open(path(&folder)).unwrap());
    let change = |statement: &str| {
        let connection = rusqlite::Connection::open(path(&folder)).unwrap();
        connection.execute_batch(statement).unwrap();
    };
    change("PRAGMA user_version = 999");
    let newer = Database::open(path(&folder));
    assert!(matches!(newer, Err(DatabaseError::Newer { version: 999, .. })));
    change("PRAGMA application_id = 1");
    assert!(matches!(Database::open(path(&folder)), Err(DatabaseError::Foreign)));
    let other = folder.path().join("hub.other");
    std::fs::write(&other, "not a database, but long enough to be read as one".repeat(40)).unwrap();
    assert!(matches!(Database::open(&other), Err(DatabaseError::Sql(_))));
}

/// A database that a hub made, and that somebody changed by this.
fn changed(statement: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop(Database::open(path(&folder)).unwrap());
    let connection = rusqlite::Connection::open(path(&folder)).unwrap();
    connection.execute_batch(statement).unwrap();
    folder
}

// Audit B, §1 and §6: the file of a backup may be anybody's.
#[test]
fn file_that_would_compute_is_no_hub_s_database_for_a_hub_and_for_a_look_at_its_log() {
    for (statement, named) in [
        (
            "ALTER TABLE audit RENAME TO kept; CREATE VIEW audit AS \
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT n AS number FROM n",
            "audit",
        ),
        ("CREATE TRIGGER t AFTER INSERT ON passes BEGIN DELETE FROM audit; END", "t"),
        (
            "CREATE TRIGGER t AFTER UPDATE ON devices BEGIN UPDATE passes SET scopes = 'people'; END",
            "t",
        ),
        ("CREATE VIEW v AS SELECT 1", "v"),
        ("DROP VIEW alarms; CREATE VIEW alarms AS SELECT 1", "alarms"),
        (
            "DROP TRIGGER device_gone; CREATE TRIGGER device_gone AFTER DELETE ON devices BEGIN SELECT 1; END",
            "device_gone",
        ),
        (
            "DROP TABLE audit; CREATE TABLE audit (number INTEGER, unix_s INTEGER, who TEXT, action TEXT, subject TEXT, \
             detail TEXT AS (who || who), owner TEXT, hash BLOB, \"by\" TEXT)",
            "audit",
        ),
        (
            "DROP TABLE people; CREATE TABLE people (id INTEGER PRIMARY KEY, owner TEXT, name TEXT, role TEXT)",
            "people",
        ),
        ("CREATE TRIGGER \"\u{1b}[2J\" AFTER INSERT ON passes BEGIN SELECT 1; END", "\u{FFFD}[2J"),
    ] {
        let folder = changed(statement);
        let is_named = |error: Option<DatabaseError>| matches!(&error, Some(DatabaseError::Schema(name)) if name == named);
        assert!(is_named(Database::read(path(&folder)).err()), "{statement}");
        assert!(is_named(Database::open(path(&folder)).err()), "{statement}");
    }
    // What computes nothing by itself may have been added.
    let folder = changed(
        "CREATE TABLE notes (text TEXT); CREATE INDEX notes_by_text ON notes (text); ANALYZE",
    );
    assert!(Database::read(path(&folder)).is_ok() && Database::open(path(&folder)).is_ok());
}

#[test]
fn text_of_hundreds_of_megabytes_in_an_audit_log_takes_no_such_memory() {
    let folder = changed(
        "INSERT INTO audit VALUES (1, 1, '', '', CAST(zeroblob(3000000) AS TEXT), '', '', zeroblob(32), '')",
    );
    let verified = Database::read(path(&folder)).unwrap().verify_audit();
    assert!(matches!(verified, Err(DatabaseError::Sql(_))), "{verified:?}");
}

#[test]
fn file_of_another_program_has_no_log_of_a_hub() {
    let folder = tempfile::tempdir().unwrap();
    let connection = rusqlite::Connection::open(path(&folder)).unwrap();
    connection.execute_batch("CREATE TABLE audit (number INTEGER)").unwrap();
    assert!(matches!(Database::read(path(&folder)), Err(DatabaseError::Foreign)));
}

#[test]
fn changed_deleted_or_exchanged_audit_entry_is_found() {
    for (change, number) in [
        ("UPDATE audit SET subject = 'other' WHERE number = 2", 2),
        ("DELETE FROM audit WHERE number = 1", 1),
        ("UPDATE audit SET unix_s = unix_s + 1 WHERE number = 3", 3),
        ("UPDATE audit SET who = who || 'x', action = substr(action, 2) WHERE number = 1", 1),
        ("UPDATE audit SET \"by\" = 'Eve' WHERE number = 2", 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::open(path(&folder)).unwrap();
        for device in ["attic", "cellar", "shed"] {
            assert!(put(&mut database, device, 1));
        }
        database.commit().unwrap();
        assert_eq!(database.verify_audit().unwrap().unwrap().unwrap().number, 3);
        let connection = rusqlite::Connection::open(path(&folder)).unwrap();
        connection.execute_batch(change).unwrap();
        assert_eq!(database.verify_audit().unwrap(), Err(Broken { number }), "{change}");
    }
}

#[test]
fn audit_log_of_a_backup_from_before_it_named_people_is_verified_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::open(path(&folder)).unwrap();
    assert!(put(&mut database, "attic", 1) && put(&mut database, "cellar", 1));
    database.commit().unwrap();
    drop(database);
    let before = folder.path().join("before.sqlite");
    let connection = rusqlite::Connection::open(&before).unwrap();
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for step in 1..=11 {
        let step = std::fs::read_to_string(migrations.join(format!("{step}.sql"))).unwrap();
        connection.execute_batch(&step).unwrap();
    }
    connection
        .execute_batch("PRAGMA application_id = 0x546E4862; PRAGMA user_version = 11")
        .unwrap();
    connection.execute("ATTACH ?1 AS now", [path(&folder).to_str().unwrap()]).unwrap();
    let copy = "INSERT INTO audit SELECT number, unix_s, who, action, subject, detail, owner, hash FROM now.audit";
    connection.execute_batch(copy).unwrap();
    let old = Database::read(&before).unwrap();
    assert_eq!(old.verify_audit().unwrap().unwrap().unwrap().number, 2);
    connection.execute_batch("UPDATE audit SET who = 'x' WHERE number = 2").unwrap();
    assert_eq!(old.verify_audit().unwrap(), Err(Broken { number: 2 }));
}
