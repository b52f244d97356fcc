use alloc::vec;

use tenure_crypto::SigningKey;
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::Enrolment;
use tenure_wire::{Address, PublicKey, Signature};

use super::*;
use crate::{LIFETIME_S_MAX, enrol, seal, succeed};

const NOW: u64 = 1_800_000_000;
const PLACE: Address = Address::Line(1);

/// A device under test, with what it would sign.
#[derive(Clone)]
struct Device {
    owner: SigningKey,
    key: SigningKey,
    record: DeviceRecord,
}

impl Device {
    fn new(owner: u8, key: u8, enrolled: u64) -> Self {
        let owner = SigningKey::from_bytes(&[owner; 32]);
        let key = SigningKey::from_bytes(&[key; 32]);
        let enrolment = Enrolment {
            device: "attic".parse().unwrap(),
            device_key: key.verifying_key(),
            number: enrolled,
        };
        let record = DeviceRecord {
            owner: owner.verifying_key(),
            enrolment_signature: enrol(&owner, &enrolment),
            enrolment,
            sequence: 1,
            expires_unix_s: NOW + 60,
            epoch: Epoch([1; 8]),
            addresses: vec![],
            device_machine: PublicKey([1; 32]),
            machines: vec![("thermostat".parse().unwrap(), PublicKey([2; 32]))],
            succession: None,
        };
        Self { owner, key, record }
    }

    fn signed(&self) -> SignedRecord {
        seal(&self.key, &self.record)
    }

    fn signed_as(&self, bytes: alloc::vec::Vec<u8>) -> SignedRecord {
        const RECORD: tenure_crypto::Context = tenure_crypto::Context::new("device record");
        SignedRecord { signature: self.key.sign(RECORD, &bytes), bytes }
    }

    fn with(mut self, change: impl FnOnce(&mut DeviceRecord)) -> Self {
        change(&mut self.record);
        self
    }
}

fn accept(table: &mut Table, device: &Device) -> Result<bool, Refusal> {
    table.accept(device.signed(), PLACE, NOW)
}

#[test]
fn a_record_is_found_by_name_id_and_key_until_it_expires() {
    let mut table = Table::new(vec![], 4);
    let device = Device::new(1, 2, 1);
    assert_eq!(accept(&mut table, &device), Ok(true));
    assert_eq!(accept(&mut table, &device), Ok(false), "the same record again is no news");
    let key = PublicKey([2; 32]);
    let queries =
        [Query::Device("attic".parse().unwrap()), Query::Id(machine_id(&key)), Query::Key(key)];
    for query in queries {
        assert_eq!(table.find(&query, NOW).map(|entry| &entry.record), Some(&device.record));
        assert_eq!(table.find(&query, NOW + 61), None, "{query:?} after expiry");
    }
}

#[test]
fn spoofed_records_are_refused() {
    let mut table = Table::new(vec![], 4);
    let mut forged = Device::new(1, 2, 1);
    forged.key = SigningKey::from_bytes(&[9; 32]);
    assert_eq!(accept(&mut table, &forged), Err(Refusal::Signature));

    let stolen_name = Device::new(1, 2, 1).with(|record| {
        record.enrolment.device = "cellar".parse().unwrap();
    });
    assert_eq!(accept(&mut table, &stolen_name), Err(Refusal::Enrolment));

    let mut changed = Device::new(1, 2, 1).signed();
    let in_key = changed.bytes.len() - 2;
    changed.bytes[in_key] ^= 1;
    assert_eq!(table.accept(changed, PLACE, NOW), Err(Refusal::Signature));
    assert_eq!(table.entries().count(), 0);
}

#[test]
fn truncated_records_are_refused() {
    let mut table = Table::new(vec![], 4);
    let whole = Device::new(1, 2, 1).signed();
    for length in 0..whole.bytes.len() {
        let mut cut = whole.clone();
        cut.bytes.truncate(length);
        assert!(table.accept(cut, PLACE, NOW).is_err(), "{length} bytes");
    }
}

#[test]
fn replayed_and_expired_records_are_refused() {
    let mut table = Table::new(vec![], 4);
    let old = Device::new(1, 2, 1);
    let new = old.clone().with(|record| record.sequence = 2);
    assert_eq!(accept(&mut table, &new), Ok(true));
    assert_eq!(accept(&mut table, &old), Err(Refusal::Stale));
    let same_number = new.clone().with(|record| record.epoch = Epoch([7; 8]));
    assert_eq!(accept(&mut table, &same_number), Err(Refusal::Stale));
    let expired = new.clone().with(|record| record.expires_unix_s = NOW - 1);
    assert_eq!(accept(&mut table, &expired), Err(Refusal::Expired));
    let endless = new.with(|record| record.expires_unix_s = NOW + LIFETIME_S_MAX + 1);
    assert_eq!(accept(&mut table, &endless), Err(Refusal::Expired));
}

#[test]
fn a_replay_after_expiry_is_still_refused() {
    let mut table = Table::new(vec![], 4);
    let first = Device::new(1, 2, 1).with(|record| record.expires_unix_s = NOW + 600);
    let second = Device::new(1, 2, 1).with(|record| record.sequence = 2);
    assert_eq!(accept(&mut table, &second), Ok(true));
    assert_eq!(table.accept(first.signed(), PLACE, NOW + 120), Err(Refusal::Stale));
}

#[test]
fn a_name_stays_with_its_owner_and_moves_to_a_later_enrolled_device() {
    let mut table = Table::new(vec![], 4);
    let first = Device::new(1, 2, 5);
    assert_eq!(accept(&mut table, &first), Ok(true));
    assert_eq!(accept(&mut table, &Device::new(3, 4, 9)), Err(Refusal::NameTaken));
    assert_eq!(accept(&mut table, &Device::new(1, 4, 5)), Err(Refusal::Stale));
    assert_eq!(accept(&mut table, &Device::new(1, 4, 6)), Ok(true));
    let back = first.with(|record| record.sequence = 100);
    assert_eq!(accept(&mut table, &back), Err(Refusal::Stale), "the old device can't come back");
}

#[test]
fn strangers_and_one_too_many_are_refused() {
    let mut table = Table::new(vec![SigningKey::from_bytes(&[1; 32]).verifying_key()], 1);
    assert_eq!(accept(&mut table, &Device::new(3, 4, 1)), Err(Refusal::Owner));
    assert_eq!(accept(&mut table, &Device::new(1, 2, 1)), Ok(true));
    let mut second = Device::new(1, 5, 1);
    second.record.enrolment.device = "cellar".parse().unwrap();
    second.record.enrolment_signature = enrol(&second.owner, &second.record.enrolment);
    assert_eq!(accept(&mut table, &second), Err(Refusal::Full));
}

#[test]
fn a_restored_table_still_refuses_what_is_older() {
    let old = Device::new(1, 2, 1);
    let new = old.clone().with(|record| record.sequence = 2);
    let mut table = Table::new(vec![], 4);
    table.restore(new.signed(), PLACE).unwrap();
    let long_after = NOW + 3600;
    assert_eq!(table.find(&Query::Device("attic".parse().unwrap()), long_after), None);
    let replay = old.with(|record| record.expires_unix_s = long_after + 60);
    assert_eq!(table.accept(replay.signed(), PLACE, long_after), Err(Refusal::Stale));
    assert_eq!(accept(&mut table, &Device::new(3, 4, 9)), Err(Refusal::NameTaken));
}

#[test]
fn record_with_fields_of_a_later_version_is_read_as_far_as_it_is_known() {
    let device = Device::new(1, 2, 1);
    let mut bytes = device.signed().bytes;
    bytes.extend([7; 100]);
    let later = device.signed_as(bytes.clone());
    let mut table = Table::new(vec![], 4);
    assert_eq!(table.accept(later, PLACE, NOW), Ok(true));
    let entry = table.find(&Query::Device("attic".parse().unwrap()), NOW).unwrap();
    assert_eq!(entry.record, device.record);
    bytes.extend([7; 200]);
    let padded = device.with(|record| record.sequence = 2).signed_as(bytes);
    assert_eq!(table.accept(padded, PLACE, NOW), Err(Refusal::Malformed), "too many of them");
}

#[test]
fn record_of_another_version_is_refused_by_name() {
    let device = Device::new(1, 2, 1);
    let mut bytes = device.signed().bytes;
    bytes[0] += 1;
    let mut table = Table::new(vec![], 4);
    assert_eq!(table.accept(device.signed_as(bytes), PLACE, NOW), Err(Refusal::Version));
    assert!(alloc::format!("{}", Refusal::Version).contains("of another version"));
}

/// The device under the keys of the owner that `next` makes, by a succession that `by` signed.
fn succeeded(device: &Device, by: u8, next: u8, kind: SuccessionKind) -> Device {
    let (by, next) = (SigningKey::from_bytes(&[by; 32]), SigningKey::from_bytes(&[next; 32]));
    let succession = Succession {
        by: by.verifying_key(),
        next: next.verifying_key(),
        next_machine: PublicKey([8; 32]),
        kind,
        device: Some(device.key.verifying_key()),
        number: 1,
    };
    let mut changed = device.clone();
    changed.owner = next;
    changed.record.owner = changed.owner.verifying_key();
    changed.record.enrolment_signature = enrol(&changed.owner, &changed.record.enrolment);
    changed.record.succession = Some(succeed(&by, &succession));
    changed.record.sequence += 1;
    changed
}

#[test]
fn name_goes_on_with_the_owner_whom_its_owner_named_and_with_nobody_else() {
    let mut table = Table::new(vec![], 4);
    let device = Device::new(1, 2, 1);
    accept(&mut table, &device).unwrap();
    let usurped = succeeded(&device, 3, 3, SuccessionKind::Change);
    assert_eq!(accept(&mut table, &usurped), Err(Refusal::NameTaken), "signed by another owner");
    let changed = succeeded(&device, 1, 3, SuccessionKind::Change);
    let mut elsewhere = changed.clone();
    elsewhere.key = SigningKey::from_bytes(&[4; 32]);
    elsewhere.record.enrolment.device_key = elsewhere.key.verifying_key();
    elsewhere.record.enrolment_signature = enrol(&elsewhere.owner, &elsewhere.record.enrolment);
    assert_eq!(accept(&mut table, &elsewhere), Err(Refusal::Succession), "for another device");
    let mut forged = changed.clone();
    forged.record.succession.as_mut().unwrap().signature = Signature::from_bytes(&[5; 64]);
    assert_eq!(accept(&mut table, &forged), Err(Refusal::Succession));
    assert_eq!(accept(&mut table, &changed), Ok(true));
    let mut back = device.clone();
    back.record.sequence = 9;
    assert_eq!(accept(&mut table, &back), Err(Refusal::NameTaken), "the stolen old key");
    let again = succeeded(&back, 1, 4, SuccessionKind::Change);
    assert_eq!(
        accept(&mut table, &again),
        Err(Refusal::NameTaken),
        "the old key names a second one"
    );
    let twice = succeeded(&changed, 3, 4, SuccessionKind::Change);
    assert_eq!(accept(&mut table, &twice), Ok(true), "and the new key the next");
}

#[test]
fn device_with_its_owners_new_keys_is_taken_and_one_that_was_handed_over_is_not() {
    let device = Device::new(1, 2, 1);
    let owner = device.owner.verifying_key();
    let mut table = Table::new(vec![owner], 4);
    let handed_over = succeeded(&device, 1, 3, SuccessionKind::HandOver);
    assert_eq!(accept(&mut table, &handed_over), Err(Refusal::Owner));
    let changed = succeeded(&device, 1, 3, SuccessionKind::Change);
    assert_eq!(accept(&mut table, &changed), Ok(true));
    table.trust_only(vec![changed.owner.verifying_key()]);
    assert_eq!(table.entries().count(), 1);
    assert_eq!(accept(&mut table, &Device::new(1, 6, 2)), Err(Refusal::Owner), "the old keys");
    table.trust_only(vec![owner]);
    assert_eq!(table.entries().count(), 0);
}
