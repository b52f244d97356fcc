//! Calls that come back: over good and bad networks, short and long, one and many.

use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_rpc::{Config, NoResult};

use crate::world::{Network, World};

#[test]
fn first_call_takes_one_round_trip() {
    let mut world = World::new(1, 2, Network::PERFECT);
    let handle = world.call(0, 1, 20);
    world.run(Duration::from_millis(10));
    assert!(world.result(0, handle).is_ok());
    assert_eq!(world.captured[0].bytes[0], 0x11, "an initiation came first");
}

#[test]
fn first_call_without_a_hint_takes_two_round_trips() {
    let mut world = World::new(2, 2, Network::PERFECT);
    let handle = world.call_with(0, 1, 20, None, "echo");
    world.run(Duration::from_millis(20));
    assert!(world.result(0, handle).is_ok());
}

#[test]
fn later_call_takes_two_datagrams() {
    let mut world = World::new(3, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.run(Duration::from_secs(5));
    let before = world.captured.len();
    let handle = world.call(0, 1, 20);
    world.run(Duration::from_millis(10));
    assert!(world.result(0, handle).is_ok());
    assert_eq!(world.captured.len() - before, 2);
}

#[test]
fn results_of_every_kind_come_back() {
    let mut world = World::new(4, 2, Network::PERFECT);
    let hint = Some(world.nodes[1].published);
    let nothing = world.call_with(0, 1, 8, hint, "nothing");
    let fail = world.call_with(0, 1, 8, hint, "fail");
    let unknown = world.call_with(0, 1, 8, hint, "unheard-of");
    world.settle();
    assert_eq!(*world.result(0, nothing), Ok(None));
    assert_eq!(*world.result(0, fail), Err(NoResult::Execution));
    assert_eq!(*world.result(0, unknown), Err(NoResult::NoSuchFunction));
}

#[test]
fn long_parameters_and_results_come_through() {
    for (seed, network) in [(5, Network::PERFECT), (6, Network::BAD), (7, Network::BAD)] {
        let mut world = World::new(seed, 2, network);
        for length in [1_000, 1_100, 1_200, 4_000, 8_192] {
            let echo = world.call(0, 1, length);
            world.settle();
            assert!(world.result(0, echo).is_ok(), "seed {seed}, {length} bytes");
        }
        let hint = Some(world.nodes[1].published);
        let long = world.call_with(0, 1, 8, hint, "long");
        world.settle();
        assert_eq!(
            world.result(0, long).as_ref().map(|value| value.as_ref().map(Vec::len)),
            Ok(Some(8_000))
        );
    }
}

#[test]
fn parameters_of_64_kib_come_through_where_the_limit_is_raised() {
    let config = Config {
        parameter_bytes_max: 64 * 1024,
        buffer_bytes_max: 512 * 1024,
        calls_bytes_max: 512 * 1024,
        buffer_bytes_per_caller_max: 256 * 1024,
        ..Config::default()
    };
    for network in [Network::PERFECT, Network { loss_percent: 5, ..Network::BAD }] {
        let mut world = World::with_config(8, 2, network, &config);
        let handle = world.call(0, 1, 64 * 1024);
        world.settle();
        assert!(world.result(0, handle).is_ok());
    }
}

#[test]
fn slow_function_is_waited_for() {
    let mut world = World::new(9, 2, Network::PERFECT);
    world.execution_ms = (30_000, 30_000);
    let handle = world.call(0, 1, 100);
    world.settle();
    assert!(world.result(0, handle).is_ok());
    assert!(world.captured.len() < 40, "asked after it {} times", world.captured.len());
}

#[test]
fn lost_calls_are_sent_again_until_they_come_through() {
    let mut calls = 0;
    for seed in 0..60 {
        let mut world = World::new(seed, 3, Network::BAD);
        world.execution_ms = (0, 40);
        let mut random = Random::new(seed + 1_000);
        for _ in 0..100 {
            let from = random.below(3) as usize;
            let to = (from + 1 + random.below(2) as usize) % 3;
            let length = if random.chance(100) { random.below(8_000) } else { random.below(200) };
            if world.pending() < 8 {
                world.call(from, to, length as usize);
                calls += 1;
            }
            world.run(Duration::from_millis(random.below(120)));
        }
        world.settle();
        let mut failures = 0;
        for asked in world.asked.values() {
            match asked.result.as_ref() {
                Some(Ok(_)) => {}
                Some(Err(NoResult::Busy)) => failures += 1,
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        assert!(failures < 10, "seed {seed}: busy {failures} times");
    }
    assert!(calls > 2_000, "{calls} calls");
}

#[test]
fn both_ends_may_open_at_once() {
    for seed in 0..50 {
        let mut world = World::new(seed, 2, Network { loss_percent: 10, ..Network::BAD });
        for _ in 0..5 {
            world.call(0, 1, 50);
            world.call(1, 0, 50);
        }
        world.settle();
        for asked in world.asked.values() {
            assert!(
                matches!(asked.result, Some(Ok(_) | Err(NoResult::Busy))),
                "seed {seed}: {:?}",
                asked.result
            );
        }
    }
}

#[test]
fn peer_that_is_gone_is_unreachable() {
    let mut world = World::new(10, 2, Network::PERFECT);
    world.filter = |datagram| datagram.to != 1;
    let handle = world.call(0, 1, 20);
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::Unreachable));
    world.run(Duration::from_secs(120));
    let sent = world.captured.iter().filter(|datagram| datagram.to == 1).count();
    assert!((12..=12 + 4).contains(&sent), "{sent} for 12 attempts, and some in the background");
}

#[test]
fn peer_that_goes_away_later_is_unreachable() {
    let mut world = World::new(11, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.filter = |datagram| datagram.to != 1;
    let handle = world.call(0, 1, 20);
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::Unreachable));
}

#[test]
fn machine_that_is_gone_is_told_apart() {
    let mut world = World::new(12, 2, Network::PERFECT);
    let (now, id) = (world.now, world.nodes[1].id);
    world.nodes[1].endpoint.remove_machine(now, &id);
    let handle = world.call(0, 1, 20);
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::AllegedlyGone));
    assert!(world.now.since(now) < Duration::from_secs(5));
}

#[test]
fn sessions_are_renewed() {
    let config = Config { rekey_after_messages: 20, ..Config::default() };
    let mut world = World::with_config(13, 2, Network { loss_percent: 5, ..Network::BAD }, &config);
    for _ in 0..200 {
        world.call(0, 1, 30);
        world.settle();
    }
    let initiations = world.captured.iter().filter(|one| one.bytes[0] == 0x11).count();
    assert!(initiations >= 8, "{initiations}");
    assert!(world.asked.values().all(|asked| matches!(asked.result, Some(Ok(_)))));
}

#[test]
fn old_session_is_replaced() {
    let mut world = World::new(14, 2, Network::PERFECT);
    for _ in 0..6 {
        world.call(0, 1, 30);
        world.settle();
        world.run(Duration::from_secs(61 * 60));
        world.publish();
    }
    assert!(world.asked.values().all(|asked| matches!(asked.result, Some(Ok(_)))));
    assert!(world.captured.iter().filter(|one| one.bytes[0] == 0x11).count() >= 3);
}

#[test]
fn identity_is_told_to_whoever_asks() {
    let mut world = World::new(15, 2, Network::BAD);
    let deadline = world.now + Duration::from_secs(20);
    world.nodes[0].endpoint.identify(world.now, 1, deadline).expect("room for a question");
    world.drain(0);
    world.run(Duration::from_secs(20));
    let identity = world.identified[0].expect("an answer");
    assert_eq!(identity.key, Some(world.nodes[1].key));
    assert_eq!(identity.epoch, world.nodes[1].endpoint.epoch());
    world.nodes[0]
        .endpoint
        .identify(world.now, 9, deadline + Duration::from_secs(9))
        .expect("room");
    world.drain(0);
    world.run(Duration::from_secs(10));
    assert_eq!(world.identified[1], None);
}
