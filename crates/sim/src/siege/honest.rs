//! The people who must be served whatever attackers do: the owner at the desk, and honest newcomers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_crypto::Seed;
use tenure_directory::open_whenever;
use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_node::Node;
use tenure_protocols::network_key::{NetworkKey, invite};
use tenure_wire::control::{
    Answer, DeviceStatus, Function, InstallBegin, InstallChunk, InstallCommit, Join, ListMachines,
    LogPage, LogQuery, MachineList, MachineStatus,
};
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, PublicKey, VerifyingKey};

use super::person::{Outcome, Person};
use super::promises::Promises;
use super::{NEWCOMERS, OWNER, PLACES, SIEGE_US, machines};
use crate::flash::Partition;
use crate::place::Keys;

/// How long the owner's tool waits for one answer, and between two tries.
const PATIENCE: Duration = Duration::from_secs(8);
const AGAIN_US: u64 = 300_000;
/// How long a newcomer waits for one answer.
const NEWCOMER_PATIENCE: Duration = Duration::from_secs(15);
/// Between two newcomers, in milliseconds.
const NEWCOMER_EVERY_MS: std::ops::RangeInclusive<u64> = 1_500..=4_000;
/// The bytes of a package that go to the device in one call: of more than one datagram.
const CHUNK_BYTES: usize = 2_500;
/// When somebody calls whose first message is held back, at the soonest, and how long it is held: longer
/// than the epoch that it names may count.
const HELD_US: u64 = SIEGE_US + 60_000_000;
const HELD_FOR_US: u64 = 270_000_000;
/// Steps that the owner repeats in turn when the siege is over.
const AT_REST: [Step; 3] = [Step::Status, Step::Value, Step::List { skip: 0 }];

/// A step of the owner's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Status,
    List { skip: u32 },
    Log,
    Value,
    Begin,
    Chunk { offset: usize },
    Commit,
    Join,
}

/// A newcomer who wants one call served.
struct Newcomer {
    person: Person<()>,
    since: Instant,
    again_at: Instant,
}

/// All who are honest.
pub(super) struct Honest {
    owner: Person<Step>,
    device: Option<(VerifyingKey, PublicKey)>,
    keys: BTreeMap<&'static str, PublicKey>,
    step: Step,
    /// Since when the owner wants the step served.
    since: Option<Instant>,
    next_us: u64,
    /// The package that is on its way, its placement, and the number of that.
    package: (Vec<u8>, Vec<u8>),
    placements: u64,
    /// How often the owner looked at something since the siege.
    looks: usize,
    /// Invitations to the mesh that the owner has the device take, one after the other.
    invitations: Vec<Vec<u8>>,
    newcomers: Vec<Newcomer>,
    newcomer_us: u64,
    arrived: usize,
    /// The epoch that the device's record named last, and when the owner read that.
    epoch: Option<(Epoch, Instant)>,
    held: Option<Person<()>>,
    /// When what is held back is let go.
    let_go_us: Option<u64>,
    held_back: Vec<(usize, Vec<u8>)>,
}

impl Honest {
    pub(super) fn new(owner: &Seed, random: &mut Random) -> Self {
        Self {
            owner: Person::with(Instant::BOOT, OWNER, owner.device_secret(), random),
            device: None,
            keys: BTreeMap::new(),
            step: Step::Status,
            since: None,
            next_us: 500_000,
            package: (Vec::new(), Vec::new()),
            placements: 1,
            invitations: Vec::new(),
            newcomers: Vec::new(),
            newcomer_us: 2_000_000,
            arrived: 0,
            epoch: None,
            held: None,
            let_go_us: None,
            looks: 0,
            held_back: Vec::new(),
        }
    }

    /// Learns the key of a machine.
    pub(super) fn learn(&mut self, name: &'static str, key: PublicKey) {
        self.keys.insert(name, key);
    }

    /// Learns who the device is.
    pub(super) fn meet(&mut self, node: &Node<Partition>) {
        self.device = Some((node.device_key(), node.device_machine()));
    }

    /// Prepares the way into the owner's mesh, by another network and back, within one start of the device.
    pub(super) fn joins_mesh(&mut self, keys: &Keys, random: &mut Random, node: &Node<Partition>) {
        let Some(own) = keys.network.clone() else { return };
        let other = NetworkKey::generate(random).expect("this source never fails");
        for (number, network) in [&own, &other, &own].into_iter().enumerate().rev() {
            let device = node.device_machine();
            let invitation = invite(&keys.owner, &device, number as u64 + 1, network, random);
            self.invitations.push(invitation.expect("the device's own key"));
        }
    }

    pub(super) fn next_us(&self) -> u64 {
        let owner = if self.owner.waiting() == 0 { self.next_us } else { u64::MAX };
        let newcomers = self.newcomers.iter().map(|newcomer| {
            let again_us = match newcomer.person.waiting() {
                0 => newcomer.again_at.as_micros(),
                _ => u64::MAX,
            };
            again_us.min(newcomer.person.next_us())
        });
        let held = self.held.iter().map(Person::next_us);
        let newcomer = (self.newcomer_us < SIEGE_US).then_some(self.newcomer_us);
        let dues = newcomers.chain([owner, self.owner.next_us()]).chain(held).chain(newcomer);
        dues.min().unwrap_or(u64::MAX)
    }

    /// Hands a datagram to the one who is there; `false` if nobody honest is.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        random: &mut Random,
        to: usize,
        from: Address,
        datagram: &[u8],
    ) -> bool {
        if to == OWNER {
            self.owner.receive(now, random, from, datagram);
            return true;
        }
        let found = self.newcomers.iter_mut().find(|newcomer| newcomer.person.place == to);
        if let Some(newcomer) = found {
            newcomer.person.receive(now, random, from, datagram);
        }
        (NEWCOMERS..PLACES).contains(&to)
    }

    pub(super) fn attend(
        &mut self,
        now: Instant,
        random: &mut Random,
        keys: &Keys,
        under_siege: bool,
        promises: &mut Promises,
    ) {
        self.owner.attend(now, random);
        for (step, outcome) in self.owner.done() {
            self.step_done(now, random, (step, outcome), under_siege, promises);
        }
        if self.owner.waiting() == 0 && now.as_micros() >= self.next_us {
            self.take_step(now, random, keys, promises);
        }
        self.attend_to_newcomers(now, random, promises);
        self.attend_to_held(now, random);
    }

    /// The next datagram, and from where.
    pub(super) fn transmit(&mut self) -> Option<(usize, Vec<u8>)> {
        if let Some(datagram) = self.owner.transmit() {
            return Some((OWNER, datagram));
        }
        let of_newcomer =
            |newcomer: &mut Newcomer| Some((newcomer.person.place, newcomer.person.transmit()?));
        if let Some(sent) = self.newcomers.iter_mut().find_map(of_newcomer) {
            return Some(sent);
        }
        // An attacker on the way keeps these, until they are let go.
        if let Some(held) = &mut self.held {
            while let Some(datagram) = held.transmit() {
                self.held_back.push((held.place, datagram));
            }
            return None;
        }
        self.held_back.pop()
    }

    /// Does, or tries again, what the owner is about.
    fn take_step(
        &mut self,
        now: Instant,
        random: &mut Random,
        keys: &Keys,
        promises: &mut Promises,
    ) {
        let Some((device_key, device)) = self.device else { return };
        let since = *self.since.get_or_insert(now);
        promises.owner_waits_since(Some(since));
        let (function, parameter) = match self.step {
            Step::Status => (Function::status.name(), encode(&())),
            Step::List { skip } => (Function::list.name(), encode(&ListMachines { skip })),
            Step::Log => {
                let machine = Some(machines::VAULT.parse().expect("a name"));
                (Function::log.name(), encode(&LogQuery { machine, from: 0, level: None }))
            }
            Step::Value => {
                let keeper = self.keys[machines::KEEPER];
                let call = ("value", None);
                promises.value_asked();
                return self.owner.call(now, random, &keeper, call, None, (Step::Value, PATIENCE));
            }
            Step::Begin => {
                self.placements += 1;
                let machine = machines::newcomer();
                let number = self.placements;
                self.package = machine.sign_as(number, &keys.tenant, &keys.owner, device_key);
                let bytes = self.package.0.len() as u32;
                (Function::install_begin.name(), encode(&InstallBegin { bytes }))
            }
            Step::Chunk { offset } => {
                let rest = &self.package.0[offset..];
                let bytes = &rest[..rest.len().min(CHUNK_BYTES)];
                let chunk = InstallChunk { offset: offset as u32, bytes };
                (Function::install_chunk.name(), encode(&chunk))
            }
            Step::Commit => {
                let placement = self.package.1.clone();
                (Function::install_commit.name(), encode(&InstallCommit { placement }))
            }
            Step::Join => {
                let invitation = self.invitations.last().cloned().unwrap_or_default();
                (Function::join.name(), encode(&Join { invitation }))
            }
        };
        let call = (function, Some(parameter));
        self.owner.call(now, random, &device, call, None, (self.step, PATIENCE));
    }

    /// Takes the answer to a step and chooses the next.
    fn step_done(
        &mut self,
        now: Instant,
        random: &mut Random,
        (step, outcome): (Step, Outcome),
        under_siege: bool,
        promises: &mut Promises,
    ) {
        if let Err(failure) = &outcome
            && step != Step::Value
        {
            promises.owner_refused(failure);
        }
        let reply = outcome.ok().map(Option::unwrap_or_default);
        let next = reply.and_then(|reply| self.next_step(now, random, step, &reply, promises));
        let Some(next) = next else {
            // An installation of which a part may be lost begins anew.
            self.step = match step {
                Step::Chunk { .. } | Step::Commit => Step::Begin,
                step => step,
            };
            self.next_us = now.as_micros() + AGAIN_US;
            return;
        };
        let waited = now.since(self.since.take().unwrap_or(now));
        promises.owner_served(waited);
        self.step = next;
        let is_midway =
            matches!(next, Step::Chunk { .. } | Step::Commit | Step::List { skip: 1.. });
        let rest = match (is_midway, under_siege) {
            (true, _) => 0..=20,
            (_, true) => 200..=1_500,
            (_, false) => 10_000..=20_000,
        };
        self.next_us = now.as_micros() + super::millis(random, rest);
    }

    /// The step after one that was answered; `None` if it has to be done again.
    fn next_step(
        &mut self,
        now: Instant,
        random: &mut Random,
        step: Step,
        reply: &[u8],
        promises: &mut Promises,
    ) -> Option<Step> {
        match step {
            Step::Status => {
                let status = decode::<DeviceStatus>(reply)?;
                let record = status.record.and_then(|it| open_whenever(&it).ok());
                self.epoch = record.map(|record| (record.epoch, now));
            }
            Step::List { skip } => {
                let page = decode::<MachineList>(reply)?;
                let seen = skip + page.machines.len() as u32;
                promises.listed(skip, &page);
                if seen < page.total {
                    return Some(Step::List { skip: seen });
                }
                promises.listed_all(now);
            }
            Step::Log => promises.log_read(now, &decode::<LogPage>(reply)?),
            Step::Value => promises.value_read(now, reply),
            Step::Begin => drop(decode::<()>(reply)?),
            Step::Chunk { .. } => drop(decode::<()>(reply)?),
            Step::Commit => {
                decode::<MachineStatus>(reply)?;
                promises.installed_late();
            }
            Step::Join => {
                // One that was taken and not acknowledged is refused the second time.
                let _answer = postcard::from_bytes::<Answer<()>>(reply).ok()?;
                self.invitations.pop();
            }
        }
        let sent = match step {
            Step::Begin => Some(0),
            Step::Chunk { offset } => Some(offset + CHUNK_BYTES),
            _ => None,
        };
        Some(match sent {
            Some(offset) if offset < self.package.0.len() => Step::Chunk { offset },
            Some(_) => Step::Commit,
            None if now.as_micros() >= SIEGE_US => {
                self.looks += 1;
                AT_REST[self.looks % AT_REST.len()]
            }
            None if !self.invitations.is_empty() && random.chance(300) => Step::Join,
            None => *random.pick(&[
                Step::Status,
                Step::List { skip: 0 },
                Step::Log,
                Step::Value,
                Step::Begin,
            ]),
        })
    }

    fn attend_to_newcomers(&mut self, now: Instant, random: &mut Random, promises: &mut Promises) {
        let keeper = self.keys.get(machines::KEEPER).copied();
        let Some(keeper) = keeper else { return };
        if now.as_micros() >= self.newcomer_us && now.as_micros() < SIEGE_US {
            self.newcomer_us = now.as_micros() + super::millis(random, NEWCOMER_EVERY_MS);
            let place = NEWCOMERS + self.arrived % (PLACES - NEWCOMERS);
            self.arrived += 1;
            let person = Person::stranger(now, place, random);
            self.newcomers.push(Newcomer { person, since: now, again_at: now });
        }
        for newcomer in &mut self.newcomers {
            newcomer.person.attend(now, random);
            if newcomer.person.waiting() == 0 && now >= newcomer.again_at {
                let call = ("count", None);
                let errand = ((), NEWCOMER_PATIENCE);
                newcomer.person.call(now, random, &keeper, call, None, errand);
            }
        }
        self.newcomers.retain_mut(|newcomer| {
            let mut is_served = false;
            for ((), outcome) in newcomer.person.done() {
                newcomer.again_at = now + Duration::from_millis(500);
                match outcome {
                    Ok(reply) => {
                        is_served = true;
                        promises.counted(now.since(newcomer.since), &reply.unwrap_or_default());
                    }
                    Err(failure) => promises.newcomer_failed(&failure),
                }
            }
            !is_served
        });
        promises.newcomers_wait_since(self.newcomers.iter().map(|it| it.since).min());
    }

    /// Lets somebody call whose messages nobody gets, and lets them go long after.
    fn attend_to_held(&mut self, now: Instant, random: &mut Random) {
        let at_us = now.as_micros();
        if let Some(held) = &mut self.held {
            held.attend(now, random);
            if self.let_go_us.is_some_and(|let_go_us| at_us >= let_go_us) {
                self.held = None;
            }
            return;
        }
        let keeper = self.keys.get(machines::KEEPER).copied();
        let (Some(keeper), Some((epoch, read_at)), None) = (keeper, self.epoch, self.let_go_us)
        else {
            return;
        };
        if read_at.as_micros() >= HELD_US {
            let mut held = Person::stranger(now, NEWCOMERS, random);
            let errand = ((), Duration::from_secs(5));
            held.call(now, random, &keeper, ("count", None), Some(epoch), errand);
            self.held = Some(held);
            self.let_go_us = Some(at_us + HELD_FOR_US);
        }
    }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain data")
}

fn decode<T: DeserializeOwned>(reply: &[u8]) -> Option<T> {
    postcard::from_bytes::<Answer<T>>(reply).ok()?.ok()
}
