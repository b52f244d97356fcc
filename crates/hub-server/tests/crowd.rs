//! A crowd of devices at one hub: real sessions and records on a database, through the hub's absence and among strangers.
//!
//! The clock is the trial's own. The hub takes its datagrams one after the other, each for as long as one takes on a
//! small computer ([`TAKEN_US`], [`made_us`]), from a socket that holds a few; what finds it full is lost. Devices register, wait and
//! back off as `tenure_node` does. The small crowd runs with all tests, the 10,000 that a hub promises by
//! `cargo test --release -p tenure-hub-server --test crowd -- --ignored --nocapture`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;
use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, machine_id};
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::{Random, place_at, socket_at};
use tenure_hal::{Instant, UnixTime};
use tenure_hub::{Config, Hub, Moment};
use tenure_hub_server::Database;
use tenure_rpc::{CallHandle, Endpoint, Event, Fullness, IdentifyHandle, NoResult, OutgoingCall};
use tenure_wire::datagram::Datagram;
use tenure_wire::directory::{
    DeviceRecord, Enrolment, ListFrom, Listing, Query, Registered, function,
};
use tenure_wire::{Address, Epoch, MachineId, PublicKey};

const NOW: u64 = 1_800_000_000;
const HUB: u32 = 0;
/// The first place of strangers.
const STRANGERS: u32 = 60_000;

/// The life of a record, and how often a listed device renews it: the calm interval.
const RECORD_S: u64 = 60;
const CALM_S: u64 = RECORD_S / 3;
/// As in `tenure_node`: how long an answer may take, and the waits after silences.
const ANSWER_US: u64 = 4_000_000;
const ATTEMPTS: u8 = 4;
const RETRY_US: u64 = 2_000_000;
const RETRY_MAX_US: u64 = RECORD_S * 1_000_000 * 5 / 6;
const RETRY_REFUSED_US: u64 = 10_000_000;

/// The way from a device to the hub, or back.
const WAY_US: u64 = 5_000;
/// The datagrams that the hub's socket holds, and those that it takes before it does what is due.
const SOCKET_MAX: usize = 200;
const TURN: usize = 256;
const COMMIT_US: u64 = 2_000;

/// The trial's cost to the hub of a datagram that came, and beside that of one that goes out, by what it took to make it:
/// more than `cargo xtask bench hub` measured.
const TAKEN_US: u64 = 50;

fn made_us(datagram: &[u8]) -> u64 {
    match Datagram::parse(datagram) {
        // A handshake.
        Ok(Datagram::Response(_)) => 800,
        // The answer to a record, which was checked and stored, or to a question.
        Ok(Datagram::Data(_)) => 500,
        _ => 0,
    }
}

fn owner() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn seed(place: u32) -> Seed {
    let mut bytes = [9; 32];
    bytes[..4].copy_from_slice(&place.to_le_bytes());
    Seed::from_bytes(&bytes)
}

fn address(place: u32) -> Address {
    Address::Udp(socket_at(place))
}

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

/// A device, or a stranger, who only asks and is done.
struct Party {
    place: u32,
    endpoint: Endpoint<Address>,
    own: MachineId,
    /// `None` for a stranger.
    record: Option<DeviceRecord>,
    epoch: Option<Epoch>,
    asked: Option<IdentifyHandle>,
    calling: Option<CallHandle>,
    silences: u32,
    next_us: u64,
    /// When the hub took its last record.
    listed_us: Option<u64>,
    /// How often it opened a session, and how often the hub was silent or refused, since that was last counted.
    initiations: u32,
    failures: u32,
    /// How often the hub gave it a later turn.
    deferrals: u32,
}

impl Party {
    fn new(place: u32, is_device: bool, now_us: u64, random: &mut Random) -> Self {
        let seed = seed(place);
        let config = tenure_rpc::Config::default();
        let mut endpoint = Endpoint::new(config, at(now_us), random).unwrap();
        let own = endpoint.add_machine(seed.device_secret()).unwrap();
        let record = is_device.then(|| record(place, &seed));
        let next_us = now_us + random.between(0..=CALM_S * 1_000_000);
        Self {
            place,
            endpoint,
            own,
            record,
            epoch: None,
            asked: None,
            calling: None,
            silences: 0,
            next_us,
            listed_us: None,
            initiations: 0,
            failures: 0,
            deferrals: 0,
        }
    }

    /// Does what is due, and returns what it sends and when it wants to be looked at next.
    fn attend(&mut self, now_us: u64, hub: &PublicKey, random: &mut Random) -> (Vec<Vec<u8>>, u64) {
        let now = at(now_us);
        self.endpoint.poll(now, random);
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::Identified { handle, identity } if self.asked == Some(handle) => {
                    self.asked = None;
                    self.epoch = identity.map(|identity| identity.epoch);
                    if self.epoch.is_none() {
                        self.hear_nothing(now_us);
                    }
                }
                Event::CallDone { handle, result, .. } if self.calling == Some(handle) => {
                    self.calling = None;
                    match result {
                        Err(NoResult::Deferred { again_in }) => {
                            let wait_us = (again_in.as_micros() as u64).min(RETRY_MAX_US);
                            self.next_us = now_us + wait_us;
                            self.deferrals += 1;
                        }
                        // It is there, and forgot a session.
                        Err(NoResult::OutcomeUnknown) => {
                            self.silences = 0;
                            self.hear_nothing(now_us);
                        }
                        result => self.hear(now_us, result.ok().flatten()),
                    }
                }
                _ => {}
            }
        }
        if self.next_us <= now_us && self.asked.is_none() && self.calling.is_none() {
            self.speak(now_us, hub, random);
        }
        let mut sent = Vec::new();
        while let Some((_, datagram)) = self.endpoint.transmit() {
            let is_initiation = matches!(Datagram::parse(&datagram), Ok(Datagram::Initiation(_)));
            self.initiations += u32::from(is_initiation);
            sent.push(datagram);
        }
        let idle = self.asked.is_none() && self.calling.is_none();
        let own = idle.then_some(self.next_us);
        let wakes = self.endpoint.poll_at().map(Instant::as_micros).into_iter().chain(own).min();
        (sent, wakes.unwrap_or(u64::MAX).max(now_us + 1))
    }

    /// Asks who the hub is if that isn't known, and registers otherwise.
    fn speak(&mut self, now_us: u64, hub: &PublicKey, random: &mut Random) {
        let (now, deadline) = (at(now_us), at(now_us + ANSWER_US));
        let Some(epoch) = self.epoch else {
            self.asked = Some(self.endpoint.identify(now, address(HUB), deadline).unwrap());
            return;
        };
        let (name, parameter) = match &mut self.record {
            Some(record) => {
                record.sequence += 1;
                record.expires_unix_s = NOW + now_us / 1_000_000 + RECORD_S;
                record.epoch = self.endpoint.epoch();
                let signed = seal(&seed(self.place).device_signing_key(), record);
                (function::REGISTER, postcard::to_allocvec(&signed).unwrap())
            }
            None => {
                let query = Query::Device("device-1".parse().unwrap());
                (function::RESOLVE, postcard::to_allocvec(&query).unwrap())
            }
        };
        let call = OutgoingCall {
            function: name.into(),
            parameter: Some(parameter),
            deadline,
            attempts: ATTEMPTS,
        };
        let Self { endpoint, own, .. } = self;
        let handle = endpoint.call(now, random, own, hub, address(HUB), Some(epoch), call);
        self.calling = Some(handle.unwrap());
    }

    fn hear(&mut self, now_us: u64, answer: Option<Vec<u8>>) {
        let Some(answer) = answer else { return self.hear_nothing(now_us) };
        self.silences = 0;
        if self.record.is_none() {
            self.next_us = u64::MAX;
            self.listed_us = Some(now_us);
            return;
        }
        let registered: Registered = postcard::from_bytes(&answer).unwrap();
        match registered.refusal {
            None => {
                // Up to a tenth sooner on some than on others.
                let sooner = CALM_S * 1_000_000 / 2_560 * u64::from(self.own.0[0]);
                self.next_us = now_us + CALM_S * 1_000_000 - sooner;
                self.listed_us = Some(now_us);
            }
            Some(_) => {
                self.failures += 1;
                self.next_us = now_us + RETRY_REFUSED_US;
            }
        }
    }

    /// The hub is asked ever less often, and a quarter sooner by some than by others.
    fn hear_nothing(&mut self, now_us: u64) {
        self.failures += 1;
        self.epoch = None;
        let wait = (RETRY_US << self.silences).min(RETRY_MAX_US);
        let sooner = u64::from(self.own.0[self.silences as usize % 12]);
        self.silences = (self.silences + 1).min(16);
        self.next_us = now_us + wait - wait / 1_024 * sooner;
    }
}

fn record(place: u32, seed: &Seed) -> DeviceRecord {
    let owner = owner();
    let device = format!("device-{place}").parse().unwrap();
    let device_key = seed.device_signing_key().verifying_key();
    let enrolment = Enrolment { device, device_key, number: 1 };
    let mut machine = [7; 32];
    machine[..4].copy_from_slice(&place.to_le_bytes());
    DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: enrol(&owner, &enrolment),
        enrolment,
        sequence: 0,
        expires_unix_s: 0,
        epoch: Epoch([0; 8]),
        addresses: Vec::new(),
        device_machine: seed.device_secret().public_key(),
        machines: vec![("counter".parse().unwrap(), PublicKey(machine))],
        succession: None,
    }
}

/// An event at a time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Arrives(u32, Vec<u8>),
    Reaches(u32, Vec<u8>),
    Wakes(u32),
    HubTurns,
    /// Time has come for something that the hub does by itself.
    HubWakes,
}

/// The hub, the crowd, and what is on its way.
struct Trial {
    folder: tempfile::TempDir,
    config: Config,
    hub: Option<Hub<Database>>,
    hub_key: PublicKey,
    hub_is_busy: bool,
    socket: VecDeque<(u32, Vec<u8>)>,
    devices: Vec<Party>,
    strangers: Vec<Party>,
    agenda: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    /// The number of the next thing on the agenda, so that equals stay in order.
    next: u64,
    now_us: u64,
    random: Random,
    /// Datagrams that found the hub's socket full.
    lost: u64,
    /// For how long the hub worked.
    worked_us: u64,
}

impl Trial {
    fn new(devices: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let owners = vec![owner().verifying_key()];
        // The tables of a hub for that many devices and a tenth as many people, in the proportion of one for 10,000.
        let callers = (devices + devices / 10) as usize;
        let large = tenure_rpc::Config::for_callers(callers);
        let rpc = tenure_rpc::Config {
            sessions_max: large.sessions_max.min(3 * callers),
            half_open_max: large.half_open_max.min(callers),
            callers_max: large.callers_max.min(2 * callers),
            running_max: large.running_max.min(callers),
            accepted_initiations_max: large.accepted_initiations_max.min(2 * callers),
            ..large
        };
        let config = Config { owners, devices_max: devices as usize, rpc, ..Config::default() };
        let mut random = Random::new(29);
        let crowd = (1..=devices).map(|place| Party::new(place, true, 0, &mut random)).collect();
        let mut trial = Self {
            folder,
            config,
            hub: None,
            hub_key: PublicKey([0; 32]),
            hub_is_busy: false,
            socket: VecDeque::new(),
            devices: crowd,
            strangers: Vec::new(),
            agenda: BinaryHeap::new(),
            next: 0,
            now_us: 0,
            random,
            lost: 0,
            worked_us: 0,
        };
        trial.start_hub();
        for place in 1..=devices {
            let wakes_us = trial.devices[place as usize - 1].next_us;
            trial.plan(wakes_us, Happening::Wakes(place));
        }
        trial
    }

    fn plan(&mut self, at_us: u64, what: Happening) {
        self.next += 1;
        self.agenda.push(Reverse((at_us, self.next, what)));
    }

    /// Starts the hub on the database that is there.
    fn start_hub(&mut self) {
        let path: &Path = &self.folder.path().join("hub.sqlite");
        let database = Database::open(path).unwrap();
        let unix_time = UnixTime { seconds: self.unix_s() };
        let mut moment = Moment { now: at(self.now_us), unix_time, entropy: &mut self.random };
        let hub = Hub::open(self.config.clone(), database, &mut moment).unwrap();
        self.hub_key = hub.key();
        self.hub = Some(hub);
    }

    /// Ends the hub as `kill -9` does.
    fn kill_hub(&mut self) {
        self.hub = None;
        self.socket.clear();
    }

    fn unix_s(&self) -> u64 {
        NOW + self.now_us / 1_000_000
    }

    fn party(&mut self, place: u32) -> &mut Party {
        match place >= STRANGERS {
            true => &mut self.strangers[(place - STRANGERS) as usize],
            false => &mut self.devices[place as usize - 1],
        }
    }

    fn run_for(&mut self, seconds: u64) {
        let until_us = self.now_us + seconds * 1_000_000;
        self.run_until(until_us, |_| false);
    }

    /// Goes on until that time, or until the trial is so far; returns whether it is.
    fn run_until(&mut self, until_us: u64, is_done: impl Fn(&Self) -> bool) -> bool {
        let mut looked_us = self.now_us;
        while let Some(Reverse((at_us, _, _))) = self.agenda.peek() {
            if *at_us > until_us {
                break;
            }
            let Some(Reverse((at_us, _, what))) = self.agenda.pop() else { break };
            self.now_us = at_us;
            self.happen(what);
            if self.now_us >= looked_us + 100_000 {
                looked_us = self.now_us;
                if is_done(self) {
                    return true;
                }
            }
        }
        self.now_us = until_us;
        is_done(self)
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Arrives(from, datagram) => {
                if self.hub.is_none() {
                    return;
                }
                if self.socket.len() >= SOCKET_MAX {
                    self.lost += 1;
                    return;
                }
                self.socket.push_back((from, datagram));
                self.rouse();
            }
            Happening::HubTurns => self.turn(),
            Happening::HubWakes => self.rouse(),
            Happening::Reaches(to, datagram) => {
                let (now, mut random) = (at(self.now_us), self.random.branch());
                let party = self.party(to);
                party.endpoint.receive(now, &mut random, address(HUB), &datagram);
                self.attend(to);
            }
            Happening::Wakes(place) => self.attend(place),
        }
    }

    fn attend(&mut self, place: u32) {
        let (now_us, hub_key, mut random) = (self.now_us, self.hub_key, self.random.branch());
        let (sent, wakes_us) = self.party(place).attend(now_us, &hub_key, &mut random);
        for datagram in sent {
            self.plan(now_us + WAY_US, Happening::Arrives(place, datagram));
        }
        if wakes_us < u64::MAX {
            self.plan(wakes_us, Happening::Wakes(place));
        }
    }

    /// Has the hub take a turn now, unless it works.
    fn rouse(&mut self) {
        if !std::mem::replace(&mut self.hub_is_busy, true) {
            self.plan(self.now_us, Happening::HubTurns);
        }
    }

    /// A turn of the hub's process: some datagrams, what is due, and what is to be sent.
    fn turn(&mut self) {
        self.hub_is_busy = false;
        let unix_time = UnixTime { seconds: self.unix_s() };
        let Self { hub, socket, random, .. } = self;
        let Some(hub) = hub else { return };
        let wakes_us = hub.poll_at().map_or(u64::MAX, Instant::as_micros);
        if socket.is_empty() && wakes_us > self.now_us {
            if wakes_us < self.now_us + 1_000_000 {
                self.plan(wakes_us, Happening::HubWakes);
            }
            return;
        }
        let mut moment = Moment { now: at(self.now_us), unix_time, entropy: random };
        let taken: Vec<_> = socket.drain(..socket.len().min(TURN)).collect();
        let mut spent_us = COMMIT_US + TAKEN_US * taken.len() as u64;
        for (from, datagram) in &taken {
            hub.receive(&mut moment, address(*from), datagram);
        }
        hub.poll(&mut moment);
        let answers: Vec<_> = std::iter::from_fn(|| hub.transmit()).collect();
        spent_us += answers.iter().map(|(_, datagram)| made_us(datagram)).sum::<u64>();
        self.worked_us += spent_us;
        let free_us = self.now_us + spent_us;
        for (to, datagram) in answers {
            let Address::Udp(socket) = to else { continue };
            let Some(place) = place_at(socket) else { continue };
            self.plan(free_us + WAY_US, Happening::Reaches(place, datagram));
        }
        // Datagrams that come meanwhile wait in the socket.
        self.hub_is_busy = true;
        self.plan(free_us, Happening::HubTurns);
    }

    /// The devices that the hub has listed since that time.
    fn listed_since(&self, since_us: u64) -> usize {
        let is_listed = |device: &&Party| device.listed_us.is_some_and(|at_us| at_us >= since_us);
        self.devices.iter().filter(is_listed).count()
    }

    /// How often devices opened sessions and failed to register since that was last counted.
    fn take_counts(&mut self) -> (u32, u32) {
        let mut sums = (0, 0);
        for device in &mut self.devices {
            sums.0 += std::mem::take(&mut device.initiations);
            sums.1 += std::mem::take(&mut device.failures);
        }
        sums
    }

    fn table(&self, name: &str) -> Fullness {
        let tables = self.hub.as_ref().unwrap().fullness();
        tables.into_iter().find(|table| table.table == name).unwrap()
    }

    /// How many machines the hub's list has in all, as one who asks is told.
    fn listed_in_all(&mut self) -> u32 {
        let parameter = postcard::to_allocvec(&ListFrom { skip: 0 }).unwrap();
        let mut asking = Party::new(STRANGERS - 1, false, self.now_us, &mut self.random);
        let own = machine_id(&seed(STRANGERS - 1).device_secret().public_key());
        let call = OutgoingCall {
            function: function::LIST.into(),
            parameter: Some(parameter),
            deadline: at(self.now_us + 60_000_000),
            attempts: 20,
        };
        let (now, random) = (at(self.now_us), &mut self.random);
        let called =
            asking.endpoint.call(now, random, &own, &self.hub_key, address(HUB), None, call);
        called.unwrap();
        for _ in 0..2_000 {
            self.now_us += 10_000;
            let unix_time = UnixTime { seconds: self.unix_s() };
            let now = at(self.now_us);
            asking.endpoint.poll(now, &mut self.random);
            let hub = self.hub.as_mut().unwrap();
            let mut moment = Moment { now, unix_time, entropy: &mut self.random };
            while let Some((_, datagram)) = asking.endpoint.transmit() {
                hub.receive(&mut moment, address(STRANGERS - 1), &datagram);
            }
            hub.poll(&mut moment);
            while let Some((to, datagram)) = hub.transmit() {
                if to == address(STRANGERS - 1) {
                    asking.endpoint.receive(now, moment.entropy, address(HUB), &datagram);
                }
            }
            while let Some(event) = asking.endpoint.event() {
                let Event::CallDone { result, .. } = event else { continue };
                let bytes = result.unwrap().unwrap();
                return postcard::from_bytes::<Listing>(&bytes).unwrap().total;
            }
        }
        panic!("the hub tells nobody its list");
    }
}

/// The trial's findings, beside its demands.
struct Found {
    all_listed_after_s: f64,
    calm_load_percent: f64,
    back: Vec<Back>,
    /// The strangers who were served, and how many made room for others.
    strangers: usize,
    ended: u64,
}

/// How the crowd came back.
struct Back {
    absence_s: u64,
    half_after_s: f64,
    all_after_s: f64,
    /// Datagrams that found the hub's socket full.
    lost: u64,
}

impl std::fmt::Display for Back {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { absence_s, half_after_s, all_after_s, lost } = self;
        write!(f, "away for {absence_s} s: half of them back after {half_after_s:.1} s, ")?;
        write!(f, "all after {all_after_s:.1} s; {lost} datagrams lost")
    }
}

/// Puts a hub through it; `absences_s` are the times for which it is away. So many strangers come,
/// one in so many microseconds.
fn try_hub(devices: u32, absences_s: &[u64], (strangers, apart_us): (u32, u64)) -> Found {
    let count = devices as usize;
    let mut trial = Trial::new(devices);
    let all = |since_us: u64| move |trial: &Trial| trial.listed_since(since_us) == count;
    assert!(trial.run_until(120_000_000, all(0)), "{} are listed", trial.listed_since(0));
    let all_listed_after_s = trial.now_us as f64 / 1e6;
    trial.run_for(CALM_S);

    trial.take_counts();
    let (worked_us, lost) = (trial.worked_us, trial.lost);
    trial.run_for(3 * CALM_S);
    assert_eq!(trial.take_counts(), (0, 0), "in the calm each device keeps its session");
    assert_eq!(trial.lost, lost, "and the hub loses nothing");
    assert!(trial.worked_us - worked_us <= 3 * CALM_S * 1_000_000, "it has one processor");
    let calm_load_percent = (trial.worked_us - worked_us) as f64 / (3 * CALM_S) as f64 / 1e4;

    let mut back = Vec::new();
    for absence_s in absences_s {
        trial.kill_hub();
        trial.run_for(*absence_s);
        trial.start_hub();
        let (began_us, lost) = (trial.now_us, trial.lost);
        let within_us = began_us + 3 * CALM_S * 1_000_000;
        // A device that is back stays back: these have a session, and their calls go on while the others come.
        let half = |trial: &Trial| trial.listed_since(began_us) >= count / 2;
        assert!(trial.run_until(within_us, half));
        let half_after_s = (trial.now_us - began_us) as f64 / 1e6;
        let are_back: Vec<u32> = (1..=devices)
            .filter(|place| trial.party(*place).listed_us.is_some_and(|at_us| at_us >= began_us))
            .collect();
        for place in &are_back {
            let party = trial.party(*place);
            (party.initiations, party.failures) = (0, 0);
        }
        let is_back = trial.run_until(within_us, all(began_us));
        let listed = trial.listed_since(began_us);
        assert!(is_back, "after {absence_s} s without a hub {listed} of {count} are back in time");
        let all_after_s = (trial.now_us - began_us) as f64 / 1e6;
        trial.run_for(CALM_S);
        for place in &are_back {
            let party = trial.party(*place);
            let counts = (party.initiations, party.failures);
            assert_eq!(counts, (0, 0), "device {place} was back, and lost its session or a call");
        }
        trial.take_counts();
        trial.run_for(CALM_S);
        assert_eq!(trial.take_counts(), (0, 0), "it is as calm as before");
        for table in ["sessions", "callers", "initiations"] {
            assert_eq!(trial.table(table).times_full, 0, "no device ends another's session");
        }
        let lost = trial.lost - lost;
        let came = Back { absence_s: *absence_s, half_after_s, all_after_s, lost };
        println!("{came}");
        back.push(came);
    }
    assert_eq!(trial.listed_in_all(), devices, "each is in the list");

    // Strangers come as fast as the hub may take handshakes, and more of them than it has places.
    for number in 0..strangers {
        let mut party = Party::new(STRANGERS + number, false, trial.now_us, &mut trial.random);
        party.next_us = trial.now_us + u64::from(number) * apart_us;
        trial.plan(party.next_us, Happening::Wakes(STRANGERS + number));
        trial.strangers.push(party);
    }
    let until_us = trial.now_us + u64::from(strangers) * apart_us + 60_000_000;
    trial.run_until(until_us, |_| false);
    let served = trial.strangers.iter().filter(|party| party.listed_us.is_some()).count();
    // A caller who is forgotten loses its session too, so that this table is the one that is full.
    let callers = trial.table("callers");
    assert_eq!(callers.used, callers.most, "strangers filled what is left: {served} were served");
    assert!(callers.times_full > 0, "and took the places of each other");
    assert_eq!(trial.take_counts(), (0, 0), "no device lost its session or a call to strangers");
    let (strangers, ended) = (served, callers.times_full);
    Found { all_listed_after_s, calm_load_percent, back, strangers, ended }
}

#[test]
fn crowd_is_back_in_time_after_its_hub_was_away_and_strangers_end_sessions_of_strangers_alone() {
    let found = try_hub(40, &[5, 75], (200, 40_000));
    assert_eq!(found.back.len(), 2);
}

#[test]
#[ignore = "takes minutes: cargo test --release -p tenure-hub-server --test crowd -- --ignored --nocapture"]
fn ten_thousand_devices_are_back_in_time_after_their_hub_was_away() {
    let began = std::time::Instant::now();
    let found = try_hub(10_000, &[5, 75, 1_800], (20_000, 4_000));
    println!("all listed after {:.1} s", found.all_listed_after_s);
    println!("in the calm the hub works {:.0} % of the time", found.calm_load_percent);
    println!(
        "{} strangers were served, {} strangers made room for them",
        found.strangers, found.ended
    );
    println!("{:.0} s on this computer", began.elapsed().as_secs_f64());
}

/// The waits between two tries, as `tenure_node` has them: up to once in five sixths of a record's life.
#[test]
fn devices_of_the_trial_wait_as_real_ones() {
    let mut device = Party::new(1, true, 0, &mut Random::new(1));
    device.own = MachineId([0; 12]);
    let waits: Vec<u64> = (0..8)
        .map(|_| {
            device.hear_nothing(0);
            Duration::from_micros(device.next_us).as_secs()
        })
        .collect();
    assert_eq!(waits, [2, 4, 8, 16, 32, 50, 50, 50]);
}
