//! The directory's records as this device holds and signs them.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_directory::{Entry, Table};
use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant, UnixTime};
use tenure_package::Revocations;
use tenure_wire::directory::{Found, Query, Refusal, SignedRecord};
use tenure_wire::{Name, PublicKey, VerifyingKey};

use crate::clock::Clock;
use crate::config::Config;
use crate::identity::RecordContents;
use crate::moment::Moment;
use crate::services::Services;

/// The shortest time between two records that tell the directory, or the mesh, of nothing but a new epoch.
/// Strangers set the pace of epochs, and a peer that knows an old one loses one round trip alone.
pub(crate) const EPOCH_PERIOD: Duration = Duration::from_secs(60);

/// The longest that a record lasts which is shown to whoever asks, unless all do: members of a mesh without a clock read the time
/// off it.
const SHOWN_LASTS_MAX: Duration = Duration::from_secs(15 * 60);

/// A record that lasts for longer than this, in seconds, is of a device that touches its hub, and says nothing of whether it is
/// still there: so a newer one is asked for, so long after it was learnt.
const LASTING_S: u64 = 20 * 60;
const ASKED_AGAIN_S: u64 = 60;

/// The records of devices that this one knows, and its own.
#[derive(Debug)]
pub(crate) struct Directory {
    table: Table,
    /// The records, by device and number, whose device wasn't where they say.
    doubted: Vec<(Name, u64)>,
    /// When records that last for long were learnt, or found to be the newest, in seconds since 1970 UTC.
    learnt: Vec<(Name, u64)>,
    /// The record that was signed last.
    signed: Option<Signed>,
    /// Records made since boot.
    records: u32,
}

/// A record as it was signed, and until when it is shown to whoever asks.
#[derive(Clone, Debug)]
struct Signed {
    record: SignedRecord,
    machines: Vec<(Name, PublicKey)>,
    fresh_until: Instant,
}

impl Directory {
    /// The directory of a device that knows no other yet.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            table: Table::new([config.owner.verifying_key].to_vec(), config.records_max),
            doubted: Vec::new(),
            learnt: Vec::new(),
            signed: None,
            records: 0,
        }
    }

    /// Takes note that the device that holds the machine with `key` isn't where its record says: whoever
    /// looks for it next asks for a newer record, and uses this one if there is none.
    pub(crate) fn doubt(&mut self, key: &PublicKey) {
        // No record leads there: a peer was heard elsewhere.
        let Some(entry) = self.table.find_whenever(&Query::Key(*key)) else { return };
        let doubted = (entry.record.enrolment.device.clone(), entry.record.sequence);
        if self.doubted.contains(&doubted) {
            return;
        }
        // One a device: what is here of records that were replaced goes.
        let table = &self.table;
        self.doubted.retain(|(device, sequence)| {
            let known = table.find_whenever(&Query::Device(device.clone()));
            known.is_some_and(|entry| entry.record.sequence == *sequence)
        });
        self.doubted.push(doubted);
    }

    /// Takes note that no newer record can be had of the device that `query` asks for.
    pub(crate) fn trust_again(&mut self, query: &Query) {
        // Nothing is known of it that could be doubted.
        let Some(entry) = self.table.find_whenever(query) else { return };
        let device = &entry.record.enrolment.device;
        self.doubted.retain(|(doubted, _)| doubted != device);
    }

    /// Forgets the record that was signed last: the device goes by another name now.
    pub(crate) fn forget_signed(&mut self) {
        self.signed = None;
    }

    /// Takes records of that owner's devices alone from now on.
    pub(crate) fn change_owner(&mut self, owner: VerifyingKey) {
        self.table.trust_only([owner].to_vec());
        self.doubted.clear();
        self.learnt.clear();
        self.signed = None;
    }

    /// Forgets the record of the device that signs with `key`; returns the machines that it listed.
    pub(crate) fn forget_device(&mut self, key: &VerifyingKey) -> Vec<PublicKey> {
        let of_it = self.table.entries().filter(|entry| entry.record.enrolment.device_key == *key);
        let known: Vec<(Name, Vec<PublicKey>)> = of_it
            .map(|entry| {
                let machines = entry.record.machines.iter().map(|(_, machine)| *machine);
                (entry.record.enrolment.device.clone(), machines.collect())
            })
            .collect();
        known.iter().for_each(|(name, _)| self.table.forget(name));
        known.into_iter().flat_map(|(_, machines)| machines).collect()
    }

    /// Whether the device of `entry` wasn't where it says.
    fn doubts(&self, entry: &Entry) -> bool {
        let of = |(device, sequence): &(Name, u64)| {
            *device == entry.record.enrolment.device && *sequence == entry.record.sequence
        };
        self.doubted.iter().any(of)
    }

    /// Whether the device that `query` asks for wasn't where its record says.
    #[cfg(feature = "mesh")]
    pub(crate) fn is_doubted(&self, query: &Query) -> bool {
        self.table.find_whenever(query).is_some_and(|entry| self.doubts(entry))
    }

    /// Whether a record lasts for long and was learnt long before `unix_s`.
    fn is_to_be_asked_for(&self, entry: &Entry, unix_s: u64) -> bool {
        let device = &entry.record.enrolment.device;
        let learnt = self.learnt.iter().find(|(learnt, _)| learnt == device);
        entry.record.expires_unix_s > unix_s.saturating_add(LASTING_S)
            && learnt.is_none_or(|(_, at)| at.saturating_add(ASKED_AGAIN_S) < unix_s)
    }

    /// Takes note that a record was learnt, if it is the one that is known and lasts for long.
    fn note_learnt(&mut self, record: &SignedRecord, device: Name, unix_s: u64) {
        let table = &self.table;
        self.learnt.retain(|(learnt, _)| *learnt != device && table.device(learnt).is_some());
        let known = table.device(&device).filter(|entry| entry.signed == *record);
        let lasts_until = unix_s.saturating_add(LASTING_S);
        if known.is_some_and(|entry| entry.record.expires_unix_s > lasts_until) {
            self.learnt.push((device, unix_s));
        }
    }

    /// The last record that answers `query`, however old it is.
    pub(crate) fn last_record(&self, query: &Query) -> Option<&Entry> {
        self.table.find_whenever(query)
    }

    /// Whether `key` is that of the own machine of a device that is known.
    pub(crate) fn is_device(&self, key: &PublicKey) -> bool {
        self.table.entries().any(|entry| entry.record.device_machine == *key)
    }

    /// The record that answers `query`, if one is known and in force.
    pub(crate) fn record(
        &self,
        clock: &Clock,
        moment: &Moment<'_>,
        query: &Query,
    ) -> Option<&Entry> {
        let unix_s = clock.records_time(moment)?.seconds;
        let entry = self.table.find(query, unix_s)?;
        (!self.doubts(entry) && !self.is_to_be_asked_for(entry, unix_s)).then_some(entry)
    }

    /// The device's statement about itself, signed; `None` if it isn't enrolled. It is signed anew when its
    /// machines change and otherwise once in a third of a record's life, so that strangers who ask for it
    /// cost no signatures.
    pub(crate) fn signed_record<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
    ) -> Option<SignedRecord> {
        let machines = services.listed_machines();
        let is_fresh =
            |signed: &&Signed| signed.fresh_until > moment.now && signed.machines == machines;
        let known = self.signed.as_ref().filter(is_fresh);
        if let Some(signed) = known.filter(|_| !is_planted(Weakness::SignaturesWithoutLimit)) {
            return Some(signed.record.clone());
        }
        self.sign_record_for(services, clock, moment, services.config.record_lifetime)
    }

    /// Signs a record that is in force for `lifetime`.
    pub(crate) fn sign_record_for<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        clock: &Clock,
        moment: &Moment<'_>,
        lifetime: Duration,
    ) -> Option<SignedRecord> {
        // A former owner's enrolment counts no more.
        let enrolled = services.identity.enrolled.as_ref();
        enrolled.filter(|enrolled| enrolled.owner == services.config.owner.verifying_key)?;
        self.records = self.records.saturating_add(1);
        let unix_s = clock.records_time(moment).map_or(0, |time| time.seconds);
        let machines = services.listed_machines();
        let record = services.identity.sign_record(RecordContents {
            number: self.records,
            expires_unix_s: unix_s.saturating_add(lifetime.as_secs()),
            epoch: services.endpoint.epoch_to_publish(moment.now),
            addresses: services.config.addresses.clone(),
            machines: machines.clone(),
            succession: services.ownership.kept.as_ref().map(|kept| kept.succession.clone()),
        })?;
        let usual = services.config.record_lifetime;
        let fresh_until = moment.now + usual / 3;
        let signed = Signed { record: record.clone(), machines, fresh_until };
        self.signed = (lifetime <= usual.max(SHOWN_LASTS_MAX)).then_some(signed);
        Some(record)
    }

    /// The number of the record that was signed last.
    pub(crate) fn sequence<F>(&self, services: &Services<F>) -> u64 {
        services.identity.sequence(self.records)
    }

    /// Takes a record that a device showed in a session of its own, with the key `machine`, which proves that
    /// it is fresh whatever the clocks say. Returns whether it is that device's, and this owner's.
    #[cfg(feature = "discovery")]
    pub(crate) fn learn_from_itself(
        &mut self,
        revoked: &Revocations,
        found: Found,
        machine: &PublicKey,
    ) -> bool {
        let Ok(opened) = tenure_directory::open_whenever(&found.record) else { return false };
        if opened.device_machine != *machine {
            return false;
        }
        let seen_at = found.seen_at.clone();
        self.learn(revoked, found, UnixTime { seconds: opened.expires_unix_s });
        let known = self.last_record(&Query::Device(opened.enrolment.device));
        known.is_some_and(|entry| {
            entry.record.device_machine == *machine && entry.seen_at == seen_at
        })
    }

    /// The keys of all machines in records that are known.
    #[cfg(feature = "discovery")]
    pub(crate) fn machines(&self) -> impl Iterator<Item = PublicKey> {
        self.table.entries().flat_map(|entry| entry.record.machines.iter().map(|(_, key)| *key))
    }

    /// Takes a record that the directory found, if it proves itself.
    pub(crate) fn learn(&mut self, revoked: &Revocations, found: Found, time: UnixTime) {
        self.learn_beside(revoked, found, time, &[]);
    }

    /// As [`Self::learn`], while machines are `in_use`: the records of their devices make no room.
    pub(crate) fn learn_beside(
        &mut self,
        revoked: &Revocations,
        found: Found,
        time: UnixTime,
        in_use: &[PublicKey],
    ) {
        let Found { record, seen_at } = found;
        let Some(claimed) = tenure_directory::claims(&record) else { return };
        if revoked.has_device(&claimed.enrolment.device_key) {
            return;
        }
        let table = &mut self.table;
        let taken = table.accept(record.clone(), seen_at.clone(), time.seconds);
        if taken == Err(Refusal::Full) {
            let is_in_use = |entry: &Entry| {
                entry.record.machines.iter().any(|(_, machine)| in_use.contains(machine))
            };
            let oldest = table.entries().min_by_key(|it| (is_in_use(it), it.record.expires_unix_s));
            if let Some(device) = oldest.map(|entry| entry.record.enrolment.device.clone()) {
                table.forget(&device);
            }
            let _ = table.accept(record.clone(), seen_at, time.seconds);
        }
        self.note_learnt(&record, claimed.enrolment.device, time.seconds);
    }
}

#[cfg(test)]
mod tests {
    use tenure_crypto::{Seed, SigningKey};
    use tenure_directory::{enrol, seal};
    use tenure_hal::simulated::{Sequence, socket_at};
    use tenure_wire::datagram::Epoch;
    use tenure_wire::directory::{DeviceRecord, Enrolment};
    use tenure_wire::{Address, PublicKey};

    use super::*;
    use crate::config::Owner;

    const NOW: u64 = 1_800_000_000;
    const DAY_S: u64 = 22 * 60 * 60;

    fn found(sequence: u64, expires_unix_s: u64) -> Found {
        let (owner, seed) = (SigningKey::from_bytes(&[7; 32]), Seed::from_bytes(&[9; 32]));
        let device_key = seed.device_signing_key().verifying_key();
        let device = "barn".parse().expect("a name");
        let enrolment = Enrolment { device, device_key, number: 1 };
        let record = DeviceRecord {
            owner: owner.verifying_key(),
            enrolment_signature: enrol(&owner, &enrolment),
            enrolment,
            sequence,
            expires_unix_s,
            epoch: Epoch([1; 8]),
            addresses: Vec::new(),
            device_machine: seed.device_secret().public_key(),
            machines: Vec::new(),
            succession: None,
        };
        let record = seal(&seed.device_signing_key(), &record);
        Found { record, seen_at: Address::Udp(socket_at(1)) }
    }

    fn directory() -> Directory {
        let verifying_key = SigningKey::from_bytes(&[7; 32]).verifying_key();
        let owner = Owner { verifying_key, machine: PublicKey([1; 32]) };
        Directory::new(&Config::new("attic".parse().expect("a name"), owner))
    }

    /// Whether a record of the barn counts so many seconds after [`NOW`] without a look at the hub.
    fn counts(directory: &Directory, after_s: u64) -> bool {
        let mut entropy = Sequence(1);
        let unix_time = Some(UnixTime { seconds: NOW + after_s });
        let moment = Moment { now: Instant::BOOT, unix_time, entropy: &mut entropy };
        let barn = Query::Device("barn".parse().expect("a name"));
        directory.record(&Clock::new(), &moment, &barn).is_some()
    }

    fn learn(directory: &mut Directory, found: Found, after_s: u64) {
        let time = UnixTime { seconds: NOW + after_s };
        directory.learn(&Revocations::default(), found, time);
    }

    #[test]
    fn record_that_lasts_for_long_is_asked_for_again_after_a_minute_and_is_kept_meanwhile() {
        let mut directory = directory();
        learn(&mut directory, found(1, NOW + DAY_S), 0);
        assert_eq!([0, 60, 61].map(|at| counts(&directory, at)), [true, true, false]);
        let barn = Query::Device("barn".parse().expect("a name"));
        assert!(directory.last_record(&barn).is_some(), "for when the hub is silent");
        // The hub has the same one, an older one, a newer one.
        learn(&mut directory, found(1, NOW + DAY_S), 100);
        assert_eq!([160, 161].map(|at| counts(&directory, at)), [true, false]);
        learn(&mut directory, found(0, NOW + DAY_S), 200);
        assert!(!counts(&directory, 200));
        learn(&mut directory, found(2, NOW + DAY_S), 300);
        assert_eq!([360, 361].map(|at| counts(&directory, at)), [true, false]);
        assert_eq!(directory.learnt.len(), 1);
    }

    #[test]
    fn record_that_ends_soon_counts_until_then() {
        let mut directory = directory();
        learn(&mut directory, found(1, NOW + 900), 0);
        assert_eq!([0, 600, 900, 901].map(|at| counts(&directory, at)), [true, true, true, false]);
        assert!(directory.learnt.is_empty());
    }
}
