//! A device under siege: strangers, a hostile tenant, a hostile member of its mesh and a false hub draw moves
//! at once from the list in `docs/threats.md`, while its owner and its honest tenants go on as ever.
//!
//! [`run`] draws who attacks and how from a seed. What must hold all the while is in `promises`; the first
//! promise that is broken ends the world. A hunt plants a [`Weakness`] to see that it is found; that, and
//! watching each nonce and signature, takes a build with `--cfg planted`.

mod attackers;
mod honest;
mod machines;
mod member;
mod person;
mod promises;
mod reflector;
mod tally;
pub(crate) mod watched;

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey};
use tenure_hal::planted::Weakness;
use tenure_hal::simulated::{Random, place_at, socket_at};
use tenure_hal::{FlashGeometry, Instant};
use tenure_node::{Config, Door, Hub, Moment, Node, Notice, Parts, Wake};
use tenure_wire::Address;
use tenure_wire::control::{Client as _, Enrol};
use tenure_wire::directory::Enrolment;

use crate::agenda::Agenda;
use crate::flash::{Device, Partition};
use crate::network::Network;
use crate::panics;
use crate::place::Keys;
use crate::scenario::NetworkPlan;
use crate::tenancy;
use attackers::Attackers;
use honest::Honest;
use machines::NEIGHBOURS;
use member::Member;
use promises::Promises;
pub use tally::Tally;

/// The weaknesses that can be planted, by the names of the findings of the audit that they were.
pub const WEAKNESSES: [(&str, Weakness); 13] = [
    ("h1", Weakness::FalseHubEndsLeases),
    ("h2", Weakness::HalfSentCallsStay),
    ("h3", Weakness::ResponsesGoAnywhere),
    ("m1", Weakness::OneHostTakesHandshakes),
    ("m2", Weakness::SignaturesWithoutLimit),
    ("m3", Weakness::SecretsWearFlash),
    ("m4", Weakness::WaitingCallersUncounted),
    ("m5", Weakness::TextsReadToTheEnd),
    ("m7", Weakness::LogsWithoutLimit),
    ("m8", Weakness::DenialsFillLogs),
    ("m9", Weakness::FramesNumberedAlike),
    ("m12", Weakness::EpochsNeverEnd),
    ("m15", Weakness::StrangersSetThePace),
];

/// The weakness of that name, to be planted.
///
/// # Errors
/// Which names there are, or that this build can plant none.
pub fn weakness(name: &str) -> Result<Weakness, String> {
    if !cfg!(planted) {
        return Err("this build can plant no weakness; run `cargo xtask sim`".to_string());
    }
    let all = || WEAKNESSES.iter().chain(&tenancy::WEAKNESSES);
    let found = all().find(|(known, _)| *known == name);
    found.map(|(_, weakness)| *weakness).ok_or_else(|| {
        let names: Vec<&str> = all().map(|(known, _)| *known).collect();
        format!("one of {}", names.join(", "))
    })
}

/// How long the siege is, and how long the rest after it in which a first message that somebody held back
/// must not run any more.
const SIEGE_US: u64 = 60_000_000;
const REST_US: u64 = 480_000_000;
const SLICE_US: u64 = 2_000;
const SLICE_FUEL: u64 = 4_000;
const SECTOR_BYTES: u32 = 4096;
const STORE_SECTORS: u32 = 32;
const CODE_SECTORS: u32 = 48;
const STAGING_SECTORS: u32 = 8;
/// The wall clock when the world begins.
const UNIX_S_AT_START: u64 = 1_800_000_000;

const DEVICE: usize = 0;
const OWNER: usize = 1;
const HUB: usize = 2;
const TENANT: usize = 3;
/// Strangers who attack, each from an address of its own.
const STRANGERS: usize = 4;
/// The false source of an attacker's datagrams. Nobody is there.
const VICTIM: usize = 20;
/// Honest newcomers, one after the other.
const NEWCOMERS: usize = 24;
const PLACES: usize = 64;

/// The attackers of a siege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// Each takes part or not, as the seed draws.
    Drawn,
    /// All take part, in all their ways at once.
    Everybody,
}

impl Cast {
    /// The cast of a hunt's siege: each fourth seed has everybody.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        if seed.is_multiple_of(4) { Self::Everybody } else { Self::Drawn }
    }

    /// Whether somebody takes part who is drawn in so many worlds of a thousand.
    fn takes(self, permille: u64, random: &mut Random) -> bool {
        random.chance(permille) || self == Self::Everybody
    }
}

/// Runs the siege that `seed` draws to its end, with that weakness planted, or none.
///
/// # Errors
/// The promise that was broken, by whom as far as that is known, and when.
pub fn run(seed: u64, cast: Cast, planted: Option<Weakness>) -> Result<Tally, String> {
    watched::begin(planted);
    let mut outcome = Ok(Tally::default());
    let caught = panics::catch(|| outcome = World::new(seed, cast).run());
    watched::begin(None);
    caught.map_err(|what| format!("nothing panics: {what}"))?;
    outcome
}

/// The world under way.
struct World {
    random: Random,
    keys: Keys,
    hostile_tenant: SigningKey,
    now_us: u64,
    store: Device,
    code: Device,
    staging: Device,
    node: Option<Box<Node<Partition>>>,
    has_clock: bool,
    booted_us: u64,
    /// When the device is polled next.
    device_us: u64,
    /// When the device is switched off and on again, if it is.
    restarts_us: Option<u64>,
    network: Network,
    under_way: Agenda<(usize, usize, Vec<u8>)>,
    honest: Honest,
    attackers: Attackers,
    member: Option<Member>,
    promises: Promises,
}

impl World {
    fn new(seed: u64, cast: Cast) -> Self {
        let mut random = Random::new(seed ^ 0x51E6E);
        let mut keys = Keys::draw(&mut random).with_network(&mut random);
        let owner = Seed::from_bytes(&keys.owner.to_bytes());
        keys.known.machine = owner.device_secret().public_key();
        let hostile_tenant = Keys::draw(&mut random).tenant;
        let flash = |sector_count| {
            let geometry =
                FlashGeometry { sector_bytes: SECTOR_BYTES, sector_count, program_bytes: 4 };
            Device::new(geometry)
        };
        let network = Network::new(plan(&mut random), PLACES, random.branch());
        let restarts = random.chance(300);
        let restarts_us = restarts.then(|| random.between(10_000_000..=50_000_000));
        let attackers = Attackers::draw(cast, &mut random, &hostile_tenant);
        let mut world = Self {
            honest: Honest::new(&owner, &mut random),
            attackers,
            keys,
            hostile_tenant,
            now_us: 0,
            store: flash(STORE_SECTORS),
            code: flash(CODE_SECTORS),
            staging: flash(STAGING_SECTORS),
            node: None,
            // A clock of its own would keep a hub's lies from it.
            has_clock: random.chance(300) && cast == Cast::Drawn,
            booted_us: 0,
            device_us: 0,
            restarts_us,
            network,
            under_way: Agenda::default(),
            member: None,
            promises: Promises::default(),
            random,
        };
        world.boot();
        world.settle(cast);
        world
    }

    fn run(mut self) -> Result<Tally, String> {
        while self.now_us < SIEGE_US + REST_US {
            self.now_us = self.next_us().max(self.now_us + 1);
            if self.restarts_us.is_some_and(|at| at <= self.now_us) {
                self.restarts_us = None;
                self.restart();
            }
            while self.under_way.next_at().is_some_and(|at| at <= self.now_us) {
                let Some((_, (from, to, datagram))) = self.under_way.next() else { break };
                self.arrive(from, to, &datagram);
            }
            if self.device_us <= self.now_us {
                self.attend_to_device();
            }
            self.attend_to_honest();
            self.attend_to_attackers();
            self.promises.check(self.now_us)?;
        }
        self.promises.close(self.now_us)
    }

    /// Whether attackers still attack.
    fn is_under_siege(&self) -> bool {
        self.now_us < SIEGE_US
    }

    /// When something happens next.
    fn next_us(&self) -> u64 {
        let attackers = match self.is_under_siege() {
            true => self.attackers.next_us(),
            false => self.attackers.late_us(),
        };
        let member = self.member.as_ref().filter(|_| self.is_under_siege()).map(Member::next_us);
        let dues = [self.device_us, self.honest.next_us(), attackers].into_iter();
        let dues = dues.chain(member).chain(self.restarts_us).chain(self.under_way.next_at());
        dues.min().unwrap_or(self.now_us)
    }

    /// Switches the device on.
    fn boot(&mut self) {
        self.booted_us = self.now_us;
        let mut config = Config::new("attic".parse().expect("a name"), self.keys.known);
        config.kernel.slice_fuel = SLICE_FUEL;
        // A board of the smallest class, but for the memory of its machines.
        config.kernel.memory_bytes_max = 2 * 1024 * 1024;
        config.hub = Some(Hub { address: address(HUB), key: None });
        let whole = |device: &Device, sectors| device.partition(0, sectors);
        let parts = Parts {
            store: whole(&self.store, STORE_SECTORS),
            code: whole(&self.code, CODE_SECTORS),
            staging: whole(&self.staging, STAGING_SECTORS),
        };
        let booted = self.watching(|world| Node::boot(config, parts, &mut world.moment()));
        let mut node = booted.unwrap_or_else(|error| panic!("the device doesn't start: {error}"));
        if !node.is_enrolled() {
            let device = node.name().clone();
            let enrolment = Enrolment { device, device_key: node.device_key(), number: 1 };
            let signature = tenure_directory::enrol(&self.keys.owner, &enrolment);
            let enrolled = node.as_owner(&mut self.moment()).enrol(Enrol { enrolment, signature });
            enrolled.expect("the owner's own word");
        }
        self.promises.booted(self.now_us);
        self.device_us = self.now_us;
        self.keep(Box::new(node));
    }

    /// Puts everybody's machines on the device and lets it join the mesh.
    fn settle(&mut self, cast: Cast) {
        let mut node = self.node.take().expect("it is on");
        let device = node.device_key();
        for machine in machines::all(cast, &mut self.random) {
            let tenant = match NEIGHBOURS.contains(&machine.name) {
                true => &self.keys.tenant,
                false => &self.hostile_tenant,
            };
            let (package, placement) = machine.sign(tenant, &self.keys.owner, device);
            let status = node.install(&mut self.moment(), &package, &placement);
            let status = status.unwrap_or_else(|error| panic!("{}: {error}", machine.name));
            self.promises.installed(machine.name, status.id, machine.budget().flash_bytes_per_day);
            self.honest.learn(machine.name, status.key);
            self.attackers.learn(machine.name, status.key);
        }
        self.honest.meet(&node);
        self.attackers.meet(&node);
        if cast.takes(400, &mut self.random) {
            self.honest.joins_mesh(&self.keys, &mut self.random, &node);
            let network = self.keys.network.clone().expect("it was drawn");
            self.member = Some(Member::new(network, &mut self.random));
        }
        self.keep(node);
    }

    /// Takes the device's power and gives it back.
    fn restart(&mut self) {
        if self.node.take().is_some() {
            self.promises.tally.restarts += 1;
            self.boot();
        }
    }

    fn arrive(&mut self, from: usize, to: usize, datagram: &[u8]) {
        let now = Instant::from_micros(self.now_us);
        if to == DEVICE {
            self.promises.heard_from(from, datagram.len());
            let Some(mut node) = self.node.take() else { return };
            self.watching(|world| node.receive(&mut world.moment(), address(from), datagram));
            self.device_us = self.now_us;
            return self.keep(node);
        }
        let is_honest = self.honest.receive(now, &mut self.random, to, address(from), datagram);
        if !is_honest {
            self.attackers.receive(now, &mut self.random, to, address(from), datagram);
        }
    }

    fn send(&mut self, from: usize, to: usize, datagram: Vec<u8>) {
        for (delay_us, datagram) in self.network.carry(from, to, datagram) {
            self.under_way.plan(self.now_us + delay_us, (from, to, datagram));
        }
    }

    fn attend_to_device(&mut self) {
        let Some(mut node) = self.node.take() else { return };
        let wake = self.watching(|world| node.poll(&mut world.moment()));
        self.device_us = match wake {
            Wake::Now => self.now_us + SLICE_US,
            Wake::At(at) => (self.booted_us + at.as_micros()).max(self.now_us + 1),
            Wake::Never => u64::MAX,
        };
        self.keep(node);
    }

    /// Takes what the device says.
    fn keep(&mut self, mut node: Box<Node<Partition>>) {
        while let Some(notice) = node.notice() {
            if let Notice::Log(line) = notice {
                self.promises.logged(self.now_us, &line.machine, &line.message);
            }
        }
        while let Some((to, datagram)) = node.transmit() {
            let Address::Udp(socket) = to else { continue };
            let Some(to) = place_at(socket).map(|to| to as usize) else { continue };
            self.promises.sent_to(to, datagram.len());
            if to < PLACES {
                self.send(DEVICE, to, datagram);
            }
        }
        while let Some((_, frame)) = node.transmit_frame() {
            self.promises.sent_frame(&frame);
            if let Some(member) = &mut self.member {
                member.receive(Instant::from_micros(self.now_us), &frame);
            }
        }
        self.promises.programmed(self.store.programmed_bytes());
        self.node = Some(node);
    }

    fn attend_to_honest(&mut self) {
        let now = Instant::from_micros(self.now_us);
        let under_siege = self.is_under_siege();
        let Self { honest, random, promises, keys, .. } = self;
        honest.attend(now, random, keys, under_siege, promises);
        while let Some((from, datagram)) = self.honest.transmit() {
            self.send(from, DEVICE, datagram);
        }
    }

    fn attend_to_attackers(&mut self) {
        let now = Instant::from_micros(self.now_us);
        if self.is_under_siege() {
            self.attackers.attend(now, &mut self.random, &mut self.promises);
            self.attend_to_member(now);
        } else {
            self.attackers.attend_late(now, &mut self.random, &mut self.promises);
        }
        while let Some((from, datagram)) = self.attackers.transmit() {
            self.promises.tally.hostile_datagrams += 1;
            self.send(from, DEVICE, datagram);
        }
    }

    fn attend_to_member(&mut self, now: Instant) {
        let Some(member) = &mut self.member else { return };
        let frames = member.attend(now, &mut self.random);
        let Some(mut node) = self.node.take() else { return };
        for (frame, signal_dbm) in frames {
            self.promises.tally.frames += 1;
            let _ = node.receive_frame(&mut self.moment(), &frame, Some(signal_dbm));
            self.device_us = self.now_us;
        }
        self.keep(node);
    }

    /// Lets the device do something and counts the public-key operations that it took.
    fn watching<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        let before = watched::seen();
        let result = act(self);
        self.promises.watched(&before, &watched::seen());
        result
    }

    /// The time that the device's clock shows.
    fn local(&self) -> Instant {
        Instant::from_micros(self.now_us - self.booted_us)
    }

    fn moment(&mut self) -> Moment<'_> {
        let seconds = UNIX_S_AT_START + self.now_us / 1_000_000;
        Moment {
            now: self.local(),
            unix_time: self.has_clock.then_some(tenure_hal::UnixTime { seconds }),
            entropy: &mut self.random,
        }
    }
}

fn address(place: usize) -> Address {
    Address::Udp(socket_at(place as u32))
}

fn millis(random: &mut Random, range: std::ops::RangeInclusive<u64>) -> u64 {
    Duration::as_micros(&random.millis(range)) as u64
}

fn plan(random: &mut Random) -> NetworkPlan {
    NetworkPlan {
        delay_ms: 1..=random.between(2..=40),
        lost: *random.pick(&[0, 0, 30]),
        doubled: *random.pick(&[0, 30]),
        replayed: 0,
        flipped: *random.pick(&[0, 20]),
        partition_every_ms: None,
    }
}

#[cfg(test)]
mod tests;
