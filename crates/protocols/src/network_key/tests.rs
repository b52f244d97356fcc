use super::*;
use alloc::vec;
use core::time::Duration;
use tenure_hal::Instant;
use tenure_mesh::frame::Header;
use tenure_mesh::{
    Destination, Dispatcher, Framer, FramerConfig, NodeId, ProtocolNumber, Random, Rejected,
};

struct Seeded(Random);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.iter_mut().for_each(|byte| *byte = self.0.number() as u8);
        Ok(())
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn framer(node: u64, epoch: u32, key: u8) -> Framer<NetworkKey> {
    start(node, epoch, 0, key)
}

/// A start of its own, though the epoch may be one that was.
fn start(node: u64, epoch: u32, salt: u8, key: u8) -> Framer<NetworkKey> {
    let config = FramerConfig::new(NodeId::from_number(node), epoch, [salt; 8]);
    Framer::new(config, NetworkKey::from_bytes(&[key; 32]))
}

fn say(framer: &mut Framer<NetworkKey>, now: Instant, text: &[u8]) -> Vec<u8> {
    let protocol = ProtocolNumber(9);
    framer.send(now, protocol, Destination::All, Duration::ZERO, text).unwrap();
    let mut frame = vec![];
    framer.transmit(now, &mut frame).unwrap();
    frame
}

/// Lets two nodes exchange whatever they want to until neither has anything to say.
fn meet(one: &mut Framer<NetworkKey>, other: &mut Framer<NetworkKey>, now: u64) {
    let mut frame = vec![];
    for now in (now..now + 100).map(at) {
        while one.transmit(now, &mut frame).is_some() {
            let _ = other.receive(now, &frame);
        }
        while other.transmit(now, &mut frame).is_some() {
            let _ = one.receive(now, &frame);
        }
    }
}

fn acquainted() -> (Framer<NetworkKey>, Framer<NetworkKey>) {
    let (mut one, mut two) = (framer(1, 1, 7), framer(2, 1, 7));
    let frame = say(&mut one, at(0), b"hello");
    assert_eq!(two.receive(at(0), &frame), Err(Rejected::Unproven));
    meet(&mut one, &mut two, 1);
    assert!(one.believes(two.node()) && two.believes(one.node()));
    (one, two)
}

#[test]
fn members_get_to_know_each_other_and_then_keep_quiet() {
    let (mut one, mut two) = acquainted();
    let frame = say(&mut one, at(500), b"hello");
    let received = two.receive(at(500), &frame).unwrap();
    assert_eq!((received.from, received.addressed), (NodeId::from_number(1), false));
    assert_eq!(received.records, [9, 5, b'h', b'e', b'l', b'l', b'o']);
    assert_eq!((one.transmit_at(), two.transmit_at()), (None, None));
}

#[test]
fn without_the_key_a_frame_can_neither_be_read_nor_made_nor_changed() {
    let (mut one, mut two) = acquainted();
    let mut frame = say(&mut one, at(500), b"attack at dawn");
    assert!(!frame.windows(6).any(|window| window == b"attack"), "it is encrypted");
    for position in 0..frame.len() {
        frame[position] ^= 0x10;
        assert!(two.receive(at(500), &frame).is_err(), "byte {position} was changed");
        frame[position] ^= 0x10;
    }
    for length in 0..frame.len() {
        assert!(two.receive(at(500), &frame[..length]).is_err(), "cut to {length}");
    }
    let mut stranger = framer(1, 2, 8);
    let forged = say(&mut stranger, at(500), b"hello");
    assert_eq!(two.receive(at(500), &forged), Err(Rejected::Forged));
    let config = FramerConfig::new(NodeId::from_number(3), 2, [0; 8]);
    let mut unsealed = Framer::new(config, tenure_mesh::Unsealed);
    let protocol = ProtocolNumber(9);
    unsealed.send(at(500), protocol, Destination::All, Duration::ZERO, b"x").unwrap();
    let mut plain = vec![];
    unsealed.transmit(at(500), &mut plain).unwrap();
    assert_eq!(two.receive(at(500), &plain), Err(Rejected::Forged));
    assert!(two.receive(at(500), &frame).is_ok(), "nothing of that shut the neighbour out");
}

#[test]
fn each_frame_counts_once_whatever_the_order() {
    let (mut one, mut two) = acquainted();
    let frames: Vec<_> = (0..100).map(|_| say(&mut one, at(500), b"x")).collect();
    for index in [0, 2, 1, 2, 0, 99, 40, 40, 98, 30] {
        let first = [0, 2, 1, 99, 40, 98].contains(&index);
        let taken = two.receive(at(500), &frames[index]);
        match taken {
            Ok(_) => assert!(first, "{index} is new"),
            Err(error) => assert_eq!(error, Rejected::Replayed, "{index}"),
        }
    }
    for frame in &frames[..35] {
        assert_eq!(two.receive(at(501), frame), Err(Rejected::Replayed));
    }
}

#[test]
fn what_was_recorded_before_a_restart_proves_nothing_after_it() {
    let (mut one, mut two) = (framer(1, 1, 7), framer(2, 1, 7));
    // The whole acquaintance is recorded, and more.
    let mut recorded = vec![say(&mut one, at(0), b"hello")];
    let mut frame = vec![];
    let _ = two.receive(at(0), &recorded[0]);
    for now in (1..100).map(at) {
        while one.transmit(now, &mut frame).is_some() {
            recorded.push(frame.clone());
            let _ = two.receive(now, &frame);
        }
        while two.transmit(now, &mut frame).is_some() {
            let _ = one.receive(now, &frame);
        }
    }
    recorded.push(say(&mut one, at(500), b"open the door"));
    assert!(two.believes(one.node()));
    let mut two = framer(2, 2, 7);
    for frame in recorded.iter().chain(&recorded) {
        assert!(two.receive(at(600), frame).is_err());
        while two.transmit(at(700), &mut vec![]).is_some() {}
    }
    assert!(!two.believes(one.node()));
    // The living node is believed again.
    let frame = say(&mut one, at(800), b"hello");
    let _ = two.receive(at(800), &frame);
    meet(&mut one, &mut two, 2000);
    assert!(two.believes(one.node()) && one.believes(two.node()));
    // Nor is anything taken again by who restarted and believes.
    let mut two = framer(2, 3, 7);
    let frame = say(&mut one, at(3000), b"hello");
    let _ = two.receive(at(3000), &frame);
    meet(&mut one, &mut two, 3001);
    assert!(two.believes(one.node()));
    for frame in &recorded {
        assert_eq!(two.receive(at(4000), frame), Err(Rejected::Replayed));
    }
    let frame = say(&mut one, at(4001), b"hello");
    assert!(two.receive(at(4001), &frame).is_ok());
}

#[test]
fn a_later_life_is_proved_first_and_makes_the_earlier_one_a_replay() {
    let (mut one, mut two) = acquainted();
    let old = [say(&mut one, at(500), b"x"), say(&mut one, at(500), b"y")];
    let mut again = framer(1, 2, 7);
    let frame = say(&mut again, at(600), b"x");
    assert_eq!(two.receive(at(600), &frame), Err(Rejected::Unproven));
    // Nobody has proved yet that the earlier life is over.
    assert!(two.receive(at(601), &old[0]).is_ok());
    meet(&mut again, &mut two, 700);
    assert_eq!(two.receive(at(900), &old[1]), Err(Rejected::Replayed));
    let frame = say(&mut again, at(900), b"x");
    assert!(two.receive(at(900), &frame).is_ok());
}

#[test]
fn a_neighbour_that_proves_another_life_is_told_as_restarted_once() {
    let (_, mut two) = acquainted();
    let mut again = framer(1, 2, 7);
    let mut frame = say(&mut again, at(600), b"x");
    let _ = two.receive(at(600), &frame);
    let mut restarts = 0;
    for now in (601..900).map(at) {
        while again.transmit(now, &mut frame).is_some() {
            restarts += two.receive(now, &frame).map_or(0, |it| u32::from(it.restarted));
        }
        while two.transmit(now, &mut frame).is_some() {
            let _ = again.receive(now, &frame);
        }
        again.send(now, ProtocolNumber(9), Destination::All, Duration::ZERO, b"x").unwrap();
    }
    assert_eq!(restarts, 1);
}

#[test]
fn a_life_with_a_high_epoch_that_is_over_keeps_the_node_out_for_ten_seconds() {
    let (mut one, mut two) = acquainted();
    // A member speaks in another's name, in the last life that there can be, and leaves.
    let mut liar = start(1, u32::MAX, 9, 7);
    let frame = say(&mut liar, at(500), b"x");
    let _ = two.receive(at(500), &frame);
    meet(&mut liar, &mut two, 501);
    let frame = say(&mut liar, at(1000), b"lie");
    assert!(two.receive(at(1000), &frame).is_ok(), "it holds the network's key");
    let frame = say(&mut one, at(10_999), b"x");
    assert_eq!(two.receive(at(10_999), &frame), Err(Rejected::Replayed));
    let frame = say(&mut one, at(11_000), b"x");
    assert_eq!(two.receive(at(11_000), &frame), Err(Rejected::Unproven));
    meet(&mut one, &mut two, 11_001);
    let frame = say(&mut one, at(11_200), b"x");
    assert!(two.receive(at(11_200), &frame).is_ok());
    // The liar's frame is a recording now, and its epoch no reason to believe it.
    let frame = say(&mut liar, at(11_300), b"lie");
    assert_eq!(two.receive(at(11_300), &frame), Err(Rejected::Unproven));
    assert!(two.receive(at(11_301), &say(&mut one, at(11_301), b"x")).is_ok());
}

#[test]
fn a_frame_number_that_a_member_invented_in_anothers_life_keeps_it_out_for_ten_seconds() {
    let (mut one, mut two) = acquainted();
    let frame = say(&mut one, at(900), b"x");
    let (mut header, header_bytes) = Header::parse(&frame).unwrap();
    let _ = two.receive(at(900), &frame);
    // The last number that there is, under the key that members share.
    header.number.sequence = u32::MAX;
    let mut forged = vec![];
    header.emit(&mut forged);
    assert_eq!(forged.len(), header_bytes);
    forged.extend_from_slice(b"\x09\x03lie");
    NetworkKey::from_bytes(&[7; 32]).seal(&header.number, header_bytes, &mut forged);
    assert!(two.receive(at(1000), &forged).is_ok(), "it holds the network's key");
    let recorded = say(&mut one, at(1001), b"x");
    assert_eq!(two.receive(at(1001), &recorded), Err(Rejected::Replayed));
    let frame = say(&mut one, at(11_000), b"x");
    assert_eq!(two.receive(at(11_000), &frame), Err(Rejected::Unproven));
    assert_eq!(two.receive(at(11_000), &frame), Err(Rejected::Replayed), "once is enough");
    meet(&mut one, &mut two, 11_001);
    let frame = say(&mut one, at(11_200), b"x");
    assert!(two.receive(at(11_200), &frame).is_ok());
    assert_eq!(two.receive(at(11_300), &recorded), Err(Rejected::Replayed));
    assert!(two.receive(at(11_301), &say(&mut one, at(11_301), b"x")).is_ok());
}

#[test]
fn a_device_whose_flash_was_put_back_is_believed_again_after_a_silence() {
    for (epoch, salt) in [(1, 1), (2, 1)] {
        let (mut one, mut two) = (start(1, 2, 0, 7), framer(2, 1, 7));
        let _ = two.receive(at(0), &say(&mut one, at(0), b"hello"));
        meet(&mut one, &mut two, 1);
        assert!(two.believes(one.node()));
        let mut again = start(1, epoch, salt, 7);
        let frame = say(&mut again, at(1000), b"x");
        assert_eq!(two.receive(at(1000), &frame), Err(Rejected::Replayed));
        let _ = two.receive(at(12_000), &say(&mut again, at(12_000), b"x"));
        meet(&mut again, &mut two, 12_001);
        let frame = say(&mut again, at(12_200), b"x");
        assert!(two.receive(at(12_200), &frame).is_ok(), "epoch {epoch}, salt {salt}");
    }
}

#[test]
fn recordings_of_earlier_lives_dont_keep_a_new_life_from_proving_itself() {
    let mut recorded: Vec<Vec<u8>> =
        (1..40).map(|life| say(&mut start(1, life, 3, 7), at(0), b"x")).collect();
    let mut two = framer(2, 1, 7);
    let mut again = framer(1, 40, 7);
    let mut frame = say(&mut again, at(0), b"x");
    let _ = two.receive(at(0), &frame);
    for now in (1..200).map(at) {
        if let Some(recording) = recorded.pop() {
            assert!(two.receive(now, &recording).is_err());
        }
        while again.transmit(now, &mut frame).is_some() {
            let _ = two.receive(now, &frame);
        }
        while two.transmit(now, &mut frame).is_some() {
            let _ = again.receive(now, &frame);
        }
    }
    let frame = say(&mut again, at(300), b"x");
    assert!(two.receive(at(300), &frame).is_ok());
}

#[test]
fn a_forgotten_neighbour_is_proved_again() {
    let config =
        FramerConfig { neighbours_max: 2, ..FramerConfig::new(NodeId::from_number(9), 1, [0; 8]) };
    let mut small = Framer::new(config, NetworkKey::from_bytes(&[7; 32]));
    let mut recorded = vec![];
    let mut others: Vec<_> = (1..5).map(|node| framer(node, 1, 7)).collect();
    for (index, other) in others.iter_mut().enumerate() {
        // One that has been silent for ten seconds makes room.
        let now = 11_000 * index as u64;
        let frame = say(other, at(now), b"x");
        let _ = small.receive(at(now), &frame);
        meet(other, &mut small, now + 1);
        recorded.push(say(other, at(now + 500), b"x"));
    }
    assert!(small.believes(others[3].node()));
    assert!(!small.believes(others[0].node()));
    assert_eq!(small.receive(at(40_000), &recorded[0]), Err(Rejected::Unproven));
}

#[test]
fn each_part_of_a_frames_number_changes_what_its_content_is_encrypted_with() {
    let key = NetworkKey::from_bytes(&[7; 32]);
    let number =
        FrameNumber { sender: NodeId::from_number(1), epoch: 3, salt: [5; 8], sequence: 4 };
    let others = [
        FrameNumber { sender: NodeId::from_number(2), ..number },
        FrameNumber { epoch: 3 + (1 << 16), ..number },
        FrameNumber { salt: [5, 5, 5, 5, 5, 5, 5, 6], ..number },
        FrameNumber { sequence: 4 + (1 << 24), ..number },
    ];
    let mut one = vec![0; 40];
    key.seal(&number, 15, &mut one);
    for other in others {
        let mut two = vec![0; 40];
        key.seal(&other, 15, &mut two);
        assert_ne!(one[15..40], two[15..40], "{other:?}");
        let (header, sealed) = two.split_at_mut(15);
        assert_eq!(key.open(&other, header, sealed), Some(&[0; 25][..]));
    }
}

#[test]
fn an_invitation_counts_for_its_device_by_its_owner_alone() {
    let entropy = &mut Seeded(Random::new(1));
    let owner = SigningKey::generate(entropy).unwrap();
    let device = StaticSecret::generate(entropy).unwrap();
    let network = NetworkKey::generate(entropy).unwrap();
    let invitation = invite(&owner, &device.public_key(), 5, &network, entropy).unwrap();
    assert_eq!(invitation.len(), INVITATION_BYTES);
    let (key, number) = accept(&invitation, &owner.verifying_key(), &device).unwrap();
    assert_eq!((key.as_bytes(), number), (network.as_bytes(), 5));
    let other = StaticSecret::generate(entropy).unwrap();
    let taken = accept(&invitation, &owner.verifying_key(), &other);
    assert_eq!(taken.unwrap_err(), InvitationError::Device);
    let stranger = SigningKey::generate(entropy).unwrap().verifying_key();
    assert_eq!(accept(&invitation, &stranger, &device).unwrap_err(), InvitationError::Signature);
    for position in 0..INVITATION_BYTES {
        let mut changed = invitation.clone();
        changed[position] ^= 1;
        assert!(accept(&changed, &owner.verifying_key(), &device).is_err());
    }
    assert!(accept(&invitation[1..], &owner.verifying_key(), &device).is_err());
}
