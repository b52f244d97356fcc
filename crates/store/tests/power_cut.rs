//! The power is cut at every flash operation, torn writes and torn erases included.

mod model;

use model::{Model, Outcome, SMALL, Step, Work, format, mount, perform};
use tenure_hal::simulated::RamFlash;
use tenure_hal::{Flash, FlashGeometry};
use tenure_store::{Store, TreeId, ValueKind};

/// Does the step. If the power goes during it, boots, and expects what was before the step or what
/// should be after it.
fn step_with_cut(store: &mut Store<RamFlash>, model: &mut Model, step: &Step, repeat: &str) {
    let before = model.clone();
    match perform(store, step) {
        Outcome::Done => model.apply(step),
        Outcome::Full => {}
        Outcome::Cut => {
            let mut after = before.clone();
            after.apply(step);
            *model = Model::of(reboot(store, repeat));
            if *model != before && *model != after {
                let unlike = |other: &Model| -> Vec<_> {
                    let keys = model.values.keys().chain(other.values.keys());
                    let unlike = keys.filter(|key| model.values.get(key) != other.values.get(key));
                    unlike.cloned().collect()
                };
                panic!(
                    "{repeat}: {step:?}: neither as before: {:?}\nnor as after: {:?}",
                    unlike(&before),
                    unlike(&after)
                );
            }
        }
    }
}

/// Takes the power and gives it back, mounts as a boot does, and expects the same at the starts that follow, though what
/// cuts left reads otherwise at each. The power also goes while it mounts.
fn reboot<'a>(store: &'a mut Store<RamFlash>, repeat: &str) -> &'a mut Store<RamFlash> {
    let mut found = None;
    let counters = store.flash().counters();
    let mut draws = Work::new(counters.programs << 16 | counters.erases);
    for _ in 0..2 + draws.below(3) {
        *store = start(store.flash().clone(), &mut draws, repeat);
        let holds = Model::of(store);
        let first = found.get_or_insert_with(|| holds.clone());
        assert_eq!(*first, holds, "{repeat}: another start, another store");
    }
    store
}

/// Mounts what a device without power holds, at once or after cuts while it mounts.
fn start(mut flash: RamFlash, draws: &mut Work, repeat: &str) -> Store<RamFlash> {
    for _ in 0..draws.below(4) {
        flash.cut_power();
        flash.restore_power();
        flash.cut_power_after(draws.below(2), draws.number());
        let mut lent = flash.clone();
        match mount(&mut lent) {
            Ok(_) => {}
            Err(error) => assert!(lent.is_off(), "{repeat}: {error}"),
        }
        flash = lent;
    }
    flash.cut_power();
    flash.restore_power();
    mount(flash).unwrap_or_else(|error| panic!("{repeat}: {error}")).0
}

/// A store that has gone round its ring, and what it holds.
fn settled(geometry: FlashGeometry, work: &mut Work, steps: usize) -> (Store<RamFlash>, Model) {
    let mut store = format(RamFlash::new(geometry));
    let mut model = Model::default();
    for _ in 0..steps {
        let step = work.step();
        if perform(&mut store, &step) == Outcome::Done {
            model.apply(&step);
        }
    }
    (store, model)
}

#[test]
fn each_operation_of_a_run_cut_once_leaves_old_or_new() {
    for (seed, sector_count) in [(1, 8), (2, 3), (3, 4)] {
        let geometry = FlashGeometry { sector_count, ..SMALL };
        let mut work = Work::new(seed);
        let (mut start, start_model) = settled(geometry, &mut work, 400);
        let steps: Vec<Step> = (0..60).map(|_| work.step()).collect();
        start.flash_mut().reset_counters();
        let flash = start.flash().clone();
        let mut whole = mount(flash.clone()).unwrap().0;
        for step in &steps {
            let _ = perform(&mut whole, step);
        }
        let counters = whole.flash().counters();

        for operation in 0..counters.programs + counters.erases {
            let repeat = format!("seed {seed}, operation {operation}");
            let (mut store, _) = mount(flash.clone()).unwrap();
            store.flash_mut().cut_power_after(operation, seed << 32 | operation);
            let mut model = start_model.clone();
            for step in &steps {
                step_with_cut(&mut store, &mut model, step, &repeat);
            }
            assert_eq!(Model::of(&mut store), model, "{repeat}");
            assert_eq!(Model::of(reboot(&mut store, &repeat)), model, "{repeat}");
        }
    }
}

#[test]
fn each_operation_cut_while_all_live_sectors_are_reclaimed_leaves_old_or_new() {
    // Values that never change fill the store; so reclaiming passes through sectors that are all
    // live, one after the other in one write.
    for (sector_count, length, rounds) in [(4, 20, 80u32), (5, 97, 40)] {
        let geometry = FlashGeometry { sector_count, ..SMALL };
        let set = |path: String, value: Vec<u8>| Step::Set {
            tree: 0,
            path,
            kind: ValueKind::Bytes,
            value,
        };
        let mut start = format(RamFlash::new(geometry));
        let mut start_model = Model::default();
        for number in 0.. {
            let step = set(format!("k{number}"), vec![number as u8; length]);
            if perform(&mut start, &step) == Outcome::Full {
                break;
            }
            start_model.apply(&step);
        }
        let steps: Vec<Step> =
            (0..rounds).map(|round| set("k0".into(), vec![round as u8; length])).collect();
        let flash = start.into_flash();
        for operation in 0.. {
            let repeat = format!("{sector_count} sectors, operation {operation}");
            let (mut store, _) = mount(flash.clone()).unwrap();
            store.flash_mut().cut_power_after(operation, operation * 31);
            let mut model = start_model.clone();
            for step in &steps {
                step_with_cut(&mut store, &mut model, step, &repeat);
            }
            assert_eq!(Model::of(&mut store), model, "{repeat}");
            if store.flash().counters().programs + store.flash().counters().erases < operation {
                break;
            }
        }
    }
}

#[test]
fn cut_after_cut_nothing_is_lost() {
    (0..40).for_each(check_cut_after_cut);
}

#[test]
#[ignore = "takes minutes: run it with --release"]
fn cut_after_cut_nothing_is_lost_with_thousands_of_seeds() {
    (1000..6000).for_each(check_cut_after_cut);
}

fn check_cut_after_cut(seed: u64) {
    let mut work = Work::new(seed);
    let unit = [1, 2, 4, 8, 16][seed as usize % 5];
    let sector_count = 3 + work.below(8) as u32;
    let geometry = FlashGeometry { sector_count, program_bytes: unit, ..SMALL };
    let (mut store, mut model) = settled(geometry, &mut work, 150);
    for round in 0..30 {
        let repeat = format!("seed {seed}, round {round}");
        let (operations, tear) = (work.below(12), work.number());
        store.flash_mut().cut_power_after(operations, tear);
        while !store.flash().is_off() {
            let step = work.step();
            step_with_cut(&mut store, &mut model, &step, &repeat);
            if !store.flash().is_off() && work.below(20) == 0 {
                break;
            }
        }
        assert_eq!(Model::of(reboot(&mut store, &repeat)), model, "{repeat}");
    }
    check_still_writable(&mut store, &mut model);
}

/// Whatever happened: everything can be deleted, and then written again.
fn check_still_writable(store: &mut Store<RamFlash>, model: &mut Model) {
    for tree in 0..3 {
        let step = Step::Delete { tree, path: String::new() };
        assert_eq!(perform(store, &step), Outcome::Done);
        model.apply(&step);
    }
    assert_eq!(&Model::of(store), model);
    assert_eq!(store.occupancy().stored_bytes, 0);
    let mut work = Work::new(0);
    let mut done = 0;
    for _ in 0..20 {
        let step = work.step();
        if perform(store, &step) == Outcome::Done {
            model.apply(&step);
            done += 1;
        }
    }
    assert!(done > 10);
    assert_eq!(&Model::of(store), model);
}

/// A record that ends where the records of its sector may end, or just before: no other has room behind it. It is short,
/// so that its last unit is often the one that is torn.
#[test]
fn last_record_that_fills_its_sector_is_kept_or_never_there() {
    let room = (SMALL.sector_bytes - 16 - 28) as usize;
    for left in [0, 4, 8, 16] {
        for seed in 0..30 {
            let repeat = format!("{left} bytes left, seed {seed}");
            let mut store = format(RamFlash::new(SMALL));
            let kind = ValueKind::Bytes;
            let mut model = Model::default();
            for (path, bytes) in [("a", 400), ("b", room - 424 - left), ("last", 24)] {
                let value = vec![1; bytes - 14 - path.len()];
                let step = Step::Set { tree: 0, path: path.into(), kind, value };
                store.flash_mut().cut_power_after(u64::from(path != "last"), seed);
                step_with_cut(&mut store, &mut model, &step, &repeat);
            }
            assert_eq!(Model::of(reboot(&mut store, &repeat)), model, "{repeat}");
            let step = Step::Set { tree: 0, path: "c".into(), kind, value: vec![2; 9] };
            assert_eq!(perform(&mut store, &step), Outcome::Done, "{repeat}");
            model.apply(&step);
            assert_eq!(Model::of(reboot(&mut store, &repeat)), model, "{repeat}");
        }
    }
}

/// Of a record that was cut in its first unit, nothing may be seen at one start and something at the next.
#[test]
fn place_that_reads_as_erased_after_a_cut_takes_no_other_record() {
    for seed in 0..200 {
        let repeat = format!("seed {seed}");
        let mut store = format(RamFlash::new(SMALL));
        let mut model = Model::default();
        store.flash_mut().cut_power_after(0, seed);
        // The numbers of the trees are in the first unit.
        for tree in [0, 0xFFFF] {
            let (path, value) = ("a".into(), vec![0]);
            let step = Step::Set { tree, path, kind: ValueKind::Bytes, value };
            step_with_cut(&mut store, &mut model, &step, &repeat);
        }
        assert_eq!(Model::of(reboot(&mut store, &repeat)), model, "{repeat}");
    }
}

/// A sector that isn't found at the first start after its header was cut may be found at another, when the sector before
/// it has been written to.
#[test]
fn cut_before_a_header_that_comes_and_goes_leaves_old_or_new() {
    let room = (SMALL.sector_bytes - 16 - 28) as usize;
    let set = |path: &str, bytes: usize| Step::Set {
        tree: 0,
        path: path.into(),
        kind: ValueKind::Bytes,
        value: vec![1; bytes - 15],
    };
    for seed in 0..1000 {
        let repeat = format!("seed {seed}");
        let mut store = format(RamFlash::new(SMALL));
        let mut model = Model::default();
        for step in [set("a", 400), set("b", room - 400 - 64)] {
            step_with_cut(&mut store, &mut model, &step, &repeat);
        }
        // The next sector is erased, and its header cut.
        store.flash_mut().cut_power_after(1, seed);
        assert_eq!(perform(&mut store, &set("c", 116)), Outcome::Cut, "{repeat}");
        let mut flash = store.into_flash();
        flash.restore_power();
        let (mut store, _) = mount(flash).unwrap();
        store.flash_mut().cut_power_after(0, seed + 1);
        step_with_cut(&mut store, &mut model, &set("d", 16), &repeat);
        assert_eq!(Model::of(reboot(&mut store, &repeat)), model, "{repeat}");
    }
}

#[test]
fn format_that_was_cut_is_done_again_and_its_store_stays() {
    for seed in 0..300 {
        let mut draws = Work::new(seed);
        let unit = [1, 2, 4, 8, 16, 32, 64][seed as usize % 7];
        let geometry = FlashGeometry { sector_count: 3, program_bytes: unit, ..SMALL };
        let mut flash = RamFlash::new(geometry);
        for _ in 0..draws.below(6) {
            flash.cut_power_after(draws.below(4), draws.number());
            if let Err(error) = Store::mount_or_format(&mut flash, draws.number() as u32) {
                assert!(flash.is_off(), "seed {seed}: {error}");
            }
            flash.cut_power();
            flash.restore_power();
        }
        let salt = draws.number() as u32;
        let mut store = Store::mount_or_format(flash, salt).unwrap().0;
        store.set(TreeId(0), "a", ValueKind::Bytes, b"kept").unwrap();
        let repeat = format!("seed {seed}");
        assert_eq!(Model::of(reboot(&mut store, &repeat)).values.len(), 1, "{repeat}");
    }
}

#[test]
fn after_a_fault_that_passes_the_store_goes_on_or_refuses_all() {
    for seed in 0..30 {
        let mut work = Work::new(seed);
        let (mut store, mut model) = settled(SMALL, &mut work, 200);
        for round in 0..40 {
            let repeat = format!("seed {seed}, round {round}");
            let (operations, tear) = (work.below(6), work.number());
            store.flash_mut().cut_power_after(operations, tear);
            let (step, outcome) = loop {
                let step = work.step();
                let outcome = perform(&mut store, &step);
                if store.flash().is_off() {
                    break (step, outcome);
                }
                if outcome == Outcome::Done {
                    model.apply(&step);
                }
            };
            store.flash_mut().restore_power();
            if !store.has_failed() {
                if outcome == Outcome::Done {
                    model.apply(&step);
                }
                assert_eq!(Model::of(&mut store), model, "{repeat}");
                continue;
            }
            assert_eq!(perform(&mut store, &work.step()), Outcome::Cut, "{repeat}");
            let mut after = model.clone();
            after.apply(&step);
            let found = Model::of(reboot(&mut store, &repeat));
            assert!(found == after || (found == model && outcome != Outcome::Done), "{repeat}");
            model = found;
        }
    }
}

/// A device whose programs fail from some time on.
struct Worn(RamFlash, bool);

impl Flash for Worn {
    fn geometry(&self) -> FlashGeometry {
        self.0.geometry()
    }
    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), tenure_hal::FlashError> {
        self.0.read(offset, into)
    }
    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), tenure_hal::FlashError> {
        if self.1 { Err(tenure_hal::FlashError::Hardware) } else { self.0.program(offset, bytes) }
    }
    fn erase(&mut self, sector: u32) -> Result<(), tenure_hal::FlashError> {
        self.0.erase(sector)
    }
    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

#[test]
fn flash_that_takes_nothing_more_is_read_all_the_same() {
    let mut store = format(Worn(RamFlash::new(SMALL), false));
    let mut work = Work::new(3);
    let mut model = Model::default();
    for step in std::iter::repeat_with(|| work.step()).take(50) {
        if perform(&mut store, &step) == Outcome::Done {
            model.apply(&step);
        }
    }
    store.flash_mut().1 = true;
    let (mut store, _) = mount(store.into_flash()).unwrap();
    assert_eq!(Model::of(&mut store), model);
    assert!(store.set(TreeId(0), "a.new.one", ValueKind::Text, b"no").is_err());
    assert_eq!(Model::of(&mut store), model);
}

#[test]
fn a_write_that_failed_but_stands_counts() {
    // A device that reports a fault after having programmed everything.
    struct Pessimist(RamFlash, bool);
    impl Flash for Pessimist {
        fn geometry(&self) -> FlashGeometry {
            self.0.geometry()
        }
        fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), tenure_hal::FlashError> {
            self.0.read(offset, into)
        }
        fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), tenure_hal::FlashError> {
            self.0.program(offset, bytes)?;
            if self.1 { Err(tenure_hal::FlashError::Hardware) } else { Ok(()) }
        }
        fn erase(&mut self, sector: u32) -> Result<(), tenure_hal::FlashError> {
            self.0.erase(sector)
        }
        fn mapped(&self) -> Option<&[u8]> {
            None
        }
    }
    let mut store = format(Pessimist(RamFlash::new(SMALL), false));
    store.flash_mut().1 = true;
    let mut work = Work::new(5);
    let step = std::iter::repeat_with(|| work.step())
        .find(|step| matches!(step, Step::Set { .. }))
        .unwrap();
    assert_eq!(perform(&mut store, &step), Outcome::Done);
    let model = Model::of(&mut store);
    assert_eq!(model.values.len(), 1);
    let (mut store, _) = mount(store.into_flash()).unwrap();
    assert_eq!(Model::of(&mut store), model);
}
