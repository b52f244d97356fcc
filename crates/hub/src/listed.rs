//! The listed devices, with the orders by which they are found: by machine, by their own machine, by owner, by host, by
//! the end of their records, by when they are overdue, and by their place in the list of all machines.
//!
//! Invariants:
//! - Each order has what the table has; the table is changed in [`Listed::put`] and [`Listed::forget`] alone.
//! - A question takes steps by the logarithm of the number of devices, whatever others list: it looks at no device that
//!   isn't in its answer, but for those whose records ended since the question before.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use tenure_crypto::machine_id;
use tenure_directory::{Entry, LIFETIME_S_MAX, Table};
use tenure_wire::directory::{DeviceRecord, ListedMachine, Query, Refusal, SignedRecord};
use tenure_wire::{Address, MachineId, Name, PublicKey, VerifyingKey};

use crate::admission::{Host, host_of};
use crate::lives::{Life, Lives};
use crate::ranks::Ranks;
use crate::storage::{Heard, Left};

/// How long a device that is overdue counts as one, in seconds; and how soon the others have to be, that it is compared with.
const DUE_WITHIN_S: u64 = 60;

/// How many devices were heard in time. A device renews its record, or touches, in a third of its life, and is overdue after
/// half of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewals {
    /// The devices that would be overdue within a minute, if they weren't heard again.
    pub in_time: usize,
    /// Those that are overdue since a minute at the most.
    pub overdue: usize,
    /// All that are listed.
    pub listed: usize,
}

/// The table of devices and its orders.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    table: Table,
    /// How long those are in force that touch.
    lives: Lives,
    by_device_machine: Groups<PublicKey>,
    by_end: Groups<u64>,
    /// When devices are overdue that were heard since the hub's start, and of each device when that is.
    by_due: Groups<u64>,
    due: BTreeMap<Name, u64>,
    of_owner: Counts<VerifyingKey>,
    of_host: Counts<Host>,
    of_network: Counts<Host>,
    /// The time at which a record had to be in force to be in the two orders below, in seconds since 1970 UTC.
    at_unix_s: u64,
    holders: Groups<(MachineId, VerifyingKey)>,
    ranks: Ranks,
    /// The devices that were looked at one after the other.
    #[cfg(test)]
    steps: core::cell::Cell<usize>,
}

/// A device as it was before a change.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    pub(crate) entry: Entry,
    /// Its life, if it touched.
    life: Option<Life>,
}

/// The part of a device that the orders hold.
struct Place {
    owner: VerifyingKey,
    device_machine: PublicKey,
    host: Host,
    /// The end of its record, or of its life if that is sooner.
    ends_unix_s: u64,
    ids: Vec<MachineId>,
}

impl Listed {
    /// No devices yet; `secret` is the hub's alone.
    pub(crate) fn new(owners: Vec<VerifyingKey>, devices_max: usize, secret: [u8; 32]) -> Self {
        Self {
            table: Table::new(owners, devices_max),
            lives: Lives::default(),
            by_device_machine: Groups::default(),
            by_end: Groups::default(),
            by_due: Groups::default(),
            due: BTreeMap::new(),
            of_owner: Counts::default(),
            of_host: Counts::default(),
            of_network: Counts::default(),
            at_unix_s: 0,
            holders: Groups::default(),
            ranks: Ranks::new(secret),
            #[cfg(test)]
            steps: core::cell::Cell::new(0),
        }
    }

    /// The table, to be asked about one device.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The device of that name, whether its record is in force or not.
    pub(crate) fn device(&self, name: &Name) -> Option<&Entry> {
        self.table.device(name)
    }

    /// The device of that machine of its own: of one that had other names before, the record that ends last.
    pub(crate) fn of_device_machine(&self, key: &PublicKey) -> Option<&Entry> {
        let entries = self.by_device_machine.of(*key).filter_map(|name| self.device(name));
        entries.max_by_key(|entry| entry.record.expires_unix_s)
    }

    /// As [`Table::restore`].
    pub(crate) fn restore(
        &mut self,
        signed: SignedRecord,
        seen_at: Address,
    ) -> Result<(), Refusal> {
        let record = tenure_directory::open_whenever(&signed)?;
        let name = record.enrolment.device.clone();
        self.put(record, signed, seen_at);
        self.live(&name, None, 0);
        Ok(())
    }

    /// Puts a record that was opened and assessed in its place.
    pub(crate) fn put(&mut self, record: DeviceRecord, signed: SignedRecord, seen_at: Address) {
        let name = record.enrolment.device.clone();
        let before = self.place(&name);
        self.table.put(record, signed, seen_at);
        let now = self.place(&name);
        self.order(&name, before.as_ref(), now.as_ref());
    }

    /// Takes note of how long a device may be silent whose record was put at that moment; `None` for one that doesn't touch.
    pub(crate) fn live(&mut self, name: &Name, life_s: Option<u32>, unix_s: u64) {
        let before = self.place(name);
        match life_s {
            Some(life_s) => self.lives.begin(name, life_s, unix_s),
            None => self.lives.forget(name),
        }
        let now = self.place(name);
        self.order(name, before.as_ref(), now.as_ref());
    }

    /// Takes up the life of a device as it was left in the storage, unless its record is over sooner anyway.
    pub(crate) fn take_up(&mut self, left: &Left, unix_s: u64) {
        let name = &left.device;
        let Some(entry) = self.device(name) else { return };
        if entry.record.expires_unix_s <= left.ends_unix_s {
            return;
        }
        let before = self.place(name);
        self.lives.take_up(left, unix_s);
        let now = self.place(name);
        self.order(name, before.as_ref(), now.as_ref());
    }

    /// The device of that name as it is now, to be put back.
    pub(crate) fn former(&self, name: &Name) -> Option<Former> {
        let entry = self.device(name)?.clone();
        Some(Former { entry, life: self.lives.of(name) })
    }

    /// Has a device be as it was before.
    pub(crate) fn put_back(&mut self, Former { entry, life }: Former) {
        let name = entry.record.enrolment.device.clone();
        self.put(entry.record, entry.signed, entry.seen_at);
        let before = self.place(&name);
        self.lives.put_back(&name, life);
        let now = self.place(&name);
        self.order(&name, before.as_ref(), now.as_ref());
    }

    /// Forgets a device.
    pub(crate) fn forget(&mut self, name: &Name) {
        let before = self.place(name);
        self.table.forget(name);
        self.lives.forget(name);
        self.order(name, before.as_ref(), None);
        if let Some(due) = self.due.remove(name) {
            self.by_due.remove(due, name);
        }
    }

    /// Takes note that a device was heard at that moment, in seconds since 1970 UTC.
    pub(crate) fn hear(&mut self, name: &Name, unix_s: u64) {
        let Some(entry) = self.device(name) else { return };
        let ends_unix_s = self.end_of(entry);
        let life_s = ends_unix_s.saturating_sub(unix_s).min(LIFETIME_S_MAX);
        self.expect(name, unix_s.saturating_add(life_s / 2));
    }

    /// Takes note that a device that touches was heard at that moment, in memory alone; `false` if it doesn't touch.
    pub(crate) fn touch(&mut self, name: &Name, unix_s: u64) -> bool {
        let Some(entry) = self.device(name) else { return false };
        let last = entry.record.expires_unix_s;
        let Some((before, now)) = self.lives.hear(name, unix_s) else { return false };
        let (before, now) = (before.min(last), now.min(last));
        if before != now {
            self.by_end.remove(before, name);
            self.by_end.insert(now, name);
        }
        let [was_shown, is_shown] = [before, now].map(|end| lasts(end, self.at_unix_s));
        if was_shown != is_shown
            && let Some(place) = self.place(name)
        {
            self.show(name, &place, is_shown);
        }
        self.hear(name, unix_s);
        true
    }

    /// The devices that touched and of which that is to be stored now, in seconds since 1970 UTC.
    pub(crate) fn heard(&mut self, unix_s: u64) -> Vec<Heard> {
        self.lives.due(unix_s)
    }

    /// The devices that touched and of which that isn't stored yet.
    pub(crate) fn unstored(&self) -> Vec<Heard> {
        self.lives.unstored()
    }

    /// Takes note of whether that is stored.
    pub(crate) fn stored(&mut self, heard: &[Heard], is_stored: bool) {
        self.lives.stored(heard, is_stored);
    }

    /// Whether a device touches here.
    pub(crate) fn touches(&self, name: &Name) -> bool {
        self.lives.end(name).is_some()
    }

    /// Until when a device is in force, unless it is heard again.
    pub(crate) fn end_of(&self, entry: &Entry) -> u64 {
        let life = self.lives.end(&entry.record.enrolment.device);
        life.map_or(entry.record.expires_unix_s, |end| end.min(entry.record.expires_unix_s))
    }

    /// Whether a device's record has not expired, and the device isn't silent.
    pub(crate) fn is_in_force(&self, entry: &Entry, unix_s: u64) -> bool {
        entry.is_in_force(unix_s) && self.end_of(entry) >= unix_s
    }

    /// Takes note that a device's record was refused at that moment, because it isn't good by the hub's clock: nobody knows
    /// then whose clock is wrong, and the device is there.
    pub(crate) fn hear_in_vain(&mut self, name: &Name, unix_s: u64) {
        self.expect(name, unix_s.saturating_sub(1));
    }

    fn expect(&mut self, name: &Name, due: u64) {
        if let Some(before) = self.due.insert(name.clone(), due) {
            self.by_due.remove(before, name);
        }
        self.by_due.insert(due, name);
    }

    /// How many devices were heard in time.
    pub(crate) fn renewals(&self, unix_s: u64) -> Renewals {
        let count = |due: Range<u64>| self.by_due.within(due).count();
        Renewals {
            in_time: count(unix_s..unix_s.saturating_add(DUE_WITHIN_S)),
            overdue: count(unix_s.saturating_sub(DUE_WITHIN_S)..unix_s),
            listed: self.table.count(),
        }
    }

    /// The device that `query` asks for, if its record is in force, for the device whose own machine is `asking`.
    /// Anybody can list anybody's machine as its own, which proves nothing: where several do, the device of the same
    /// owner as the asking one's is meant, because the asking one trusts no other.
    pub(crate) fn find_for(
        &mut self,
        asking: &PublicKey,
        query: &Query,
        unix_s: u64,
    ) -> Option<&Entry> {
        self.go_to(unix_s);
        let id = match query {
            Query::Device(name) => {
                return self.device(name).filter(|entry| self.is_in_force(entry, unix_s));
            }
            Query::Id(id) => *id,
            Query::Key(key) => machine_id(key),
        };
        let asking = self.of_device_machine(asking);
        let owner = asking.map(|entry| entry.record.owner);
        let trusted = owner.and_then(|owner| self.holder(query, id, owner..=owner));
        trusted.or_else(|| self.holder(query, id, VerifyingKey([0; 32])..=VerifyingKey([255; 32])))
    }

    /// The first device of those owners that lists that machine. A key's id is shorter than the key.
    fn holder(
        &self,
        query: &Query,
        id: MachineId,
        owners: core::ops::RangeInclusive<VerifyingKey>,
    ) -> Option<&Entry> {
        let (first, last) = owners.into_inner();
        let names = self
            .holders
            .since((id, first))
            .take_while(|((of, owner), _)| *of == id && *owner <= last);
        let names = names.inspect(|_| self.step());
        names.filter_map(|(_, name)| self.device(name)).find(|entry| entry.holds(query))
    }

    /// So many machines of devices whose records are in force, by device and name, after the first `skip` of them; and
    /// how many there are in all.
    pub(crate) fn machines(
        &mut self,
        skip: usize,
        count: usize,
        unix_s: u64,
    ) -> (Vec<ListedMachine>, usize) {
        self.go_to(unix_s);
        let total = self.ranks.total();
        let Some((first, left)) = self.ranks.seek(skip) else { return (Vec::new(), total) };
        let names = self.ranks.from(first).inspect(|_| self.step());
        let machines = names.filter_map(|name| self.device(name)).flat_map(|entry| {
            entry.record.machines.iter().map(|(machine, key)| ListedMachine {
                machine: machine.clone(),
                device: entry.record.enrolment.device.clone(),
                key: *key,
            })
        });
        (machines.skip(left).take(count).collect(), total)
    }

    /// How many devices that owner has here, in force or not.
    pub(crate) fn count_of_owner(&self, owner: &VerifyingKey) -> usize {
        self.of_owner.of(owner)
    }

    /// How many devices were last heard from the host of that address.
    pub(crate) fn count_of_host(&self, address: &Address) -> usize {
        self.of_host.of(&host_of(address))
    }

    /// How many devices were last heard from the network of that address.
    pub(crate) fn count_of_network(&self, address: &Address) -> usize {
        self.of_network.of(&host_of(address).network())
    }

    /// The devices that are in force no more since before that time.
    pub(crate) fn ended_before(&self, unix_s: u64) -> Vec<Entry> {
        let names = self.by_end.within(0..unix_s);
        names.inspect(|_| self.step()).filter_map(|name| self.device(name)).cloned().collect()
    }

    /// Brings the orders of what is in force to that time, by the records that end until then, and those that lasted too
    /// long before; or the other way round, if the clock went back.
    fn go_to(&mut self, unix_s: u64) {
        let before = mem::replace(&mut self.at_unix_s, unix_s);
        let (first, last) = (before.min(unix_s), before.max(unix_s));
        let beyond = |unix_s: u64| unix_s.saturating_add(LIFETIME_S_MAX).saturating_add(1);
        let over = self.by_end.within(first..last);
        let too_long = self.by_end.within(beyond(first)..beyond(last));
        let names: Vec<Name> = over.chain(too_long).cloned().collect();
        for name in names {
            self.step();
            if let Some(place) = self.place(&name) {
                self.show(&name, &place, place.is_in_force(unix_s));
            }
        }
    }

    /// Brings a device from one place in all orders to another.
    fn order(&mut self, name: &Name, before: Option<&Place>, now: Option<&Place>) {
        let is_shown = |place: &&Place| place.is_in_force(self.at_unix_s);
        let shown = [before, now].map(|place| place.filter(is_shown));
        let [was_shown, is_shown] = shown;
        let is_same = was_shown.map(Place::shown) == is_shown.map(Place::shown);
        if let Some(before) = before {
            self.by_device_machine.remove(before.device_machine, name);
            self.by_end.remove(before.ends_unix_s, name);
            self.of_owner.less(before.owner);
            self.of_host.less(before.host.clone());
            self.of_network.less(before.host.network());
        }
        if let Some(now) = now {
            self.by_device_machine.insert(now.device_machine, name);
            self.by_end.insert(now.ends_unix_s, name);
            self.of_owner.more(now.owner);
            self.of_host.more(now.host.clone());
            self.of_network.more(now.host.network());
        }
        if is_same {
            return;
        }
        if let Some(before) = was_shown {
            self.show(name, before, false);
        }
        if let Some(now) = is_shown {
            self.show(name, now, true);
        }
    }

    /// Puts a device into the orders of what is in force, or takes it out of them.
    fn show(&mut self, name: &Name, place: &Place, is_in_force: bool) {
        for id in &place.ids {
            let key = (*id, place.owner);
            match is_in_force {
                true => self.holders.insert(key, name),
                false => self.holders.remove(key, name),
            }
        }
        self.ranks.set(name, if is_in_force { place.ids.len() } else { 0 });
    }

    fn place(&self, name: &Name) -> Option<Place> {
        self.device(name).map(|entry| Place::of(entry, self.end_of(entry)))
    }

    fn step(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
    }
}

impl Place {
    fn of(entry: &Entry, ends_unix_s: u64) -> Self {
        let record = &entry.record;
        Self {
            owner: record.owner,
            device_machine: record.device_machine,
            host: host_of(&entry.seen_at),
            ends_unix_s,
            ids: entry.ids().to_vec(),
        }
    }

    /// As [`Listed::is_in_force`].
    fn is_in_force(&self, unix_s: u64) -> bool {
        lasts(self.ends_unix_s, unix_s)
    }

    /// The part of it that the orders of those in force hold.
    fn shown(&self) -> (VerifyingKey, &[MachineId]) {
        (self.owner, &self.ids)
    }
}

/// Whether what ends then has not ended. What lasts longer than any record may was taken by a clock that was ahead.
fn lasts(ends_unix_s: u64, unix_s: u64) -> bool {
    (unix_s..=unix_s.saturating_add(LIFETIME_S_MAX)).contains(&ends_unix_s)
}

/// The names of devices by a key, which several may share.
#[derive(Clone, Debug)]
pub(crate) struct Groups<K>(BTreeSet<(K, Option<Name>)>);

impl<K: Ord + Copy> Groups<K> {
    pub(crate) fn insert(&mut self, key: K, name: &Name) {
        self.0.insert((key, Some(name.clone())));
    }

    pub(crate) fn remove(&mut self, key: K, name: &Name) {
        self.0.remove(&(key, Some(name.clone())));
    }

    /// The names of a key, in order.
    fn of(&self, key: K) -> impl Iterator<Item = &Name> {
        self.since(key).take_while(move |(one, _)| **one == key).map(|(_, name)| name)
    }

    /// The names of the keys in that range.
    pub(crate) fn within(&self, keys: Range<K>) -> impl Iterator<Item = &Name> {
        self.since(keys.start).take_while(move |(one, _)| **one < keys.end).map(|(_, name)| name)
    }

    /// All from that key on.
    fn since(&self, key: K) -> impl Iterator<Item = (&K, &Name)> {
        self.0.range((key, None)..).filter_map(|(key, name)| Some((key, name.as_ref()?)))
    }
}

impl<K> Default for Groups<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

/// How many devices a key has.
#[derive(Clone, Debug)]
struct Counts<K>(BTreeMap<K, usize>);

impl<K: Ord> Counts<K> {
    fn more(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    fn less(&mut self, key: K) {
        let count = self.0.get_mut(&key).map(|count| {
            *count -= 1;
            *count
        });
        if count == Some(0) {
            self.0.remove(&key);
        }
    }

    fn of(&self, key: &K) -> usize {
        self.0.get(key).copied().unwrap_or(0)
    }
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests;
