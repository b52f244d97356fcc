use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use tenure_hal::{ARGUMENTS, Call, Context, Instant, UnixTime};

use super::*;

/// A clock that shows what code behind the wall takes.
#[derive(Clone, Default)]
struct Watch(Arc<AtomicU64>);

impl Clock for Watch {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.load(Ordering::Relaxed))
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}

/// Memory protection that protects nothing. What runs behind it does nothing but take time and fuel. Where a unit's
/// nanoseconds are said, the clock counts nothing else.
struct Open<const UNIT_NS: u32> {
    watch: Watch,
    takes_us: Arc<AtomicU64>,
    /// The microseconds that the next stay alone takes beside that.
    jump_us: Arc<AtomicU64>,
    pays_bytes: Arc<AtomicU64>,
}

impl<const UNIT_NS: u32> Guard for Open<UNIT_NS> {
    type Memory = Vec<u8>;

    const UNIT_NS: Option<u32> = if UNIT_NS == 0 { None } else { Some(UNIT_NS) };

    fn memory(&self, bytes: usize, _: usize, _: Option<usize>) -> Option<Vec<u8>> {
        Some(vec![0; bytes])
    }

    fn enter(&self, _: usize, _: usize, _: usize) -> Context {
        Context::default()
    }

    fn run(&mut self, _: &mut Context, _: &mut Vec<u8>, _: u32) -> Exit {
        Exit::Time
    }

    fn run_firmware(&mut self, _: &mut Context, regions: &mut [Region<'_>], most_us: u32) -> Exit {
        let Some(Region::Own(stack)) = regions.last_mut() else { panic!("no stack") };
        let place = stack.len() - (word::COUNT - word::LIMIT) * WORD_BYTES;
        let limit: &mut [u8; WORD_BYTES] = stack[place..].first_chunk_mut().unwrap();
        let pays = self.pays_bytes.load(Ordering::Relaxed) as usize;
        *limit = usize::from_ne_bytes(*limit).wrapping_sub(pays).to_ne_bytes();
        let jump_us = self.jump_us.swap(0, Ordering::Relaxed);
        let takes_us = self.takes_us.load(Ordering::Relaxed) + jump_us;
        let most_us = most_us.into();
        self.watch.0.fetch_add(takes_us.min(most_us), Ordering::Relaxed);
        if takes_us < most_us { Exit::Call } else { Exit::Time }
    }

    fn call(&self, _: &Context) -> Call {
        Call { number: RETURNED, arguments: [0; ARGUMENTS] }
    }

    fn position(&self, _: &Context) -> usize {
        0
    }

    fn finish_call(&self, _: &mut Context, _: [usize; 2]) {}
}

extern "C" fn nothing(_: *mut usize) {}

/// A board whose clock jumps.
type Scene = SceneOf<0>;
/// One whose clock counts what machines take, and nothing else.
type ExactScene = SceneOf<UNIT_NS>;
const UNIT_NS: u32 = 100;

/// A wall, and machines behind it, with code of their own.
struct SceneOf<const UNIT_NS: u32> {
    wall: GuardedVm<Open<UNIT_NS>, Watch>,
    watch: Watch,
    takes_us: Arc<AtomicU64>,
    jump_us: Arc<AtomicU64>,
    pays_bytes: Arc<AtomicU64>,
    machines: [(Vec<u8>, Vec<u8>); 2],
    /// The fuel of a stay.
    units: usize,
}

impl<const UNIT_NS: u32> SceneOf<UNIT_NS> {
    fn new() -> Self {
        let watch = Watch::default();
        let [takes_us, jump_us, pays_bytes] = [(); 3].map(|()| Arc::<AtomicU64>::default());
        let guard = Open {
            watch: watch.clone(),
            takes_us: Arc::clone(&takes_us),
            jump_us: Arc::clone(&jump_us),
            pays_bytes: Arc::clone(&pays_bytes),
        };
        let wall = GuardedVm::new(guard, watch.clone()).unwrap();
        let machines = [0, 1].map(|_| (vec![0; 64], vec![0; 32]));
        Self { wall, watch, takes_us, jump_us, pays_bytes, machines, units: 0 }
    }

    /// A machine's stay in its compiled code.
    fn compiled(&mut self, machine: usize, takes_us: u64, pays_bytes: u64) -> Result<(), Breach> {
        self.stay(machine, true, takes_us, pays_bytes)
    }

    fn stay(
        &mut self,
        machine: usize,
        is_compiled: bool,
        takes_us: u64,
        pays_bytes: u64,
    ) -> Result<(), Breach> {
        self.takes_us.store(takes_us, Ordering::Relaxed);
        self.pays_bytes.store(pays_bytes, Ordering::Relaxed);
        let (stack, code) = &mut self.machines[machine];
        let enter = match is_compiled {
            true => Entry::Compiled { code, at: 0 },
            false => Entry::Interpreter(nothing),
        };
        let writable = [&mut [][..], &mut stack[..], &mut [][..]];
        let mut words = [1_000_000; word::COUNT];
        words[word::LIMIT] += 2 * self.units;
        self.wall.confine(Stay { readable: [&[]; 3], writable, words: &mut words, enter })
    }

    /// Lets time go by in which no code runs.
    fn wait(&self, us: u64) {
        self.watch.0.fetch_add(us, Ordering::Relaxed);
    }
}

#[test]
fn stays_may_take_eight_times_what_an_empty_one_took_at_the_start() {
    for (empty_us, stay_us) in [(0, 20), (2, 20), (60, 480), (10_000, 2_000)] {
        let mut scene = Scene::new();
        scene.takes_us.store(empty_us, Ordering::Relaxed);
        // Once, the processor is needed for something else.
        scene.jump_us.store(1_000_000, Ordering::Relaxed);
        scene.wall.measure_stays();
        assert_eq!(scene.wall.unpaid.stay_us, stay_us);
        for _ in 0..100_000 {
            assert_eq!(scene.compiled(0, stay_us, 0), Ok(()));
        }
    }
}

const UNPAID: Result<(), Breach> = Err(Breach { cause: BreachCause::Unpaid, address: 0, at: 0 });
const TOO_LONG: Result<(), Breach> = Err(Breach { cause: BreachCause::Time, address: 0, at: 0 });

#[test]
fn compiled_code_that_pays_too_little_in_many_short_stays_is_stopped() {
    // Each stay takes a millisecond, and pays for one instruction: all of the time, or a part of it.
    for part in [1, 2, 8] {
        let mut scene = Scene::new();
        let mut stays = 0;
        while scene.compiled(0, 1_000, 4) == Ok(()) {
            scene.wait(1_000 * (part - 1));
            stays += 1;
            assert!(stays <= 1_100, "{stays} stays of one part in {part}");
        }
        assert!(stays >= 500, "it isn't stopped for a little: {stays}");
        // Another machine hasn't to do with it, nor has whoever gets its place.
        assert_eq!(scene.compiled(1, 1_000, 4), Ok(()));
        assert_eq!(scene.compiled(0, 1_000, 4), Ok(()));
        assert_eq!(scene.wall.unpaid.accounts.len(), 2);
    }
}

#[test]
fn compiled_code_that_pays_for_what_it_takes_goes_on_for_a_million_stays() {
    let mut scene = Scene::new();
    for round in 0..1_000_000_u64 {
        // Now and then the processor is needed for something else.
        let takes_us = if round.is_multiple_of(1_000) { 100_000 } else { 200 };
        assert_eq!(scene.compiled(0, takes_us, 2_000), Ok(()), "round {round}");
    }
    assert!(scene.wall.unpaid.accounts.len() <= 1);
}

#[test]
fn honest_code_goes_on_while_others_take_four_fifths_of_the_processor() {
    // As an emulator on a busy computer: of two hundred stays of a tenth of a millisecond, one loses 80 ms.
    let mut scene = Scene::new();
    scene.wall.unpaid.stay_us = 800;
    for round in 1..=100_000_u64 {
        let takes_us = if round.is_multiple_of(200) { 80_100 } else { 100 };
        assert_eq!(scene.compiled(0, takes_us, 40), Ok(()), "round {round}");
    }
}

#[test]
fn honest_code_in_an_emulator_goes_on_and_code_that_pays_nothing_is_stopped() {
    let mut scene = Scene::new();
    scene.wall = scene.wall.emulated();
    for round in 0..10_000_u64 {
        assert_eq!(scene.compiled(0, 8_000, 40), Ok(()), "round {round}");
    }
    let stays = (0..100).take_while(|_| scene.compiled(1, 50_000, 0).is_ok()).count();
    assert!((10..20).contains(&stays), "{stays} stays");
}

#[test]
fn code_that_saved_up_takes_half_a_second_more_and_is_stopped() {
    let mut scene = Scene::new();
    for _ in 0..100_000 {
        assert_eq!(scene.compiled(0, 0, 4), Ok(()));
    }
    let stays = (0..10_000).take_while(|_| scene.compiled(0, 1_000, 0).is_ok()).count();
    assert!((1_000..=1_100).contains(&stays), "{stays} stays");
}

#[test]
fn accounts_of_code_that_is_gone_are_no_more_than_time_has_left() {
    let mut unpaid = Unpaid::default();
    for code in 0..10_000 {
        let from_us = code as u64 * 1_000_000;
        assert!(!unpaid.count(code, [from_us, from_us + 400_000], 4));
    }
    assert!(unpaid.accounts.len() <= 16, "{}", unpaid.accounts.len());
}

#[test]
fn compiled_code_that_runs_seldom_is_not_stopped_for_a_clock_that_jumps() {
    let mut scene = Scene::new();
    for round in 0..100_000_u64 {
        let takes_us = if round.is_multiple_of(10) { 50_000 } else { 100 };
        assert_eq!(scene.compiled(0, takes_us, 100), Ok(()), "round {round}");
        scene.wait(100_000);
    }
}

#[test]
fn code_in_the_place_of_code_that_was_stopped_owes_nothing() {
    let mut scene = Scene::new();
    for _ in 0..10 {
        assert_eq!(scene.compiled(0, 400_000, 4), Ok(()));
        assert_eq!(scene.compiled(0, 600_000, 4), TOO_LONG);
    }
}

#[test]
fn code_that_says_it_paid_less_than_nothing_paid_nothing() {
    let mut scene = Scene::new();
    let negative = 1_000_u64.wrapping_neg();
    let stays = (0..10_000).take_while(|_| scene.compiled(0, 1_000, negative).is_ok()).count();
    assert!(stays <= 511, "{stays} stays");
    assert_eq!(scene.compiled(0, 400_000, negative), Ok(()));
    assert_eq!(scene.compiled(0, 400_000, negative), UNPAID);
}

#[test]
fn time_of_the_interpreter_is_not_counted() {
    let mut scene = Scene::new();
    for _ in 0..1_000 {
        assert_eq!(scene.stay(0, false, 10_000, 4), Ok(()));
    }
    assert_eq!(scene.compiled(0, 400_000, 4), Ok(()));
}

#[test]
fn honest_code_owes_nothing_by_an_exact_clock() {
    let mut scene = ExactScene::new();
    scene.units = 20_000;
    for units in (0..=20_000_u64).step_by(7) {
        // Each unit is as dear as one may be.
        let takes_us = units * u64::from(UNIT_NS) / 1_000;
        assert_eq!(scene.compiled(0, takes_us, 2 * units), Ok(()), "{units} units");
    }
    assert_eq!(scene.wall.take_overdraft(), 0);
}

#[test]
fn code_owes_what_an_exact_clock_saw_beyond_what_it_counted_and_owes_it_once() {
    let mut scene = ExactScene::new();
    scene.units = 20_000;
    let [mut took, mut owed] = [0, 0];
    for stay in 0..1_000_u64 {
        // It counts little, much, or less than nothing.
        let counts = [4, 2_000, 4_u64.wrapping_neg()][(stay % 3) as usize];
        let takes_us = 500 + stay % 1_000;
        assert_eq!(scene.compiled(0, takes_us, counts), Ok(()));
        let paid = if counts == 2_000 { 1_000 } else { 2 * u64::from(counts == 4) };
        let stay_owes = u64::from(scene.wall.take_overdraft());
        let in_all = (stay_owes + paid) * u64::from(UNIT_NS);
        let free_ns = 1_000 * takes_us - in_all.min(1_000 * takes_us);
        assert!(
            free_ns <= (STAY_UNITS + 1) * u64::from(UNIT_NS) + CLOCK_STEP_NS + 1_000,
            "{free_ns}"
        );
        (took, owed) = (took + takes_us, owed + stay_owes);
        assert_eq!(scene.wall.take_overdraft(), 0);
    }
    assert!(owed > took * 8, "{owed} units for {took} microseconds, of which each is worth ten");
    assert_eq!(scene.wall.unpaid.accounts.len(), 1);
}

#[test]
fn what_honest_code_saved_pays_for_a_stay_that_takes_long_and_for_no_more() {
    let mut scene = ExactScene::new();
    scene.units = 20_000;
    let saved_us = SAVED_UNITS * u64::from(UNIT_NS) / 1_000;
    // Code that saves nothing has nothing.
    assert_eq!(scene.compiled(1, 800, 0), Ok(()));
    assert!(scene.wall.take_overdraft() > 7_000);
    for _ in 0..100 {
        assert_eq!(scene.compiled(0, 100, 2 * 20_000), Ok(()));
    }
    // However much it saved up, it is worth that much, once.
    let mut rest_us = saved_us;
    while rest_us > 900 {
        assert_eq!(scene.compiled(0, 800, 0), Ok(()));
        assert_eq!(scene.wall.take_overdraft(), 0, "{rest_us} us");
        rest_us -= 800;
    }
    for _ in 0..3 {
        assert_eq!(scene.compiled(0, 800, 0), Ok(()));
    }
    assert!(scene.wall.take_overdraft() > 7_000);
    // It goes when the code doesn't run.
    assert_eq!(scene.compiled(0, 100, 2 * 20_000), Ok(()));
    scene.wait(10_000_000);
    assert_eq!(scene.compiled(0, 800, 0), Ok(()));
    assert!(scene.wall.take_overdraft() > 7_000);
}

#[test]
fn stay_by_an_exact_clock_is_over_when_its_fuel_is() {
    for units in [0, 1, 128, 20_000, 4_000_000] {
        let mut scene = ExactScene::new();
        scene.units = units;
        let fuel = units as u64 + u64::from(OVERRUN_UNITS);
        let most_us = (fuel + STAY_UNITS) * u64::from(UNIT_NS) / 1_000;
        // Either pays for all that it took, whatever it says.
        for (takes_us, says, end) in [(most_us - 1, 0, Ok(())), (most_us + 5, fuel, TOO_LONG)] {
            assert_eq!(scene.compiled(0, takes_us, says), end, "{units} units");
            let owes = u64::from(scene.wall.take_overdraft());
            assert!((fuel - 100..fuel + 100).contains(&owes), "{owes} of {fuel}");
        }
    }
    // However much fuel there is.
    let mut scene = ExactScene::new();
    scene.units = 1 << 40;
    assert_eq!(scene.compiled(0, COMPILED_MICROSECONDS.into(), 0), TOO_LONG);
}

#[test]
fn empty_stays_are_part_of_the_price_and_the_interpreter_owes_nothing() {
    let mut scene = ExactScene::new();
    assert!(scene.wall.stay_ns <= 1_000, "{} ns", scene.wall.stay_ns);
    scene.takes_us.store(10, Ordering::Relaxed);
    scene.wall.measure_stay();
    assert!((10_000..=11_000).contains(&scene.wall.stay_ns), "{} ns", scene.wall.stay_ns);
    assert_eq!(scene.stay(0, false, 100_000, 0), Ok(()));
    assert_eq!(scene.wall.take_overdraft(), 0);
}
