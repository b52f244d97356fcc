//! Late is not now: what waited for a device that stood still is judged by when it was wanted.

use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_rpc::NoResult;

use crate::world::{Network, World};

/// Asserts that no call began after its caller had stopped waiting for it.
#[track_caller]
fn check(world: &World) {
    for asked in world.asked.values() {
        let Some(began) = world.began.get(&asked.tag) else { continue };
        assert!(*began <= asked.deadline, "seed {}: call {}", world.seed, asked.tag);
        if asked.result == Some(Err(NoResult::Unreachable)) {
            let ended = asked.ended.expect("it ended");
            assert!(*began <= ended, "seed {}: unreachable call {} ran", world.seed, asked.tag);
        }
    }
}

#[test]
fn calls_whose_callers_gave_up_do_not_run_when_the_device_goes_on() {
    let mut world = World::new(1, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.patience = (Duration::from_secs(10), 4);
    world.still = Some(1);
    for _ in 0..10 {
        world.call(0, 1, 20);
        world.run(Duration::from_secs(30));
    }
    world.still = None;
    world.run(Duration::from_secs(5));
    assert_eq!(world.executed.len(), 1, "none but the first");
    assert_eq!(world.pending(), 0);
    let again = world.call(0, 1, 20);
    world.settle();
    assert!(world.result(0, again).is_ok(), "the session goes on");
}

#[test]
fn call_that_is_still_wanted_after_a_short_stop_is_answered_once() {
    let mut world = World::new(2, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    for length in [20, 4_000] {
        let handle = world.call(0, 1, length);
        world.stand_still(1, Duration::from_secs(8));
        world.settle();
        assert!(world.result(0, handle).is_ok(), "{length} bytes");
    }
    check(&world);
}

#[test]
fn first_message_that_waited_is_asked_for_anew() {
    let mut world = World::new(3, 2, Network::PERFECT);
    // One caller gives up, another waits.
    world.patience = (Duration::from_secs(10), 2);
    let gave_up = world.call(0, 1, 20);
    world.stand_still(1, Duration::from_secs(60));
    assert_eq!(*world.result(0, gave_up), Err(NoResult::Unreachable));
    world.patience = (Duration::from_secs(60), 12);
    let handle = world.call(0, 1, 20);
    world.stand_still(1, Duration::from_secs(20));
    let now = world.now;
    world.nodes[1].endpoint.stood_still(now);
    world.settle();
    assert!(world.result(0, handle).is_ok());
    assert_eq!(world.executed.len(), 1, "the one that waited");
}

#[test]
fn caller_that_stood_still_sends_no_call_whose_time_is_up() {
    let mut world = World::new(6, 2, Network::PERFECT);
    world.patience = (Duration::from_secs(10), 12);
    // It asks for the epoch first, and reads the answer when nobody waits for the call any longer.
    let handle = world.call_with(0, 1, 20, None, "echo");
    world.stand_still(0, Duration::from_secs(30));
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::Deadline));
    assert!(world.executed.is_empty());
}

#[test]
fn whoever_was_called_first_may_call_back_and_is_judged_too() {
    let mut world = World::new(4, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.patience = (Duration::from_secs(5), 12);
    let late = world.call(1, 0, 20);
    world.stand_still(0, Duration::from_secs(30));
    world.run(Duration::from_secs(5));
    assert!(world.result(1, late).is_err());
    assert_eq!(world.executed.len(), 1);
    let handle = world.call(1, 0, 20);
    world.settle();
    assert!(world.result(1, handle).is_ok());
}

#[test]
fn caller_whose_belief_of_the_other_clock_is_behind_is_told_better() {
    // The response is held up for as long as the caller stands still, so it believes the session to be that much younger.
    let mut world = World::new(5, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.stand_still(0, Duration::from_secs(20));
    world.settle();
    world.patience = (Duration::from_secs(4), 12);
    for _ in 0..3 {
        let handle = world.call(0, 1, 4_000);
        world.settle();
        assert!(world.result(0, handle).is_ok());
    }
    check(&world);
}

#[test]
fn nodes_that_stand_still_at_any_time_run_nothing_late() {
    let (mut answered, mut given_up) = (0, 0);
    for seed in 0..150 {
        let network = if seed % 2 == 0 { Network::PERFECT } else { Network::BAD };
        let mut world = World::new(seed, 3, network);
        let mut random = Random::new(seed + 7_000);
        // Sessions in both directions, so that what comes says until when it is wanted.
        for (one, other) in [(0, 1), (1, 2), (2, 0)] {
            world.call(one, other, 20);
            world.settle();
            world.call(other, one, 20);
            world.settle();
        }
        for _ in 0..12 {
            let attempts = 3 + random.below(6) as u8;
            world.patience = (Duration::from_millis(1_000 + random.below(12_000)), attempts);
            for _ in 0..1 + random.below(3) {
                let from = random.below(3) as usize;
                let length = if random.chance(200) { 3_000 } else { 20 };
                world.call(from, (from + 1 + random.below(2) as usize) % 3, length);
            }
            let still = random.below(3) as usize;
            world.run(Duration::from_millis(random.below(50)));
            world.stand_still(still, Duration::from_millis(random.below(20_000)));
            // As its node finds out; what is in no session can't be judged otherwise.
            let now = world.now;
            world.nodes[still].endpoint.stood_still(now);
            world.run(Duration::from_millis(random.below(2_000)));
        }
        world.settle();
        world.run(Duration::from_secs(60));
        check(&world);
        for asked in world.asked.values() {
            match asked.result {
                Some(Ok(_)) => answered += 1,
                _ => given_up += 1,
            }
        }
    }
    assert!(answered > 300 && given_up > 300, "{answered} answered, {given_up} not");
}
