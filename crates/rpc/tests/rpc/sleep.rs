//! Deep sleep in the middle of calls: each ends as it would have, or properly otherwise.

use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_rpc::NoResult;

use crate::world::{Network, World};

#[test]
fn a_call_whose_caller_sleeps_brings_its_reply_after_it_and_runs_once() {
    for (length, execution_ms, sleep_ms) in
        [(20, 1_000, 10_000), (20, 10_000, 1_000), (5_000, 1_000, 10_000), (5_000, 0, 50)]
    {
        let mut world = World::new(1, 2, Network::PERFECT);
        world.execution_ms = (execution_ms, execution_ms);
        let handle = world.call(0, 1, length);
        world.run(Duration::from_millis(40));
        world.sleep(0, Duration::from_millis(sleep_ms));
        world.settle();
        assert!(world.result(0, handle).is_ok(), "{length} bytes, asleep for {sleep_ms} ms");
        assert_eq!(world.executed.len(), 1);
    }
}

#[test]
fn a_call_that_never_left_is_sent_after_the_sleep() {
    let mut world = World::new(2, 2, Network::PERFECT);
    world.filter = |_| false;
    let handle = world.call(0, 1, 20);
    world.filter = |_| true;
    world.sleep(0, Duration::from_secs(1));
    world.settle();
    assert!(world.result(0, handle).is_ok());
}

#[test]
fn a_call_whose_device_sleeps_brings_its_reply_after_it_and_runs_once() {
    for (length, execution_ms, sleep_ms) in [(20, 3_000, 2_000), (5_000, 200, 2_000), (20, 90, 50)]
    {
        let mut world = World::new(3, 2, Network::PERFECT);
        world.execution_ms = (execution_ms, execution_ms);
        let handle = world.call(0, 1, length);
        world.run(Duration::from_millis(150));
        world.sleep(1, Duration::from_millis(sleep_ms));
        world.settle();
        let what = format!("{length} bytes, {execution_ms} ms, asleep for {sleep_ms} ms");
        assert!(world.result(0, handle).is_ok(), "{what}: {:?}", world.result(0, handle));
        assert_eq!(world.executed.len(), 1, "{what}");
    }
}

#[test]
fn a_long_sleep_that_is_announced_is_waited_for() {
    let mut world = World::new(5, 2, Network::PERFECT);
    world.execution_ms = (3_000, 3_000);
    let handle = world.call(0, 1, 20);
    world.run(Duration::from_millis(100));
    // Far longer than anybody would ask without an answer.
    world.sleep_announced(1, Duration::from_secs(50));
    world.settle();
    assert!(world.result(0, handle).is_ok(), "{:?}", world.result(0, handle));
    assert_eq!(world.executed.len(), 1);
}

#[test]
fn a_sleep_beyond_the_deadline_is_told_with_when_it_ends() {
    let mut world = World::new(6, 2, Network::PERFECT);
    world.execution_ms = (3_000, 3_000);
    let handle = world.call(0, 1, 20);
    world.run(Duration::from_millis(100));
    let again_in = Duration::from_secs(100_000);
    world.sleep_announced(1, again_in);
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::Asleep { again_in }));
}

#[test]
fn a_call_whose_deadline_passes_in_the_sleep_ends_with_it() {
    let mut world = World::new(4, 2, Network::PERFECT);
    world.execution_ms = (1_000_000, 1_000_000);
    let handle = world.call(0, 1, 20);
    world.run(Duration::from_millis(100));
    world.sleep(0, Duration::from_secs(100_000));
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::Deadline));
}

#[test]
fn devices_that_sleep_and_restart_at_any_moment_run_no_call_twice() {
    let mut done = 0;
    for seed in 0..60 {
        let mut world = World::new(seed, 3, Network { loss_percent: 10, ..Network::BAD });
        world.execution_ms = (0, 200);
        let mut random = Random::new(seed + 7_000);
        for _ in 0..60 {
            let from = random.below(3) as usize;
            let to = (from + 1 + random.below(2) as usize) % 3;
            if world.pending() < 12 {
                let length = if random.chance(150) { 3_000 } else { 40 };
                world.call(from, to, length);
            }
            let node = random.below(3) as usize;
            if random.chance(100) {
                world.sleep(node, Duration::from_millis(random.below(2_000)));
            } else if random.chance(40) {
                world.restart(node);
            }
            if random.chance(200) {
                world.publish();
            }
            world.run(Duration::from_millis(random.below(150)));
        }
        world.settle();
        done += world.asked.values().filter(|asked| matches!(asked.result, Some(Ok(_)))).count();
    }
    assert!(done > 1_200, "only {done} calls came through");
}
