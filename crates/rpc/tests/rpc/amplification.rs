//! Nobody can have more than three times the bytes that they send sent to somebody else.
//!
//! The victim's address is a place that no node is at: what goes there is counted and lost.

use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_rpc::Config;

use crate::world::{Network, Place, World, prove};

const VICTIM: Place = 99;
const DEVICE: Place = 1;

/// Bytes that came from an address and bytes that a device sent to it.
fn bytes_of(world: &World, address: Place) -> (usize, usize) {
    let sum = |is_one: fn(&crate::world::InFlight, Place) -> bool| {
        let of = world.captured.iter().filter(|one| is_one(one, address));
        of.map(|one| one.bytes.len()).sum::<usize>()
    };
    (sum(|one, at| one.from == at), sum(|one, at| one.to == at))
}

fn check_victim(world: &World, seed: u64) {
    let (from, to) = bytes_of(world, VICTIM);
    assert!(to <= 3 * from, "seed {seed}: {to} bytes to the victim for {from} that came from it");
}

/// A first message of node 0's for the device, which nobody but the test has seen.
fn held_back_initiation(world: &mut World) -> Vec<u8> {
    let hint = Some(world.nodes[1].published);
    world.filter = |_| false;
    world.call_with(0, 1, 8, hint, "long");
    world.filter = |_| true;
    world.captured.pop().expect("an initiation").bytes
}

fn send(world: &mut World, from: Place, to: Place, bytes: Vec<u8>) {
    world.send(from, to, bytes);
    world.run(Duration::from_millis(20));
}

#[test]
fn initiation_repeated_from_another_address_is_not_answered_there_without_a_cookie() {
    let mut world = World::new(1, 2, Network::PERFECT);
    let initiation = held_back_initiation(&mut world);
    send(&mut world, VICTIM, DEVICE, initiation.clone());
    let before = world.captured.len();
    send(&mut world, 50, DEVICE, initiation);
    let answers: Vec<_> = world.captured[before..].iter().filter(|one| one.to == 50).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].bytes[0], 0x15, "a challenge");
}

/// The audit's attack: the first message in the victim's name, the response fetched by repeating it
/// from an address of the attacker's, and confirmation and questions in the victim's name again.
#[test]
fn amplification_limit_holds_against_a_repeated_initiation() {
    let mut world = World::new(2, 2, Network::PERFECT);
    // Node 0 is the attacker: what it sends seems to come from the victim, except when it is asked to
    // show an address, which it does at its own.
    let mut initiation = held_back_initiation(&mut world);
    send(&mut world, VICTIM, DEVICE, initiation.clone());
    send(&mut world, 0, DEVICE, initiation.clone());
    let challenge = world.captured.iter().rev().find(|one| one.bytes[0] == 0x15);
    prove(&mut initiation, &challenge.expect("a challenge").bytes[25..41]);
    world.disguise = Some((0, VICTIM));
    let before = world.captured.len();
    send(&mut world, 0, DEVICE, initiation);
    let answers = world.captured[before..].iter().filter(|one| one.to == 0);
    assert!(answers.count() > 0, "the attacker has the response");
    world.run(Duration::from_secs(50));
    assert!(bytes_of(&world, VICTIM).0 > 300, "the attacker has confirmed and asked");
    check_victim(&world, 2);
}

#[test]
fn no_sequence_of_forged_addresses_gets_more_than_three_times_the_bytes() {
    let (mut answered, mut confirmed) = (0, 0);
    for seed in 0..60 {
        let mut world = World::new(seed, 2, Network::PERFECT);
        let mut random = Random::new(seed + 900);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for round in 0..50 {
            // Each datagram of the attacker's own endpoint goes out under one of the two addresses.
            let forges = random.chance(600);
            world.disguise = forges.then_some((0, VICTIM));
            if round % 10 == 0 {
                let hint = Some(world.nodes[1].published);
                let function = ["long", "echo"][random.below(2) as usize];
                world.call_with(0, 1, 8 + random.below(3_000) as usize, hint, function);
            }
            // And everything that it ever sent is sent again from either, with any cookie it has.
            seen.extend(
                world.captured.iter().filter(|one| one.to == 1).map(|one| one.bytes.clone()),
            );
            seen.sort();
            seen.dedup();
            for _ in 0..random.below(4) {
                let Some(old) = seen.get(random.below(seen.len() as u64) as usize) else { break };
                let mut old = old.clone();
                let challenges = world.captured.iter().filter(|one| one.bytes[0] == 0x15);
                let cookies: Vec<&[u8]> =
                    challenges.filter(|one| one.to == 0).map(|one| &one.bytes[25..41]).collect();
                if old[0] == 0x11 && !cookies.is_empty() {
                    prove(&mut old, cookies[random.below(cookies.len() as u64) as usize]);
                }
                let from = [0, VICTIM][random.below(2) as usize];
                world.send(from, DEVICE, old);
            }
            world.run(Duration::from_millis(random.below(700)));
            check_victim(&world, seed);
        }
        answered += world.captured.iter().filter(|one| one.to == VICTIM).count();
        confirmed += bytes_of(&world, VICTIM).0;
    }
    assert!(answered > 500 && confirmed > 100_000, "{answered} answers, {confirmed} bytes forged");
}

/// The mirror: a called device that answers in the victim's name lets the caller send its call there.
#[test]
fn response_from_elsewhere_shows_nothing() {
    for length in [900, 3_000, 8_000] {
        let mut world = World::new(3, 2, Network::PERFECT);
        world.disguise = Some((1, VICTIM));
        world.call(0, 1, length);
        world.run(Duration::from_secs(70));
        let (from, to) = bytes_of(&world, VICTIM);
        assert!(from > 0 && to > 0 && to <= 3 * from, "{to} bytes to the victim for {from}");
    }
}

#[test]
fn call_in_parts_goes_to_a_device_that_answers_from_elsewhere_once_it_shows_that_it_is_there() {
    let mut world = World::new(4, 2, Network::PERFECT);
    // The device has two addresses: it is called at one, and answers from the other.
    world.translate = Some((1, 7));
    let handle = world.call(0, 1, 5_000);
    let begun = world.now;
    world.settle();
    assert!(world.result(0, handle).is_ok());
    assert!(world.now.since(begun) < Duration::from_secs(1), "without a timeout");
}

/// A peer whose record leads to a victim, and that keeps the caller trying with words from elsewhere.
#[test]
fn address_in_a_record_is_sent_no_more_than_questions_over_a_session() {
    let config = Config { timeout_min: Duration::from_millis(50), ..Config::default() };
    let mut world = World::with_config(5, 2, Network::PERFECT, &config);
    // Node 1 has opened a session from where it is; node 0 believes it to be where the victim is.
    world.call(1, 0, 20);
    world.settle();
    let (length, hint) = (1_000, Some(world.nodes[1].published));
    world.filter = |one| one.to != 1;
    world.call_at(0, 1, VICTIM, length, hint, "echo");
    world.run(Duration::from_secs(20));
    let sent = world.captured.iter().filter(|one| one.to == VICTIM && one.bytes[0] == 0x13);
    let longest = sent.map(|one| one.bytes.len()).max().expect("it is asked there");
    assert!(longest < 100, "{longest} bytes");
}
