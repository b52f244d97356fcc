use std::fs;
use std::path::PathBuf;

use super::*;
use tenure_store::{MountError, Store, TreeId, ValueKind};

const BYTES: u32 = 8 * SECTOR_BYTES;

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    (folder, path)
}

fn create(path: &Path) -> FileFlash {
    FileFlash::open_or_create(path, BYTES, Durability::ProcessKill).unwrap()
}

fn problem(path: &Path) -> OpenError {
    FileFlash::open_or_create(path, BYTES, Durability::ProcessKill).unwrap_err()
}

#[test]
fn a_new_flash_is_erased_and_keeps_what_is_programmed() {
    for durability in [Durability::PowerLoss, Durability::ProcessKill] {
        let (_folder, path) = file();
        let mut flash = FileFlash::open_or_create(&path, BYTES, durability).unwrap();
        assert_eq!(flash.geometry().bytes(), BYTES);
        assert!(flash.mapped().unwrap().iter().all(|byte| *byte == 0xFF));
        flash.program(5000, b"kept").unwrap();
        drop(flash);
        let mut flash = FileFlash::open(&path, durability).unwrap();
        assert_eq!(flash.mapped().unwrap()[5000..5004], *b"kept");
        flash.erase(1).unwrap();
        let mut read = [0; 4];
        flash.read(5000, &mut read).unwrap();
        assert_eq!(read, [0xFF; 4]);
        assert_eq!(fs::read(&path).unwrap(), flash.mapped().unwrap());
    }
}

#[test]
fn it_refuses_what_nor_flash_refuses() {
    let (_folder, path) = file();
    let mut flash = create(&path);
    flash.program(0, &[0xF0, 0x0F]).unwrap();
    assert_eq!(flash.program(0, &[0xF0, 0x1F]), Err(FlashError::NotErased));
    assert_eq!(flash.program(BYTES - 1, &[0, 0]), Err(FlashError::OutOfRange));
    assert_eq!(flash.read(u32::MAX, &mut [0; 2]), Err(FlashError::OutOfRange));
    assert_eq!(flash.erase(8), Err(FlashError::OutOfRange));
    assert_eq!(flash.erase(u32::MAX), Err(FlashError::OutOfRange));
    assert_eq!(fs::read(&path).unwrap()[..2], [0xF0, 0x0F]);
}

#[test]
fn a_second_user_is_refused_until_the_first_is_gone() {
    let (_folder, path) = file();
    let [first, second] = create(&path).split([2, 2]).unwrap();
    let error = problem(&path);
    assert!(matches!(error.problem, OpenProblem::InUse));
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    drop(first);
    assert!(matches!(problem(&path).problem, OpenProblem::InUse), "the other part holds it");
    drop(second);
    create(&path);
}

#[test]
fn parts_are_flashes_of_their_own() {
    let (_folder, path) = file();
    let [mut first, mut second] = create(&path).split([3, 4]).unwrap();
    first.program(0, b"first").unwrap();
    second.program(0, b"second").unwrap();
    assert_eq!(second.geometry().sector_count, 4);
    assert_eq!(first.program(3 * SECTOR_BYTES, b"x"), Err(FlashError::OutOfRange));
    assert_eq!(second.mapped().unwrap()[..6], *b"second");
    let contents = fs::read(&path).unwrap();
    assert_eq!(contents[..5], *b"first");
    assert_eq!(contents[3 * 4096..][..6], *b"second");
    drop((first, second));
    let error = create(&path).split([4, 5]).unwrap_err();
    assert!(matches!(error, SplitError::TooFewSectors { asked: 9, present: 8 }));
}

#[test]
fn a_creation_that_was_broken_off_is_completed() {
    let (_folder, path) = file();
    for present in [0, 1, 5000] {
        fs::write(&path, vec![0xFF; present]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(OWNER_ONLY)).unwrap();
        assert_eq!(create(&path).geometry().bytes(), BYTES);
    }
}

#[test]
fn files_that_are_no_flash_are_left_alone_and_named() {
    let (folder, path) = file();
    for text in [b"precious".repeat(10), b"precious".repeat(100_000)] {
        fs::write(&path, &text).unwrap();
        let error = problem(&path);
        assert!(matches!(error.problem, OpenProblem::WrongSize { asked: 32_768, .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), text);
    }
    assert!(matches!(problem(folder.path()).problem, OpenProblem::IsFolder));
    let error = problem(&folder.path().join("missing/flash"));
    assert!(matches!(error.problem, OpenProblem::NoFolder));
    assert!(error.to_string().contains("missing/flash"), "{error}");
    assert!(matches!(problem(&path.join("flash")).problem, OpenProblem::NoFolder));
    let absent = FileFlash::open(&folder.path().join("absent"), Durability::ProcessKill);
    assert!(matches!(absent.unwrap_err().problem, OpenProblem::NotFound));
    let odd = FileFlash::open_or_create(&path, 1000, Durability::ProcessKill).unwrap_err();
    assert!(matches!(odd.problem, OpenProblem::BadSize { bytes: 1000 }));
}

#[test]
fn flash_that_other_users_may_read_or_write_is_refused_until_it_is_private() {
    let (_folder, path) = file();
    drop(create(&path));
    for mode in [0o640, 0o604, 0o602] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = problem(&path);
        assert!(matches!(error.problem, OpenProblem::Exposed), "{mode:o}: {error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    create(&path);
}

#[test]
fn what_may_not_be_written_is_named() {
    let error = problem(Path::new("/proc/version"));
    let is_expected = matches!(error.problem, OpenProblem::NotWritable | OpenProblem::Io(_));
    assert!(is_expected && error.to_string().starts_with("/proc/version"), "{error}");
}

#[test]
fn a_store_lives_in_a_file() {
    let (_folder, path) = file();
    let mounted = Store::mount(create(&path)).map(|_| ()).unwrap_err();
    assert_eq!(mounted, MountError::Blank);
    let mut store = Store::format(create(&path)).unwrap();
    for round in 0..3000u32 {
        let key = format!("key{}", round % 50);
        store.set(TreeId(1), &key, ValueKind::Bytes, &round.to_le_bytes()).unwrap();
    }
    drop(store);
    let (mut store, report) = Store::mount(create(&path)).unwrap();
    assert_eq!((report.keys, report.damaged_records), (50, 0));
    let value = store.get(TreeId(1), "key49").unwrap().unwrap();
    assert_eq!(value.bytes, 2999u32.to_le_bytes());
}
