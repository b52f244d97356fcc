use alloc::format;

use tenure_crypto::{Seed, SigningKey};
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::Random;
use tenure_wire::PublicKey;
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::Enrolment;

use super::*;

/// An owner with devices.
struct Fleet {
    owner: SigningKey,
    devices: Vec<SigningKey>,
}

impl Fleet {
    fn of(count: usize) -> Self {
        let mut random = Random::new(7);
        let mut key = || Seed::generate(&mut random).unwrap().device_signing_key();
        Self { owner: key(), devices: (0..count).map(|_| key()).collect() }
    }

    fn key(&self, device: usize) -> RecordKey {
        key_of(&self.devices[device].verifying_key())
    }

    /// The record of a device called `device{name}`.
    fn named(&self, device: usize, name: usize, (number, sequence): (u64, u64)) -> Vec<u8> {
        let device_key = self.devices[device].verifying_key();
        let name = format!("device{name}").parse().unwrap();
        let enrolment = Enrolment { device: name, device_key, number };
        let record = DeviceRecord {
            enrolment_signature: enrol(&self.owner, &enrolment),
            enrolment,
            owner: self.owner.verifying_key(),
            sequence,
            expires_unix_s: 2_000_000_000,
            epoch: Epoch([0; 8]),
            addresses: Vec::new(),
            device_machine: PublicKey([device as u8; 32]),
            machines: Vec::new(),
            succession: None,
        };
        postcard::to_allocvec(&seal(&self.devices[device], &record)).unwrap()
    }

    fn record(&self, device: usize, sequence: u64) -> Vec<u8> {
        self.named(device, device, (1, sequence))
    }

    /// The records that device 0 holds, with room for `records_max`, in a mesh of as many nodes as there are devices.
    fn records(&self, records_max: usize) -> MeshRecords {
        let own = (self.owner.verifying_key(), self.key(0));
        let mut records = MeshRecords::new(own, records_max, usize::MAX);
        records.tell_nodes(self.devices.len(), true);
        assert!(records.accept(self.key(0), &self.record(0, 1)));
        records
    }
}

#[test]
fn records_looked_up_make_room_for_each_other_and_the_own_one_stays() {
    let fleet = Fleet::of(40);
    let mut records = fleet.records(12);
    for device in 1..40 {
        assert!(records.accept(fleet.key(device), &fleet.record(device, 1)));
        records.touch(fleet.key(1));
        assert!(records.held.len() <= 12);
    }
    let holds = |device| records.held.contains_key(&fleet.key(device));
    assert!(holds(0) && holds(1) && holds(39), "its own, one that is used, and the last one");
    assert!(!holds(2), "the one that wasn't used for longest");
}

#[test]
fn kept_records_leave_a_quarter_to_others_and_go_for_none_of_them() {
    let fleet = Fleet::of(60);
    let mut records = fleet.records(12);
    for device in 1..30 {
        records.keep(fleet.key(device), &fleet.record(device, 1));
    }
    let kept = |records: &MeshRecords| records.held.values().filter(|held| held.is_kept).count();
    assert_eq!((kept(&records), records.held.len()), (11, 12), "nobody else wants the places");
    for device in 30..60 {
        assert!(records.accept(fleet.key(device), &fleet.record(device, 1)));
    }
    assert_eq!((kept(&records), records.held.len()), (9, 12));
}

#[test]
fn record_that_is_renewed_replaces_its_earlier_version_and_is_kept_still() {
    let fleet = Fleet::of(20);
    let mut records = fleet.records(4);
    records.keep(fleet.key(1), &fleet.record(1, 1));
    assert!(records.accept(fleet.key(1), &fleet.record(1, 3)));
    assert!(!records.accept(fleet.key(1), &fleet.record(1, 2)));
    let held = &records.held[&fleet.key(1)];
    assert!(held.is_kept && held.record.sequence == 3);
}

#[test]
fn forged_records_and_those_under_anothers_key_are_refused() {
    let (fleet, stranger) = (Fleet::of(3), Fleet::of(9));
    let mut records = fleet.records(12);
    assert!(!records.accept(stranger.key(8), &stranger.record(8, 1).split_off(1)));
    assert!(!records.accept(fleet.key(1), &fleet.record(2, 1)));
    let forged = Fleet { owner: fleet.devices[1].clone(), devices: fleet.devices.clone() };
    assert!(!records.accept(fleet.key(2), &forged.record(2, 1)));
    let mut changed = fleet.record(2, 1);
    let last = changed.len() - 1;
    changed[last] ^= 1;
    assert!(!records.accept(fleet.key(2), &changed));
    assert_eq!(records.held.len(), 1);
}

#[test]
fn of_two_devices_with_one_name_the_one_that_was_given_it_last_counts() {
    let fleet = Fleet::of(20);
    let mut records = fleet.records(12);
    assert!(records.accept(fleet.key(2), &fleet.named(2, 7, (2, 1))));
    assert!(records.accept(fleet.key(1), &fleet.named(1, 7, (1, 9))));
    let mark = Mark::of(&"device7".parse().unwrap());
    assert_eq!(records.record_of(mark), Some((fleet.key(2), (2, 1))));
}

#[test]
fn mesh_with_more_nodes_than_there_is_room_for_doesnt_replicate_and_asks_for_nothing() {
    let fleet = Fleet::of(12);
    let mut records = fleet.records(12);
    assert!(records.replicates() && records.room() == 11);
    assert!(!records.tell_nodes(13, true));
    assert!(!records.replicates() && records.room() == 0);
    assert!(!records.tell_nodes(12, false) && !records.replicates());
    assert!(records.tell_nodes(12, true) && !records.tell_nodes(12, true), "it is told once");
}

#[test]
fn keeper_whose_clock_is_ahead_refuses_what_is_over_for_it() {
    let fleet = Fleet::of(20);
    let mut records = fleet.records(12);
    records.tell_time(Some(2_000_000_001), true);
    assert!(records.held.is_empty(), "its own is over too");
    records.keep(fleet.key(1), &fleet.record(1, 1));
    assert!(records.held.is_empty());
}
