//! Ends that nobody but the hub gets through to: the hub relays between those of one owner, and for nobody else.

use std::collections::VecDeque;
use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, machine_id};
use tenure_directory::{enrol, seal, sign_asker};
use tenure_hal::simulated::{RamFlash, Sequence, socket_at};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_hub::{Config, FlashStorage, Hub, Moment, Notice};
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::datagram::{Datagram, Relayed};
use tenure_wire::directory::{
    Asker, DeviceRecord, Enrolment, Found, NotRelayed, Query, Reach, Reached, Registered, Seen,
    function,
};
use tenure_wire::{Address, PublicKey};

const NOW: u64 = 1_800_000_000;
const HUB: Address = Address::Udp(socket_at(0));
const ELSEWHERE: Address = Address::Udp(socket_at(99));
const FLASH: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 64, program_bytes: 4 };
const STEP: Duration = Duration::from_millis(5);

/// A hub among ends each behind a router that lets in the hub alone.
struct World {
    now: Instant,
    hub: Hub<FlashStorage<RamFlash>>,
    entropy: Sequence,
    ends: Vec<End>,
    /// What the hub sent: where to, and how many bytes.
    sent: Vec<(Address, usize)>,
    /// How many datagrams routers kept out.
    kept_out: usize,
    /// What came to the hub to be relayed.
    relayed: Vec<Vec<u8>>,
}

/// A device or a person.
struct End {
    owner: SigningKey,
    seed: Seed,
    endpoint: Endpoint<Address>,
    address: Address,
    name: Option<&'static str>,
    sequence: u64,
    /// Whether its router lets in whoever comes.
    is_open: bool,
    /// Whether it is there.
    is_there: bool,
    done: VecDeque<Result<Option<Vec<u8>>, NoResult>>,
}

impl World {
    fn new() -> Self {
        Self::with(Config { looks_from_elsewhere: true, ..Config::default() })
    }

    fn with(config: Config) -> Self {
        let mut entropy = Sequence(1);
        let unix_time = UnixTime { seconds: NOW };
        let mut moment = Moment { now: Instant::BOOT, unix_time, entropy: &mut entropy };
        let storage = FlashStorage::open(RamFlash::new(FLASH), moment.entropy).unwrap();
        let hub = Hub::open(config, storage, &mut moment).unwrap();
        let (ends, sent, relayed) = (Vec::new(), Vec::new(), Vec::new());
        Self { now: Instant::BOOT, hub, entropy, ends, sent, kept_out: 0, relayed }
    }

    /// An end of an owner: a device if it has a name. Returns its number.
    fn end(&mut self, owner: u8, name: Option<&'static str>) -> usize {
        self.end_with(Seed::from_bytes(&[10 + self.ends.len() as u8; 32]), owner, name)
    }

    /// One more command of the person at that end, with the same keys.
    fn command_of(&mut self, person: usize, owner: u8) -> usize {
        self.end_with(Seed::from_bytes(self.ends[person].seed.as_bytes()), owner, None)
    }

    fn end_with(&mut self, seed: Seed, owner: u8, name: Option<&'static str>) -> usize {
        let number = self.ends.len();
        let config = tenure_rpc::Config::default();
        let mut endpoint = Endpoint::new(config, self.now, &mut self.entropy).unwrap();
        let own = endpoint.add_machine(seed.device_secret()).unwrap();
        endpoint.identify_as(&own);
        self.ends.push(End {
            owner: SigningKey::from_bytes(&[owner; 32]),
            seed,
            endpoint,
            address: Address::Udp(socket_at(1 + number as u32)),
            name,
            sequence: 0,
            is_open: false,
            is_there: true,
            done: VecDeque::new(),
        });
        number
    }

    /// A device that has registered, and whose session the hub knows to reach it.
    fn device(&mut self, owner: u8, name: &'static str) -> usize {
        let device = self.end(owner, Some(name));
        self.register(device);
        self.register(device);
        device
    }

    fn register(&mut self, device: usize) {
        let epoch = self.ends[device].endpoint.epoch();
        let end = &mut self.ends[device];
        end.sequence += 1;
        let device_key = end.seed.device_signing_key().verifying_key();
        let name = end.name.unwrap();
        let enrolment = Enrolment { device: name.parse().unwrap(), device_key, number: 1 };
        let record = DeviceRecord {
            owner: end.owner.verifying_key(),
            enrolment_signature: enrol(&end.owner, &enrolment),
            enrolment,
            sequence: end.sequence,
            expires_unix_s: NOW + 60,
            epoch,
            addresses: Vec::new(),
            device_machine: end.key(),
            machines: Vec::new(),
            succession: None,
        };
        let signed = seal(&end.seed.device_signing_key(), &record);
        let parameter = postcard::to_allocvec(&signed).unwrap();
        let answer = self.call(device, HUB, self.hub.key(), function::REGISTER, parameter);
        let registered: Registered = postcard::from_bytes(&answer.unwrap().unwrap()).unwrap();
        assert_eq!(registered.refusal, None);
    }

    /// Has `from` call the one with `key` at `to`, until there is an end.
    fn call(
        &mut self,
        from: usize,
        to: Address,
        key: PublicKey,
        name: &str,
        parameter: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, NoResult> {
        self.begin(from, to, key, name, parameter);
        loop {
            if let Some(result) = self.ends[from].done.pop_front() {
                return result;
            }
            self.step();
        }
    }

    fn begin(&mut self, from: usize, to: Address, key: PublicKey, name: &str, parameter: Vec<u8>) {
        let call = OutgoingCall {
            function: name.to_string(),
            parameter: Some(parameter),
            deadline: self.now + Duration::from_secs(3),
            attempts: 5,
        };
        let end = &mut self.ends[from];
        let own = machine_id(&end.key());
        end.endpoint.call(self.now, &mut self.entropy, &own, &key, to, None, call).unwrap();
    }

    /// Lets five milliseconds pass, in which all that was sent arrives.
    fn step(&mut self) {
        self.now = self.now + STEP;
        for from in 0..self.ends.len() {
            self.ends[from].endpoint.poll(self.now, &mut self.entropy);
            self.ends[from].attend(self.now);
            while let Some((to, datagram)) = self.ends[from].endpoint.transmit() {
                let (to, datagram) = match to {
                    Address::Relayed(way) => (HUB, Relayed { way, datagram: &datagram }.to_bytes()),
                    to => (to, datagram),
                };
                let address = self.ends[from].address.clone();
                self.carry(&address, &to, &datagram);
            }
        }
        self.attend();
        let mut moment = moment(self.now, &mut self.entropy);
        self.hub.poll(&mut moment);
        self.attend();
    }

    /// Carries what the hub has to send.
    fn attend(&mut self) {
        while let Some((to, datagram)) = self.hub.transmit() {
            self.sent.push((to.clone(), datagram.len()));
            self.carry(&HUB, &to, &datagram);
        }
        while let Some((to, datagram)) = self.hub.question() {
            self.carry(&ELSEWHERE, &to, &datagram);
        }
    }

    fn carry(&mut self, from: &Address, to: &Address, datagram: &[u8]) {
        if *to == HUB || *to == ELSEWHERE {
            let is_relayed = Relayed::parse(datagram).is_some();
            self.relayed.extend(is_relayed.then(|| datagram.to_vec()));
            let mut moment = moment(self.now, &mut self.entropy);
            return match *to == HUB {
                true => self.hub.receive(&mut moment, from.clone(), datagram),
                false => self.hub.receive_elsewhere(&moment, from, datagram),
            };
        }
        let Some(end) = self.ends.iter_mut().find(|end| end.address == *to && end.is_there) else {
            return;
        };
        if *from != HUB && !end.is_open {
            self.kept_out += 1;
            return;
        }
        let (from, datagram) = match Relayed::parse(datagram) {
            Some(relayed) if *from == HUB => (Address::Relayed(relayed.way), relayed.datagram),
            _ => (from.clone(), datagram),
        };
        end.endpoint.receive(self.now, &mut self.entropy, from, datagram);
        end.attend(self.now);
    }

    /// Lets so much time pass.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    fn asker(&self, end: usize) -> Option<Asker> {
        let end = &self.ends[end];
        Some(sign_asker(&end.owner, self.hub.key(), end.key()))
    }

    /// Asks the hub how to reach a device.
    fn reach(&mut self, from: usize, device: &str, asker: Option<Asker>) -> Reached {
        let query = Query::Device(device.parse().unwrap());
        let parameter = postcard::to_allocvec(&Reach { query, asker }).unwrap();
        let answer = self.call(from, HUB, self.hub.key(), function::REACH, parameter);
        self.ends[from].endpoint.acknowledge_all(self.now);
        self.step();
        postcard::from_bytes(&answer.unwrap().unwrap()).unwrap()
    }

    fn resolve(&mut self, from: usize, device: &str) -> Found {
        let query = Query::Device(device.parse().unwrap());
        let parameter = postcard::to_allocvec(&query).unwrap();
        let answer = self.call(from, HUB, self.hub.key(), function::RESOLVE, parameter);
        postcard::from_bytes(&answer.unwrap().unwrap()).unwrap()
    }

    /// Calls an echo of `device`, and says whether it came back.
    fn is_answered(&mut self, from: usize, device: usize, way: [u8; 8], words: &[u8]) -> bool {
        let key = self.ends[device].key();
        self.call(from, Address::Relayed(way), key, "echo", words.to_vec())
            == Ok(Some(words.to_vec()))
    }
}

impl End {
    /// Answers calls with their parameter, and keeps how its own ended.
    fn attend(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::IncomingCall { handle, parameter, .. } => {
                    self.endpoint.reply(now, handle, Ok(parameter));
                }
                Event::CallDone { result, .. } => self.done.push_back(result),
                Event::PeerSeen { .. } | Event::Identified { .. } => {}
            }
        }
    }

    fn key(&self) -> PublicKey {
        self.seed.device_secret().public_key()
    }
}

fn moment(now: Instant, entropy: &mut Sequence) -> Moment<'_> {
    Moment { now, unix_time: UnixTime { seconds: NOW }, entropy }
}

fn way_of(reached: &Reached) -> [u8; 8] {
    reached.relayed.expect("the hub relays")
}

#[test]
fn caller_is_told_the_address_that_the_hub_sees_and_the_hubs_time() {
    let mut world = World::new();
    let (person, stranger) = (world.end(1, None), world.end(2, None));
    for end in [person, stranger] {
        let answer = world.call(end, HUB, world.hub.key(), function::SEEN, Vec::new());
        let seen: Seen = postcard::from_bytes(&answer.unwrap().unwrap()).unwrap();
        assert_eq!(seen, Seen { from: world.ends[end].address.clone(), unix_s: NOW });
    }
}

#[test]
fn device_behind_a_router_is_called_by_its_owner_by_way_of_the_hub() {
    let mut world = World::new();
    let attic = world.device(1, "attic");
    world.pass(Duration::from_secs(3));
    let told: Vec<Notice> = std::iter::from_fn(|| world.hub.notice()).collect();
    let shut = Notice::Shut {
        device: "attic".parse().unwrap(),
        address: world.ends[attic].address.clone(),
        is_relayed: true,
    };
    assert!(told.contains(&shut), "{told:?}");
    let person = world.end(1, None);
    let direct = world.ends[attic].address.clone();
    let key = world.ends[attic].key();
    let failed = world.call(person, direct, key, "echo", b"hello".to_vec());
    assert!(failed.is_err() && world.kept_out > 0, "its router keeps others out: {failed:?}");
    let reached = world.reach(person, "attic", world.asker(person));
    assert!(reached.found.is_some() && reached.answers_others == Some(false));
    let way = way_of(&reached);
    assert!(world.is_answered(person, attic, way, b"hello"));
    assert!(world.is_answered(person, attic, way, &[7; 5_000]), "in several datagrams");
    assert_eq!(way_of(&world.reach(person, "attic", world.asker(person))), way, "one way for both");
    let counts = world.hub.relay_counts();
    assert_eq!((counts.ways, counts.foreign, counts.absent, counts.crowded), (1, 0, 0, 0));
    assert!(counts.datagrams > 10 && counts.bytes > 10_000, "{counts:?}");
}

#[test]
fn devices_of_one_owner_behind_two_routers_find_each_other_by_the_hub() {
    let mut world = World::new();
    let (attic, cabin) = (world.device(1, "attic"), world.device(1, "cabin"));
    let others = world.device(2, "others");
    world.pass(Duration::from_secs(3));
    let Address::Relayed(way) = world.resolve(attic, "cabin").seen_at else {
        panic!("the hub gives the way by its relay");
    };
    assert!(world.is_answered(attic, cabin, way, b"one"));
    assert!(world.is_answered(cabin, attic, way, b"back"), "a way has two directions");
    let seen_at = world.resolve(others, "cabin").seen_at;
    assert_eq!(seen_at, world.ends[cabin].address, "another owner's device gets no way");
    assert_eq!(world.reach(others, "cabin", None).relayed, Err(NotRelayed::Stranger));
}

#[test]
fn device_that_lets_everybody_in_is_reached_without_the_relay() {
    let mut world = World::new();
    let attic = world.end(1, Some("attic"));
    world.ends[attic].is_open = true;
    world.register(attic);
    world.pass(Duration::from_secs(3));
    let person = world.end(1, None);
    let reached = world.reach(person, "attic", world.asker(person));
    assert_eq!(reached.answers_others, Some(true));
    let other = world.device(1, "other");
    assert_eq!(world.resolve(other, "attic").seen_at, world.ends[attic].address);
    // It moves behind a router: that is seen at its next registration.
    world.ends[attic].is_open = false;
    world.ends[attic].address = Address::Udp(socket_at(77));
    world.register(attic);
    world.register(attic);
    assert_eq!(world.reach(person, "attic", world.asker(person)).answers_others, None);
    world.pass(Duration::from_secs(3));
    let reached = world.reach(person, "attic", world.asker(person));
    assert_eq!(reached.answers_others, Some(false));
    assert!(world.is_answered(person, attic, way_of(&reached), b"hello"));
}

#[test]
fn hub_that_relays_nothing_says_so() {
    let looks = Config { looks_from_elsewhere: true, ..Config::default() };
    let mut world = World::with(Config { relay_bytes_per_second: None, ..looks });
    world.device(1, "attic");
    let person = world.end(1, None);
    let unknown = world.reach(person, "attic", world.asker(person));
    assert_eq!((unknown.answers_others, unknown.relayed), (None, Err(NotRelayed::Never)));
    world.pass(Duration::from_secs(3));
    let reached = world.reach(person, "attic", world.asker(person));
    assert_eq!((reached.answers_others, reached.relayed), (Some(false), Err(NotRelayed::Never)));
}

#[test]
fn nobody_gets_a_way_without_the_owners_word_for_its_own_session() {
    let mut world = World::new();
    world.device(1, "attic");
    world.pass(Duration::from_secs(3));
    let (owner, stranger) = (world.end(1, None), world.end(2, None));
    assert_eq!(world.reach(stranger, "attic", None).relayed, Err(NotRelayed::Stranger));
    let own_word = world.asker(stranger);
    assert_eq!(world.reach(stranger, "attic", own_word).relayed, Err(NotRelayed::Stranger));
    // The owner's word, as somebody else heard it.
    let overheard = world.asker(owner);
    assert_eq!(world.reach(stranger, "attic", overheard).relayed, Err(NotRelayed::Signature));
    let mut forged = world.asker(stranger).unwrap();
    forged.owner = world.ends[owner].owner.verifying_key();
    assert_eq!(world.reach(stranger, "attic", Some(forged)).relayed, Err(NotRelayed::Signature));
    // A word for another hub.
    let end = &world.ends[owner];
    let elsewhere = sign_asker(&end.owner, PublicKey([5; 32]), end.key());
    assert_eq!(world.reach(owner, "attic", Some(elsewhere)).relayed, Err(NotRelayed::Signature));
    assert_eq!(world.hub.relay_counts().ways, 0);
    assert!(world.reach(owner, "attic", world.asker(owner)).relayed.is_ok());
}

#[test]
fn datagrams_for_a_way_count_only_from_its_ends_and_are_never_answered() {
    let mut world = World::new();
    let attic = world.device(1, "attic");
    let person = world.end(1, None);
    let way = way_of(&world.reach(person, "attic", world.asker(person)));
    assert!(world.is_answered(person, attic, way, b"hello"));
    // What confirms the answer goes over the relay as well.
    world.pass(Duration::from_secs(1));
    let before = world.hub.relay_counts();
    world.sent.clear();
    let stranger = Address::Udp(socket_at(50));
    let datagram = [7; 1_000];
    for (from, way) in [(&stranger, way), (&world.ends[person].address.clone(), [1; 8])] {
        let forged = Relayed { way, datagram: &datagram }.to_bytes();
        world.carry(from, &HUB, &forged);
    }
    world.step();
    let counts = world.hub.relay_counts();
    assert_eq!(counts.foreign, before.foreign + 2);
    assert_eq!(counts.datagrams, before.datagrams);
    assert!(world.sent.is_empty(), "{:?}", world.sent);
}

#[test]
fn commands_of_one_person_that_run_at_once_have_a_way_each() {
    let mut world = World::new();
    let attic = world.device(1, "attic");
    let first = world.end(1, None);
    let second = world.command_of(first, 1);
    let way = way_of(&world.reach(first, "attic", world.asker(first)));
    assert!(world.is_answered(first, attic, way, b"one"));
    let other = way_of(&world.reach(second, "attic", world.asker(second)));
    assert_ne!(way, other);
    assert!(world.is_answered(second, attic, other, b"two"));
    assert!(world.is_answered(first, attic, way, b"three"), "the first goes on");
    assert_eq!(world.hub.relay_counts().foreign, 0);
}

#[test]
fn peer_that_claims_a_victims_address_has_nothing_relayed_there() {
    let mut world = World::new();
    let (attic, cabin) = (world.device(1, "attic"), world.device(1, "cabin"));
    let way = way_of(&world.reach(attic, "cabin", None));
    assert!(world.is_answered(attic, cabin, way, b"hello"));
    world.pass(Duration::from_secs(1));
    // The holder of the cabin's keys sends the next datagram of its session with the sender's address of a victim, where
    // it hears nothing.
    let victim = Address::Udp(socket_at(60));
    world.begin(
        cabin,
        HUB,
        world.hub.key(),
        function::LIST,
        postcard::to_allocvec(&0_u32).unwrap(),
    );
    world.ends[cabin].endpoint.poll(world.now, &mut world.entropy);
    let mut asked = 0;
    while let Some((to, datagram)) = world.ends[cabin].endpoint.transmit() {
        if to != HUB {
            continue;
        }
        asked += datagram.len();
        world.carry(&victim, &HUB, &datagram);
    }
    world.ends[cabin].is_there = false;
    world.sent.clear();
    let relayed = world.hub.relay_counts().datagrams;
    for _ in 0..50 {
        let flood = Relayed { way, datagram: &[9; 1_000] }.to_bytes();
        let from = world.ends[attic].address.clone();
        world.carry(&from, &HUB, &flood);
        world.step();
    }
    let counts = world.hub.relay_counts();
    assert_eq!((counts.datagrams, counts.absent), (relayed, 50));
    let to_victim: usize =
        world.sent.iter().filter(|(to, _)| *to == victim).map(|(_, length)| length).sum();
    assert!(to_victim <= 3 * asked, "{to_victim} bytes for {asked}");
}

#[test]
fn owner_who_floods_the_relay_leaves_others_their_share() {
    let rate = 100_000;
    let config = Config { relay_bytes_per_second: Some(rate), ..Config::default() };
    let mut world = World::with(config);
    let (loud, louder) = (world.device(1, "loud"), world.device(1, "louder"));
    let (quiet, quieter) = (world.device(2, "quiet"), world.device(2, "quieter"));
    let flooded = way_of(&world.reach(loud, "louder", None));
    let way = way_of(&world.reach(quiet, "quieter", None));
    let before = world.hub.relay_counts();
    let (mut answered, begun) = (0, world.now);
    let flood = Relayed { way: flooded, datagram: &[0x10; 1_100] }.to_bytes();
    let from = world.ends[loud].address.clone();
    let key = world.ends[quieter].key();
    for _ in 0..20 {
        world.begin(quiet, Address::Relayed(way), key, "echo", b"still here".to_vec());
        while world.ends[quiet].done.is_empty() {
            // Ten times as much as may pass.
            (0..5).for_each(|_| world.carry(&from, &HUB, &flood));
            world.step();
        }
        answered += usize::from(world.ends[quiet].done.pop_front().unwrap().is_ok());
    }
    assert_eq!(answered, 20);
    let counts = world.hub.relay_counts();
    let seconds = world.now.since(begun).as_secs_f64();
    let most = f64::from(rate) * (seconds + 0.5);
    assert!(((counts.bytes - before.bytes) as f64) < most, "{counts:?} in {seconds} s");
    assert!(counts.crowded > 0, "{counts:?}");
    assert!(world.ends[louder].is_there);
}

#[test]
fn what_is_relayed_is_ciphertext_of_the_two_alone() {
    let mut world = World::new();
    let attic = world.device(1, "attic");
    let person = world.end(1, None);
    let way = way_of(&world.reach(person, "attic", world.asker(person)));
    let secret = b"the key is under the mat";
    assert!(world.is_answered(person, attic, way, secret));
    assert!(world.relayed.len() > 2, "the call and its answer");
    for bytes in &world.relayed {
        let relayed = Relayed::parse(bytes).unwrap();
        assert!(Datagram::parse(relayed.datagram).is_ok());
        let shows = |part: &[u8]| bytes.windows(part.len()).any(|bytes| bytes == part);
        assert!(!shows(secret) && !shows(b"echo"));
    }
}
