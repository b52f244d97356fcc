//! A device's record as this version writes it: a later build reads it, and says so if it doesn't.

use tenure_crypto::SigningKey;
use tenure_directory::{enrol, open, seal, succeed};
use tenure_testbed::frozen;
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::{DeviceRecord, Enrolment, SignedRecord};
use tenure_wire::ownership::{Succession, SuccessionKind};
use tenure_wire::{Address, PublicKey};

const EXPIRES_S: u64 = 1_800_000_060;

fn key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

#[test]
fn record_of_version_1_is_written_and_read() {
    let (former, owner, device) = (key(1), key(2), key(3));
    let enrolment = Enrolment {
        device: "attic".parse().unwrap(),
        device_key: device.verifying_key(),
        number: 4,
    };
    let succession = Succession {
        kind: SuccessionKind::HandOver,
        by: former.verifying_key(),
        next: owner.verifying_key(),
        next_machine: PublicKey([5; 32]),
        number: 6,
        device: Some(device.verifying_key()),
    };
    let record = DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: enrol(&owner, &enrolment),
        enrolment,
        sequence: 7,
        expires_unix_s: EXPIRES_S,
        epoch: Epoch([8; 8]),
        addresses: vec![
            Address::Udp("192.0.2.1:7000".parse().unwrap()),
            Address::Mesh([9; 6]),
            Address::Line(10),
        ],
        device_machine: PublicKey([11; 32]),
        machines: vec![("thermostat".parse().unwrap(), PublicKey([12; 32]))],
        succession: Some(succeed(&former, &succession)),
    };
    let written = postcard::to_allocvec(&seal(&device, &record)).unwrap();
    let kept = frozen(env!("CARGO_MANIFEST_DIR"), "record-1", &written);
    let signed: SignedRecord = postcard::from_bytes(&kept).unwrap();
    assert_eq!(open(&signed, EXPIRES_S - 60), Ok(record));
}
