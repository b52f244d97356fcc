//! The behaviour of a tree, operation by operation.

use tenure_hal::FlashGeometry;
use tenure_hal::simulated::RamFlash;
use tenure_store::{
    Change, DeleteError, MountError, PathError, ReadError, SetError, Store, TreeId, ValueKind,
};

const OURS: TreeId = TreeId(7);
const THEIRS: TreeId = TreeId(8);

const GEOMETRY: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 8, program_bytes: 4 };

fn empty() -> Store<RamFlash> {
    Store::format(RamFlash::new(GEOMETRY)).unwrap()
}

fn remount(store: Store<RamFlash>) -> Store<RamFlash> {
    let (store, report) = Store::mount(store.into_flash()).unwrap();
    assert_eq!(report.damaged_records, 0);
    assert_eq!(report.damaged_headers, 0);
    store
}

fn set(store: &mut Store<RamFlash>, tree: TreeId, path: &str, value: &str) {
    store.set(tree, path, ValueKind::Text, value.as_bytes()).unwrap();
}

fn text(store: &mut Store<RamFlash>, tree: TreeId, path: &str) -> Option<String> {
    let value = store.get(tree, path).unwrap()?;
    assert_eq!(value.kind, ValueKind::Text);
    Some(String::from_utf8(value.bytes).unwrap())
}

#[test]
fn what_is_set_is_read_back_also_after_a_mount() {
    let mut store = empty();
    set(&mut store, OURS, "lamp.kitchen.state", "on");
    set(&mut store, THEIRS, "lamp.kitchen.state", "off");
    store.set(OURS, "lamp.raw", ValueKind::Bytes, &[0, 255, 0]).unwrap();
    set(&mut store, OURS, "lamp.kitchen.state", "dimmed");
    for _ in 0..2 {
        assert_eq!(text(&mut store, OURS, "lamp.kitchen.state").as_deref(), Some("dimmed"));
        assert_eq!(text(&mut store, THEIRS, "lamp.kitchen.state").as_deref(), Some("off"));
        let raw = store.get(OURS, "lamp.raw").unwrap().unwrap();
        assert_eq!((raw.kind, raw.bytes), (ValueKind::Bytes, vec![0, 255, 0]));
        assert_eq!(store.get(OURS, "lamp").unwrap(), None);
        assert_eq!(store.get(OURS, "lamp.kitchen").unwrap(), None);
        assert_eq!(store.keys(OURS), 2);
        store = remount(store);
    }
}

#[test]
fn empty_values_and_values_that_look_erased_are_kept() {
    let mut store = empty();
    store.set(OURS, "empty", ValueKind::Bytes, &[]).unwrap();
    store.set(OURS, "blank", ValueKind::Bytes, &[0xFF; 300]).unwrap();
    let mut store = remount(store);
    assert_eq!(store.get(OURS, "empty").unwrap().unwrap().bytes, []);
    set(&mut store, OURS, "next", "not over it");
    let mut store = remount(store);
    assert_eq!(store.get(OURS, "blank").unwrap().unwrap().bytes, [0xFF; 300]);
    assert_eq!(text(&mut store, OURS, "next").as_deref(), Some("not over it"));
}

#[test]
fn children_are_listed_in_order_with_inner_nodes_and_once_each() {
    let mut store = empty();
    for path in ["b.c.d", "b.c.e", "b.a", "b-x", "b", "a.z", "b.c-c", "b.c", "bb.q"] {
        set(&mut store, OURS, path, path);
    }
    set(&mut store, THEIRS, "other", "");
    let mut children = |path: &str| store.children(OURS, path).unwrap();
    assert_eq!(children(""), ["a", "b", "b-x", "bb"]);
    assert_eq!(children("b"), ["a", "c", "c-c"]);
    assert_eq!(children("b.c"), ["d", "e"]);
    assert_eq!(children("b.c.d"), [""; 0]);
    assert_eq!(children("nowhere"), [""; 0]);
    assert!(store.exists(OURS, "a").unwrap());
    assert!(store.exists(OURS, "b.c.e").unwrap());
    assert!(!store.exists(OURS, "b.c.e.f").unwrap());
    assert!(!store.exists(OURS, "aa").unwrap());
    assert_eq!(store.children(TreeId(0), "").unwrap(), [""; 0]);
}

#[test]
fn all_paths_are_walked_in_order() {
    let mut store = empty();
    for path in ["b.c.d", "b-x", "b", "a.z", "b.c"] {
        set(&mut store, OURS, path, path);
    }
    let mut paths = vec![];
    while let Some(path) = store.next_path(OURS, paths.last().map(String::as_str)).unwrap() {
        paths.push(path);
    }
    assert_eq!(paths, ["a.z", "b", "b.c", "b.c.d", "b-x"]);
}

#[test]
fn delete_takes_a_node_with_all_below_it_and_no_other() {
    let mut store = empty();
    for path in ["a", "a.b", "a.b.c", "a-b", "ab", "b"] {
        set(&mut store, OURS, path, path);
        set(&mut store, THEIRS, path, path);
    }
    assert_eq!(store.delete(OURS, "a").unwrap(), 3);
    assert_eq!(store.delete(OURS, "a").unwrap(), 0);
    assert_eq!(store.delete(THEIRS, "a.b").unwrap(), 2);
    let mut store = remount(store);
    assert_eq!(store.children(OURS, "").unwrap(), ["a-b", "ab", "b"]);
    assert_eq!(store.children(THEIRS, "").unwrap(), ["a", "a-b", "ab", "b"]);
    assert_eq!(store.children(THEIRS, "a").unwrap(), [""; 0]);

    assert_eq!(store.delete(OURS, "").unwrap(), 3);
    let mut store = remount(store);
    assert_eq!(store.stored_bytes(OURS), 0);
    assert_eq!(store.trees().collect::<Vec<_>>(), [THEIRS]);
    assert_eq!(text(&mut store, THEIRS, "b").as_deref(), Some("b"));
}

#[test]
fn a_batch_is_done_in_order() {
    let mut store = empty();
    set(&mut store, OURS, "old.a", "1");
    set(&mut store, OURS, "old.b", "2");
    let value = |path, value: &'static str| Change::Set {
        tree: OURS,
        path,
        kind: ValueKind::Text,
        value: value.as_bytes(),
    };
    store
        .batch(&[
            Change::Delete { tree: OURS, path: "" },
            value("new", "3"),
            value("old.b", "4"),
            value("gone", "5"),
            Change::Delete { tree: OURS, path: "gone" },
        ])
        .unwrap();
    for _ in 0..2 {
        assert_eq!(store.children(OURS, "").unwrap(), ["new", "old"]);
        assert_eq!(text(&mut store, OURS, "old.a"), None);
        assert_eq!(text(&mut store, OURS, "old.b").as_deref(), Some("4"));
        store = remount(store);
    }
}

#[test]
fn a_batch_of_many_small_values_waits_for_the_flash_a_few_times() {
    let mut store = empty();
    let paths: Vec<String> = (0..200).map(|number| format!("key{number}")).collect();
    let changes: Vec<_> = paths
        .iter()
        .map(|path| Change::Set { tree: OURS, path, kind: ValueKind::Text, value: path.as_bytes() })
        .collect();
    store.flash_mut().reset_counters();
    store.batch(&changes).unwrap();
    let counters = store.flash_mut().counters();
    // A kilobyte at once, and a header and a broken-off run for each sector; two commits.
    let sectors = counters.erases;
    assert!(counters.programs <= counters.program_bytes / 1024 + 2 * sectors + 3, "{counters:?}");
    let mut store = remount(store);
    for path in &paths {
        assert_eq!(text(&mut store, OURS, path).as_deref(), Some(&path[..]));
    }
}

#[test]
fn a_batch_with_one_bad_change_does_nothing() {
    let mut store = empty();
    let good = Change::Set { tree: OURS, path: "a", kind: ValueKind::Text, value: b"x" };
    let bad = Change::Delete { tree: OURS, path: "a..b" };
    let error = store.batch(&[good, bad]).unwrap_err();
    assert_eq!(error.to_string(), "change 1: the path has an empty name");
    assert_eq!(text(&mut store, OURS, "a"), None);
    store.batch(&[]).unwrap();
}

#[test]
fn bad_paths_and_long_values_are_refused() {
    let mut store = empty();
    let long = "x".repeat(129);
    let cases = [
        ("", PathError::Empty),
        (".", PathError::EmptySegment),
        ("a.", PathError::EmptySegment),
        (".a", PathError::EmptySegment),
        ("a..b", PathError::EmptySegment),
        (&long, PathError::TooLong),
        ("a\0b", PathError::ControlCharacter),
        ("a.b\n", PathError::ControlCharacter),
        ("\u{7f}", PathError::ControlCharacter),
        ("a.\u{85}", PathError::ControlCharacter),
    ];
    for (path, error) in cases {
        let set = store.set(OURS, path, ValueKind::Text, b"");
        assert_eq!(set, Err(SetError::Path(error)));
        assert_eq!(store.get(OURS, path), Err(ReadError::Path(error)));
        if !path.is_empty() {
            assert_eq!(store.delete(OURS, path), Err(DeleteError::Path(error)));
            assert_eq!(store.children(OURS, path), Err(ReadError::Path(error)));
        }
    }
    let bytes_max = store.value_bytes_max();
    assert!(bytes_max >= 2048);
    let long = vec![1; bytes_max + 1];
    let refused = store.set(OURS, "a", ValueKind::Bytes, &long);
    assert_eq!(refused, Err(SetError::ValueTooLong { bytes_max }));
    store.set(OURS, &"y".repeat(128), ValueKind::Bytes, &long[1..]).unwrap();
    assert_eq!(remount(store).get(OURS, &"y".repeat(128)).unwrap().unwrap().bytes, long[1..]);
}

#[test]
fn setting_what_is_stored_writes_nothing() {
    let mut store = empty();
    set(&mut store, OURS, "a", "same");
    store.flash_mut().reset_counters();
    set(&mut store, OURS, "a", "same");
    assert_eq!(store.flash().counters().programs, 0);
    store.set(OURS, "a", ValueKind::Bytes, b"same").unwrap();
    assert_eq!(store.flash().counters().programs, 1);
}

#[test]
fn stored_bytes_are_what_the_live_records_take() {
    let mut store = empty();
    set(&mut store, OURS, "a", "one");
    set(&mut store, OURS, "bb", "three and four");
    let expected =
        store.record_bytes(OURS, "a", b"one") + store.record_bytes(OURS, "bb", b"three and four");
    assert_eq!(store.stored_bytes(OURS), expected);
    set(&mut store, OURS, "a", "a longer value");
    store.delete(OURS, "bb").unwrap();
    let expected = store.record_bytes(OURS, "a", b"a longer value");
    assert_eq!(store.stored_bytes(OURS), expected);
    assert_eq!(remount(store).stored_bytes(OURS), expected);
}

#[test]
fn a_full_store_says_so_keeps_everything_and_can_be_emptied() {
    let mut store = empty();
    let mut count = 0;
    let full = loop {
        let path = format!("key{count}");
        match store.set(OURS, &path, ValueKind::Bytes, &[count as u8; 100]) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, SetError::Full);
    // Seven eighths of six sectors of 4 KB, at 120 bytes a record.
    assert!(count > 170, "{count} keys");

    // Overwriting with as much works in a full store, however often.
    for round in 0..2000u32 {
        let path = format!("key{}", round % count);
        store.set(OURS, &path, ValueKind::Bytes, &[round as u8; 100]).unwrap();
    }
    let used = store.flash().counters();
    assert_eq!(store.set(OURS, "more", ValueKind::Bytes, &[0; 100]), Err(SetError::Full));
    assert_eq!(store.flash().counters().programs, used.programs, "a refusal wears nothing");

    let mut store = remount(store);
    assert_eq!(store.keys(OURS), count as usize);
    assert_eq!(store.set(OURS, "more", ValueKind::Bytes, &[0; 100]), Err(SetError::Full));
    for index in 0..count {
        assert_eq!(store.delete(OURS, &format!("key{index}")).unwrap(), 1);
    }
    set(&mut store, OURS, "more", "fits");
}

#[test]
fn a_store_full_of_large_values_can_be_overwritten_and_emptied() {
    let mut store = empty();
    let mut count = 0;
    while store.set(OURS, &format!("key{count}"), ValueKind::Bytes, &[1; 2048]).is_ok() {
        count += 1;
    }
    assert!(count >= 5, "{count} values of half a sector");
    for round in 0..100u8 {
        let path = format!("key{}", round % count);
        store.set(OURS, &path, ValueKind::Bytes, &[round; 2048]).unwrap();
    }
    for index in 0..count {
        assert_eq!(store.delete(OURS, &format!("key{index}")).unwrap(), 1);
    }
}

#[test]
fn a_batch_of_more_deletions_than_the_flash_holds_is_refused_whole() {
    let tiny = FlashGeometry { sector_count: 3, ..GEOMETRY };
    let mut store = Store::format(RamFlash::new(tiny)).unwrap();
    set(&mut store, OURS, "kept", "value");
    let delete = Change::Delete { tree: OURS, path: "kept" };
    assert_eq!(store.batch(&vec![delete; 2000]), Err(tenure_store::BatchError::Full));
    let mut store = remount(store);
    assert_eq!(text(&mut store, OURS, "kept").as_deref(), Some("value"));
    store.batch(&vec![delete; 100]).unwrap();
    assert_eq!(text(&mut store, OURS, "kept"), None);
}

#[test]
fn flashes_without_a_store_are_told_apart() {
    let mount = |flash| Store::<RamFlash>::mount(flash).map(|_| ()).unwrap_err();
    assert_eq!(mount(RamFlash::new(GEOMETRY)), MountError::Blank);
    let foreign = b"#!/bin/sh\n".repeat(1000);
    assert_eq!(mount(RamFlash::with_bytes(GEOMETRY, foreign)), MountError::Foreign);
    let tiny = FlashGeometry { sector_count: 2, ..GEOMETRY };
    assert_eq!(mount(RamFlash::new(tiny)), MountError::TooSmall);

    let larger = FlashGeometry { sector_count: 16, ..GEOMETRY };
    let grown = RamFlash::with_bytes(larger, empty().into_flash().bytes().to_vec());
    let error = MountError::Geometry { sector_bytes: 4096, sector_count: 8 };
    assert_eq!(mount(grown), error);
}

#[test]
fn only_a_blank_flash_is_formatted_unasked() {
    let (mut store, report) = Store::mount_or_format(RamFlash::new(GEOMETRY), 5).unwrap();
    assert_eq!((report.keys, report.sectors_used), (0, 1));
    set(&mut store, OURS, "a", "kept");
    let (mut store, report) = Store::mount_or_format(store.into_flash(), 6).unwrap();
    assert_eq!(report.keys, 1);
    assert_eq!(text(&mut store, OURS, "a").as_deref(), Some("kept"));

    let mut foreign = RamFlash::with_bytes(GEOMETRY, b"somebody else's".to_vec());
    let before = foreign.bytes().to_vec();
    let refused = Store::mount_or_format(&mut foreign, 5).map(|_| ());
    assert_eq!(refused, Err(MountError::Foreign));
    assert_eq!(foreign.bytes(), before);
}

#[test]
fn formatting_forgets_everything() {
    let mut store = empty();
    (0..300).for_each(|number| set(&mut store, OURS, &format!("k{number}"), "secret"));
    let store = Store::format(store.into_flash()).unwrap();
    let mut store = remount(store);
    assert_eq!(store.children(OURS, "").unwrap(), [""; 0]);
    let mut flash = store.into_flash();
    assert!(!flash.bytes_mut().windows(6).any(|window| window == b"secret"));
}

#[test]
fn a_format_that_was_cut_finds_a_blank_flash_again() {
    for operations in 0..4 {
        for seed in 0..50 {
            let mut flash = RamFlash::new(GEOMETRY);
            flash.cut_power_after(operations, seed);
            let Err(_) = Store::mount_or_format(&mut flash, 7) else { continue };
            flash.restore_power();
            match Store::mount(&mut flash).map(|_| ()) {
                Ok(()) | Err(MountError::Blank) => {}
                other => panic!("operation {operations}, seed {seed}: {other:?}"),
            }
        }
    }
}

#[test]
fn every_program_unit_works() {
    for program_bytes in [1, 2, 4, 8, 16] {
        let flash = RamFlash::new(FlashGeometry { program_bytes, ..GEOMETRY });
        let mut store = Store::format(flash).unwrap();
        for round in 0..2000 {
            set(&mut store, OURS, &format!("key{}", round % 20), &format!("round {round}"));
        }
        let mut store = remount(store);
        assert_eq!(text(&mut store, OURS, "key19").as_deref(), Some("round 1999"));
    }
}

#[test]
fn sectors_wear_evenly() {
    let mut store = empty();
    (0..100).for_each(|number| set(&mut store, OURS, &format!("still.k{number}"), "unchanged"));
    for round in 0..10_000 {
        set(&mut store, OURS, "counter", &round.to_string());
    }
    // The ring erases one sector after the other; so erases over sectors is each sector's wear.
    let occupancy = store.occupancy();
    let erases = store.flash().counters().erases;
    let (opened, formatted) = (occupancy.sectors_opened, occupancy.sectors - 1);
    assert_eq!(u64::from(opened + formatted), erases, "and all but the first by the format");
    assert!(erases > 5 * u64::from(occupancy.sectors));
}
