//! A hub among devices, some of which lie.

#[path = "registering/limits.rs"]
mod limits;
#[path = "registering/renewals.rs"]
mod renewals;
#[path = "registering/touches.rs"]
mod touches;

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, machine_id};
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::{RamFlash, Sequence, socket_at};
use tenure_hal::{Entropy, FlashGeometry, Instant, UnixTime};
use tenure_hub::{
    Accepted, Answered, Changes, Config, Failure, FlashStorage, Heard, Hub, Kept, Left, Moment,
    Notice, Renewal, ServiceCall, Storage, StorageError, Stored,
};
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::directory::{
    DeviceRecord, Enrolment, Found, ListFrom, Listing, Query, Refusal, Registered, SignedRecord,
    function,
};
use tenure_wire::{Address, Name, PublicKey};

const NOW: u64 = 1_800_000_000;
const HUB: Address = Address::Udp(socket_at(0));
const FLASH: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 64, program_bytes: 4 };

struct World {
    now: Instant,
    unix_s: u64,
    hub: Hub<Faulty>,
    entropy: Sequence,
}

/// A storage whose commits can be made to fail.
struct Faulty {
    flash: FlashStorage<RamFlash>,
    commits: usize,
    fails: bool,
    is_away: bool,
    /// The devices that their owner has revoked.
    revoked: Vec<Name>,
    /// Those that may be forgotten, where it knows when a hub heard.
    forgettable: Option<Vec<Name>>,
    ticks: usize,
    /// Whether it writes something of its own then.
    tick_writes: bool,
    /// The devices as they stand there, where other hubs write there, too.
    shared: Option<BTreeMap<Name, Kept>>,
    /// Those that they changed since that was asked last.
    changes: Changes,
    deleted: Vec<Name>,
    /// How many commits more another hub is in the way of.
    conflicts: usize,
    /// Whether it takes renewals at once, which it took so far, and how many records were put.
    renews: bool,
    /// Whether calls are answered beside the hub; those that wait, and what comes of them.
    hands_over: bool,
    waiting: Vec<u64>,
    answers: Vec<(u64, Answered)>,
    renewed: Vec<Vec<Name>>,
    puts: usize,
    /// How often a device was asked for or written.
    statements: usize,
    /// The devices that were heard, as they were stored at once; and those of an earlier run.
    heard: Vec<Vec<Heard>>,
    left: Vec<Left>,
    /// Until when devices are in force that others hear, if they do.
    ends: Option<u64>,
    has_work: bool,
}

impl Faulty {
    /// One that fails in nothing, and holds nothing.
    fn blank(entropy: &mut dyn Entropy) -> Self {
        Self {
            flash: FlashStorage::open(RamFlash::new(FLASH), entropy).unwrap(),
            commits: 0,
            fails: false,
            is_away: false,
            revoked: Vec::new(),
            forgettable: None,
            ticks: 0,
            tick_writes: false,
            shared: None,
            changes: Changes::default(),
            deleted: Vec::new(),
            conflicts: 0,
            renews: false,
            hands_over: false,
            waiting: Vec::new(),
            answers: Vec::new(),
            renewed: Vec::new(),
            puts: 0,
            statements: 0,
            heard: Vec::new(),
            left: Vec::new(),
            ends: None,
            has_work: false,
        }
    }
}

impl Storage for Faulty {
    fn seed(&mut self) -> Result<Option<[u8; 32]>, StorageError> {
        self.flash.seed()
    }

    fn set_seed(&mut self, seed: &[u8; 32]) -> Result<(), StorageError> {
        self.flash.set_seed(seed)
    }

    fn records(&mut self) -> Result<Vec<Kept>, StorageError> {
        self.flash.records()
    }

    fn put(&mut self, accepted: &Accepted<'_>) -> Result<(), StorageError> {
        self.puts += 1;
        self.statements += 1;
        if let Some(shared) = &mut self.shared {
            shared.insert(accepted.record.enrolment.device.clone(), accepted.kept.clone());
        }
        self.flash.put(accepted)
    }

    fn renews(&self) -> bool {
        self.renews
    }

    fn hand_over(&mut self, number: u64, _: &ServiceCall<'_>) -> bool {
        self.waiting.extend(self.hands_over.then_some(number));
        self.hands_over
    }

    fn answers(&mut self) -> Vec<(u64, Answered)> {
        std::mem::take(&mut self.answers)
    }

    fn renew(&mut self, renewals: &[Renewal], _: u64) -> Result<Vec<bool>, StorageError> {
        match (self.fails, self.is_away) {
            (false, false) => {}
            (true, _) => return Err(StorageError::new("no room")),
            (false, true) => return Err(StorageError::away("it starts")),
        }
        self.statements += 1;
        self.renewed.push(renewals.iter().map(|renewal| renewal.device.clone()).collect());
        let (shared, revoked) = (self.shared.as_mut().unwrap(), &self.revoked);
        let each = renewals.iter().map(|Renewal { device, before, kept, .. }| {
            let is_kept = shared.get(device) == Some(before) && !revoked.contains(device);
            if is_kept {
                shared.insert(device.clone(), kept.clone());
            }
            is_kept
        });
        Ok(each.collect())
    }

    fn heard(&mut self, heard: &[Heard]) -> Result<(), StorageError> {
        self.statements += 1;
        self.heard.push(heard.to_vec());
        Ok(())
    }

    fn left(&mut self) -> Result<Vec<Left>, StorageError> {
        Ok(self.left.clone())
    }

    fn ends(&mut self, _: &Name) -> Result<Option<u64>, StorageError> {
        self.statements += 1;
        Ok(self.ends)
    }

    fn may_have_work(&self) -> bool {
        self.has_work
    }

    fn delete(&mut self, device: &Name) -> Result<(), StorageError> {
        self.statements += 1;
        self.deleted.push(device.clone());
        self.flash.delete(device)
    }

    fn forgettable(&mut self, _: u64, _: u64) -> Result<Option<Vec<Name>>, StorageError> {
        Ok(self.forgettable.clone())
    }

    fn stored(&mut self, device: &Name) -> Result<Stored, StorageError> {
        self.statements += 1;
        let shared = self.shared.as_ref();
        Ok(shared.map_or(Stored::AsPut, |shared| Stored::Now(shared.get(device).cloned())))
    }

    fn changes(&mut self) -> Result<Changes, StorageError> {
        Ok(std::mem::take(&mut self.changes))
    }

    fn is_revoked(&mut self, record: &DeviceRecord) -> Result<bool, StorageError> {
        self.statements += 1;
        Ok(self.revoked.contains(&record.enrolment.device))
    }

    fn forgotten(&mut self) -> Result<Vec<Name>, StorageError> {
        Ok(self.revoked.clone())
    }

    fn tick(&mut self, _: u64) -> Result<bool, StorageError> {
        self.ticks += 1;
        Ok(self.tick_writes)
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        self.commits += 1;
        if self.conflicts > 0 {
            self.conflicts -= 1;
            let reason = "another hub wrote".into();
            return Err(StorageError { reason, failure: Failure::Conflict });
        }
        match (self.fails, self.is_away) {
            (false, false) => Ok(()),
            (true, _) => Err(StorageError::new("no room")),
            (false, true) => Err(StorageError::away("it starts")),
        }
    }
}

/// A device as the hub sees it: keys, and an endpoint.
struct Device {
    owner: SigningKey,
    seed: Seed,
    endpoint: Endpoint<Address>,
    address: Address,
    record: DeviceRecord,
}

impl World {
    fn new(devices_max: usize) -> Self {
        Self::with(Config { devices_max, ..Config::default() })
    }

    fn with(config: Config) -> Self {
        let mut entropy = Sequence(1);
        let unix_time = UnixTime { seconds: NOW };
        let mut moment = Moment { now: Instant::BOOT, unix_time, entropy: &mut entropy };
        let storage = Faulty::blank(moment.entropy);
        let hub = Hub::open(config, storage, &mut moment).unwrap();
        Self { now: Instant::BOOT, unix_s: NOW, hub, entropy }
    }

    /// The hub ends, and begins anew with that configuration and what it stored.
    fn restart(&mut self, config: Config) {
        let blank = Faulty::blank(&mut self.entropy);
        let storage = std::mem::replace(self.hub.storage(), blank);
        let unix_time = UnixTime { seconds: self.unix_s };
        let mut moment = Moment { now: self.now, unix_time, entropy: &mut self.entropy };
        self.hub = Hub::open(config, storage, &mut moment).unwrap();
    }

    fn device(&mut self, owner: u8, number: u8, name: &str) -> Device {
        let owner = SigningKey::from_bytes(&[owner; 32]);
        let seed = Seed::from_bytes(&[number; 32]);
        let device_key = seed.device_signing_key().verifying_key();
        let enrolment = Enrolment { device: name.parse().unwrap(), device_key, number: 1 };
        let config = tenure_rpc::Config::default();
        let mut endpoint = Endpoint::new(config, self.now, &mut self.entropy).unwrap();
        endpoint.add_machine(seed.device_secret()).unwrap();
        let record = DeviceRecord {
            owner: owner.verifying_key(),
            enrolment_signature: enrol(&owner, &enrolment),
            enrolment,
            sequence: 1,
            expires_unix_s: NOW + 60,
            epoch: endpoint.epoch(),
            addresses: Vec::new(),
            device_machine: seed.device_secret().public_key(),
            machines: vec![("thermostat".parse().unwrap(), PublicKey([number; 32]))],
            succession: None,
        };
        let address = Address::Udp(socket_at(number.into()));
        Device { owner, seed, endpoint, address, record }
    }

    fn call(
        &mut self,
        device: &mut Device,
        name: &str,
        parameter: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, NoResult> {
        self.begin(device, name, parameter);
        let endpoint = &mut device.endpoint;
        loop {
            self.now = self.now + Duration::from_millis(5);
            let unix_time = UnixTime { seconds: self.unix_s };
            let mut moment = Moment { now: self.now, unix_time, entropy: &mut self.entropy };
            endpoint.poll(self.now, moment.entropy);
            while let Some((_, datagram)) = endpoint.transmit() {
                self.hub.receive(&mut moment, device.address.clone(), &datagram);
            }
            self.hub.poll(&mut moment);
            while let Some((to, datagram)) = self.hub.transmit() {
                if to == device.address {
                    endpoint.receive(self.now, moment.entropy, HUB, &datagram);
                }
            }
            while let Some(event) = endpoint.event() {
                if let Event::CallDone { result, .. } = event {
                    return result;
                }
            }
        }
    }

    /// Has a device call, as far as its own side.
    fn begin(&mut self, device: &mut Device, name: &str, parameter: Vec<u8>) {
        let call = OutgoingCall {
            function: name.to_string(),
            parameter: Some(parameter),
            deadline: self.now + Duration::from_secs(10),
            attempts: 5,
        };
        let own = machine_id(&device.seed.device_secret().public_key());
        let (endpoint, key) = (&mut device.endpoint, self.hub.key());
        endpoint.call(self.now, &mut self.entropy, &own, &key, HUB, None, call).unwrap();
        endpoint.poll(self.now, &mut self.entropy);
    }

    /// Carries what a device has to say to the hub, and what the hub says to that at once: it isn't polled.
    fn exchange(&mut self, device: &mut Device) {
        let unix_time = UnixTime { seconds: self.unix_s };
        let mut moment = Moment { now: self.now, unix_time, entropy: &mut self.entropy };
        device.endpoint.poll(self.now, moment.entropy);
        while let Some((_, datagram)) = device.endpoint.transmit() {
            self.hub.receive(&mut moment, device.address.clone(), &datagram);
        }
        while let Some((to, datagram)) = self.hub.transmit() {
            if to == device.address {
                device.endpoint.receive(self.now, moment.entropy, HUB, &datagram);
            }
        }
    }

    fn register(&mut self, device: &mut Device, signed: &SignedRecord) -> Registered {
        let parameter = postcard::to_allocvec(signed).unwrap();
        let answer = self.call(device, function::REGISTER, parameter).unwrap().unwrap();
        postcard::from_bytes(&answer).unwrap()
    }

    fn register_itself(&mut self, device: &mut Device) -> Registered {
        let signed = device.signed();
        self.register(device, &signed)
    }

    fn resolve(&mut self, device: &mut Device, query: &Query) -> Option<Found> {
        let parameter = postcard::to_allocvec(query).unwrap();
        let answer = self.call(device, function::RESOLVE, parameter).unwrap();
        answer.map(|bytes| postcard::from_bytes(&bytes).unwrap())
    }
}

impl Device {
    fn signed(&self) -> SignedRecord {
        seal(&self.seed.device_signing_key(), &self.record)
    }
}

#[test]
fn a_device_that_registers_is_found_by_others_where_it_was_heard() {
    let mut world = World::new(4);
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    let registered = world.register_itself(&mut attic);
    let (refusal, devices_max, takes_touches) = (None, None, true);
    assert_eq!(registered, Registered { refusal, unix_s: NOW, devices_max, takes_touches });
    let query = Query::Device("attic".parse().unwrap());
    let found = world.resolve(&mut cellar, &query).unwrap();
    assert_eq!((found.record, found.seen_at), (attic.signed(), attic.address.clone()));
    world.unix_s += 61;
    assert_eq!(world.resolve(&mut cellar, &query), None, "it has expired");
}

#[test]
fn nobody_registers_a_record_that_is_not_its_own() {
    let mut world = World::new(4);
    let attic = world.device(1, 10, "attic");
    let mut thief = world.device(2, 11, "thief");
    let refusal = world.register(&mut thief, &attic.signed()).refusal;
    assert_eq!(refusal, Some(Refusal::Sender), "so nobody can say where another device is");
}

#[test]
fn a_full_hub_refuses_newcomers_and_serves_those_it_knows() {
    let mut world = World::new(1);
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert_eq!(world.register_itself(&mut cellar).refusal, Some(Refusal::Full));
    attic.record.sequence = 2;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
}

#[test]
fn listed_devices_keep_their_sessions_among_strangers_and_the_hub_says_which_table_is_full() {
    let rpc = tenure_rpc::Config {
        handshakes_per_second: 1_000,
        handshakes_per_second_max: 4_000,
        callers_max: 32,
        accepted_initiations_max: 1_000,
        ..tenure_rpc::Config::default()
    };
    let most = rpc.sessions_max;
    let mut world = World::with(Config { rpc, ..Config::default() });
    let name = |number: u8| format!("device-{number}");
    let mut listed: Vec<Device> =
        (0..4).map(|number| world.device(1, 10 + number, &name(number))).collect();
    for device in &mut listed {
        assert_eq!(world.register_itself(device).refusal, None);
    }
    for number in 0..60 {
        let mut stranger = world.device(2, 100 + number, "stranger");
        // The second call shows that the stranger got the first answer.
        for _ in 0..2 {
            let found = world.resolve(&mut stranger, &Query::Device(name(1).parse().unwrap()));
            assert!(found.is_some(), "strangers are answered");
        }
    }
    for device in &mut listed {
        let before = world.now;
        device.record.sequence = 2;
        assert_eq!(world.register_itself(device).refusal, None);
        assert_eq!(world.now.since(before), Duration::from_millis(5), "over its old session");
    }
    let told = std::iter::from_fn(|| world.hub.notice());
    let full = told.filter_map(|notice| match notice {
        Notice::Full(table) => Some((table.table, table.most)),
        _ => None,
    });
    let full: Vec<_> = full.collect();
    assert!(full.contains(&("sessions", most)), "{full:?}");
    assert!(full.len() <= 3, "each table is named once a minute: {full:?}");
    let [sessions, .., devices] = world.hub.fullness();
    assert_eq!((sessions.used, sessions.times_full > 30), (most, true));
    assert_eq!((devices.used, devices.times_full), (4, 0));
}

#[test]
fn listed_device_whose_session_is_gone_does_not_wait_among_strangers_who_fill_their_queue() {
    let rpc = tenure_rpc::Config {
        handshakes_per_second: 2,
        handshakes_per_second_max: 8,
        ..tenure_rpc::Config::default()
    };
    let mut world = World::with(Config { rpc, ..Config::default() });
    let mut attic = world.device(1, 10, "attic");
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    world.now = world.now + Duration::from_secs(10);
    // More than wait there, each of a host of its own, and each shows its address; nobody is let in meanwhile.
    let query = postcard::to_allocvec(&Query::Device("attic".parse().unwrap())).unwrap();
    for number in 0..60 {
        let mut stranger = world.device(2, 100 + number, "stranger");
        world.begin(&mut stranger, function::RESOLVE, query.clone());
        for _ in 0..6 {
            world.exchange(&mut stranger);
            world.now = world.now + Duration::from_millis(300);
        }
    }
    let mut tables = world.hub.fullness().into_iter();
    let door = tables.find(|table| table.table == "handshakes").unwrap();
    assert!(door.times_full > 0, "their queue is full: {door:?}");
    // The device has started anew, and its host is known.
    let mut attic = world.device(1, 10, "attic");
    attic.record.sequence = 2;
    let before = world.now;
    assert_eq!(world.register_itself(&mut attic).refusal, None, "and nobody puts it off");
    let waited = world.now.since(before);
    assert!(waited < Duration::from_secs(1), "those of the queue take seconds: {waited:?}");
}

#[test]
fn what_the_storage_wrote_by_the_clock_is_committed_without_anybody_asking() {
    let mut world = World::new(8);
    for (writes, commits) in [(false, 0), (true, 1), (false, 0)] {
        world.hub.storage().tick_writes = writes;
        let before = world.hub.storage().commits;
        world.now = world.now + Duration::from_secs(5);
        let unix_time = UnixTime { seconds: world.unix_s };
        let mut moment = Moment { now: world.now, unix_time, entropy: &mut world.entropy };
        world.hub.poll(&mut moment);
        assert_eq!(world.hub.storage().commits - before, commits);
    }
}

#[test]
fn revoked_device_is_refused_and_found_no_more() {
    let mut world = World::new(4);
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    let query = Query::Device("attic".parse().unwrap());
    assert!(world.resolve(&mut cellar, &query).is_some());
    world.hub.storage().revoked = vec!["attic".parse().unwrap()];
    world.now = world.now + Duration::from_secs(3);
    attic.record.sequence = 2;
    assert_eq!(world.register_itself(&mut attic).refusal, Some(Refusal::Revoked));
    assert_eq!(world.resolve(&mut cellar, &query), None);
    assert!(world.hub.storage().ticks > 1, "the clock ticks");
    world.hub.storage().revoked.clear();
    assert_eq!(world.register_itself(&mut attic).refusal, None, "its owner took it back");
}

/// Whose clock is wrong nobody knows: the device is there, and isn't one that was heard in time.
#[test]
fn device_whose_record_is_refused_by_the_clock_counts_as_late_and_not_as_gone() {
    let mut world = World::new(4);
    let mut devices = ["attic", "barn"].map(|name| world.device(1, name.len() as u8, name));
    for device in &mut devices {
        assert_eq!(world.register_itself(device).refusal, None);
    }
    let seen = |world: &mut World| {
        let renewals = world.hub.renewals(world.unix_s);
        (renewals.in_time, renewals.overdue)
    };
    assert_eq!(seen(&mut world), (2, 0));
    world.unix_s += 400 * 24 * 60 * 60;
    assert_eq!(seen(&mut world), (0, 0));
    devices[0].record.sequence = 2;
    assert_eq!(world.register_itself(&mut devices[0]).refusal, Some(Refusal::Expired));
    assert_eq!(seen(&mut world), (0, 1));
    let mut stranger = world.device(2, 99, "attic");
    world.unix_s += 100;
    assert_eq!(world.register_itself(&mut stranger).refusal, Some(Refusal::Expired));
    assert_eq!(seen(&mut world), (0, 0), "a stranger says nothing for others");
}

#[test]
fn call_that_is_answered_beside_the_hub_keeps_nobody_waiting_and_is_replied_to_once_it_is() {
    let mut world = World::new(4);
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    world.hub.storage().hands_over = true;
    world.begin(&mut attic, "something", Vec::new());
    world.exchange(&mut attic);
    assert_eq!(world.hub.storage().waiting, [0]);
    let commits = world.hub.storage().commits;
    assert_eq!(world.register_itself(&mut cellar).refusal, None, "others are served meanwhile");
    assert_eq!(world.hub.storage().commits - commits, 1, "of the record");
    let soon = world.now + Duration::from_millis(5);
    assert!(world.hub.poll_at().is_some_and(|at| at <= soon), "it looks again");
    world.hub.storage().answers = vec![(7, Ok(None)), (0, Ok(Some(vec![5])))];
    let unix_time = UnixTime { seconds: world.unix_s };
    let mut moment = Moment { now: world.now, unix_time, entropy: &mut world.entropy };
    world.hub.poll(&mut moment);
    world.exchange(&mut attic);
    let done = std::iter::from_fn(|| attic.endpoint.event()).find_map(|event| match event {
        Event::CallDone { result, .. } => Some(result),
        _ => None,
    });
    assert_eq!(done, Some(Ok(Some(vec![5]))));
}

#[test]
fn stranger_with_owner_keys_made_on_the_spot_takes_its_hosts_share_and_no_more() {
    let config = Config { devices_max: 8, devices_per_host_max: 3, ..Config::default() };
    let mut world = World::with(config);
    for number in 0..8 {
        let mut taken = world.device(100 + number, 100 + number, &format!("taken-{number}"));
        taken.address = Address::Udp(socket_at(666));
        let expected = if number < 3 { None } else { Some(Refusal::Quota) };
        assert_eq!(world.register_itself(&mut taken).refusal, expected);
    }
    let mut attic = world.device(1, 10, "attic");
    assert_eq!(world.register_itself(&mut attic).refusal, None);
}

/// A customer's network of IPv6 has 65,536 hosts (/64).
#[test]
fn stranger_with_a_network_of_ipv6_takes_the_share_of_four_hosts_and_no_more() {
    let mut world = World::with(Config { devices_per_host_max: 1, ..Config::default() });
    let mut register = |number: u8, address: &str| {
        let mut device = world.device(100 + number, 100 + number, &format!("taken-{number}"));
        device.address = Address::Udp(address.parse().unwrap());
        world.register_itself(&mut device).refusal
    };
    for number in 0..8 {
        let expected = if number < 4 { None } else { Some(Refusal::Quota) };
        assert_eq!(register(number, &format!("[2001:db8:1:{number}::1]:7")), expected);
    }
    assert_eq!(register(8, "[2001:db8:2::1]:7"), None, "another network");
}

#[test]
fn owner_who_has_its_share_is_refused_newcomers_alone_and_others_are_listed() {
    let mut world = World::with(Config { devices_per_owner_max: 1, ..Config::default() });
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert_eq!(world.register_itself(&mut cellar).refusal, Some(Refusal::Quota));
    attic.record.sequence = 2;
    assert_eq!(world.register_itself(&mut attic).refusal, None, "it is listed already");
    let mut shed = world.device(2, 12, "shed");
    assert_eq!(world.register_itself(&mut shed).refusal, None);
}

#[test]
fn hub_of_named_owners_has_no_quota_for_them() {
    let owner = SigningKey::from_bytes(&[1; 32]).verifying_key();
    let config = Config { owners: vec![owner], devices_per_owner_max: 1, ..Config::default() };
    let mut world = World::with(config);
    for (number, name) in [(10, "attic"), (11, "cellar")] {
        let mut device = world.device(1, number, name);
        assert_eq!(world.register_itself(&mut device).refusal, None);
    }
}

#[test]
fn record_that_expired_long_ago_makes_room_and_its_name_is_free_again() {
    let mut world = World::with(Config { devices_max: 1, ..Config::default() });
    let mut attic = world.device(1, 10, "attic");
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    let mut other = world.device(2, 11, "attic");
    let day = 24 * 60 * 60;
    for (days, expected) in [(29, Some(Refusal::NameTaken)), (31, None)] {
        world.unix_s = NOW + days * day;
        other.record.expires_unix_s = world.unix_s + 60;
        assert_eq!(world.register_itself(&mut other).refusal, expected, "after {days} days");
    }
}

/// D-1: a wall clock that went on by a month says nothing of whether a hub heard meanwhile.
#[test]
fn device_is_forgotten_when_its_storage_says_so_where_that_knows_when_a_hub_heard() {
    let mut world = World::with(Config { devices_max: 1, ..Config::default() });
    let mut attic = world.device(1, 10, "attic");
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    let mut other = world.device(2, 11, "attic");
    world.unix_s = NOW + 31 * 24 * 60 * 60;
    other.record.expires_unix_s = world.unix_s + 60;
    world.hub.storage().forgettable = Some(Vec::new());
    assert_eq!(world.register_itself(&mut other).refusal, Some(Refusal::NameTaken));
    world.hub.storage().forgettable = Some(vec!["attic".parse().unwrap()]);
    world.unix_s += 60;
    assert_eq!(world.register_itself(&mut other).refusal, None);
}

/// A device's record of that number, as another hub heard it.
fn heard_elsewhere(device: &mut Device, sequence: u64) -> Kept {
    device.record.sequence = sequence;
    Kept { record: device.signed(), seen_at: Address::Udp(socket_at(777)) }
}

#[test]
fn records_that_other_hubs_took_are_found_here_and_older_ones_refused() {
    let mut world = World::new(4);
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    let name: Name = "attic".parse().unwrap();
    world.hub.storage().shared = Some(BTreeMap::new());
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    let third = heard_elsewhere(&mut attic, 3);
    world.hub.storage().shared = Some(BTreeMap::from([(name.clone(), third.clone())]));
    world.hub.storage().changes =
        Changes { are_all: false, devices: vec![(name.clone(), Some(third.clone()))] };
    world.now = world.now + Duration::from_secs(3);
    let found = |world: &mut World, cellar: &mut Device| {
        let found = world.resolve(cellar, &Query::Device(name.clone()));
        found.map(|found| Kept { record: found.record, seen_at: found.seen_at })
    };
    // The hub's clock ticks while it takes the question.
    found(&mut world, &mut cellar);
    assert_eq!(found(&mut world, &mut cellar), Some(third));

    // Nobody told of the fifth one yet: what stands in the storage decides all the same.
    let fifth = heard_elsewhere(&mut attic, 5);
    world.hub.storage().shared = Some(BTreeMap::from([(name.clone(), fifth.clone())]));
    attic.record.sequence = 4;
    assert_eq!(world.register_itself(&mut attic).refusal, Some(Refusal::Stale));
    assert_eq!(found(&mut world, &mut cellar), Some(fifth));
    attic.record.sequence = 6;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
}

#[test]
fn devices_that_other_hubs_forgot_are_found_no_more() {
    let mut world = World::new(4);
    let mut devices =
        [(10, "attic"), (11, "barn"), (12, "cellar")].map(|(key, name)| world.device(1, key, name));
    for device in &mut devices {
        assert_eq!(world.register_itself(device).refusal, None);
    }
    let listed = |world: &mut World| -> Vec<bool> {
        world.now = world.now + Duration::from_secs(3);
        let mut cellar = world.device(1, 12, "cellar");
        let mut is_listed = |name: &str| {
            world.resolve(&mut cellar, &Query::Device(name.parse().unwrap())).is_some()
        };
        // The hub's clock ticks while it takes the first question.
        is_listed("attic");
        ["attic", "barn", "cellar"].map(is_listed).to_vec()
    };
    assert_eq!(listed(&mut world), [true, true, true]);
    let gone = vec![("attic".parse().unwrap(), None)];
    world.hub.storage().changes = Changes { are_all: false, devices: gone };
    assert_eq!(listed(&mut world), [false, true, true]);
    let seen_at = devices[2].address.clone();
    let cellar = Kept { record: devices[2].signed(), seen_at };
    let all = vec![("cellar".parse().unwrap(), Some(cellar))];
    world.hub.storage().changes = Changes { are_all: true, devices: all };
    assert_eq!(listed(&mut world), [false, false, true]);
}

#[test]
fn device_that_was_heard_elsewhere_is_not_forgotten_here() {
    let mut world = World::new(2);
    let mut attic = world.device(1, 10, "attic");
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    world.unix_s = NOW + 31 * 24 * 60 * 60;
    attic.record.expires_unix_s = world.unix_s + 60;
    let renewed = heard_elsewhere(&mut attic, 9);
    let attics: Name = "attic".parse().unwrap();
    world.hub.storage().shared = Some(BTreeMap::from([(attics.clone(), renewed)]));
    let mut barn = world.device(1, 11, "barn");
    barn.record.expires_unix_s = world.unix_s + 60;
    assert_eq!(world.register_itself(&mut barn).refusal, None);
    assert!(world.hub.storage().deleted.is_empty());
    assert!(world.resolve(&mut barn, &Query::Device(attics)).is_some());
}

#[test]
fn hub_that_another_one_was_faster_than_takes_up_the_keys_that_are_there() {
    let flash = || FlashStorage::open(RamFlash::new(FLASH), &mut Sequence(1)).unwrap();
    /// A storage into which another hub writes its seed at the last moment.
    struct Late(FlashStorage<RamFlash>, bool);
    impl Storage for Late {
        fn seed(&mut self) -> Result<Option<[u8; 32]>, StorageError> {
            Ok(self.1.then_some([42; 32]))
        }
        fn set_seed(&mut self, _: &[u8; 32]) -> Result<(), StorageError> {
            self.1 = true;
            Err(StorageError::new("there is one"))
        }
        fn records(&mut self) -> Result<Vec<Kept>, StorageError> {
            self.0.records()
        }
        fn put(&mut self, accepted: &Accepted<'_>) -> Result<(), StorageError> {
            self.0.put(accepted)
        }
        fn delete(&mut self, device: &Name) -> Result<(), StorageError> {
            self.0.delete(device)
        }
    }
    let mut entropy = Sequence(1);
    let unix_time = UnixTime { seconds: NOW };
    let mut moment = Moment { now: Instant::BOOT, unix_time, entropy: &mut entropy };
    let hub = Hub::open(Config::default(), Late(flash(), false), &mut moment).unwrap();
    assert_eq!(hub.key(), Seed::from_bytes(&[42; 32]).device_secret().public_key());
}

#[test]
fn junk_is_refused_and_the_hub_goes_on() {
    let mut world = World::new(4);
    let mut attic = world.device(1, 10, "attic");
    for junk in [vec![], vec![0xFF; 8192], vec![0x80; 100], vec![0; 8192]] {
        let answer = world.call(&mut attic, function::REGISTER, junk.clone()).unwrap();
        let answer: Registered = postcard::from_bytes(&answer.unwrap()).unwrap();
        assert_eq!(answer.refusal, Some(Refusal::Malformed));
        let _ = world.call(&mut attic, function::RESOLVE, junk.clone());
        let _ = world.call(&mut attic, function::LIST, junk);
    }
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    let all = postcard::to_allocvec(&ListFrom { skip: 0 }).unwrap();
    let answer = world.call(&mut attic, function::LIST, all).unwrap().unwrap();
    let listing: Listing = postcard::from_bytes(&answer).unwrap();
    assert_eq!((listing.machines.len(), listing.total), (1, 1));
    assert_eq!(attic.owner.verifying_key(), attic.record.owner);
}

#[test]
fn registration_that_cannot_be_committed_is_refused_and_not_listed() {
    let mut world = World::new(4);
    let mut attic = world.device(1, 10, "attic");
    world.hub.storage().fails = true;
    assert_eq!(world.register_itself(&mut attic).refusal, Some(Refusal::Full));
    assert_eq!(world.hub.notice(), Some(Notice::NotStored { reason: "no room".into() }));
    assert_eq!(world.resolve(&mut attic, &Query::Device("attic".parse().unwrap())), None);
    world.hub.storage().fails = false;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert!(world.resolve(&mut attic, &Query::Device("attic".parse().unwrap())).is_some());
}

#[test]
fn device_whose_record_waits_for_a_storage_that_is_away_is_told_when_to_try_again() {
    let mut world = World::new(4);
    let mut attic = world.device(1, 10, "attic");
    world.hub.storage().is_away = true;
    let record = postcard::to_allocvec(&attic.signed()).unwrap();
    let answer = world.call(&mut attic, function::REGISTER, record);
    assert!(matches!(answer, Err(NoResult::Deferred { .. })), "{answer:?}");
    assert_eq!(world.hub.notice(), Some(Notice::NotStored { reason: "it starts".into() }));
    assert_eq!(world.resolve(&mut attic, &Query::Device("attic".parse().unwrap())), None);
    world.hub.storage().is_away = false;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
}

#[test]
fn registration_that_another_hub_is_in_the_way_of_is_tried_again_and_then_put_off() {
    let mut world = World::new(4);
    let mut attic = world.device(1, 10, "attic");
    let query = Query::Device("attic".parse().unwrap());
    let record = postcard::to_allocvec(&attic.signed()).unwrap();
    world.hub.storage().conflicts = 1_000;
    let answer = world.call(&mut attic, function::REGISTER, record);
    assert!(matches!(answer, Err(NoResult::Deferred { .. })), "{answer:?}");
    let tried = 1_000 - world.hub.storage().conflicts;
    assert!((2..10).contains(&tried), "{tried} times");
    assert_eq!(world.resolve(&mut attic, &query), None, "nobody is told what isn't kept");
    world.hub.storage().conflicts = 2;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert_eq!(world.hub.storage().conflicts, 0);
    assert!(world.resolve(&mut attic, &query).is_some());
}

#[test]
fn record_that_another_hub_is_in_the_way_of_counts_once_however_often_it_is_tried() {
    let config = Config { records_per_minute: 1, records_per_second_max: 1, ..Config::default() };
    let mut world = World::with(config);
    let mut attic = world.device(1, 10, "attic");
    world.hub.storage().conflicts = 3;
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    assert_eq!(world.hub.storage().conflicts, 0);
    attic.record.sequence = 2;
    assert_eq!(world.register_itself(&mut attic).refusal, Some(Refusal::TooOften));
}

#[test]
fn renewal_that_cannot_be_committed_leaves_the_record_before_in_force() {
    let mut world = World::new(4);
    let mut attic = world.device(1, 10, "attic");
    assert_eq!(world.register_itself(&mut attic).refusal, None);
    let before = attic.signed();
    world.hub.storage().fails = true;
    attic.record.sequence = 2;
    assert_eq!(world.register_itself(&mut attic).refusal, Some(Refusal::Full));
    let found = world.resolve(&mut attic, &Query::Device("attic".parse().unwrap())).unwrap();
    assert_eq!(found.record, before);
}

#[test]
fn device_that_registers_without_pause_is_slowed_down_and_others_are_not() {
    let mut world = World::with(Config { records_per_minute: 4, ..Config::default() });
    let (mut attic, mut cellar) = (world.device(1, 10, "attic"), world.device(1, 11, "cellar"));
    let mut register = |world: &mut World, sequence| {
        attic.record.sequence = sequence;
        world.register_itself(&mut attic).refusal
    };
    for sequence in 1..=4 {
        assert_eq!(register(&mut world, sequence), None);
    }
    assert_eq!(register(&mut world, 5), Some(Refusal::TooOften));
    assert_eq!(world.register_itself(&mut cellar).refusal, None);
    world.now = world.now + Duration::from_secs(15);
    assert_eq!(register(&mut world, 6), None, "one in a quarter of a minute");
    assert_eq!(register(&mut world, 7), Some(Refusal::TooOften));
}

#[test]
fn all_devices_together_write_no_more_than_the_hub_allows_in_a_second() {
    let mut world = World::with(Config { records_per_second_max: 3, ..Config::default() });
    let mut accepted = 0;
    for number in 10..30 {
        let mut device = world.device(1, number, &format!("device-{number}"));
        let refusal = world.register_itself(&mut device).refusal;
        assert!(matches!(refusal, None | Some(Refusal::TooOften)), "{refusal:?}");
        accepted += usize::from(refusal.is_none());
    }
    let seconds = world.now.since(tenure_hal::Instant::BOOT).as_secs() as usize + 1;
    assert!(accepted <= 3 * (seconds + 1) && accepted < 20, "{accepted} in {seconds} s");
}

#[test]
fn same_record_again_is_not_written_again() {
    let mut world = World::with(Config { records_per_minute: 1, ..Config::default() });
    let mut attic = world.device(1, 10, "attic");
    for _ in 0..5 {
        assert_eq!(world.register_itself(&mut attic).refusal, None);
    }
}
