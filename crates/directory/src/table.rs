//! The table of records: who is known, under which name, since when.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tenure_crypto::machine_id;
use tenure_wire::directory::{DeviceRecord, Found, Query, Refusal, SignedRecord};
use tenure_wire::ownership::{Succession, SuccessionKind};
use tenure_wire::{Address, MachineId, Name, VerifyingKey};

use crate::record::{LIFETIME_S_MAX, open, open_whenever};
use crate::succession::read_succession;

/// A device as the table knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its last record, checked.
    pub record: DeviceRecord,
    /// The same as it was signed, to be passed on.
    pub signed: SignedRecord,
    /// Where it was last heard from.
    pub seen_at: Address,
    /// The ids of the record's machines, in its order, so that a search needs no digests.
    ids: Vec<MachineId>,
}

/// Devices by name. Expired ones are no longer found, and still keep their name and their numbers.
#[derive(Clone, Debug)]
pub struct Table {
    /// The only owners whose devices are taken; empty means any.
    owners: Vec<VerifyingKey>,
    devices_max: usize,
    devices: BTreeMap<Name, Entry>,
}

impl Table {
    /// An empty table for at most `devices_max` devices of `owners` (empty: of anybody).
    pub fn new(owners: Vec<VerifyingKey>, devices_max: usize) -> Self {
        Self { owners, devices_max, devices: BTreeMap::new() }
    }

    /// Takes a record that came from `seen_at`; gives whether it is new, `false` if the same one
    /// was known.
    ///
    /// # Errors
    /// Why the record isn't taken; the table is unchanged then.
    pub fn accept(
        &mut self,
        signed: SignedRecord,
        seen_at: Address,
        now_unix_s: u64,
    ) -> Result<bool, Refusal> {
        let record = open(&signed, now_unix_s)?;
        let new = self.assess(&record)?;
        self.put(record, signed, seen_at);
        Ok(new)
    }

    /// Whether a record that was [opened](crate::open) is new; `false` if the same one is known.
    ///
    /// # Errors
    /// Why it can't be taken.
    pub fn assess(&self, record: &DeviceRecord) -> Result<bool, Refusal> {
        let known = self.devices.get(&record.enrolment.device);
        if !self.trusts(record, known) {
            return Err(Refusal::Owner);
        }
        match known {
            Some(known) if known.record == *record => Ok(false),
            Some(known) => follows(&known.record, record).map(|()| true),
            None if self.devices.len() >= self.devices_max => Err(Refusal::Full),
            None => Ok(true),
        }
    }

    /// Whether the record is of an owner whose devices are taken: one of those named, or the same owner with
    /// new keys.
    fn trusts(&self, record: &DeviceRecord, known: Option<&Entry>) -> bool {
        if self.owners.is_empty() || self.owners.contains(&record.owner) {
            return true;
        }
        let changed = read(record).filter(|succession| succession.kind == SuccessionKind::Change);
        changed.is_some_and(|Succession { by, .. }| {
            self.owners.contains(&by) || known.is_some_and(|entry| entry.record.owner == by)
        })
    }

    /// Takes records of the devices of `owners` alone from now on, and forgets all others.
    pub fn trust_only(&mut self, owners: Vec<VerifyingKey>) {
        self.devices.retain(|_, entry| owners.contains(&entry.record.owner));
        self.owners = owners;
    }

    /// Puts a record that was opened and assessed in its place.
    pub fn put(&mut self, record: DeviceRecord, signed: SignedRecord, seen_at: Address) {
        let ids = record.machines.iter().map(|(_, key)| machine_id(key)).collect();
        let device = record.enrolment.device.clone();
        self.devices.insert(device, Entry { record, signed, seen_at, ids });
    }

    /// Takes up a record that was accepted before, expired or not, so that its name and numbers
    /// are remembered.
    ///
    /// # Errors
    /// Why it isn't a record; the table is unchanged then.
    pub fn restore(&mut self, signed: SignedRecord, seen_at: Address) -> Result<(), Refusal> {
        let record = open_whenever(&signed)?;
        self.put(record, signed, seen_at);
        Ok(())
    }

    /// The device that `query` asks for, if its record is in force.
    pub fn find(&self, query: &Query, now_unix_s: u64) -> Option<&Entry> {
        if let Query::Device(name) = query {
            return self.devices.get(name).filter(|entry| entry.is_in_force(now_unix_s));
        }
        let mut entries = self.devices.values();
        entries.find(|entry| entry.is_in_force(now_unix_s) && entry.holds(query))
    }

    /// The device that `query` asks for, whether its record is in force or not; of several that hold a
    /// machine, the one whose record lasts longest.
    pub fn find_whenever(&self, query: &Query) -> Option<&Entry> {
        if let Query::Device(name) = query {
            return self.devices.get(name);
        }
        let holders = self.devices.values().filter(|entry| entry.holds(query));
        holders.max_by_key(|entry| entry.record.expires_unix_s)
    }

    /// The device of that name, whether its record is in force or not.
    pub fn device(&self, name: &Name) -> Option<&Entry> {
        self.devices.get(name)
    }

    /// How many devices it holds, in force or not.
    pub fn count(&self) -> usize {
        self.devices.len()
    }

    /// Every device, in force or not, by name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.devices.values()
    }

    /// Forgets a device's record, so that the next query goes to whoever has a newer one.
    pub fn forget(&mut self, device: &Name) {
        self.devices.remove(device);
    }
}

impl Entry {
    /// Whether the record has not expired. One that lasts longer than any may was taken by a clock that was ahead.
    pub fn is_in_force(&self, now_unix_s: u64) -> bool {
        let lasts = now_unix_s..=now_unix_s.saturating_add(LIFETIME_S_MAX);
        lasts.contains(&self.record.expires_unix_s)
    }

    /// The ids of its machines, in the order of the record.
    pub fn ids(&self) -> &[MachineId] {
        &self.ids
    }

    /// Whether the machine that `query` asks for, or the device itself, is listed here.
    pub fn holds(&self, query: &Query) -> bool {
        match query {
            Query::Device(name) => self.record.enrolment.device == *name,
            Query::Id(id) => self.ids.contains(id),
            Query::Key(key) => self.record.machines.iter().any(|(_, held)| held == key),
        }
    }

    /// The entry as an answer to a query.
    pub fn found(&self) -> Found {
        Found { record: self.signed.clone(), seen_at: self.seen_at.clone() }
    }
}

/// Whether `new` may take the place of `known` under the same name.
fn follows(known: &DeviceRecord, new: &DeviceRecord) -> Result<(), Refusal> {
    let same_device = known.enrolment.device_key == new.enrolment.device_key;
    if known.owner != new.owner {
        let succeeds = read(new).is_some_and(|succession| succession.by == known.owner);
        return match (succeeds && same_device, new.sequence > known.sequence) {
            (false, _) => Err(Refusal::NameTaken),
            (true, true) => Ok(()),
            (true, false) => Err(Refusal::Stale),
        };
    }
    let order = new.enrolment.number.cmp(&known.enrolment.number);
    let newer = match order {
        core::cmp::Ordering::Greater => !same_device || new.sequence > known.sequence,
        core::cmp::Ordering::Equal => same_device && new.sequence > known.sequence,
        core::cmp::Ordering::Less => false,
    };
    if newer { Ok(()) } else { Err(Refusal::Stale) }
}

/// The succession that a record shows; it was checked when the record was [opened](crate::open).
fn read(record: &DeviceRecord) -> Option<Succession> {
    read_succession(record.succession.as_ref()?).ok()
}

#[cfg(test)]
mod tests;
