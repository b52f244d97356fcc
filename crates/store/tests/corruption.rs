//! Damaged bytes cost the record that they hit, and nothing else; nothing panics.

mod model;

use std::collections::BTreeMap;

use model::{Model, Outcome, SMALL, Step, Work, perform};
use tenure_hal::FlashGeometry;
use tenure_hal::simulated::RamFlash;
use tenure_store::{Change, MountError, ReadError, Store, TreeId, ValueKind};

const TREE: TreeId = TreeId(1);

/// The value that each of the keys reads as; `None` where it can't be read.
fn read_all(store: &mut Store<RamFlash>, keys: &[String]) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut read = |key: &String| match store.get(TREE, key) {
        Ok(value) => value.map(|value| value.bytes),
        Err(ReadError::Corrupt) => None,
        Err(error) => panic!("{key}: {error}"),
    };
    keys.iter().map(|key| (key.clone(), read(key))).collect()
}

fn differences(
    one: &BTreeMap<String, Option<Vec<u8>>>,
    two: &BTreeMap<String, Option<Vec<u8>>>,
) -> usize {
    one.iter().filter(|(key, value)| two[*key] != **value).count()
}

/// Deletes what can't be read, and what is below it.
fn delete_unreadable(store: &mut Store<RamFlash>) {
    for tree in store.trees().collect::<Vec<_>>() {
        let mut at: Option<String> = None;
        while let Some(path) = store.next_path(tree, at.as_deref()).unwrap() {
            if store.get(tree, &path).is_err() {
                store.delete(tree, &path).unwrap();
            } else {
                at = Some(path);
            }
        }
    }
}

/// A store that has gone round its ring, whose every value is different, and its keys.
fn filled() -> (Store<RamFlash>, Vec<String>) {
    let geometry = FlashGeometry { sector_count: 4, ..SMALL };
    let mut store = Store::format_with_salt(RamFlash::new(geometry), 0x5A17).unwrap();
    let keys: Vec<String> =
        (0..12).map(|number| format!("node{}.key{number}", number % 3)).collect();
    for round in 0..200u32 {
        let key = &keys[(round * 7 % 12) as usize];
        store.set(TREE, key, ValueKind::Text, format!("value {round}").as_bytes()).unwrap();
    }
    let value = |number: usize| format!("of the batch {number}");
    let values: Vec<String> = (0..4).map(value).collect();
    let changes: Vec<Change<'_>> = (keys.iter().zip(&values))
        .map(|(path, value)| Change::Set {
            tree: TREE,
            path,
            kind: ValueKind::Text,
            value: value.as_bytes(),
        })
        .collect();
    store.batch(&changes).unwrap();
    for round in 0..5u32 {
        let key = &keys[(6 + round) as usize];
        store.set(TREE, key, ValueKind::Text, format!("last {round}").as_bytes()).unwrap();
    }
    (store, keys)
}

#[test]
fn any_one_damaged_byte_costs_one_value_at_most() {
    let (mut store, keys) = filled();
    let whole = read_all(&mut store, &keys);
    let flash = store.into_flash();
    for offset in 0..flash.bytes().len() {
        let damage = [0x01, 0xFF, 0x80][offset % 3];
        let mut flash = flash.clone();
        flash.bytes_mut()[offset] ^= damage;
        let (mut store, report) = Store::mount(flash)
            .unwrap_or_else(|error| panic!("offset {offset}, damage {damage}: {error}"));
        let found = read_all(&mut store, &keys);
        let lost = differences(&whole, &found);
        assert!(lost <= 1, "offset {offset}, damage {damage}: {lost} values differ");
        let noticed = report.damaged_records + report.damaged_headers;
        assert!(lost == 0 || noticed > 0, "offset {offset}: not reported");
        store.set(TREE, "afterwards", ValueKind::Text, b"works").unwrap();
    }
}

/// Bits of each byte of the flash, one after the other: of a record's head, path and value, of padding, headers and free room.
#[test]
fn any_one_flipped_bit_costs_nothing_once_the_store_was_mounted() {
    let (store, keys) = filled();
    let (mut store, _) = Store::mount(store.into_flash()).unwrap();
    let whole = read_all(&mut store, &keys);
    let flash = store.into_flash();
    let mut mended = 0;
    for bit in (0..8 * flash.bytes().len()).step_by(5) {
        let mut flash = flash.clone();
        flash.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
        let (mut store, report) = Store::mount(flash).unwrap();
        assert_eq!(report.changes_lost, 0, "bit {bit}");
        assert_eq!(read_all(&mut store, &keys), whole, "bit {bit}");
        mended += report.mended_records;
    }
    assert!(
        mended > 8 * 17 * 20 / 5,
        "a fifth of seventeen records of twenty bytes and more: {mended}"
    );
}

#[test]
fn bits_that_flip_while_mounted_cost_nothing_and_are_put_right_by_a_reclaim() {
    let (mut store, keys) = filled();
    let whole = read_all(&mut store, &keys);
    let flash = store.into_flash();
    let (store, _) = Store::mount(flash).unwrap();
    let flash = store.into_flash();
    for bit in (0..8 * flash.bytes().len()).step_by(101) {
        let (mut store, _) = Store::mount(flash.clone()).unwrap();
        store.flash_mut().bytes_mut()[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read_all(&mut store, &keys), whole, "bit {bit}");
        for round in 0..200 {
            let text = format!("round {round}");
            store.set(TREE, "busy", ValueKind::Text, text.as_bytes()).unwrap();
        }
        assert_eq!(read_all(&mut store, &keys), whole, "bit {bit}, reclaimed");
        let (mut store, report) = Store::mount(store.into_flash()).unwrap();
        assert_eq!((report.mended_records, report.damaged_records), (0, 0), "bit {bit}");
        assert_eq!(read_all(&mut store, &keys), whole, "bit {bit}, mounted");
    }
}

#[test]
fn bytes_that_rot_while_mounted_cost_one_value_at_most() {
    let (mut store, keys) = filled();
    let whole = read_all(&mut store, &keys);
    let flash = store.into_flash();
    for offset in (0..flash.bytes().len()).step_by(5) {
        let (mut store, _) = Store::mount(flash.clone()).unwrap();
        store.flash_mut().bytes_mut()[offset] ^= 0x30;
        let found = read_all(&mut store, &keys);
        assert!(differences(&whole, &found) <= 1, "offset {offset}");
        // Going round the ring copies what is left and drops what is damaged.
        for round in 0..60 {
            let text = format!("round {round}");
            store.set(TREE, "busy", ValueKind::Text, text.as_bytes()).unwrap();
        }
        let (mut store, _) = Store::mount(store.into_flash()).unwrap();
        assert!(differences(&whole, &read_all(&mut store, &keys)) <= 1, "offset {offset}");
    }
}

#[test]
fn a_damaged_value_is_reported_and_can_be_replaced() {
    let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
    store.set(TREE, "a", ValueKind::Text, b"a value to find").unwrap();
    let bytes = store.flash_mut().bytes_mut();
    let at = bytes.windows(15).position(|window| window == b"a value to find").unwrap();
    bytes[at] = b'Z';
    assert_eq!(store.get(TREE, "a"), Err(ReadError::Corrupt));
    assert_eq!(store.children(TREE, "").unwrap(), ["a"]);
    store.set(TREE, "a", ValueKind::Text, b"a value to find").unwrap();
    assert_eq!(store.get(TREE, "a").unwrap().unwrap().bytes, b"a value to find");
}

#[test]
fn a_value_that_rots_never_gives_way_to_an_older_one() {
    let geometry = FlashGeometry { sector_count: 4, ..SMALL };
    let mut store = Store::format(RamFlash::new(geometry)).unwrap();
    for value in ["an old value", "a new value!"] {
        store.set(TREE, "a", ValueKind::Text, value.as_bytes()).unwrap();
    }
    store.set(TREE, "b", ValueKind::Text, b"what follows").unwrap();
    let mut flash = store.into_flash();
    let at = flash.bytes().windows(12).position(|window| window == b"a new value!").unwrap();
    flash.bytes_mut()[at] ^= 0x30;
    for rounds in [0, 3, 60, 60] {
        let (mut store, _) = Store::mount(flash).unwrap();
        assert_eq!(store.get(TREE, "a"), Err(ReadError::Corrupt), "after {rounds} rounds");
        for round in 0..rounds {
            store.set(TREE, "b", ValueKind::Text, format!("round {round}").as_bytes()).unwrap();
        }
        assert_eq!(store.get(TREE, "a"), Err(ReadError::Corrupt));
        flash = store.into_flash();
    }
    let (mut store, _) = Store::mount(flash).unwrap();
    store.set(TREE, "a", ValueKind::Text, b"written again").unwrap();
    assert_eq!(store.get(TREE, "a").unwrap().unwrap().bytes, b"written again");
}

#[test]
fn last_value_that_rots_after_a_start_never_gives_way_to_an_older_one() {
    let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
    for value in ["an old value", "a new value!"] {
        store.set(TREE, "a", ValueKind::Text, value.as_bytes()).unwrap();
    }
    let (store, _) = Store::mount(store.into_flash()).unwrap();
    let mut flash = store.into_flash();
    let at = flash.bytes().windows(12).position(|window| window == b"a new value!").unwrap();
    flash.bytes_mut()[at] ^= 0x30;
    for _ in 0..3 {
        let (mut store, report) = Store::mount(flash).unwrap();
        assert_eq!((report.damaged_records, report.changes_lost), (1, 1));
        assert_eq!(store.get(TREE, "a"), Err(ReadError::Corrupt));
        store.set(TREE, "b", ValueKind::Text, b"what follows").unwrap();
        flash = store.into_flash();
    }
}

/// D-6.
#[test]
fn lost_change_that_was_acknowledged_is_counted_by_each_mount_and_a_torn_write_is_not() {
    let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
    for count in 0..12 {
        store.set(TREE, "count", ValueKind::Text, format!("{count:02}").as_bytes()).unwrap();
    }
    for other in ["b", "c"] {
        store.set(TREE, "other", ValueKind::Text, other.as_bytes()).unwrap();
    }
    let whole = store.into_flash();
    let at = whole.bytes().windows(7).position(|window| window == b"count11").unwrap();
    // The head, the path, the value: each time something that was acknowledged is lost.
    for offset in [at - 14, at - 3, at + 2, at + 6] {
        let mut flash = whole.clone();
        flash.bytes_mut()[offset] ^= 0x30;
        for _ in 0..3 {
            let (store, report) = Store::mount(flash).unwrap();
            assert_eq!(report.changes_lost, 1, "offset {offset}, record at {at}");
            flash = store.into_flash();
        }
    }
    let (mut store, report) = Store::mount(whole).unwrap();
    assert_eq!(report.changes_lost, 0);
    // A damaged value is told as long as it is the one that counts.
    store.set(TREE, "count", ValueKind::Text, b"a value to find").unwrap();
    store.set(TREE, "other", ValueKind::Text, b"d").unwrap();
    let mut flash = store.into_flash();
    let at = flash.bytes().windows(15).position(|window| window == b"a value to find").unwrap();
    flash.bytes_mut()[at] ^= 0x03;
    let (mut store, report) = Store::mount(flash).unwrap();
    assert_eq!(report.changes_lost, 1);
    store.set(TREE, "count", ValueKind::Text, b"13").unwrap();
    let (_, report) = Store::mount(store.into_flash()).unwrap();
    assert_eq!(report.changes_lost, 0);

    for operations in 0..40 {
        let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
        store.flash_mut().cut_power_after(operations, operations);
        let mut round = 0;
        while store.set(TREE, "a", ValueKind::Bytes, &[round; 9]).is_ok() {
            round += 1;
        }
        let mut flash = store.into_flash();
        flash.restore_power();
        for _ in 0..3 {
            let (mut store, report) = Store::mount(flash).unwrap();
            assert_eq!(report.changes_lost, 0, "cut at {operations}");
            store.set(TREE, "b", ValueKind::Bytes, b"on").unwrap();
            flash = store.into_flash();
        }
    }
}

/// A store that is in its first sector still has one header, without which its salt is unknown.
#[test]
fn young_store_whose_header_rots_is_never_taken_for_a_blank_flash() {
    // The last cut falls between the header and what says that the format is done.
    for operations in [None, Some(3)] {
        let mut flash = RamFlash::new(SMALL);
        if let Some(operations) = operations {
            flash.cut_power_after(operations, 1);
            assert!(Store::mount_or_format(&mut flash, 7).is_err());
            flash.restore_power();
        }
        let (mut store, _) = Store::mount_or_format(flash, 7).unwrap();
        store.set(TREE, "seed", ValueKind::Bytes, b"kept").unwrap();
        let whole = store.into_flash();
        for offset in 0..28 {
            let mut flash = whole.clone();
            flash.bytes_mut()[offset] ^= 0x30;
            let before = flash.bytes().to_vec();
            let refused = Store::mount_or_format(&mut flash, 8).map(|_| ());
            assert_eq!(refused, Err(MountError::Foreign), "offset {offset}, {operations:?}");
            assert_eq!(flash.bytes(), before);
        }
        // One bit costs nothing, though it is told.
        for bit in 0..8 * 28 {
            let mut flash = whole.clone();
            flash.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
            let (mut store, report) = Store::mount_or_format(flash, 8).unwrap();
            assert_eq!(report.damaged_headers, 1, "bit {bit}");
            assert_eq!(store.get(TREE, "seed").unwrap().unwrap().bytes, b"kept", "bit {bit}");
        }
    }
}

#[test]
fn many_damaged_bytes_never_stop_a_boot_or_what_follows() {
    for seed in 0..300 {
        let mut work = Work::new(seed);
        let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
        for _ in 0..300 {
            let _ = perform(&mut store, &work.step());
        }
        let mut flash = store.into_flash();
        let runs = 1 + work.below(30);
        for _ in 0..runs {
            let start = work.below(flash.bytes().len() as u64) as usize;
            let end = (start + work.below(64) as usize).min(flash.bytes().len());
            let mode = work.below(3);
            for byte in &mut flash.bytes_mut()[start..end] {
                *byte = match mode {
                    0 => 0x00,
                    1 => 0xFF,
                    _ => work.number() as u8,
                };
            }
        }
        let Ok((mut store, _)) = Store::mount(flash) else {
            panic!("seed {seed}: no header was left of eight?");
        };
        delete_unreadable(&mut store);
        let mut model = Model::of(&mut store);
        for _ in 0..200 {
            let step = work.step();
            match perform(&mut store, &step) {
                Outcome::Done => model.apply(&step),
                Outcome::Full => {}
                Outcome::Cut => panic!("seed {seed}: {step:?}"),
            }
        }
        assert_eq!(Model::of(&mut store), model, "seed {seed}");
        let (mut store, _) = Store::mount(store.into_flash()).unwrap();
        assert_eq!(Model::of(&mut store), model, "seed {seed}, mounted");
        let step = Step::Delete { tree: 0, path: String::new() };
        assert_eq!(perform(&mut store, &step), Outcome::Done, "seed {seed}");
    }
}

#[test]
fn noise_is_no_store() {
    for seed in 0..50 {
        let mut work = Work::new(seed);
        let noise = (0..SMALL.bytes()).map(|_| work.number() as u8).collect();
        let mounted = Store::mount(RamFlash::with_bytes(SMALL, noise)).map(|_| ());
        assert_eq!(mounted, Err(MountError::Foreign));
    }
}

/// Mounts a store with this salt, where a tenant's value held a record for another tree, made for
/// the very place at which it stands, and where the head of the tenant's own record is damaged.
/// Gives whether the forged record counts.
fn is_forged_record_taken(salt: u32) -> bool {
    // The attacker knows the format and takes the salt to be 0.
    let mut decoy = Store::format(RamFlash::new(SMALL)).unwrap();
    decoy.set(TreeId(2), "mine", ValueKind::Bytes, b"__").unwrap();
    decoy.set(TREE, "admin", ValueKind::Text, b"forged").unwrap();
    let decoy = decoy.into_flash();
    let at = decoy.bytes().windows(11).position(|window| window == b"adminforged").unwrap() - 14;
    let own = decoy.bytes().windows(4).position(|window| window == b"mine").unwrap();
    let value = &decoy.bytes()[own + 4..at + 14 + 11];

    let mut store = Store::format_with_salt(RamFlash::new(SMALL), salt).unwrap();
    store.set(TreeId(2), "mine", ValueKind::Bytes, value).unwrap();
    let mut flash = store.into_flash();
    flash.bytes_mut()[own - 14..own - 10].fill(0);
    let (mut store, _) = Store::mount(flash).unwrap();
    assert_eq!(store.keys(TreeId(2)), 0);
    store.get(TREE, "admin").unwrap().is_some()
}

#[test]
fn a_value_made_to_look_like_a_record_is_none_where_the_salt_is_secret() {
    assert!(is_forged_record_taken(0), "the attack works where the salt is known");
    assert!(!is_forged_record_taken(0xC0FF_EE11));
}
