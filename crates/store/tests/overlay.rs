//! Changes on top of a base tree, against a plain map; cut at random, and with damage to the base.

#[allow(dead_code)]
mod model;

use std::collections::BTreeMap;

use model::{Model, SMALL, Step, Work, format, mount};
use tenure_hal::simulated::RamFlash;
use tenure_store::{
    Base, BaseValue, DeleteError, Hidden, Overlay, ReadError, SetError, Store, TreeId, ValueKind,
    base_bytes, write_base,
};

const TREE: TreeId = TreeId(0);
const HIDDEN: TreeId = TreeId(9);

type Values = BTreeMap<String, (ValueKind, Vec<u8>)>;

fn base_of(values: &Values) -> Vec<u8> {
    let mut values: Vec<_> =
        values.iter().map(|(path, (kind, bytes))| BaseValue { path, kind: *kind, bytes }).collect();
    let mut base = Vec::new();
    let length = base_bytes(&values);
    write_base(&mut values, |bytes| {
        base.extend_from_slice(bytes);
        Ok::<(), ()>(())
    })
    .unwrap();
    assert_eq!(base.len(), length);
    base
}

/// Values that some steps would set.
fn some_values(work: &mut Work, steps: usize) -> Values {
    let mut values = Values::new();
    for _ in 0..steps {
        if let Step::Set { path, kind, value, .. } = work.step() {
            values.insert(path, (kind, value));
        }
    }
    values
}

fn overlay<'a>(
    store: &'a mut Store<RamFlash>,
    base: &'a [u8],
    hidden: &'a mut Hidden,
) -> Overlay<'a, RamFlash> {
    let base = Base::open(base).unwrap();
    Overlay { store, base, hidden, tree: TREE, hidden_tree: HIDDEN }
}

fn values_of(tree: &mut Overlay<'_, RamFlash>) -> Values {
    let mut values = Values::new();
    let mut last: Option<String> = None;
    while let Some(path) = tree.next_path(last.as_deref()).unwrap() {
        let value = tree.get(&path).unwrap().expect("a path that was listed");
        values.insert(path.clone(), (value.kind, value.bytes));
        last = Some(path);
    }
    values
}

/// Applies a step to `values`; returns how many values it deletes.
fn apply(values: &mut Values, step: &Step) -> usize {
    match step {
        Step::Set { path, kind, value, .. } => {
            values.insert(path.clone(), (*kind, value.clone()));
            0
        }
        Step::Delete { path, .. } => {
            let below = format!("{path}.");
            let before = values.len();
            values.retain(|at, _| !path.is_empty() && at != path && !at.starts_with(&below));
            before - values.len()
        }
        Step::Batch(_) => 0,
    }
}

#[test]
fn a_tree_on_its_base_is_like_a_plain_map_through_cuts() {
    for seed in 0..25 {
        let mut work = Work::new(seed);
        let mut values = some_values(&mut work, 40);
        let base = base_of(&values);
        let mut store = format(RamFlash::new(SMALL));
        let mut hidden = Hidden::default();
        for round in 0..120 {
            let step = work.step();
            if work.below(6) == 0 {
                store.flash_mut().cut_power_after(work.below(4), work.number());
            }
            let mut tree = overlay(&mut store, &base, &mut hidden);
            let mut after = values.clone();
            let gone = apply(&mut after, &step);
            let done = match &step {
                Step::Set { path, kind, value, .. } => match tree.set(path, *kind, value) {
                    Ok(()) => true,
                    Err(SetError::Full | SetError::Flash(_)) => false,
                    Err(error) => panic!("seed {seed}, round {round}: {error}"),
                },
                Step::Delete { path, .. } => match tree.delete(path) {
                    Ok(count) => {
                        assert_eq!(count, gone, "seed {seed}, round {round}: {step:?}");
                        true
                    }
                    Err(DeleteError::Full | DeleteError::Flash(_)) => false,
                    Err(error) => panic!("seed {seed}, round {round}: {error}"),
                },
                Step::Batch(_) => continue,
            };
            let mut flash = store.flash().clone();
            if flash.is_off() || store.has_failed() || work.below(10) == 0 {
                flash.restore_power();
                store = mount(flash).unwrap().0;
                hidden = Hidden::load(&mut store, HIDDEN).unwrap();
            }
            let mut tree = overlay(&mut store, &base, &mut hidden);
            let found = values_of(&mut tree);
            let is_half_deleted = || {
                let is_kept = |(path, value)| values.get(path) == Some(value);
                found.iter().all(is_kept) && after.keys().all(|path| found.contains_key(path))
            };
            let is_expected = match step {
                _ if done => found == after,
                Step::Delete { .. } => is_half_deleted(),
                _ => found == values || found == after,
            };
            assert!(is_expected, "seed {seed}, round {round}: {step:?}");
            values = found;
            check_children(&mut tree, &values);
        }
    }
}

fn check_children(tree: &mut Overlay<'_, RamFlash>, values: &Values) {
    let values = values.iter().map(|(path, value)| ((0, path.clone()), value.clone())).collect();
    let model = Model { values };
    for node in ["", "a", "a.b", "a-b"] {
        let mut names = tree.children(node).unwrap();
        names.sort();
        assert_eq!(names, model.children(0, node), "below `{node}`");
    }
}

#[test]
fn the_difference_to_a_base_makes_any_tree_of_it() {
    for seed in 100..140 {
        let mut work = Work::new(seed);
        let base = base_of(&some_values(&mut work, 30));
        let mut wanted = some_values(&mut work, 20);
        if work.below(2) == 0 {
            let kept = Base::open(&base).unwrap();
            let mut store = format(RamFlash::new(SMALL));
            let mut hidden = Hidden::default();
            assert_eq!(kept.is_empty(), base.is_empty());
            wanted.extend(
                values_of(&mut overlay(&mut store, &base, &mut hidden)).into_iter().take(9),
            );
        }
        let list: Vec<_> = wanted
            .iter()
            .map(|(path, (kind, bytes))| (path.clone(), *kind, bytes.clone()))
            .collect();
        let mut store = format(RamFlash::new(SMALL));
        let mut none = Hidden::default();
        let (set, mut hidden) = overlay(&mut store, &base, &mut none).difference(&list);
        for value in set {
            store.set(TREE, value.path, value.kind, value.bytes).unwrap();
        }
        assert_eq!(values_of(&mut overlay(&mut store, &base, &mut hidden)), wanted, "seed {seed}");
    }
}

#[test]
fn a_damaged_byte_of_a_base_costs_the_value_that_it_hit() {
    let mut work = Work::new(7);
    let values = some_values(&mut work, 30);
    let base = base_of(&values);
    for at in 0..base.len() {
        let mut damaged = base.clone();
        damaged[at] ^= 1 << (at % 8);
        let Some(opened) = Base::open(&damaged) else {
            assert!(at < 12, "byte {at}");
            continue;
        };
        let mut store = format(RamFlash::new(SMALL));
        let mut hidden = Hidden::default();
        let mut tree = Overlay {
            store: &mut store,
            base: opened,
            hidden: &mut hidden,
            tree: TREE,
            hidden_tree: HIDDEN,
        };
        let lost = values
            .iter()
            .filter(|(path, (kind, bytes))| match tree.get(path) {
                Ok(Some(value)) => {
                    assert_eq!((&value.kind, &value.bytes), (kind, bytes), "byte {at}");
                    false
                }
                Ok(None) | Err(ReadError::Corrupt) => true,
                Err(error) => panic!("byte {at}: {error}"),
            })
            .count();
        assert!(lost <= 1, "byte {at}: {lost}");
    }
}
