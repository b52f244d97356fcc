use super::*;
use crate::Unsealed;
use alloc::vec;
use proptest::prelude::*;

const PROTOCOL: ProtocolNumber = ProtocolNumber(9);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn framer(node: u64, epoch: u32) -> Framer<Unsealed> {
    Framer::new(FramerConfig::new(NodeId::from_number(node), epoch, [0; 8]), Unsealed)
}

fn frame_of(framer: &mut Framer<Unsealed>, text: &[u8]) -> Vec<u8> {
    framer.send(at(0), PROTOCOL, Destination::All, Duration::ZERO, text).unwrap();
    let mut frame = vec![];
    framer.transmit(at(0), &mut frame).unwrap();
    frame
}

#[test]
fn messages_for_the_same_neighbours_share_a_frame_until_one_loses_patience() {
    let mut framer = framer(1, 1);
    let (all, one) = (Destination::All, Destination::One(NodeId::from_number(2)));
    let patient = Duration::from_millis(100);
    framer.send(at(0), PROTOCOL, all, patient, b"one").unwrap();
    framer.send(at(0), PROTOCOL, one, patient, b"other").unwrap();
    framer.send(at(10), PROTOCOL, all, patient * 2, b"two").unwrap();
    assert_eq!(framer.transmit_at(), Some(at(100)));
    let mut frame = vec![];
    assert_eq!(framer.transmit(at(99), &mut frame), None);
    framer.send(at(99), PROTOCOL, all, Duration::ZERO, b"three").unwrap();
    assert_eq!(framer.transmit(at(99), &mut frame), Some(all));
    assert!(frame.ends_with(b"\x09\x03one\x09\x03two\x09\x05three"));
    assert_eq!(framer.transmit(at(100), &mut frame), Some(one));
    assert_eq!((framer.transmit_at(), framer.waiting_bytes), (None, 0));
}

#[test]
fn a_full_frame_goes_and_another_begins() {
    let mut framer = framer(1, 1);
    let most = framer.message_bytes_max();
    for _ in 0..3 {
        framer.send(at(0), PROTOCOL, Destination::All, Duration::ZERO, &vec![7; most]).unwrap();
    }
    let too_long = vec![7; most + 1];
    let sent = framer.send(at(0), PROTOCOL, Destination::All, Duration::ZERO, &too_long);
    assert_eq!(sent, Err(SendError::TooLong));
    let mut frame = vec![];
    for _ in 0..3 {
        framer.transmit(at(0), &mut frame).unwrap();
        assert!(frame.len() <= 1232);
    }
    assert_eq!(framer.transmit(at(0), &mut frame), None);
}

#[test]
fn what_waits_to_be_sent_is_bounded() {
    let mut framer = framer(1, 1);
    let refused = (0..1000_u64)
        .filter(|to| {
            let to = Destination::One(NodeId::from_number(*to));
            framer.send(at(0), PROTOCOL, to, Duration::MAX, &[0; 100]).is_err()
        })
        .count();
    assert_eq!(refused, 1000 - 16 * 1024 / 102);
}

#[test]
fn a_length_that_lies_takes_the_whole_frame_away() {
    let mut receiver = framer(2, 1);
    let mut sender = framer(1, 1);
    sender.send(at(0), PROTOCOL, Destination::All, Duration::ZERO, b"good").unwrap();
    let mut frame = frame_of(&mut sender, b"bad");
    let length_at = frame.len() - 4;
    for lie in [0, 2, 4, 61, 127, 128, 255] {
        frame[length_at] = lie;
        assert_eq!(receiver.receive(at(0), &frame), Err(Rejected::Malformed), "length {lie}");
    }
    frame[length_at] = 3;
    assert!(receiver.receive(at(0), &frame).is_ok());
}

#[test]
fn own_foreign_and_later_versions_are_told_apart() {
    let (mut one, mut two) = (framer(1, 1), framer(2, 1));
    let mut frame = frame_of(&mut one, b"x");
    assert_eq!(one.receive(at(0), &frame), Err(Rejected::Own));
    frame[0] += 0x10;
    assert_eq!(two.receive(at(0), &frame), Err(Rejected::Version));
    let other = Destination::One(NodeId::from_number(3));
    one.send(at(0), PROTOCOL, other, Duration::ZERO, b"x").unwrap();
    one.transmit(at(0), &mut frame).unwrap();
    assert_eq!(two.receive(at(0), &frame), Err(Rejected::NotForUs));
}

#[test]
fn a_neighbour_that_restarts_after_128_frames_is_told_anew() {
    let mut receiver = framer(2, 1);
    let mut sender = framer(1, 1);
    for _ in 0..128 {
        let frame = frame_of(&mut sender, b"x");
        assert!(!receiver.receive(at(0), &frame).unwrap().restarted);
    }
    let frame = frame_of(&mut framer(1, 2), b"x");
    assert!(receiver.receive(at(0), &frame).unwrap().restarted);
    assert_eq!(receiver.receive(at(0), &frame), Err(Rejected::Replayed));
}

#[test]
fn memory_for_neighbours_is_bounded() {
    let mut receiver = framer(2, 1);
    for node in 10..1000 {
        let frame = frame_of(&mut framer(node, 1), b"x");
        assert_eq!(receiver.receive(at(node), &frame).is_ok(), node < 10 + 128);
    }
    assert_eq!(receiver.neighbours.len(), 128);
}

#[test]
fn when_all_numbers_are_used_nothing_is_sent_until_another_life() {
    let mut framer = framer(1, 1);
    framer.sequence = u32::MAX - 1;
    frame_of(&mut framer, b"last");
    framer.send(at(0), PROTOCOL, Destination::All, Duration::ZERO, b"x").unwrap();
    assert!(framer.is_exhausted());
    let mut frame = vec![];
    assert_eq!((framer.transmit(at(0), &mut frame), framer.transmit_at()), (None, None));
    framer.renew(1, [1; 8]);
    assert!(framer.is_exhausted(), "the same life is no other");
    framer.renew(2, [2; 8]);
    assert!(framer.transmit(at(0), &mut frame).is_some());
}

proptest! {
    #[test]
    fn random_frames_are_rejected_or_well_formed(
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
        flags in 0_u8..4,
    ) {
        if let Some(first) = frame.first_mut() {
            *first = crate::frame::VERSION << 4 | flags;
        }
        let mut receiver = framer(2, 1);
        if let Ok(received) = receiver.receive(at(0), &frame) {
            let mut rest = received.records;
            while !rest.is_empty() {
                let (record, more) = split_record(rest).unwrap();
                prop_assert!(!record.message.is_empty());
                rest = more;
            }
        }
    }

    #[test]
    fn what_is_sent_is_what_is_received(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..400), 1..6),
    ) {
        let (mut one, mut two) = (framer(1, 1), framer(2, 1));
        for message in &messages {
            one.send(at(0), PROTOCOL, Destination::All, Duration::ZERO, message).unwrap();
        }
        let (mut frame, mut received) = (vec![], vec![]);
        while one.transmit(at(0), &mut frame).is_some() {
            let mut rest = two.receive(at(0), &frame).unwrap().records;
            while let Ok((record, more)) = split_record(rest) {
                received.push(record.message.to_vec());
                rest = more;
            }
        }
        received.sort();
        let mut messages = messages;
        messages.sort();
        prop_assert_eq!(received, messages);
    }
}

#[test]
fn neighbours_beyond_the_room_displace_none_that_is_heard() {
    let mut receiver = framer(1, 1);
    let most = receiver.config.neighbours_max as u64;
    let mut hear = |from: u64, epoch: u32, millis: u64| {
        let frame = frame_of(&mut framer(from, epoch), b"here");
        receiver.receive(at(millis), &frame).map(|received| received.from)
    };
    (2..most + 2).for_each(|from| assert!(hear(from, 1, 0).is_ok()));
    assert_eq!(hear(most + 2, 1, 9_000), Err(Rejected::Unproven));
    assert!(hear(2, 2, 9_000).is_ok());
    assert!(hear(most + 2, 1, 10_000).is_ok(), "another one has been silent");
    assert!(receiver.believes(NodeId::from_number(2)));
}
