//! Devices that restart or run out of memory: no call runs twice, and every call has an end.

use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_rpc::{Config, NoResult};

use crate::world::{Network, World};

#[test]
fn call_after_a_restart_comes_through_despite_the_old_hint() {
    let mut world = World::new(1, 2, Network::PERFECT);
    world.restart(1);
    world.run(Duration::from_secs(5));
    let handle = world.call(0, 1, 20);
    world.settle();
    assert!(world.result(0, handle).is_ok());
}

#[test]
fn session_lost_in_a_restart_is_opened_again_at_once() {
    let mut world = World::new(2, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.restart(1);
    world.run(Duration::from_secs(5));
    let before = world.now;
    let handle = world.call(0, 1, 20);
    world.settle();
    assert!(world.result(0, handle).is_ok());
    assert!(world.now.since(before) < Duration::from_secs(1), "the refusal is heeded");
}

#[test]
fn call_that_ran_when_its_device_restarted_has_an_unknown_outcome() {
    let mut world = World::new(3, 2, Network::PERFECT);
    world.execution_ms = (3_000, 3_000);
    let riding = world.call(0, 1, 20);
    world.run(Duration::from_millis(100));
    let later = world.call(0, 1, 20);
    let long = world.call(0, 1, 5_000);
    world.run(Duration::from_millis(100));
    assert_eq!(world.executed.len(), 3);
    world.restart(1);
    world.settle();
    for handle in [riding, later, long] {
        assert_eq!(*world.result(0, handle), Err(NoResult::OutcomeUnknown));
    }
}

#[test]
fn call_first_sent_after_a_restart_is_sent_again() {
    let mut world = World::new(4, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.restart(1);
    world.run(Duration::from_secs(30));
    // Its first sending meets a device that has lost the session, and that remembers since before.
    let handle = world.call(0, 1, 3_000);
    world.settle();
    assert!(world.result(0, handle).is_ok());
}

#[test]
fn caller_that_restarts_calls_again() {
    let mut world = World::new(5, 2, Network::PERFECT);
    for _ in 0..12 {
        world.call(0, 1, 20);
        world.settle();
        world.restart(0);
    }
    assert_eq!(world.executed.len(), 12);
    assert_eq!(world.nodes[1].endpoint.epoch(), world.nodes[1].published, "no epoch was wasted");
}

#[test]
fn devices_that_restart_at_any_moment_run_no_call_twice() {
    let mut done = 0;
    for seed in 0..150 {
        let network = Network { loss_percent: 10, ..Network::BAD };
        let mut world = World::new(seed, 3, network);
        world.execution_ms = (0, 200);
        let mut random = Random::new(seed + 5_000);
        for _ in 0..60 {
            let from = random.below(3) as usize;
            let to = (from + 1 + random.below(2) as usize) % 3;
            if world.pending() < 12 {
                let length = if random.chance(150) { 3_000 } else { 40 };
                world.call(from, to, length);
            }
            if random.chance(80) {
                let node = random.below(3) as usize;
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
    assert!(done > 3_000, "only {done} calls came through");
}

#[test]
fn replayed_restarts_and_forgetting_run_no_call_twice() {
    let config = Config {
        sessions_max: 5,
        half_open_max: 2,
        callers_max: 3,
        running_max: 2,
        running_per_caller_max: 2,
        remembered_per_caller_max: 4,
        accepted_initiations_max: 3,
        peers_max: 8,
        handshakes_per_second: 1_000,
        handshakes_per_second_max: 2_000,
        ..Config::default()
    };
    let (mut done, mut unknown) = (0, 0);
    for seed in 0..80 {
        let mut world =
            World::with_config(seed, 7, Network { loss_percent: 5, ..Network::BAD }, &config);
        world.execution_ms = (0, 100);
        let mut random = Random::new(seed + 9_000);
        for _ in 0..120 {
            let from = 1 + random.below(6) as usize;
            if world.pending() < 10 {
                world.call(from, 0, 40);
            }
            if random.chance(20) {
                world.restart(0);
            }
            if random.chance(300) {
                world.publish();
            }
            // An attacker on the way repeats what it saw.
            for _ in 0..3 {
                let at = random.below(world.captured.len() as u64) as usize;
                let one = world.captured[at].clone();
                world.inject(one.from, one.to, one.bytes);
            }
            world.run(Duration::from_millis(random.below(100)));
        }
        world.settle();
        for asked in world.asked.values() {
            match asked.result {
                Some(Ok(_)) => done += 1,
                Some(Err(NoResult::OutcomeUnknown)) => unknown += 1,
                Some(Err(NoResult::Busy | NoResult::Unreachable)) => {}
                ref other => panic!("seed {seed}: {other:?}"),
            }
        }
    }
    assert!(done > 3_000, "only {done} came through, {unknown} unknown");
}

#[test]
fn initiation_held_back_is_not_executed_once_its_call_was_forgotten() {
    // Found by thought: the first initiation is held on the way, and its sender is made to send the
    // call by another; then everything that the device knows of the sender is displaced.
    let config = Config {
        callers_max: 2,
        running_max: 1,
        running_per_caller_max: 1,
        remembered_per_caller_max: 1,
        sessions_max: 3,
        half_open_max: 2,
        accepted_initiations_max: 100,
        ..Config::default()
    };
    let mut world = World::with_config(6, 6, Network::PERFECT, &config);
    world.filter = |datagram| datagram.bytes[0] != 0x11;
    let handle = world.call(0, 1, 20);
    let held = world.captured[0].clone();
    world.run(Duration::from_millis(100));
    world.filter = |_| true;
    // A false challenge, from somebody who has seen the initiation.
    let mut challenge = vec![0x15];
    challenge.extend_from_slice(&held.bytes[41..57]);
    challenge.extend_from_slice(&[7; 8 + 16 + 32]);
    world.inject(1, 0, challenge);
    world.settle();
    assert!(world.result(0, handle).is_ok());
    assert_eq!(world.executed.len(), 1);
    world.run(Duration::from_secs(2));
    for other in 2..6 {
        world.call(other, 1, 20);
        world.settle();
        world.run(Duration::from_secs(2));
    }
    world.inject(held.from, held.to, held.bytes);
    world.run(Duration::from_secs(5));
    assert_eq!(world.executed.len(), 5);
}

#[test]
fn initiation_of_the_called_device_does_not_outlive_its_memory() {
    // A call is executed, and its reply lost. The called device begins to open a session the other
    // way round, which says how far back it remembers; then it forgets the caller.
    let config = Config {
        callers_max: 2,
        running_max: 1,
        running_per_caller_max: 1,
        remembered_per_caller_max: 1,
        ..Config::default()
    };
    for seed in 0..40 {
        let network = Network { delay_ms: (1, 60), ..Network::PERFECT };
        let mut world = World::with_config(seed, 6, network, &config);
        world.filter = |one| one.to != 0;
        world.call(0, 1, 20);
        world.run(Duration::from_millis(100));
        assert_eq!(world.executed.len(), 1);
        world.filter = |_| false;
        world.call(1, 0, 20);
        world.filter = |one| one.to != 0 && one.from != 0;
        for other in 2..5 {
            world.call(other, 1, 20);
            world.run(Duration::from_secs(1));
        }
        world.filter = |_| true;
        world.settle();
        assert_eq!(world.executed.len(), 5, "seed {seed}");
    }
}
