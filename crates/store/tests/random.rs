//! Random work against the model.

mod model;

use model::{Model, Outcome, SMALL, Step, Work, format, mount, perform};
use proptest::prelude::*;
use tenure_hal::simulated::RamFlash;
use tenure_store::{Store, TreeId, ValueKind};

fn check_equal(store: &mut Store<RamFlash>, model: &Model) {
    assert_eq!(&Model::of(store), model);
    for tree in 0..3 {
        assert_eq!(store.children(TreeId(tree), "").unwrap(), model.children(tree, ""));
        for node in ["a", "a.b", "a-b", "cc.a", "b.b.b"] {
            let names = model.children(tree, node);
            assert_eq!(store.children(TreeId(tree), node).unwrap(), names, "{tree} {node}");
        }
        let records = model.values.iter().filter(|((of, _), _)| *of == tree);
        let bytes = records
            .map(|((_, path), (_, value))| store.record_bytes(TreeId(tree), path, value))
            .sum();
        assert_eq!(store.stored_bytes(TreeId(tree)), bytes);
    }
}

#[test]
fn long_random_work_is_done_as_the_model_does_it() {
    for seed in 0..6 {
        let mut work = Work::new(seed);
        let mut store = format(RamFlash::new(SMALL));
        let mut model = Model::default();
        for round in 0..4000 {
            let step = work.step();
            match perform(&mut store, &step) {
                Outcome::Done => model.apply(&step),
                Outcome::Full => {}
                Outcome::Cut => panic!("seed {seed}: nothing was cut"),
            }
            if round % 97 == 0 {
                check_equal(&mut store, &model);
                let (mounted, report) = mount(store.into_flash()).unwrap();
                store = mounted;
                assert_eq!(report.damaged_records + report.damaged_headers, 0, "seed {seed}");
                check_equal(&mut store, &model);
            }
        }
        assert!(store.occupancy().sectors_opened > 50, "seed {seed}: went round the ring");
    }
}

#[test]
fn a_batch_across_sectors_outlives_the_reuse_of_its_first_sector() {
    let mut store = format(RamFlash::new(SMALL));
    let mut model = Model::default();
    let set = |path: String, length| Step::Set {
        tree: 0,
        path,
        kind: ValueKind::Bytes,
        value: vec![7; length],
    };
    let batch = Step::Batch((0..12).map(|number| set(format!("k{number}"), 150)).collect());
    let others = (0..400).map(|round| set("other".into(), 40 + round % 3));
    for step in std::iter::once(batch).chain(others) {
        assert_eq!(perform(&mut store, &step), Outcome::Done);
        model.apply(&step);
        (store, _) = mount(store.into_flash()).unwrap();
        assert_eq!(Model::of(&mut store), model);
    }
}

#[test]
fn a_deletion_in_steps_is_one_for_all_that_happens_in_between() {
    for seed in 0..40 {
        let mut work = Work::new(seed);
        let mut store = format(RamFlash::new(SMALL));
        let mut model = Model::default();
        let mut steps_in_between = 0;
        for _ in 0..60 {
            for _ in 0..work.below(40) {
                step_on(&mut store, &mut model, &work.step());
            }
            let (tree, path) = (work.below(2) as u16, ["", "a", "cc"][work.below(3) as usize]);
            let deletion = Step::Delete { tree, path: path.to_string() };
            let before = model.values.len();
            model.apply(&deletion);
            let begun = store.begin_delete(TreeId(tree), path).unwrap();
            assert_eq!(begun, model.values.len() < before, "seed {seed}");
            let (mut left, mut is_done) = (before - model.values.len(), false);
            while !is_done {
                let removed = store.go_on_deleting(TreeId(tree), 2).unwrap();
                (left, is_done) = (left - removed.values, removed.is_done);
                assert!(!is_done || left == 0, "seed {seed}: {left} more should have gone");
                // Others fill the log, so that it is reclaimed, and look for what they have.
                let path = format!("other{}", work.below(4));
                let value = vec![7; 40 + work.below(200) as usize];
                let other = Step::Set { tree: 2, path, kind: ValueKind::Bytes, value };
                step_on(&mut store, &mut model, &other);
                assert_eq!(store.keys(TreeId(2)), model.values.range((2, String::new())..).count());
                steps_in_between += 1;
                if work.below(40) == 0 {
                    (store, _) = mount(store.into_flash()).unwrap();
                    is_done = true;
                } else if work.below(20) == 0 {
                    // Whatever else is done with the tree ends the deletion first.
                    check_equal(&mut store, &model);
                    is_done = true;
                }
            }
            check_equal(&mut store, &model);
        }
        assert!(steps_in_between > 60, "seed {seed}: {steps_in_between}");
        assert!(store.occupancy().sectors_opened > 50, "seed {seed}: went round the ring");
        assert_eq!(store.occupancy().records_lost, 0, "seed {seed}");
    }
}

fn step_on(store: &mut Store<RamFlash>, model: &mut Model, step: &Step) {
    match perform(store, step) {
        Outcome::Done => model.apply(step),
        Outcome::Full => {}
        Outcome::Cut => panic!("nothing was cut"),
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = "[ab-]{1,2}(\\.[ab-]{1,2}){0,2}";
    let kind = prop_oneof![Just(ValueKind::Bytes), Just(ValueKind::Text)];
    let value = prop::collection::vec(any::<u8>(), 0..60);
    let set = (0u16..2, path, kind, value).prop_map(|(tree, path, kind, value)| Step::Set {
        tree,
        path,
        kind,
        value,
    });
    let delete =
        (0u16..2, "|[ab-](\\.[ab-])?").prop_map(|(tree, path)| Step::Delete { tree, path });
    let single = prop_oneof![4 => set, 1 => delete];
    let batch = prop::collection::vec(single.clone(), 0..5).prop_map(Step::Batch);
    prop::collection::vec(prop_oneof![6 => single, 1 => batch], 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_work_is_done_as_a_map_does_it(steps in steps()) {
        let mut store = format(RamFlash::new(SMALL));
        let mut model = Model::default();
        for step in &steps {
            if perform(&mut store, step) == Outcome::Done {
                model.apply(step);
            }
        }
        check_equal(&mut store, &model);
        let (mut store, _) = mount(store.into_flash()).unwrap();
        check_equal(&mut store, &model);
    }
}
