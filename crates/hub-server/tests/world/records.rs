//! Records of devices in the hub's database, as the suites of its storage write and read them.

use tenure_crypto::{Seed, SigningKey};
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::socket_at;
use tenure_hub::{Accepted, Kept, Renewal, Storage};
use tenure_hub_server::Database;
use tenure_wire::directory::{DeviceRecord, Enrolment};
use tenure_wire::{Address, Epoch, PublicKey};

/// The time of all of them, in seconds since 1970 UTC.
pub(crate) const NOW: u64 = 1_800_000_000;

/// A record of the device of that name, for [`NOW`].
fn record(name: &str, sequence: u64) -> (Kept, DeviceRecord) {
    let owner = SigningKey::from_bytes(&[1; 32]);
    let seed = Seed::from_bytes(&[9; 32]);
    let device_key = seed.device_signing_key().verifying_key();
    let enrolment = Enrolment { device: name.parse().unwrap(), device_key, number: 1 };
    let record = DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: enrol(&owner, &enrolment),
        enrolment,
        sequence,
        expires_unix_s: NOW + 60,
        epoch: Epoch([7; 8]),
        addresses: Vec::new(),
        device_machine: seed.device_secret().public_key(),
        machines: vec![("thermostat".parse().unwrap(), PublicKey([5; 32]))],
        succession: None,
    };
    let signed = seal(&seed.device_signing_key(), &record);
    (Kept { record: signed, seen_at: Address::Udp(socket_at(3)) }, record)
}

/// The key of the machine of each of these devices.
#[allow(dead_code, reason = "one of the suites uses it")]
pub(crate) fn device_machine() -> PublicKey {
    Seed::from_bytes(&[9; 32]).device_secret().public_key()
}

/// Writes one; whether it is taken.
pub(crate) fn put(database: &mut dyn Storage, name: &str, sequence: u64) -> bool {
    let (kept, record) = record(name, sequence);
    let ends_unix_s = record.expires_unix_s;
    database.put(&Accepted { kept: &kept, record: &record, unix_s: NOW, ends_unix_s }).is_ok()
}

/// The renewal of the device of that name by the record of a number, where that of another one stands.
#[allow(dead_code, reason = "one of the suites uses it")]
pub(crate) fn renewal(name: &str, before: u64, sequence: u64) -> Renewal {
    let [(before, _), (kept, record)] = [before, sequence].map(|sequence| record(name, sequence));
    let (device, expires_unix_s) = (record.enrolment.device, record.expires_unix_s);
    Renewal { device, before, kept, ends_unix_s: expires_unix_s }
}

/// The devices of all records, with their numbers.
pub(crate) fn sequences(database: &mut Database) -> Vec<(String, u64)> {
    in_words(database.records().unwrap())
}

/// The device of each record, with its number.
pub(crate) fn in_words(records: Vec<Kept>) -> Vec<(String, u64)> {
    let records = records.into_iter().map(|kept| {
        let record = tenure_directory::open_whenever(&kept.record).unwrap();
        (record.enrolment.device.to_string(), record.sequence)
    });
    records.collect()
}
