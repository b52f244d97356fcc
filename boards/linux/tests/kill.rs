//! A process that writes is killed; what it had acknowledged is there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tenure_board_linux::{Durability, FileFlash};
use tenure_store::{Store, TreeId, ValueKind};

const FILE: &str = "TENURE_TEST_FLASH_FILE";
const BYTES: u32 = 64 * 1024;
const TREE: TreeId = TreeId(0);

fn open(path: &Path) -> Store<FileFlash> {
    let flash = FileFlash::open_or_create(path, BYTES, Durability::ProcessKill).unwrap();
    Store::mount_or_format(flash, 0).unwrap().0
}

/// The counter that is stored.
fn stored(store: &mut Store<FileFlash>) -> u64 {
    let Some(counter) = store.get(TREE, "counter").unwrap() else {
        return 0;
    };
    u64::from_le_bytes(counter.bytes.try_into().unwrap())
}

/// The process that is killed: counts up in the store, and says each number once it is stored.
#[test]
#[ignore = "is started by the other test"]
fn writer() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let mut store = open(Path::new(&path));
    let mut counter = stored(&mut store);
    loop {
        counter += 1;
        store.set(TREE, "counter", ValueKind::Bytes, &counter.to_le_bytes()).unwrap();
        println!("stored {counter}");
    }
}

#[test]
fn killing_the_process_loses_no_acknowledged_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let mut acknowledged = 0;
    for round in 1..=20 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "writer", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let numbers = lines.by_ref().filter_map(|line| {
            line.unwrap().strip_prefix("stored ").map(|number| number.parse().unwrap())
        });
        acknowledged = numbers.take(100 * round).last().unwrap_or(acknowledged);
        process.kill().unwrap();
        process.wait().unwrap();

        let found = stored(&mut open(&path));
        assert!(found >= acknowledged, "round {round}: {acknowledged} acknowledged, {found} found");
        acknowledged = found;
    }
    assert!(acknowledged > 20_000, "only {acknowledged} writes");
}
