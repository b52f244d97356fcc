//! Policies by themselves: slots that want to run, and a clock that fuel drives.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::simulated::Random;

use super::*;

const SLICE: u64 = 1_000;
/// One unit of fuel takes a microsecond.
const RATE: u64 = 1_000_000;

/// A device on which slots are ready or not, and use what they are given.
struct Bench {
    policy: Box<dyn Policy>,
    now: Instant,
    ready: Slots,
    used: [u64; SLOTS_MAX],
    ready_at: [Option<Instant>; SLOTS_MAX],
    waited_max: [Duration; SLOTS_MAX],
}

impl Bench {
    fn new(kind: PolicyKind, shares: &[Share]) -> Self {
        let mut policy = kind.build(SLICE, RATE);
        for (slot, share) in shares.iter().enumerate() {
            policy.admit(slot, share).unwrap();
        }
        Self {
            policy,
            now: Instant::BOOT,
            ready: Slots::default(),
            used: [0; SLOTS_MAX],
            ready_at: [None; SLOTS_MAX],
            waited_max: [Duration::ZERO; SLOTS_MAX],
        }
    }

    fn wake(&mut self, slot: usize) {
        self.ready.insert(slot);
        self.ready_at[slot].get_or_insert(self.now);
    }

    fn sleep(&mut self, slot: usize) {
        self.ready.remove(slot);
        self.ready_at[slot] = None;
    }

    /// One turn, of which `use_fuel` says how much is used; gives whose.
    fn turn(&mut self, use_fuel: impl FnOnce(Turn) -> u64) -> Option<usize> {
        let turn = self.policy.pick(self.now, self.ready)?;
        assert!(self.ready.contains(turn.slot), "only who is ready runs");
        assert!(turn.fuel > 0 && turn.fuel <= SLICE);
        let since = self.ready_at[turn.slot].take().expect("it was ready");
        let waited = self.now.since(since);
        self.waited_max[turn.slot] = self.waited_max[turn.slot].max(waited);
        let fuel = use_fuel(turn);
        self.used[turn.slot] += fuel;
        self.policy.ran(turn, fuel);
        self.now = self.now + Duration::from_micros(fuel);
        self.ready_at[turn.slot] = Some(self.now);
        Some(turn.slot)
    }

    /// Turns that are used up whole.
    fn spin(&mut self, turns: usize) -> Vec<usize> {
        (0..turns).map(|_| self.turn(|turn| turn.fuel).expect("somebody is ready")).collect()
    }
}

fn tier(tier: u16) -> Share {
    Share { tier, tier_max: tier, ..Share::default() }
}

fn reserved(period_ms: u32, bandwidth_permille: u16) -> Share {
    Share { period_ms, bandwidth_permille, ..Share::default() }
}

#[test]
fn slots_are_found_in_order_going_round() {
    let slots: Slots = [0, 5, 31].into_iter().collect();
    assert_eq!(slots.iter().collect::<Vec<_>>(), [0, 5, 31]);
    let round: Vec<_> = [0, 4, 5, 30, 31].map(|slot| slots.next_after(slot).unwrap()).into();
    assert_eq!(round, [5, 5, 31, 31, 0]);
    assert_eq!(Slots::default().next_after(3), None);
}

#[test]
fn policies_are_found_by_their_names() {
    for kind in PolicyKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
    }
    assert_eq!("fastest".parse::<PolicyKind>(), Err(UnknownPolicy));
}

#[test]
fn round_robin_goes_by_slots_whoever_becomes_ready_when() {
    let mut bench = Bench::new(PolicyKind::RoundRobin, &[Share::default(); 4]);
    [3, 1, 0].into_iter().for_each(|slot| bench.wake(slot));
    assert_eq!(bench.spin(5), [1, 3, 0, 1, 3]);
}

#[test]
fn preemptive_goes_by_who_was_ready_first() {
    let mut bench = Bench::new(PolicyKind::Preemptive, &[Share::default(); 4]);
    bench.wake(3);
    bench.spin(1);
    bench.wake(2);
    assert_eq!(bench.spin(2), [2, 3]);
    bench.wake(0);
    assert_eq!(bench.spin(4), [2, 0, 3, 2], "who had the turn comes after the new one");
}

#[test]
fn what_a_turn_takes_too_much_is_taken_from_the_next_ones() {
    for kind in [PolicyKind::RoundRobin, PolicyKind::Preemptive] {
        let mut bench = Bench::new(kind, &[Share::default(); 2]);
        [0, 1].into_iter().for_each(|slot| bench.wake(slot));
        for _ in 0..400 {
            bench.turn(|turn| turn.fuel * if turn.slot == 0 { 5 } else { 1 });
        }
        let [greedy, modest] = [bench.used[0], bench.used[1]];
        assert!(greedy <= modest + 6 * SLICE, "{kind}: {greedy} to {modest}");
    }
}

#[test]
fn tiers_share_in_proportion_and_unused_share_goes_round() {
    let mut bench = Bench::new(PolicyKind::WeightedFair, &[tier(4), tier(2), tier(1)]);
    [0, 1, 2].into_iter().for_each(|slot| bench.wake(slot));
    bench.spin(700);
    assert_eq!(bench.used[..3].iter().map(|fuel| fuel / 50_000).collect::<Vec<_>>(), [8, 4, 2]);
    bench.sleep(0);
    bench.used = [0; SLOTS_MAX];
    bench.spin(300);
    let [two, one] = [bench.used[1], bench.used[2]];
    assert!(two.abs_diff(200 * SLICE) <= 2 * SLICE && one.abs_diff(100 * SLICE) <= 2 * SLICE);
}

#[test]
fn a_sleeper_has_saved_nothing_up() {
    let mut bench = Bench::new(PolicyKind::WeightedFair, &[tier(1); 2]);
    bench.wake(0);
    bench.spin(1_000);
    bench.wake(1);
    let turns = bench.spin(10);
    assert_eq!(turns.iter().filter(|slot| **slot == 0).count(), 5, "{turns:?}");
}

#[test]
fn who_yields_early_gets_its_share_all_the_same() {
    let mut bench = Bench::new(PolicyKind::WeightedFair, &[tier(1); 2]);
    [0, 1].into_iter().for_each(|slot| bench.wake(slot));
    for _ in 0..1_100 {
        bench.turn(|turn| if turn.slot == 0 { turn.fuel / 10 } else { turn.fuel });
    }
    assert!(bench.used[0].abs_diff(bench.used[1]) <= 2 * SLICE, "{:?}", &bench.used[..2]);
}

#[test]
fn a_higher_tier_lasts_as_long_as_it_is_set_and_within_the_grant() {
    let share = Share { tier: 1, tier_max: 3, ..Share::default() };
    let mut bench = Bench::new(PolicyKind::WeightedFair, &[share, tier(1)]);
    [0, 1].into_iter().for_each(|slot| bench.wake(slot));
    bench.policy.set_tier(0, 100);
    bench.spin(400);
    assert!(bench.used[0].abs_diff(300 * SLICE) <= 3 * SLICE, "{:?}", &bench.used[..2]);
    bench.policy.set_tier(0, 1);
    bench.used = [0; SLOTS_MAX];
    bench.spin(400);
    assert!(bench.used[0].abs_diff(200 * SLICE) <= 3 * SLICE, "{:?}", &bench.used[..2]);
}

#[test]
fn small_numbers_come_back_before_tags_overflow() {
    let mut bench = Bench::new(PolicyKind::WeightedFair, &[tier(1), tier(2)]);
    [0, 1].into_iter().for_each(|slot| bench.wake(slot));
    for _ in 0..2_000 {
        bench.turn(|_| 1 << 50);
    }
    assert!(bench.used[1].abs_diff(2 * bench.used[0]) <= 4 << 50, "{:?}", &bench.used[..2]);
}

#[test]
fn more_than_can_be_reserved_is_refused() {
    let mut policy = EarliestDeadline::new(SLICE, RATE);
    policy.admit(0, &reserved(10, 500)).unwrap();
    policy.admit(1, &reserved(20, 400)).unwrap();
    assert_eq!(policy.admit(2, &reserved(20, 1)), Err(Overbooked));
    policy.admit(2, &Share::default()).unwrap();
    policy.admit(1, &reserved(20, 300)).unwrap();
    policy.leave(0);
    policy.admit(2, &reserved(20, 600)).unwrap();
}

/// Slot 0 wants 4 ms every 20 ms and reserved 5 of 20; slot 1 reserved as much and spins; slot 2 has
/// no reservation and spins. Gives the longest that slot 0 took for its job.
fn longest_job(liar_spins: bool) -> Duration {
    let shares = [reserved(20, 250), reserved(20, 250), Share::default()];
    let mut bench = Bench::new(PolicyKind::EarliestDeadline, &shares);
    [1, 2].into_iter().filter(|slot| liar_spins || *slot == 2).for_each(|slot| bench.wake(slot));
    let (mut longest, mut release) = (Duration::ZERO, Instant::BOOT);
    for _ in 0..500 {
        while bench.now < release {
            bench.spin(1);
        }
        bench.wake(0);
        let mut left = 4_000;
        while left > 0 {
            bench.turn(|turn| {
                let used = if turn.slot == 0 { left.min(turn.fuel) } else { turn.fuel };
                left -= if turn.slot == 0 { used } else { 0 };
                used
            });
        }
        bench.sleep(0);
        longest = longest.max(bench.now.since(release));
        release = release + Duration::from_millis(20);
    }
    longest
}

#[test]
fn a_liar_misses_its_own_deadlines_only() {
    let late = Duration::from_millis(20) + Duration::from_micros(SLICE);
    assert!(longest_job(false) <= late);
    assert!(longest_job(true) <= late, "{:?}", longest_job(true));
}

#[test]
fn a_server_that_used_idle_time_does_not_pay_for_it() {
    let shares = [reserved(20, 250), reserved(20, 250)];
    let mut bench = Bench::new(PolicyKind::EarliestDeadline, &shares);
    bench.wake(0);
    bench.spin(1_000);
    bench.wake(1);
    bench.used = [0; SLOTS_MAX];
    bench.spin(200);
    assert!(bench.used[0].abs_diff(bench.used[1]) <= 10 * SLICE, "{:?}", &bench.used[..2]);
}

/// Slots that come and go, of which some take up to `over` beyond their fuel.
fn check_waits(kind: PolicyKind, seed: u64, over: u64) {
    let mut random = Random::new(seed);
    let shares: Vec<Share> = (0..16_u16)
        .map(|slot| match slot {
            0..4 => reserved(20 + 10 * u32::from(slot), 150),
            _ => tier(1 + slot % 4),
        })
        .collect();
    let mut bench = Bench::new(kind, &shares);
    for _ in 0..20_000 {
        for slot in 0..16 {
            match random.below(20) {
                0 => bench.wake(slot),
                1 if slot > 2 => bench.sleep(slot),
                _ => {}
            }
        }
        let (part, extra) = (random.below(4), random.below(over + 1));
        let ran = bench.turn(|turn| match turn.slot % 4 {
            0 => turn.fuel,
            1 => turn.fuel + extra,
            _ => turn.fuel * part / 4,
        });
        if ran.is_none() {
            bench.now = bench.now + Duration::from_millis(1);
        }
    }
    for slot in 0..16 {
        let bound = Duration::from_micros(bench.policy.wait_fuel_max(slot, SLICE + over));
        let waited = bench.waited_max[slot];
        assert!(waited <= bound, "{kind}, seed {seed}, slot {slot}: {waited:?} of {bound:?}");
    }
}

#[test]
fn nobody_waits_longer_than_the_policy_promises() {
    for kind in PolicyKind::ALL {
        for seed in 0..20 {
            check_waits(kind, seed, 0);
            check_waits(kind, seed, 3 * SLICE);
        }
    }
}
