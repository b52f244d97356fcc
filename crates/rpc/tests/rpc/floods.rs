//! Floods of strangers' datagrams, and first messages that are held back.

use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_rpc::NoResult;

use crate::world::{Network, Place, World, prove};

const DEVICE: Place = 1;
const ATTACKER: Place = 500;

/// A cookie for `place`, which anybody there gets by asking.
fn cookie_of(world: &mut World, place: Place) -> [u8; 16] {
    let mut probe = vec![0x14];
    probe.resize(73, 0);
    world.send(place, DEVICE, probe);
    world.run(Duration::from_millis(10));
    let challenge = world.captured.iter().rev().find(|one| one.to == place);
    challenge.expect("an answer").bytes[25..41].try_into().expect("a cookie")
}

/// An initiation that looks right and decrypts to nothing.
fn false_initiation(world: &World, random: &mut Random, cookie: &[u8; 16]) -> Vec<u8> {
    let mut bytes = vec![0x11];
    bytes.extend_from_slice(&world.nodes[1].id.0);
    bytes.extend_from_slice(&[7; 4]);
    bytes.extend_from_slice(&world.nodes[1].endpoint.epoch().0);
    bytes.extend((0..16 + 96 + 40).map(|_| random.number() as u8));
    prove(&mut bytes, cookie);
    bytes
}

#[test]
fn one_address_cannot_take_all_handshakes() {
    for seed in 0..10 {
        let mut world = World::new(seed, 2, Network::PERFECT);
        let mut random = Random::new(seed + 40);
        let cookie = cookie_of(&mut world, ATTACKER);
        let handle = world.call(0, 1, 20);
        for _ in 0..1_000 {
            let flood = false_initiation(&world, &mut random, &cookie);
            world.inject(ATTACKER, DEVICE, flood);
            world.run(Duration::from_millis(10));
        }
        assert!(world.result(0, handle).is_ok(), "seed {seed}: {:?}", world.result(0, handle));
    }
}

#[test]
fn call_held_back_does_not_run_after_two_epochs() {
    let mut world = World::new(1, 2, Network::PERFECT);
    world.filter = |_| false;
    let handle = world.call(0, 1, 20);
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::Unreachable));
    let initiation = world.captured[0].bytes.clone();
    world.filter = |_| true;
    world.run(Duration::from_secs(30));
    assert!(world.executed.is_empty(), "its caller sent it again after it had given up");
    world.run(Duration::from_secs(4 * 60));
    world.inject(0, DEVICE, initiation);
    world.run(Duration::from_secs(1));
    assert!(world.executed.is_empty(), "it ran after its caller had given up");
}

#[test]
fn published_epoch_serves_for_one_lifetime_at_least() {
    let mut world = World::new(2, 2, Network::PERFECT);
    world.run(Duration::from_secs(300));
    let now = world.now;
    world.nodes[1].published = world.nodes[1].endpoint.epoch_to_publish(now);
    world.run(Duration::from_secs(119));
    let before = world.captured.len();
    let handle = world.call(0, 1, 20);
    world.run(Duration::from_millis(15));
    assert!(world.result(0, handle).is_ok(), "in one round trip");
    assert!(world.captured[before..].iter().all(|one| one.bytes[0] != 0x15), "unchallenged");
}
