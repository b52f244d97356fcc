//! What a hub acknowledged is there afterwards, whatever other programs do with its file meanwhile.

mod world;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_hub::Storage as _;
use world::{World, owner};

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
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return };
    let (process, inode) =
        (std::process::id().to_string(), std::fs::metadata(&path).unwrap().ino());
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
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    let refused = world.database.check_place().unwrap_err().to_string();
    assert!(refused.contains("isn't the file any more"), "{refused}");
    world.list_until(1, 13, "shed-2", world::now() + 600);
    assert!(world.database.commit().is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(world.database.check_place().is_err());
}
