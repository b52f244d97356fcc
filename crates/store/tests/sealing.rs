//! Sealed trees: what the flash shows, what opens where, and that no number is used twice.

mod model;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use model::{Model, Outcome, SEALED_TREE, SMALL, ToySeal, Work, format, mount, perform};
use tenure_hal::Flash;
use tenure_hal::simulated::RamFlash;
use tenure_store::{
    BatchError, Change, ReadError, SEAL_BYTES, Seal, SetError, Store, TAG_BYTES, TreeId,
    Unsealable, ValueKind,
};

const SECRET: &[u8] = b"nobody reads this on the flash";
const OTHER_TREE: TreeId = TreeId(2);

fn shows(store: &Store<RamFlash>, bytes: &[u8]) -> bool {
    store.flash().bytes().windows(bytes.len()).any(|window| window == bytes)
}

#[test]
fn a_sealed_value_is_read_back_and_never_seen_on_the_flash() {
    let mut store = format(RamFlash::new(SMALL));
    store.set(SEALED_TREE, "a.b", ValueKind::Text, SECRET).unwrap();
    let changes =
        [Change::Set { tree: SEALED_TREE, path: "batched", kind: ValueKind::Bytes, value: SECRET }];
    store.batch(&changes).unwrap();
    assert!(!shows(&store, SECRET));
    assert!(!shows(&store, &SECRET[..8]));
    store.set(OTHER_TREE, "a.b", ValueKind::Text, SECRET).unwrap();
    assert!(shows(&store, SECRET), "and an open one is");
    let (mut store, _) = mount(store.into_flash()).unwrap();
    for path in ["a.b", "batched"] {
        assert_eq!(store.get(SEALED_TREE, path).unwrap().unwrap().bytes, SECRET);
    }
    let bytes = store.record_bytes(SEALED_TREE, "a.b", SECRET);
    assert_eq!(bytes - store.record_bytes(OTHER_TREE, "a.b", SECRET), SEAL_BYTES);
}

#[test]
fn setting_what_is_there_writes_nothing() {
    let mut store = format(RamFlash::new(SMALL));
    store.set(SEALED_TREE, "a", ValueKind::Bytes, SECRET).unwrap();
    let before = store.flash().bytes().to_vec();
    store.set(SEALED_TREE, "a", ValueKind::Bytes, SECRET).unwrap();
    assert_eq!(store.flash().bytes(), before);
    store.set(SEALED_TREE, "a", ValueKind::Text, SECRET).unwrap();
    assert_ne!(store.flash().bytes(), before);
}

#[test]
fn without_its_key_or_with_another_a_value_does_not_open() {
    let mut store = format(RamFlash::new(SMALL));
    store.set(SEALED_TREE, "a", ValueKind::Bytes, SECRET).unwrap();
    store.seal_tree(SEALED_TREE, None);
    assert_eq!(store.get(SEALED_TREE, "a"), Err(ReadError::Sealed));
    store.seal_tree(SEALED_TREE, Some(Box::new(ToySeal(8))));
    assert_eq!(store.get(SEALED_TREE, "a"), Err(ReadError::Unsealable));
    store.set(SEALED_TREE, "a", ValueKind::Bytes, b"anew").unwrap();
    assert_eq!(store.get(SEALED_TREE, "a").unwrap().unwrap().bytes, b"anew");
    assert_eq!(store.get(SEALED_TREE, "nothing"), Ok(None));
}

#[test]
fn an_open_value_in_a_sealed_tree_is_nobodys() {
    let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
    store.set(SEALED_TREE, "a", ValueKind::Bytes, b"planted").unwrap();
    let (mut store, _) = mount(store.into_flash()).unwrap();
    assert_eq!(store.get(SEALED_TREE, "a"), Err(ReadError::Unsealable));
}

/// An attack by somebody who writes the flash: it gives the tree that seals no more, so that the
/// store hands out raw bytes, and puts them elsewhere.
#[test]
fn a_value_that_is_moved_to_another_place_does_not_open() {
    #[derive(Clone)]
    struct Raw(Arc<Mutex<Vec<u8>>>);
    impl Seal for Raw {
        fn seal(&self, _: u64, _: &[u8], value: &mut [u8]) -> [u8; TAG_BYTES] {
            let stored = self.0.lock().unwrap();
            let (sealed, tag) = stored.split_last_chunk().unwrap();
            value.copy_from_slice(sealed);
            *tag
        }
        fn open(
            &self,
            _: u64,
            _: &[u8],
            value: &mut [u8],
            tag: &[u8; TAG_BYTES],
        ) -> Result<(), Unsealable> {
            *self.0.lock().unwrap() = [value, &tag[..]].concat();
            Ok(())
        }
    }
    /// Takes no notice of the number, so that the place alone is what tells values apart.
    struct Numberless;
    impl Seal for Numberless {
        fn seal(&self, _: u64, associated: &[u8], value: &mut [u8]) -> [u8; TAG_BYTES] {
            ToySeal(7).seal(0, associated, value)
        }
        fn open(
            &self,
            _: u64,
            associated: &[u8],
            value: &mut [u8],
            tag: &[u8; TAG_BYTES],
        ) -> Result<(), Unsealable> {
            ToySeal(7).open(0, associated, value, tag)
        }
    }
    let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
    store.seal_tree(SEALED_TREE, Some(Box::new(Numberless)));
    store.set(SEALED_TREE, "a", ValueKind::Bytes, SECRET).unwrap();
    let raw = Raw(Arc::default());
    store.seal_tree(SEALED_TREE, Some(Box::new(raw.clone())));
    store.get(SEALED_TREE, "a").unwrap();
    store.seal_tree(OTHER_TREE, Some(Box::new(raw)));
    let (bytes, text) = (ValueKind::Bytes, ValueKind::Text);
    for (tree, path, kind, opens) in [
        (SEALED_TREE, "a.b", bytes, false),
        (SEALED_TREE, "b", bytes, false),
        (OTHER_TREE, "a", bytes, false),
        (SEALED_TREE, "a", text, false),
        (SEALED_TREE, "a", bytes, true),
    ] {
        store.set(tree, path, kind, &[0; SECRET.len()]).unwrap();
        let mut read = mount(store.flash().clone()).unwrap().0;
        read.seal_tree(tree, Some(Box::new(Numberless)));
        let found = read.get(tree, path);
        assert_eq!(found.is_ok(), opens, "{tree:?} {path} {kind:?}");
        assert!(opens || found == Err(ReadError::Unsealable));
    }
}

#[test]
fn a_value_too_long_to_be_sealed_is_refused() {
    let mut store = format(RamFlash::new(SMALL));
    let longest = store.value_bytes_max() - SEAL_BYTES;
    let value = vec![1; longest + 1];
    let refused = SetError::ValueTooLong { bytes_max: longest };
    assert_eq!(store.set(SEALED_TREE, "a", ValueKind::Bytes, &value), Err(refused));
    let change =
        Change::Set { tree: SEALED_TREE, path: "a", kind: ValueKind::Bytes, value: &value };
    let refused = BatchError::ValueTooLong { change: 0, bytes_max: longest };
    assert_eq!(store.batch(&[change]), Err(refused));
    store.set(SEALED_TREE, "a", ValueKind::Bytes, &value[1..]).unwrap();
}

#[test]
fn no_number_is_given_to_two_values() {
    struct Watchful(Arc<Mutex<BTreeSet<u64>>>);
    impl Seal for Watchful {
        fn seal(&self, number: u64, associated: &[u8], value: &mut [u8]) -> [u8; TAG_BYTES] {
            assert!(self.0.lock().unwrap().insert(number), "{number} comes again");
            ToySeal(7).seal(number, associated, value)
        }
        fn open(
            &self,
            number: u64,
            associated: &[u8],
            value: &mut [u8],
            tag: &[u8; TAG_BYTES],
        ) -> Result<(), Unsealable> {
            ToySeal(7).open(number, associated, value, tag)
        }
    }
    let numbers = Arc::default();
    let watch = |store: &mut Store<RamFlash>| {
        for tree in 0..3 {
            store.seal_tree(TreeId(tree), Some(Box::new(Watchful(Arc::clone(&numbers)))));
        }
    };
    let mut store = Store::format(RamFlash::new(SMALL)).unwrap();
    watch(&mut store);
    let (mut work, mut model) = (Work::new(5), Model::default());
    for round in 0..3000 {
        let step = work.step();
        if perform(&mut store, &step) == Outcome::Done {
            model.apply(&step);
        }
        if round % 53 == 0 {
            (store, _) = Store::mount(store.into_flash()).unwrap();
            watch(&mut store);
        }
    }
    assert_eq!(Model::of(&mut store), model);
    assert!(store.occupancy().sectors_opened > 50, "went round the ring");
    assert!(store.flash().geometry() == SMALL);
}
