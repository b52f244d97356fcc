//! Deep sleep of a whole device: what goes on, what ends, and what a power cut leaves.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_node::{Bedtime, Door as _, SleepPolicy};
use tenure_rpc::NoResult;
use tenure_wire::control::{DeviceStatus, Function};

use crate::snapshots::ask;
use crate::world::World;

/// Dives seven functions deep in its start, sleeps there for two seconds, and logs that it is back.
const DIVER: &str = r#"
  (data (i32.const 256) "started") (data (i32.const 272) "depth ")
  (func $down (param $left i32) (result i32)
    (if (result i32) (local.get $left)
      (then (i32.add (i32.const 1) (call $down (i32.sub (local.get $left) (i32.const 1)))))
      (else (call $sleep_ms (i32.const 2000)) (i32.const 0))))
  (func (export "entry")
    (call $log (i32.const 2) (i32.const 256) (i32.const 7))
    (i32.store8 (i32.const 278) (i32.add (i32.const 48) (call $down (i32.const 7))))
    (call $log (i32.const 2) (i32.const 272) (i32.const 7)))"#;

/// Calls `function` of the target in its parameter, and logs how that ended: `ended` and a `+` or the
/// error's digit.
const CALLER: &str = r#"
  (data (i32.const 256) "ended  ")
  (func (export "go") (local $status i32)
    (local.set $status (call $call (i32.const 1024) (call $target) (i32.const 0) (i32.const 8)
      (i32.const 0) (i32.const 0) (i32.const 60000)))
    (i32.store8 (i32.const 262) (select (i32.const 43)
      (i32.sub (i32.const 48) (local.get $status)) (i32.ge_s (local.get $status) (i32.const 0))))
    (call $log (i32.const 2) (i32.const 256) (i32.const 7)))"#;

/// Answers after three seconds.
const SLOW: &str = r#"(func (export "slow") (call $sleep_ms (i32.const 3000)))"#;

#[test]
fn a_machine_deep_in_nested_functions_sleeps_and_goes_on_in_time() {
    let mut world = World::new(|_| {});
    world.install("diver", 8, DIVER);
    world.pass(Duration::from_millis(500));
    let mut world = world.sleep(Duration::from_secs(1));
    assert_eq!(world.node.slept(), Some(Duration::from_secs(1)));
    world.pass(Duration::from_millis(490));
    assert_eq!(world.logged("depth"), 0, "its time has not come");
    world.pass(Duration::from_millis(20));
    assert_eq!(world.logged("depth 7"), 1);
    assert_eq!(world.logged("started"), 1);
}

#[test]
fn a_call_to_another_device_goes_through_the_sleep_and_runs_once() {
    for sleep_s in [1, 30] {
        let mut world = World::new(|_| {});
        let other = world.stranger();
        let caller = world.install("caller", 8, CALLER);
        let target = format!("#{}", world.strangers[other].key);
        // A datagram right after the other's start might be from before it, by another clock.
        world.pass(Duration::from_secs(1));
        // They meet, so that the device knows the way.
        world.call(other, &caller, "none", None).unwrap_err();
        let timeout = Duration::from_secs(1);
        world.start_call(0, &caller, "go", Some(target.as_bytes()), timeout);
        world.pass(Duration::from_millis(500));
        let (handle, _) = world.strangers[other].incoming[0].clone();
        world.fall_asleep().unwrap();
        world.reply(other, handle, Some(b"late".to_vec()));
        let mut world = world.off_for(Duration::from_secs(sleep_s));
        world.pass(Duration::from_secs(5));
        assert_eq!(world.logged("ended +"), 1, "{:?}", world.notices);
        assert_eq!(world.strangers[other].incoming.len(), 1, "it ran once");
    }
}

#[test]
fn a_call_whose_deadline_passes_in_the_sleep_ends_with_it() {
    let mut world = World::new(|_| {});
    let other = world.stranger();
    let caller = world.install("caller", 8, CALLER);
    let target = format!("#{}", world.strangers[other].key);
    world.call(other, &caller, "none", None).unwrap_err();
    world.start_call(0, &caller, "go", Some(target.as_bytes()), Duration::from_secs(1));
    world.pass(Duration::from_millis(500));
    let mut world = world.sleep(Duration::from_secs(100));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.logged("ended 8"), 1, "{:?}", world.notices);
}

#[test]
fn who_called_the_sleeper_gets_the_answer_after_it() {
    for sleep_s in [1, 30, 400] {
        let mut world = World::new(|_| {});
        let slow = world.install("slow", 8, SLOW);
        // A datagram right after the other's start might be from before it, by another clock.
        world.pass(Duration::from_secs(3));
        let one = world.start_call(0, &slow, "slow", None, Duration::from_secs(1_000));
        // It waits in the queue meanwhile.
        let two = world.start_call(0, &slow, "slow", None, Duration::from_secs(1_000));
        world.pass(Duration::from_millis(500));
        let span = Duration::from_secs(sleep_s);
        world.will_sleep_for(span);
        let mut world = world.sleep(span);
        world.pass(Duration::from_secs(12));
        for handle in [one, two] {
            assert_eq!(world.take_result(0, handle), Some(Ok(None)), "asleep for {span:?}");
        }
        assert_eq!(world.node.slept(), Some(span));
    }
}

#[test]
fn who_calls_a_device_that_sleeps_too_long_learns_until_when() {
    let mut world = World::new(|_| {});
    let slow = world.install("slow", 8, SLOW);
    let handle = world.start_call(0, &slow, "slow", None, Duration::from_secs(60));
    world.pass(Duration::from_millis(500));
    let span = Duration::from_secs(100);
    world.will_sleep_for(span);
    let mut world = world.sleep(span);
    world.tick();
    let asleep = NoResult::Asleep { again_in: span };
    assert_eq!(world.take_result(0, handle), Some(Err(asleep)));
}

#[test]
fn a_call_whose_machine_is_gone_after_the_sleep_has_an_unknown_outcome() {
    let mut world = World::new(|_| {});
    let slow = world.install("slow", 8, SLOW);
    let handle = world.start_call(0, &slow, "slow", None, Duration::from_secs(60));
    world.pass(Duration::from_millis(500));
    world.fall_asleep().unwrap();
    // A loss of power: what was written down is of the start before the last.
    let mut world = world.off_for(Duration::ZERO).off_for(Duration::from_secs(1));
    world.pass(Duration::from_secs(10));
    assert_eq!(world.take_result(0, handle), Some(Err(NoResult::OutcomeUnknown)));
}

#[test]
fn what_was_written_down_is_taken_up_once() {
    let mut world = World::new(|_| {});
    world.install("diver", 8, DIVER);
    world.pass(Duration::from_millis(500));
    let world = world.sleep(Duration::from_millis(100));
    let mut world = world.off_for(Duration::from_millis(100));
    assert_eq!(world.node.slept(), None, "a loss of power, and no sleep");
    world.pass(Duration::from_millis(100));
    assert_eq!(world.logged("started"), 2, "it started afresh");
}

#[test]
fn a_sleep_that_took_the_clock_with_it_was_none() {
    let mut world = World::new(|_| {});
    world.install("diver", 8, DIVER);
    world.pass(Duration::from_millis(500));
    world.fall_asleep().unwrap();
    let until = world.now + Duration::from_secs(1);
    let mut world = world.off_until(until, Instant::BOOT);
    assert_eq!(world.node.slept(), None);
    world.pass(Duration::from_millis(2_100));
    assert_eq!((world.logged("started"), world.logged("depth 7")), (2, 1));
}

#[test]
fn a_power_cut_while_falling_asleep_is_a_start_like_any_other() {
    let (mut slept, mut started) = (0, 0);
    for operations in 0.. {
        let mut world = World::new(|_| {});
        world.install("diver", 8, DIVER);
        world.pass(Duration::from_millis(500));
        world.fuse.set(Some(operations));
        let finished = world.fall_asleep().is_ok();
        let mut world = world.off_for(Duration::from_millis(100));
        world.pass(Duration::from_millis(2_100));
        assert!(world.logged("depth 7") >= 1, "cut after {operations}: {:?}", world.notices);
        match world.node.slept() {
            Some(_) => slept += 1,
            None => started += 1,
        }
        if finished {
            break;
        }
    }
    assert!(started > 3 && slept >= 1, "{started} started afresh, {slept} went on");
}

#[test]
fn a_device_that_cannot_fall_asleep_stays_awake_and_loses_nothing() {
    let mut world = World::new(|config| {
        config.sleep = SleepPolicy::WhenIdle { at_least: Duration::from_secs(1) };
    });
    world.install("diver", 8, DIVER);
    world.pass(Duration::from_millis(500));
    world.fuse.set(Some(0));
    world.fall_asleep().unwrap_err();
    assert_eq!(world.node.bedtime(), None, "not again at once");
    world.pass(Duration::from_millis(1_600));
    assert_eq!(world.logged("depth 7"), 1);
}

#[test]
fn a_device_that_sleeps_when_idle_sleeps_until_the_next_timer() {
    let mut world = World::new(|config| {
        config.sleep = SleepPolicy::WhenIdle { at_least: Duration::from_secs(1) };
    });
    let long = DIVER.replace("2000", "9000");
    let diver = world.install("diver", 8, &long);
    world.pass(Duration::from_millis(500));
    world.call(0, &diver, "none", None).unwrap_err();
    assert_eq!(world.node.bedtime(), None, "who has just called may go on");
    world.pass(Duration::from_millis(3_000));
    let Some(Bedtime { until: Some(until) }) = world.node.bedtime() else {
        panic!("{:?}", world.node.bedtime());
    };
    assert!(until <= Instant::from_millis(9_100), "when the machine wakes");
    world.pass(until.since(world.now) - Duration::from_millis(900));
    assert_eq!(world.node.bedtime(), None, "no longer worth it");
}

#[test]
fn a_device_with_a_duty_cycle_runs_tells_its_machines_and_sleeps() {
    let (run, sleep) = (Duration::from_secs(1), Duration::from_secs(10));
    let mut world = World::new(|config| config.sleep = SleepPolicy::DutyCycle { run, sleep });
    let body = r#"(data (i32.const 256) "good night") (data (i32.const 272) "after ")
        (func (export "on_sleep") (call $log (i32.const 2) (i32.const 256) (i32.const 10)))
        (func (export "on_wake")
          (call $log (i32.const 2) (i32.const 272) (i32.add (i32.const 6)
            (call $parameter_read (i32.const 0) (i32.const 278) (i32.const 16)))))"#;
    world.install("sleeper", 8, body);
    for round in 1..=3 {
        world.pass(Duration::from_millis(980));
        assert_eq!(world.node.bedtime(), None);
        world.pass(Duration::from_millis(30));
        assert_eq!(world.node.bedtime(), None, "machines are told first");
        world.pass(Duration::from_millis(5));
        assert_eq!(world.logged("good night"), round);
        let bedtime = world.node.bedtime();
        assert_eq!(bedtime, Some(Bedtime { until: Some(world.now + sleep) }));
        world = world.sleep(sleep);
        world.pass(Duration::from_millis(5));
        assert_eq!(world.logged("after 10000"), round, "{:?}", world.notices);
    }
}

#[test]
fn a_device_whose_power_did_not_go_off_takes_back_what_it_wrote_down() {
    let mut world = World::new(|_| {});
    let counter = world.install("counter", 8, r#"(func (export "echo"))"#);
    let free = |world: &mut World| {
        ask::<DeviceStatus>(world, Function::status.name(), &()).unwrap().code_bytes_free
    };
    let before = free(&mut world);
    for _ in 0..50 {
        world.fall_asleep().unwrap();
        assert_eq!(world.call(0, &counter, "echo", None), Ok(None), "it goes on");
    }
    assert_eq!(free(&mut world), before);
    world.fall_asleep().unwrap();
    world.pass(Duration::from_secs(1));
    let world = world.off_for(Duration::from_secs(5));
    assert_eq!(world.node.slept(), None, "a later start takes up nothing old");
}

/// Lets the device fall asleep as soon as it wants to, and wakes it after `span`; says whether it wanted to
/// within a minute.
fn woken_after(mut world: World, span: Duration) -> (World, bool) {
    for _ in 0..600 {
        world.pass(Duration::from_millis(100));
        if world.node.bedtime().is_some() {
            return (world.sleep(span), true);
        }
    }
    (world, false)
}

#[test]
fn a_device_that_is_woken_again_and_again_stays_awake_and_wears_its_flash_no_further() {
    let mut world = World::new(|config| {
        config.sleep = SleepPolicy::WhenIdle { at_least: Duration::from_secs(1) };
    });
    let (mut woken, mut slept) = (0, true);
    // A stranger's datagram wakes it each time after 10 ms, far before the time of its own.
    while slept {
        (world, slept) = woken_after(world, Duration::from_millis(10));
        woken += u32::from(slept);
        assert!(woken < 100, "nothing ends it");
    }
    assert!(woken >= 40, "who calls it now and then may: {woken}");
    world.pass(Duration::from_secs(15 * 60));
    let (world, slept) = woken_after(world, Duration::from_millis(10));
    assert!(slept, "once more");
    let (_, slept) = woken_after(world, Duration::from_millis(10));
    assert!(!slept, "and no more");
}

#[test]
fn sleeps_that_end_when_they_were_to_end_are_not_counted() {
    let mut world = World::new(|config| {
        config.sleep = SleepPolicy::WhenIdle { at_least: Duration::from_secs(1) };
    });
    let body = r#"(func (export "entry") (loop $again
        (call $sleep_ms (i32.const 20000)) (br $again)))"#;
    world.install("ticker", 8, body);
    for round in 0..60 {
        let Some(Bedtime { until: Some(until) }) = (0..300).find_map(|_| {
            world.pass(Duration::from_millis(100));
            world.node.bedtime()
        }) else {
            panic!("awake in round {round}");
        };
        let span = until.since(world.now);
        world = world.sleep(span);
    }
}
