//! A hub on its database and devices that are real nodes, on one clock and one wire that loses nothing.

#[path = "../world/place.rs"]
mod place;

use std::collections::VecDeque;
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};
use tenure_crypto::{Seed, SigningKey};
use tenure_directory::enrol;
use tenure_hal::simulated::{RamFlash, Sequence, place_at, socket_at};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_hub::{
    Accepted, Changes, Failure, Heard, Hub, Kept, Left, OpenError, ServiceCall, Storage,
    StorageError, Stored,
};
use tenure_hub_server::{Database, Gates, Plan, SignedPlan, registry_digest, sign_in_request};
use tenure_node::{Config, Door as _, Moment, Node, Notice, Owner, Parts, Wake};
use tenure_package::{Mandate, Manifest, Package, PackageBuilder, Placement, Selector};
use tenure_wire::control::{Client as _, Enrol, ListMachines, Remove, TreeChange, TreeValue};
use tenure_wire::directory::Enrolment;
use tenure_wire::hub::{Access, Answer, Pass, Request, Response, function};
use tenure_wire::timer::{PackageTimer, When};
use tenure_wire::{Address, Budget, Capabilities, Digest, Name, NoResult, PublicKey, Share, Term};

pub(crate) use place::Place;

pub(crate) const MACHINE: &str = "counter";
/// When the world begins, in seconds since 1970 UTC.
pub(crate) const BEGAN_UNIX_S: u64 = 1_795_000_000;
/// How long a new fleet waits at most for its devices to be listed.
const LISTED_WITHIN_S: u64 = 120;
const HUB: Address = Address::Udp(socket_at(0));
/// The key by which the owner's command speaks to the hub.
const SESSION: PublicKey = PublicKey([4; 32]);

/// The answers of somebody who broke into the hub's process.
pub(crate) type Rogue = Box<dyn FnMut(&ServiceCall<'_>, &mut Database) -> Option<Vec<u8>>>;

/// The hub's database, which notes what it was asked, with whoever broke into the process before it.
pub(crate) struct Watched {
    pub(crate) database: Database,
    pub(crate) rogue: Option<Rogue>,
    /// The functions that devices called.
    pub(crate) asked: Vec<String>,
    /// After how many more questions about rollouts somebody dies, and who.
    pub(crate) death: Option<(usize, Death)>,
}

/// The process that dies, and at which moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// The hub, before its commit.
    HubBeforeCommit,
    /// The hub, after its commit and its answer.
    HubAfterCommit,
    /// The same, where only questions for parts count.
    HubAfterPart,
    /// The device, before the answer reaches it.
    Device,
    /// Nobody, but the hub's database doesn't say that it did the commit, so that the device hears nothing.
    Answer,
}

impl Storage for Watched {
    fn seed(&mut self) -> Result<Option<[u8; 32]>, StorageError> {
        self.database.seed()
    }

    fn set_seed(&mut self, seed: &[u8; 32]) -> Result<(), StorageError> {
        self.database.set_seed(seed)
    }

    fn records(&mut self) -> Result<Vec<Kept>, StorageError> {
        self.database.records()
    }

    fn put(&mut self, accepted: &Accepted<'_>) -> Result<(), StorageError> {
        self.database.put(accepted)
    }

    fn heard(&mut self, heard: &[Heard]) -> Result<(), StorageError> {
        self.database.heard(heard)
    }

    fn left(&mut self) -> Result<Vec<Left>, StorageError> {
        self.database.left()
    }

    fn ends(&mut self, device: &Name) -> Result<Option<u64>, StorageError> {
        self.database.ends(device)
    }

    fn may_have_work(&self) -> bool {
        self.database.may_have_work()
    }

    fn delete(&mut self, device: &Name) -> Result<(), StorageError> {
        self.database.delete(device)
    }

    fn forgettable(
        &mut self,
        over_before_unix_s: u64,
        forget_after_s: u64,
    ) -> Result<Option<Vec<Name>>, StorageError> {
        self.database.forgettable(over_before_unix_s, forget_after_s)
    }

    fn stored(&mut self, device: &Name) -> Result<Stored, StorageError> {
        self.database.stored(device)
    }

    fn unkept(&self) -> Result<Option<Vec<u8>>, NoResult> {
        self.database.unkept()
    }

    fn changes(&mut self) -> Result<Changes, StorageError> {
        self.database.changes()
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        self.database.commit()?;
        if self.death != Some((0, Death::Answer)) {
            return Ok(());
        }
        self.death = None;
        Err(StorageError { reason: "nobody heard of it".into(), failure: Failure::Unsure })
    }

    fn call(&mut self, call: &ServiceCall<'_>) -> Result<Option<Vec<u8>>, NoResult> {
        self.asked.push(call.function.to_string());
        if let Some((left, death)) = &mut self.death
            && (call.function == function::PART
                || (call.function == function::WORK && *death != Death::HubAfterPart))
        {
            *left = left.saturating_sub(1);
        }
        if let Some(rogue) = &mut self.rogue
            && let Some(answer) = rogue(call, &mut self.database)
        {
            return Ok(Some(answer));
        }
        self.database.call(call)
    }
}

pub(crate) struct Device {
    pub(crate) node: Node<RamFlash>,
    pub(crate) is_online: bool,
    pub(crate) notices: Vec<Notice>,
    config: Config,
    wake: Wake,
}

pub(crate) struct Fleet {
    place: Place,
    pub(crate) hub: Hub<Watched>,
    pub(crate) devices: Vec<Device>,
    pub(crate) now: Instant,
    /// The gates of rollouts that begin.
    pub(crate) gates: Gates,
    /// How often somebody died.
    pub(crate) deaths: usize,
    /// The time that the hub's clock shows for good, if it lies.
    pub(crate) hub_stands_at: Option<u64>,
    /// Whether the hub is off, and hears nothing.
    pub(crate) hub_is_away: bool,
    /// Whether the hub takes note of when it hears, as its process does.
    pub(crate) hears: bool,
    /// The number of the owner's last request.
    requests: u64,
    entropy: Sequence,
}

pub(crate) fn owner() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn tenant() -> SigningKey {
    SigningKey::from_bytes(&[50; 32])
}

/// A package of the machine in that version, which says so in its log; a bad one fails as soon as it starts.
pub(crate) fn package(version: &str, is_bad: bool) -> Vec<u8> {
    let fails = if is_bad { "unreachable" } else { "" };
    signed(version, fails, "", Vec::new())
}

/// A package of the machine in that version, which counts to `count` each second.
pub(crate) fn counting(version: &str, count: u32) -> Vec<u8> {
    let tick = format!(
        "(func (export \"tick\") (local i32) (loop
           (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const {count})))))"
    );
    let timer = PackageTimer { function: "tick".into(), when: When::Every(1_000) };
    signed(version, "", &tick, vec![timer])
}

fn signed(version: &str, fails: &str, tick: &str, timers: Vec<PackageTimer>) -> Vec<u8> {
    // The data makes it long enough for several parts.
    let (data, length) = (format!("{version}{}", "x".repeat(9_000)), version.len());
    let text = format!(
        "(module (import \"tenure\" \"log\" (func $log (param i32 i32 i32)))
           (memory 1) (data (i32.const 0) \"{data}\")
           (func (export \"entry\") (call $log (i32.const 2) (i32.const 0) (i32.const {length})) {fails}) {tick})"
    );
    let manifest = Manifest {
        exports: vec!["entry".into()],
        timers,
        ..Manifest::new(MACHINE.parse().unwrap(), version.parse().unwrap())
    };
    let wasm = wat::parse_str(text).unwrap();
    PackageBuilder::new(manifest, wasm).unwrap().sign(&tenant()).unwrap()
}

pub(crate) fn digest(package: &[u8]) -> Digest {
    Package::parse(package).unwrap().digest()
}

/// A mandate for all of `devices` to take `package`, for a day.
pub(crate) fn mandate(package: &[u8], devices: &[&str], number: u64) -> Mandate {
    let package = Package::parse(package).unwrap();
    Mandate {
        number,
        machine: MACHINE.parse().unwrap(),
        devices: Selector::Names(devices.iter().map(|name| name.parse().unwrap()).collect()),
        tenant: tenant().verifying_key(),
        package: package.digest(),
        version: package.manifest().version,
        from: "0.0.0".parse().unwrap(),
        budget: Budget::default(),
        grants: None,
        ends_unix_s: BEGAN_UNIX_S + 86_400,
        back_until_unix_s: BEGAN_UNIX_S + 2 * 86_400,
        placed: None,
    }
}

fn flash(sector_count: u32) -> RamFlash {
    RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
}

impl Fleet {
    /// A hub and devices that have version 1.0.0, which the hub keeps.
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::at(Place::new(), names)
    }

    /// The same with the hub's database there.
    pub(crate) fn at(place: Place, names: &[&str]) -> Self {
        let mut entropy = Sequence(1);
        let hub = open(&place, Instant::BOOT, &mut entropy);
        let now = Instant::BOOT;
        let (devices, gates, hub_stands_at) = (Vec::new(), Gates::default(), None);
        let mut fleet = Self {
            place,
            hub,
            devices,
            now,
            gates,
            deaths: 0,
            hub_stands_at,
            hub_is_away: false,
            hears: false,
            requests: 0,
            entropy,
        };
        for (number, name) in names.iter().enumerate() {
            fleet.add(name, number as u8);
        }
        fleet.pass(5);
        // One that a server on a busy computer put off comes again.
        for _ in 0..LISTED_WITHIN_S {
            if fleet.listed() == names.len() {
                break;
            }
            fleet.pass(1);
        }
        fleet.push(&package("1.0.0", false));
        fleet
    }

    /// How many devices the hub lists.
    fn listed(&self) -> usize {
        let tables = self.hub.fullness().into_iter();
        tables.filter(|table| table.table == "devices").map(|table| table.used).sum()
    }

    /// Enrols a device that has version 1.0.0; its label is `row=r0` or `row=r1` by its number.
    pub(crate) fn add(&mut self, name: &str, number: u8) {
        let machine = Seed::from_bytes(&owner().to_bytes()).device_secret().public_key();
        let keys = Owner { verifying_key: owner().verifying_key(), machine };
        let name: Name = name.parse().unwrap();
        let mut config = Config::new(name.clone(), keys);
        config.hub = Some(tenure_node::Hub { address: HUB, key: Some(self.hub.key()) });
        config.labels = vec![format!("row=r{}", number % 2).parse().unwrap()];
        let parts = Parts { store: flash(32), code: flash(64), staging: flash(32) };
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        let mut node = Node::boot(config.clone(), parts, &mut moment).unwrap();
        let device_key = node.device_key();
        let enrolment = Enrolment { device: name, device_key, number: 1 };
        let signature = enrol(&owner(), &enrolment);
        node.as_owner(&mut moment).enrol(Enrol { enrolment, signature }).unwrap();
        let notices = Vec::new();
        self.devices.push(Device { node, is_online: true, notices, config, wake: Wake::Now });
        self.install(usize::from(number), &package("1.0.0", false), 1);
    }

    /// The owner puts a package on a device by hand.
    pub(crate) fn install(&mut self, device: usize, package: &[u8], sequence: u64) {
        self.install_as(MACHINE, device, package, sequence);
    }

    /// The same under another name.
    pub(crate) fn install_as(
        &mut self,
        machine: &str,
        device: usize,
        package: &[u8],
        sequence: u64,
    ) {
        let term = Term { signed_unix_s: self.unix_s(), ..Term::default() };
        let node = &mut self.devices[device].node;
        let placement = Placement {
            package: digest(package),
            device: node.device_key(),
            machine: machine.parse().unwrap(),
            budget: Budget::default(),
            share: Share::default(),
            grants: Capabilities::default(),
            term,
            sequence,
        };
        let placement = placement.sign(&owner()).unwrap();
        let mut moment = Moment { now: self.now, unix_time: None, entropy: &mut self.entropy };
        node.install(&mut moment, package, &placement).unwrap();
        self.devices[device].wake = Wake::Now;
    }

    pub(crate) fn unix_s(&self) -> u64 {
        BEGAN_UNIX_S + self.now.as_millis() / 1000
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while self.now < until {
            self.settle();
            let wakes = self.devices.iter().filter(|device| device.is_online);
            let wakes = wakes.filter_map(|device| match device.wake {
                Wake::Now => Some(self.now + Duration::from_millis(1)),
                Wake::At(at) => Some(at),
                Wake::Never => None,
            });
            let next = wakes.chain(self.hub.poll_at()).min().unwrap_or(until);
            self.now = next.max(self.now + Duration::from_millis(1)).min(until);
        }
    }

    /// Lets everybody do what is due now, and brings to each what the others sent.
    fn settle(&mut self) {
        let seconds = self.hub_stands_at.unwrap_or(self.unix_s());
        let unix_time = UnixTime { seconds };
        let mut wire: VecDeque<(Address, Address, Vec<u8>)> = VecDeque::new();
        let mut is_first = true;
        while is_first || !wire.is_empty() {
            is_first = false;
            while let Some((from, to, datagram)) = wire.pop_front() {
                let Address::Udp(socket) = to else { continue };
                let Some(number) = place_at(socket) else { continue };
                if number == 0 && self.hub_is_away {
                    continue;
                }
                if number == 0 {
                    let (now, entropy) = (self.now, &mut self.entropy);
                    let mut moment = tenure_hub::Moment { now, unix_time, entropy };
                    self.hub.receive(&mut moment, from, &datagram);
                    if self.die(Death::HubBeforeCommit) {
                        self.restart_hub();
                    }
                    continue;
                }
                let device = &mut self.devices[number as usize - 1];
                if device.is_online {
                    let (now, entropy) = (self.now, &mut self.entropy);
                    let mut moment = Moment { now, unix_time: None, entropy };
                    device.node.receive(&mut moment, from, &datagram);
                    device.wake = Wake::Now;
                }
            }
            if !self.hub_is_away {
                let (now, entropy) = (self.now, &mut self.entropy);
                self.hub.poll(&mut tenure_hub::Moment { now, unix_time, entropy });
                if self.hears {
                    self.hub.storage().database.running().hear(seconds);
                }
            }
            wire.extend(
                std::iter::from_fn(|| self.hub.transmit()).map(|(to, sent)| (HUB, to, sent)),
            );
            if self.die(Death::HubAfterCommit) || self.die(Death::HubAfterPart) {
                self.restart_hub();
            }
            if self.die(Death::Device) {
                wire.clear();
                self.restart_device(0);
            }
            for (number, device) in self.devices.iter_mut().enumerate() {
                if !device.is_online || !device.is_due(self.now) {
                    continue;
                }
                let (now, entropy) = (self.now, &mut self.entropy);
                device.wake = device.node.poll(&mut Moment { now, unix_time: None, entropy });
                device.notices.extend(std::iter::from_fn(|| device.node.notice()));
                let from = Address::Udp(socket_at(number as u32 + 1));
                let sent = std::iter::from_fn(|| device.node.transmit());
                wire.extend(sent.map(|(to, datagram)| (from.clone(), to, datagram)));
            }
        }
    }

    /// Whether it is time for that death, which comes once.
    fn die(&mut self, death: Death) -> bool {
        let is_time = self.hub.storage().death == Some((0, death));
        if is_time {
            self.hub.storage().death = None;
            self.deaths += 1;
        }
        is_time
    }

    /// The hub dies without another word, and another one takes up its database.
    pub(crate) fn restart_hub(&mut self) {
        let elsewhere = Place::in_a_folder();
        let stand_in = open(&elsewhere, self.now, &mut self.entropy);
        drop(std::mem::replace(&mut self.hub, stand_in));
        self.hub = open(&self.place, self.now, &mut self.entropy);
        if self.hears {
            let unix_s = self.unix_s();
            self.hub.storage().database.running().hear(unix_s);
        }
    }

    /// Changes the hub's database behind its back.
    pub(crate) fn write_by_hand(&mut self, statement: &str) {
        self.place.write_by_hand(statement);
    }

    /// Rows of the hub's database, each as text.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        self.place.rows(query)
    }

    /// The owner sets a value in the machine's tree on a device.
    pub(crate) fn set_value(&mut self, device: usize, path: &str, value: &str) {
        let (now, entropy) = (self.now, &mut self.entropy);
        let mut moment = Moment { now, unix_time: None, entropy };
        let value = Some(TreeValue::Text(value.into()));
        let change = TreeChange { machine: MACHINE.parse().unwrap(), path: path.into(), value };
        self.devices[device].node.as_owner(&mut moment).tree_change(change).unwrap();
    }

    /// The owner removes the machine from a device, with all that it stored.
    pub(crate) fn remove(&mut self, device: usize) {
        let (now, entropy) = (self.now, &mut self.entropy);
        let mut moment = Moment { now, unix_time: None, entropy };
        let remove = Remove { machine: MACHINE.parse().unwrap(), for_good: true };
        self.devices[device].node.as_owner(&mut moment).remove(remove).unwrap();
    }

    /// The machine on a device: its version, tier, end and number; `None` if there is none.
    pub(crate) fn machine(&mut self, device: usize) -> Option<(String, u16, Option<u64>, u64)> {
        let (now, entropy) = (self.now, &mut self.entropy);
        let mut moment = Moment { now, unix_time: None, entropy };
        let query = ListMachines { skip: 0 };
        let list = self.devices[device].node.as_owner(&mut moment).list(query).unwrap();
        let found = list.machines.into_iter().find(|machine| machine.name.as_str() == MACHINE)?;
        let (version, term) = (found.version.to_string(), found.term);
        Some((version, found.share.tier, term.ends_unix_s, found.lease_number))
    }

    /// The device loses its power and starts anew.
    pub(crate) fn restart_device(&mut self, number: usize) {
        let Device { node, config, notices, is_online, .. } = self.devices.remove(number);
        let (now, entropy) = (self.now, &mut self.entropy);
        let mut moment = Moment { now, unix_time: None, entropy };
        let node = Node::boot(config.clone(), node.into_parts(), &mut moment).unwrap();
        let device = Device { node, is_online, notices, config, wake: Wake::Now };
        self.devices.insert(number, device);
    }

    /// The owner starts the device anew, with the hub allowed to show its log.
    pub(crate) fn share_log(&mut self, number: usize) {
        self.devices[number].config.shares_log = true;
        self.restart_device(number);
    }

    /// A request of the owner's to the hub.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let unix_s = self.unix_s();
        let key = self.hub.key();
        let database = &mut self.hub.storage().database;
        let mut call = |function: &str, parameter: Vec<u8>| {
            let parameter = parameter.as_slice();
            let call = ServiceCall { peer: &SESSION, hub: &key, function, parameter, unix_s };
            loop {
                let answer = database.call(&call);
                match database.commit() {
                    Ok(()) => return answer.unwrap().unwrap(),
                    // It is tried again, as the hub does, and as who is put off by a server on a busy computer; also what may
                    // have been done already.
                    Err(error) => assert_ne!(error.failure, Failure::Refused, "{error}"),
                }
            }
        };
        let sign_in = sign_in_request(&owner(), key, SESSION, Access::Session);
        let pass = call(function::SIGN_IN, postcard::to_allocvec(&sign_in).unwrap());
        let pass: Answer<Pass> = postcard::from_bytes(&pass).unwrap();
        let kind = "application/vnd.oci.image.manifest.v1+json";
        self.requests += 1;
        let once = format!("{}", self.requests);
        let request = Request {
            pass: pass.unwrap().secret,
            method: method.into(),
            path: path.into(),
            headers: vec![("content-type".into(), kind.into()), ("idempotency-key".into(), once)],
            body: body.to_vec(),
        };
        let answer = call(function::REQUEST, postcard::to_allocvec(&request).unwrap());
        let answer: Answer<Response> = postcard::from_bytes(&answer).unwrap();
        let answer = answer.unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Puts a package into the owner's registry.
    pub(crate) fn push(&mut self, package: &[u8]) {
        let mut blob = |bytes: &[u8]| {
            let digest = registry_digest(bytes);
            let path = format!("/v2/{MACHINE}/blobs/uploads/?digest={digest}");
            assert_eq!(self.ask("POST", &path, bytes).0, 201);
            json!({ "digest": digest, "size": bytes.len() })
        };
        let (mut config, mut layer) = (blob(b"{}"), blob(package));
        let kind = "application/vnd.tenure.package.v1";
        config["mediaType"] = "application/vnd.oci.empty.v1+json".into();
        layer["mediaType"] = kind.into();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": kind,
            "config": config,
            "layers": [layer],
        });
        let tag = &registry_digest(package)[7..27];
        let path = format!("/v2/{MACHINE}/manifests/{tag}");
        let (status, answer) = self.ask("PUT", &path, manifest.to_string().as_bytes());
        assert_eq!(status, 201, "{answer}");
    }

    /// The owner's plan for a package that is in the registry, with the mandate for it; returns the rollout's
    /// number.
    pub(crate) fn start(&mut self, package: &[u8], devices: &[&str]) -> i64 {
        let mandate = mandate(package, devices, self.unix_s());
        let (status, answer) = self.post(&mandate, devices);
        assert_eq!(status, 201, "{answer}");
        answer["id"].as_i64().unwrap()
    }

    pub(crate) fn post(&mut self, mandate: &Mandate, devices: &[&str]) -> (u16, Value) {
        let plan = Plan {
            machine: mandate.machine.clone(),
            package: mandate.package,
            tenant: mandate.tenant,
            from: mandate.from,
            devices: devices.iter().map(|name| name.parse().unwrap()).collect(),
            labels: match &mandate.devices {
                Selector::Names(_) => Vec::new(),
                Selector::Labels(labels) => labels.clone(),
            },
            stages: vec!["1".into(), "50%".into()],
            soak_s: 30,
            faults_max: 0,
            gates: self.gates.clone(),
            failures_max: 0,
            pause_on_failure: false,
            ends_unix_s: mandate.ends_unix_s as i64,
        };
        let signed = SignedPlan {
            mandate: Some(BASE64.encode(&mandate.sign(&owner()).unwrap())),
            ..SignedPlan::sign(&plan, &owner())
        };
        self.ask("POST", "/v1/rollouts", json!(signed).to_string().as_bytes())
    }

    pub(crate) fn rollout(&mut self, id: i64) -> Value {
        self.ask("GET", &format!("/v1/rollouts/{id}"), &[]).1
    }

    /// Lets time pass until the rollout is over, or a quarter of an hour; returns how it is then.
    pub(crate) fn drive(&mut self, id: i64) -> Value {
        for _ in 0..90 {
            self.pass(10);
            let state = self.rollout(id);
            if state["is_over"] == true {
                return state;
            }
        }
        self.rollout(id)
    }

    /// The version that ran last on each device, by the machine's own word.
    pub(crate) fn versions(&self) -> Vec<String> {
        self.devices.iter().map(|device| device.ran().last().cloned().unwrap_or_default()).collect()
    }

    /// Why the device refused steps.
    pub(crate) fn refusals(&self, device: usize) -> Vec<String> {
        let reason = |notice: &Notice| match notice {
            Notice::StepRefused { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        self.devices[device].notices.iter().filter_map(reason).collect()
    }

    /// How often devices asked the hub for that.
    pub(crate) fn asked(&mut self, function: &str) -> usize {
        self.hub.storage().asked.iter().filter(|asked| *asked == function).count()
    }
}

impl Device {
    fn is_due(&self, now: Instant) -> bool {
        match self.wake {
            Wake::Now => true,
            Wake::At(at) => at <= now,
            Wake::Never => false,
        }
    }

    /// The versions that the machine logged when it started, one after the other.
    pub(crate) fn ran(&self) -> Vec<String> {
        let line = |notice: &Notice| match notice {
            Notice::Log(line) if line.level == "info" => Some(line.message.clone()),
            _ => None,
        };
        self.notices.iter().filter_map(line).collect()
    }
}

/// A hub in that place, started again and again while that fails for what is in the way there.
fn open(place: &Place, now: Instant, entropy: &mut Sequence) -> Hub<Watched> {
    place.read(|| try_to_open(place, now, entropy))
}

fn try_to_open(
    place: &Place,
    now: Instant,
    entropy: &mut Sequence,
) -> Result<Hub<Watched>, OpenError> {
    let mut database = Database::open(place.location()).unwrap();
    database.admit(vec![owner().verifying_key()], None);
    let storage = Watched { database, rogue: None, asked: Vec::new(), death: None };
    let unix_time = UnixTime { seconds: BEGAN_UNIX_S + now.as_millis() / 1000 };
    let mut moment = tenure_hub::Moment { now, unix_time, entropy };
    let owners = vec![owner().verifying_key()];
    let config = tenure_hub::Config { owners, ..tenure_hub::Config::default() };
    Hub::open(config, storage, &mut moment)
}
