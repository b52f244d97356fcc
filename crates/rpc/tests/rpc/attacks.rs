//! Attacks by somebody on the way, or by anybody with a socket, that fail.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_rpc::{Config, NoResult};

use crate::world::{InFlight, Network, World};

/// A conversation: a first call, a later one, one in fragments.
fn conversation(seed: u64) -> World {
    let mut world = World::new(seed, 3, Network::PERFECT);
    for length in [20, 30, 3_000] {
        world.call(0, 1, length);
        world.settle();
    }
    world.run(Duration::from_secs(2));
    assert_eq!(world.executed.len(), 3);
    world
}

fn check_nothing_runs(world: &mut World) {
    world.run(Duration::from_secs(3));
    assert_eq!(world.executed.len(), 3, "something ran that nobody called");
}

#[test]
fn replayed_datagrams_are_not_executed() {
    let mut world = conversation(1);
    for one in world.captured.clone() {
        world.inject(one.from, one.to, one.bytes.clone());
        world.inject(77, one.to, one.bytes);
    }
    check_nothing_runs(&mut world);
    world.restart(1);
    for one in world.captured.clone() {
        world.inject(one.from, one.to, one.bytes);
    }
    check_nothing_runs(&mut world);
}

#[test]
fn replayed_initiation_does_not_end_the_session() {
    let mut world = conversation(2);
    let before = world.captured.len();
    for one in world.captured.clone() {
        world.inject(one.from, one.to, one.bytes);
    }
    world.run(Duration::from_secs(2));
    let answers = world.captured.len();
    let handle = world.call(0, 1, 20);
    world.settle();
    assert!(world.result(0, handle).is_ok());
    assert_eq!(world.captured.len() - answers, 2, "the session still stands");
    assert!(answers - before < 40);
}

#[test]
fn replayed_messages_of_a_session_are_not_even_answered() {
    let mut world = World::new(12, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.run(Duration::from_secs(2));
    // The result has arrived and isn't acknowledged yet: a question for it would be answered.
    let handle = world.call(0, 1, 20);
    world.run(Duration::from_millis(100));
    assert!(world.result(0, handle).is_ok());
    let before = world.captured.len();
    for one in world.captured.clone() {
        if one.bytes[0] == 0x13 {
            world.inject(one.from, one.to, one.bytes);
        }
    }
    world.run(Duration::from_millis(100));
    assert_eq!(world.captured.len(), before);
}

#[test]
fn reflected_datagrams_are_not_executed() {
    let mut world = conversation(3);
    for one in world.captured.clone() {
        world.inject(one.to, one.from, one.bytes);
    }
    check_nothing_runs(&mut world);
}

#[test]
fn datagrams_for_another_device_are_not_executed() {
    let mut world = conversation(4);
    for one in world.captured.clone() {
        world.inject(one.from, 2, one.bytes);
    }
    check_nothing_runs(&mut world);
}

/// Delivers changed copies of every datagram just before the true one, to an impatient caller and
/// to a patient one, whom more words of strangers reach between two attempts.
fn check_changed_copies(seed: u64, change: fn(&mut Random, &mut Vec<u8>)) {
    for timeout_min in [50, 200].map(Duration::from_millis) {
        let config = Config { timeout_min, ..Config::default() };
        check_changed_copies_with(seed, &config, change);
    }
}

fn check_changed_copies_with(seed: u64, config: &Config, change: fn(&mut Random, &mut Vec<u8>)) {
    let network = Network { delay_ms: (5, 5), ..Network::PERFECT };
    let mut world = World::with_config(seed, 2, network, config);
    let mut random = Random::new(seed);
    let mut handles = Vec::new();
    for length in [20, 30, 3_000, 40] {
        handles.push(world.call(0, 1, length));
        for _ in 0..60 {
            let from = world.captured.len().saturating_sub(12);
            let recent: Vec<InFlight> = world.captured[from..].to_vec();
            for one in recent {
                let mut bytes = one.bytes.clone();
                change(&mut random, &mut bytes);
                if bytes != one.bytes {
                    world.inject(one.from, one.to, bytes);
                }
            }
            world.run(Duration::from_millis(2));
        }
    }
    world.settle();
    for handle in handles {
        assert!(world.result(0, handle).is_ok(), "seed {seed}: {:?}", world.result(0, handle));
    }
    assert_eq!(world.executed.len(), 4);
}

#[test]
fn bit_flipped_datagrams_change_nothing() {
    for seed in 0..12 {
        check_changed_copies(seed, |random, bytes| {
            let bit = random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        });
    }
}

#[test]
fn truncated_and_stretched_datagrams_change_nothing() {
    for seed in 0..8 {
        check_changed_copies(seed, |random, bytes| {
            if random.chance(500) {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            } else {
                bytes.push(0);
            }
        });
    }
}

#[test]
fn captured_datagrams_hold_no_plaintext() {
    let mut world = World::new(5, 2, Network::PERFECT);
    let hint = Some(world.nodes[1].published);
    world.call_with(0, 1, 500, hint, "open-the-gate");
    world.settle();
    world.call_with(0, 1, 500, hint, "open-the-gate");
    world.settle();
    world.call_with(0, 1, 2_500, hint, "echo");
    world.settle();
    let keys = [world.nodes[0].key.0, world.nodes[1].key.0];
    let mut seen = BTreeSet::new();
    for one in &world.captured {
        let holds = |needle: &[u8]| one.bytes.windows(needle.len()).any(|part| part == needle);
        assert!(!holds(b"open"), "a function's name");
        assert!(!holds(b"gate"));
        assert!(!keys.iter().any(|key| holds(&key[..8])), "a machine's key");
        for window in one.bytes.windows(32).skip(41).step_by(16) {
            assert!(seen.insert(window.to_vec()), "ciphertext repeats");
        }
    }
    // The parameter is the same but for its tag; no part of it shows.
    let plain: Vec<u8> = (100..116).map(|at| (31 + at * 7 + at / 251) as u8).collect();
    assert!(!world.captured.iter().any(|one| one.bytes.windows(16).any(|part| part == plain)));
}

#[test]
fn false_challenges_refusals_and_deferrals_fail_no_call_and_run_none_twice() {
    for seed in 0..30 {
        let mut world = World::new(seed, 2, Network { loss_percent: 5, ..Network::BAD });
        let mut random = Random::new(seed + 100);
        let mut handles = Vec::new();
        for _ in 0..12 {
            handles.push(world.call(0, 1, 40));
            for _ in 0..20 {
                // An attacker who sees everything answers in the device's name, before it does.
                let Some(last) = world.captured.iter().rev().find(|one| one.to == 1) else {
                    continue;
                };
                let false_answer = match last.bytes[0] {
                    0x11 if random.chance(300) => {
                        let mut deferral = vec![0x17];
                        deferral.extend_from_slice(&last.bytes[41..57]);
                        deferral.extend_from_slice(&u32::MAX.to_le_bytes());
                        deferral
                    }
                    0x11 => {
                        let mut challenge = vec![0x15];
                        challenge.extend_from_slice(&last.bytes[41..57]);
                        let epoch = random.number().to_le_bytes();
                        challenge.extend_from_slice(&epoch);
                        challenge.extend_from_slice(&[9; 48]);
                        challenge
                    }
                    0x13 => {
                        let mut refusal = vec![0x16, 1];
                        refusal.extend_from_slice(&last.bytes[last.bytes.len() - 16..]);
                        refusal
                    }
                    _ => continue,
                };
                world.inject(1, 0, false_answer);
                world.run(Duration::from_millis(random.below(40)));
            }
        }
        world.settle();
        for handle in handles {
            assert!(world.result(0, handle).is_ok(), "seed {seed}: {:?}", world.result(0, handle));
        }
    }
}

#[test]
fn random_bytes_do_nothing() {
    let mut world = conversation(6);
    let mut random = Random::new(6);
    let sessions: Vec<[u8; 4]> = world
        .captured
        .iter()
        .filter(|one| one.bytes[0] == 0x13)
        .map(|one| one.bytes[1..5].try_into().expect("four bytes"))
        .collect();
    for _ in 0..30_000 {
        let length = random.below(300) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random.number() as u8).collect();
        if let Some(first) = bytes.first_mut() {
            *first = 0x10 | random.below(8) as u8;
        }
        if length > 13 && random.chance(500) {
            let session = sessions[random.below(sessions.len() as u64) as usize];
            bytes[1..5].copy_from_slice(&session);
            bytes[5..13].copy_from_slice(&random.below(50).to_le_bytes());
        }
        let (now, from) = (world.now, random.below(5) as u32);
        let to = random.below(2) as usize;
        world.nodes[to].endpoint.receive(now, &mut random, from, &bytes);
        while world.nodes[to].endpoint.transmit().is_some() {}
        assert!(world.nodes[to].endpoint.event().is_none());
    }
    check_nothing_runs(&mut world);
    let handle = world.call(0, 1, 20);
    world.settle();
    assert!(world.result(0, handle).is_ok());
}

/// Initiations that look right but decrypt to nothing, each from another address.
fn flood(world: &mut World, count: u32) -> (usize, usize) {
    let mut random = Random::new(1);
    let id = world.nodes[1].id;
    let epoch = world.nodes[1].endpoint.epoch();
    let before = world.captured.len();
    for from in 0..count {
        let mut bytes = vec![0x11];
        bytes.extend_from_slice(&id.0);
        bytes.extend_from_slice(&from.to_le_bytes());
        bytes.extend_from_slice(&epoch.0);
        bytes.extend((0..16 + 96 + 40).map(|_| random.number() as u8));
        world.inject(1_000 + from, 1, bytes);
    }
    world.run(Duration::from_millis(1));
    let answers = &world.captured[before..];
    let challenges = answers.iter().filter(|one| one.bytes[0] == 0x15).count();
    (challenges, answers.len())
}

#[test]
fn flood_of_initiations_is_answered_with_challenges_and_a_call_comes_through() {
    let mut world = World::new(7, 2, Network::PERFECT);
    let (challenges, answers) = flood(&mut world, 500);
    assert_eq!(challenges, answers, "nothing but challenges");
    assert!(challenges >= 490, "{challenges}: the rest was computed in vain");
    let handle = world.call(0, 1, 20);
    let begun = world.now;
    world.run(Duration::from_millis(25));
    assert!(world.result(0, handle).is_ok(), "by its cookie, {:?} later", world.now.since(begun));
}

#[test]
fn answers_are_never_longer_than_questions() {
    let mut world = conversation(8);
    let mut random = Random::new(8);
    let before = world.captured.len();
    let captured = world.captured.clone();
    for (at, one) in captured.iter().enumerate() {
        let victim = 10_000 + at as u32;
        world.inject(victim, one.to, one.bytes.clone());
        let mut probe = vec![0x14];
        probe.resize(1 + random.below(200) as usize, 0);
        world.inject(20_000 + at as u32, one.to, probe);
    }
    world.run(Duration::from_millis(100));
    for answer in world.captured[before..].iter().filter(|one| one.to >= 10_000) {
        let asked = if answer.to >= 20_000 {
            73
        } else {
            captured[answer.to as usize - 10_000].bytes.len()
        };
        assert!(answer.bytes.len() <= asked);
    }
}

#[test]
fn forged_sender_address_gets_little() {
    // An initiation with a call that has a long result, its sender's address forged.
    let mut world = World::new(9, 2, Network::PERFECT);
    let hint = Some(world.nodes[1].published);
    world.filter = |_| false;
    world.call_with(0, 1, 8, hint, "long");
    let first = world.captured[0].clone();
    world.filter = |_| true;
    world.inject(99, 1, first.bytes.clone());
    world.run(Duration::from_millis(300));
    assert_eq!(world.executed.len(), 1);
    let sent: usize =
        world.captured.iter().filter(|one| one.to == 99).map(|one| one.bytes.len()).sum();
    assert!(sent <= 3 * first.bytes.len(), "{sent} bytes for {}", first.bytes.len());
}

#[test]
fn peer_that_moves_is_followed() {
    let mut world = World::new(10, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.run(Duration::from_secs(1));
    // A call of node 0's that seems to come from elsewhere: its reply goes there.
    world.filter = |one| one.to != 1;
    let handle = world.call(0, 1, 20);
    let call = world.captured.last().expect("a datagram").clone();
    world.filter = |_| true;
    world.inject(50, 1, call.bytes);
    world.run(Duration::from_millis(20));
    assert_eq!(world.captured.last().expect("a reply").to, 50);
    assert!(world.nodes[1].seen.contains(&(world.nodes[0].key, 50)));
    world.settle();
    assert!(world.result(0, handle).is_ok(), "it is asked for from the old place again");
}

#[test]
fn long_reply_follows_a_peer_that_moves_once_it_proves_to_be_there() {
    let mut world = World::new(13, 3, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.run(Duration::from_secs(1));
    // Node 0's datagrams seem to come from place 7 from now on, and what goes there reaches it.
    world.translate = Some((0, 7));
    let begun = world.now;
    let hint = Some(world.nodes[1].published);
    let handle = world.call_with(0, 1, 8, hint, "long");
    world.settle();
    assert!(world.result(0, handle).is_ok());
    assert!(world.now.since(begun) < Duration::from_secs(1), "without another handshake");
    assert_eq!(world.captured.iter().filter(|one| one.bytes[0] == 0x11).count(), 1);
}

#[test]
fn long_reply_does_not_follow_a_forged_address() {
    let mut world = World::new(14, 2, Network::PERFECT);
    world.call(0, 1, 20);
    world.settle();
    world.run(Duration::from_secs(1));
    world.filter = |one| one.to != 1;
    let hint = Some(world.nodes[1].published);
    world.call_with(0, 1, 8, hint, "long");
    let call = world.captured.last().expect("a datagram").clone();
    world.filter = |_| true;
    world.inject(50, 1, call.bytes.clone());
    world.run(Duration::from_millis(20));
    let sent: usize =
        world.captured.iter().filter(|one| one.to == 50).map(|one| one.bytes.len()).sum();
    assert!(0 < sent && sent <= 3 * call.bytes.len(), "{sent} bytes");
}

#[test]
fn key_of_small_order_is_refused() {
    let mut world = World::new(11, 2, Network::PERFECT);
    world.nodes[1].key = tenure_wire::PublicKey([0; 32]);
    let handle = world.call(0, 1, 20);
    world.settle();
    assert_eq!(*world.result(0, handle), Err(NoResult::Unreachable));
}
