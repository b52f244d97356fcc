use alloc::vec;

use tenure_crypto::SigningKey;
use tenure_hal::simulated::Sequence;
use tenure_mesh::{PLAIN_BYTES_MAX, decode, encode};
use tenure_wire::Signature;
use tenure_wire::control::Enrol;
use tenure_wire::directory::Enrolment;

use super::*;
use crate::network_key::{NetworkKey, invite};

const HERE: NodeId = NodeId::from_number(1);

fn secret(number: u8) -> StaticSecret {
    StaticSecret::generate(&mut Sequence(number.into())).unwrap()
}

fn key(number: u8) -> VerifyingKey {
    SigningKey::from_bytes(&[number; 32]).verifying_key()
}

fn knock(number: u8) -> Knock {
    let owner = secret(100).public_key();
    let device = secret(number);
    let public = device.public_key();
    Knock::new((&device, public), key(number), "attic".parse().unwrap(), &owner).unwrap()
}

fn admission(number: u8) -> Admission {
    let owner = SigningKey::from_bytes(&[9; 32]);
    let network = NetworkKey::from_bytes(&[1; 32]);
    let device = secret(number).public_key();
    let invitation = invite(&owner, &device, 1, &network, &mut Sequence(5)).unwrap();
    let device = "a-name-that-is-as-long-as-can-be".parse().unwrap();
    let enrolment = Enrolment { device, device_key: key(number), number: u64::MAX };
    Admission { invitation, enrol: Enrol { enrolment, signature: Signature::from_bytes(&[7; 64]) } }
}

#[test]
fn a_knock_proves_to_its_owner_alone_that_the_device_said_it() {
    let knock = knock(1);
    assert!(knock.is_proven_to(&secret(100)));
    assert!(!knock.is_proven_to(&secret(101)));
    // Somebody who would like to be enrolled under its name, or have it enrolled under another.
    assert!(!Knock { key: key(2), ..knock.clone() }.is_proven_to(&secret(100)));
    assert!(!Knock { name: "cellar".parse().unwrap(), ..knock.clone() }.is_proven_to(&secret(100)));
    let other = secret(2).public_key();
    assert!(!Knock { device: other, ..knock }.is_proven_to(&secret(100)));
}

#[test]
fn each_word_fits_one_plain_frame() {
    for word in [Word::Knock(knock(1)), Word::Admission(admission(1))] {
        let mut bytes = Vec::new();
        encode(&word, &mut bytes);
        assert!(bytes.len() <= PLAIN_BYTES_MAX, "{}", bytes.len());
        assert_eq!(decode::<Word>(&bytes), Some((word, &[][..])));
    }
}

#[test]
fn a_member_answers_only_the_device_that_is_admitted_and_only_a_few_times() {
    let mut doorway = Doorway::default();
    let mut now = Instant::BOOT;
    let [one, two] = [1, 2].map(|number| secret(number).public_key());
    assert_eq!(doorway.answer(now, &one), None);
    doorway.admit(now, admission(1));
    let mut answers = 0;
    for _ in 0..100 {
        assert_eq!(doorway.answer(now, &two), None);
        answers += u8::from(doorway.answer(now, &one).is_some());
        assert_eq!(doorway.answer(now, &one), None, "not twice at the same time");
        now = now + Duration::from_secs(1);
    }
    assert_eq!(answers, ANSWERS_MAX);
    doorway.admit(now, admission(1));
    assert_eq!(doorway.answer(now + ADMISSION_LASTS, &one), None);
}

#[test]
fn a_flood_of_strangers_displaces_none_that_the_owner_waits_for() {
    let mut doorway = Doorway::default();
    let now = Instant::from_millis(1000);
    let awaited = knock(1);
    doorway.expect(now, awaited.device);
    doorway.hear(now, awaited.clone(), HERE, now);
    for number in 2..60 {
        doorway.hear(now, knock(number), HERE, now);
    }
    let names: Vec<_> = doorway.strangers(now).iter().map(|it| it.knock.device).collect();
    assert_eq!(names.len(), HEARD_MAX);
    assert!(names.contains(&awaited.device));
    assert!(doorway.strangers(now + HEARD_LASTS).is_empty());
}

#[test]
fn a_member_tells_others_only_what_it_heard_itself() {
    let mut doorway = Doorway::default();
    let now = Instant::from_millis(9000);
    doorway.hear(now, knock(1), NodeId::from_number(2), now);
    assert_eq!(doorway.note(now, HERE), None);
    doorway.hear(now, knock(2), HERE, Instant::from_millis(4000));
    assert_eq!(doorway.note(now, HERE), Some(Note::Heard(vec![(knock(2), 5)])));
}

#[test]
fn a_stranger_knocks_ever_more_rarely() {
    let mut random = Random::new(1);
    let mut knocking = Knocking::new(Instant::BOOT, &mut random);
    let seconds = (0..600).filter(|second| {
        let now = Instant::from_millis(second * 1000);
        knocking.is_due(now, &mut random)
    });
    assert!((15..30).contains(&seconds.count()));
}
