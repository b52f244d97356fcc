//! Truncated, oversized, forged, replayed and random frames against every protocol at once: no
//! panic, no unbounded memory, nothing believed of a stranger.

mod everything;

use std::time::Duration;

use everything::{node, settle};
use tenure_hal::Instant;
use tenure_mesh::{
    Destination, Dispatcher, Framer, FramerConfig, NodeId, PriorityQueues, ProtocolNumber, Random,
    Stack, StackConfig, TimerList, Unsealed,
};
use tenure_protocols::discovery::{self, Discovery};
use tenure_protocols::forwarding::{self, Forwarding};
use tenure_protocols::interface::{DatagramArrived, Port};
use tenure_protocols::network_key::NetworkKey;

fn bytes(random: &mut Random, most: u64) -> Vec<u8> {
    let length = random.below(most + 1);
    // Small numbers are likelier, because lengths, counts and kinds are small.
    let byte = |random: &mut Random| match random.below(3) {
        0 => random.below(4) as u8,
        1 => random.number() as u8,
        _ => random.below(80) as u8,
    };
    (0..length).map(|_| byte(random)).collect()
}

#[test]
fn random_messages_to_every_protocol_do_no_harm() {
    let mut random = Random::new(1);
    let mut stack = node(Unsealed);
    let mut now = Instant::BOOT;
    let mut peers: Vec<_> = (2..12)
        .map(|id| Framer::new(FramerConfig::new(NodeId::from_number(id), 1, [0; 8]), Unsealed))
        .collect();
    let mut frame = Vec::new();
    for round in 0..20_000_u64 {
        now = now + Duration::from_millis(random.below(50));
        let peer = &mut peers[random.below(10) as usize];
        for _ in 0..random.below(4) {
            let protocol = ProtocolNumber(random.below(20 + 36) as u8 % 48);
            let to = match random.below(2) {
                0 => Destination::All,
                _ => Destination::One(NodeId::from_number(1)),
            };
            let mut message = vec![random.below(4) as u8];
            message.extend(bytes(&mut random, 120));
            peer.send(now, protocol, to, Duration::ZERO, &message).unwrap();
        }
        while peer.transmit(now, &mut frame).is_some() {
            let _ = stack.receive(now, &frame, Some(random.number() as i8));
        }
        let port = Port(random.below(12) as u8);
        let from = NodeId::from_number(random.below(12));
        stack.tell(&DatagramArrived { from, port }, &bytes(&mut random, 60));
        let sent = settle(&mut stack, now);
        assert!(sent < 200_000, "round {round}: {sent} bytes at once");
    }
    assert!(stack.counters().malformed_events > 1000);
    assert!(stack.counters().frames_taken > 10_000);
    assert_eq!(stack.counters().circular, 0);
}

#[test]
fn cut_stretched_and_changed_frames_do_no_harm() {
    let mut random = Random::new(2);
    let mut stack = node(Unsealed);
    let mut peer = {
        let framer = Framer::new(FramerConfig::new(NodeId::from_number(2), 1, [0; 8]), Unsealed);
        let mut stack = Stack::<_, PriorityQueues, TimerList>::new(StackConfig::default(), framer);
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        stack.start(Instant::BOOT, Forwarding::new(forwarding::Config::default()));
        stack
    };
    let mut recorded: Vec<Vec<u8>> = Vec::new();
    let mut frame = Vec::new();
    for tick in 0..5_000 {
        let now = Instant::from_millis(tick * 20);
        peer.poll(now);
        while peer.transmit(now, &mut frame).is_some() {
            recorded.push(frame.clone());
        }
        let Some(frame) = recorded.get(random.below(recorded.len() as u64) as usize) else {
            continue;
        };
        let mut frame = frame.clone();
        match random.below(4) {
            0 => frame.truncate(random.below(frame.len() as u64 + 1) as usize),
            1 => frame.extend(bytes(&mut random, 2000)),
            2 => {
                let at = random.below(frame.len() as u64) as usize;
                frame[at] = random.number() as u8;
            }
            _ => {}
        }
        let _ = stack.receive(now, &frame, None);
        settle(&mut stack, now);
    }
    assert!(stack.counters().replayed > 0 && stack.counters().malformed_frames > 0);
}

#[test]
fn a_stranger_is_never_believed_whatever_it_sends() {
    let mut random = Random::new(3);
    let mut stack = node(NetworkKey::from_bytes(&[7; 32]));
    let framer = |epoch| FramerConfig::new(NodeId::from_number(2), epoch, [0; 8]);
    let mut plain = Framer::new(framer(1), Unsealed);
    let mut other_key = Framer::new(framer(1), NetworkKey::from_bytes(&[8; 32]));
    // A member's frames, recorded before this node ever lived: genuine, and proving nothing.
    let mut member = node(NetworkKey::from_bytes(&[7; 32]));
    *member.dispatcher_mut() = Framer::new(framer(1), NetworkKey::from_bytes(&[7; 32]));
    let mut recorded = Vec::new();
    let mut frame = Vec::new();
    for tick in 0..200 {
        let now = Instant::from_millis(tick * 100);
        member.poll(now);
        while member.transmit(now, &mut frame).is_some() {
            recorded.push(frame.clone());
        }
    }
    assert!(recorded.len() > 20);
    for tick in 0..5_000 {
        let now = Instant::from_millis(tick * 10);
        let message = [&[1][..], &bytes(&mut random, 60)].concat();
        let protocol = ProtocolNumber(random.below(20 + 36) as u8 % 48);
        plain.send(now, protocol, Destination::All, Duration::ZERO, &message).unwrap();
        other_key.send(now, protocol, Destination::All, Duration::ZERO, &message).unwrap();
        let _ = plain.transmit(now, &mut frame);
        assert!(stack.receive(now, &frame, None).is_err());
        // The same, pretending to be sealed.
        frame[0] |= 2;
        assert!(stack.receive(now, &frame, None).is_err());
        let _ = other_key.transmit(now, &mut frame);
        assert!(stack.receive(now, &frame, None).is_err());
        let replay = &recorded[random.below(recorded.len() as u64) as usize];
        assert!(stack.receive(now, replay, None).is_err());
        settle(&mut stack, now);
    }
    assert_eq!(stack.counters().frames_taken, 0);
    assert_eq!(stack.protocol::<Discovery>().unwrap().heard().count(), 0);
    assert!(!stack.dispatcher().believes(NodeId::from_number(2)));
}

#[test]
fn every_protocol_has_a_number_and_a_name_of_its_own() {
    let stack = node(Unsealed);
    let mut numbers: Vec<_> = stack.protocols().map(|it| it.number).collect();
    let mut names: Vec<_> = stack.protocols().map(|it| it.name).collect();
    let count = numbers.len();
    assert_eq!(count, 24);
    numbers.sort();
    numbers.dedup();
    names.sort();
    names.dedup();
    assert_eq!((numbers.len(), names.len()), (count, count));
    for protocol in stack.protocols() {
        let mut kinds: Vec<_> = protocol.messages.iter().map(|it| it.0).collect();
        kinds.dedup();
        assert_eq!(kinds.len(), protocol.messages.len(), "{}", protocol.name);
    }
}
