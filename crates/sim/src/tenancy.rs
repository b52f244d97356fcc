//! Leases and secrets of two tenants on one device, over a network and through losses of power.
//!
//! The owner renews a lease, at times too late, tells the time and fetches receipts; each tenant sets, rotates and
//! removes a secret of the same name; a machine of each reads its own again and again. The owner restarts, stops, restores,
//! updates and removes the machines meanwhile from a second terminal. All of them are
//! parties on a network that loses, doubles and flips; the device's power goes at random flash
//! operations, and it sleeps in between. What must hold is in `books`.

mod books;
mod hands;
mod party;

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey};
use tenure_hal::planted::Weakness;
use tenure_hal::simulated::{Random, place_at, socket_at};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_node::{Config, Door, Input, Moment, Node, Notice, Parts, Wake};
use tenure_package::{Package, Renewal, SecretChange};
use tenure_wire::control::{
    Client as _, Function, ReceiptForget, ReceiptPage, ReceiptQuery, Renew, TellTime, decode_answer,
};
use tenure_wire::{Address, PublicKey, Term, VerifyingKey};

use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::flash::{Device, Partition};
use crate::guests;
use crate::network::Network;
use crate::panics;
use crate::place::Keys;
use crate::scenario::NetworkPlan;
use crate::siege::watched;
use books::Books;
pub use books::Tally;
use party::Party;

const CHECKPOINT: Duration = Duration::from_secs(2);
const PERIOD_S: u64 = 4;
const STORE_SECTORS: u32 = 32;
const CODE_SECTORS: u32 = 24;
const STAGING_SECTORS: u32 = 4;
const SLICE_US: u64 = 2_000;
/// The wall clock when the world begins.
const UNIX_S_AT_START: u64 = 1_800_000_000;
/// How long there is trouble, and how long there is none after that.
const TROUBLE_US: u64 = 60_000_000;
const QUIET_US: u64 = 20_000_000;
/// How many flash operations the power lasts for at most once it is to fail.
const OPERATIONS_BEFORE_CUT: u64 = 40;

const DEVICE: usize = 0;
const OWNER: usize = 1;
/// The tenants' places follow on the owner's; a tenant's machine is called as it is.
const TENANTS: [(usize, &str); 2] = [(2, "alice"), (3, "bob")];
const SECRET: &str = "wifi";

/// A request whose answer a party waits for.
enum Errand {
    Renew {
        number: u64,
    },
    Fetch,
    Forget,
    /// Ends all periods; so many reads had begun when it was sent, and the device been on for so long.
    Close {
        begun: u64,
        on_us: u64,
    },
    Change {
        version: u64,
    },
    /// Tells the time, which was this when it was sent, after so many losses of power.
    Tell {
        sent_us: u64,
        cuts: u64,
    },
}

/// The weaknesses that can be planted here.
pub const WEAKNESSES: [(&str, Weakness); 1] = [("restore", Weakness::RestoreForgetsUse)];

/// Runs the world of `seed` to its end, with that weakness planted, or none.
///
/// # Errors
/// The invariant that failed, and when.
pub fn run(seed: u64, planted: Option<Weakness>) -> Result<Tally, String> {
    watched::begin(planted);
    let mut tally = Tally::default();
    let caught = panics::catch(|| tally = World::new(seed).run());
    watched::begin(None);
    caught.map(|()| tally)
}

struct World {
    random: Random,
    keys: Keys,
    tenants: [SigningKey; 2],
    flash: Device,
    node: Option<Box<Node<Partition>>>,
    clock: Clock,
    has_clock: bool,
    is_asleep: bool,
    now_us: u64,
    /// When the device is polled next, or switched on, if it is off.
    device_us: u64,
    parties: Vec<Party<Errand>>,
    network: Network,
    under_way: Agenda<(usize, usize, Vec<u8>)>,
    /// When the power fails next, the device sleeps next, and the owner does something to a machine next.
    cut_us: u64,
    sleep_us: u64,
    hands_us: u64,
    /// Whether the owner's second terminal has stopped or removed each machine.
    is_down: [bool; TENANTS.len()],
    /// Whether the owner's second terminal has left the machines as they must be in the end.
    hands_are_off: bool,
    is_quiet: bool,
    loses_power: bool,
    books: Books,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x7E4A47);
        let (mut keys, mut tenants) = (Keys::draw(&mut random), Vec::new());
        // The owner's key for sessions belongs to the seed that signs for it.
        let owner = Seed::from_bytes(&keys.owner.to_bytes());
        keys.known.machine = owner.device_secret().public_key();
        tenants.push(keys.tenant.clone());
        tenants.push(Keys::draw(&mut random).tenant);
        let mut parties = vec![Party::new(OWNER, owner.device_secret(), &mut random)];
        for tenant in &tenants {
            let secret = Seed::from_bytes(&tenant.to_bytes()).device_secret();
            parties.push(Party::new(parties.len() + 1, secret, &mut random));
        }
        let geometry = FlashGeometry {
            sector_bytes: 4096,
            sector_count: STORE_SECTORS + CODE_SECTORS + STAGING_SECTORS,
            program_bytes: 4,
        };
        let network = Network::new(trouble(&mut random), 4, random.branch());
        let loses_power = random.chance(750);
        let mut world = Self {
            keys,
            tenants: tenants.try_into().expect("two tenants"),
            flash: Device::new(geometry),
            node: None,
            clock: Clock::default(),
            has_clock: random.chance(500),
            is_asleep: false,
            now_us: 0,
            device_us: 0,
            parties,
            network,
            under_way: Agenda::default(),
            cut_us: 0,
            sleep_us: 0,
            hands_us: if random.chance(600) { 2_000_000 } else { u64::MAX },
            is_down: [false; TENANTS.len()],
            hands_are_off: false,
            is_quiet: false,
            loses_power,
            books: Books::default(),
            random,
        };
        world.plan_trouble();
        world.boot();
        world.install();
        world
    }

    fn run(mut self) -> Tally {
        while self.now_us < TROUBLE_US + QUIET_US {
            self.now_us = self.next_us().max(self.now_us + 1);
            if !self.is_quiet && self.now_us >= TROUBLE_US {
                self.end_trouble();
            }
            while self.under_way.next_at().is_some_and(|at| at <= self.now_us) {
                let Some((_, (from, to, datagram))) = self.under_way.next() else { break };
                self.arrive(from, to, &datagram);
            }
            if self.device_us <= self.now_us {
                self.attend_to_device();
            }
            self.attend_to_parties();
        }
        self.fetch_the_rest();
        self.books.close(self.now_us)
    }

    /// Ends all periods at the device itself, and takes every receipt that it has.
    fn fetch_the_rest(&mut self) {
        let mut node = self.node.take().expect("the device is on in the end");
        let mut moment = self.moment();
        let mut owner = node.as_owner(&mut moment);
        owner.receipts_close(()).expect("there is room for the last receipts");
        let (mut skip, mut pages) = (0, Vec::new());
        loop {
            let page = owner.receipts(ReceiptQuery { skip }).expect("receipts");
            skip += page.receipts.len() as u32;
            pages.push(page.receipts);
            if !page.more {
                break;
            }
        }
        pages.iter().for_each(|receipts| self.books.received(receipts));
        self.books.fetched_the_rest();
        self.node = Some(node);
    }

    /// When something happens next.
    fn next_us(&self) -> u64 {
        let parties = self.parties.iter().map(Party::next_us);
        parties.chain([self.device_us]).chain(self.under_way.next_at()).min().unwrap_or(self.now_us)
    }

    fn end_trouble(&mut self) {
        self.is_quiet = true;
        self.network.calm();
        self.flash.restore_power();
        self.parties.iter_mut().for_each(|party| party.rest_until(self.now_us));
    }

    fn plan_trouble(&mut self) {
        self.cut_us = self.now_us + self.random.millis(500..=9_000).as_micros() as u64;
        self.sleep_us = self.now_us + self.random.millis(500..=12_000).as_micros() as u64;
    }

    fn unix_s(&self) -> u64 {
        UNIX_S_AT_START + self.now_us / 1_000_000
    }

    fn arrive(&mut self, from: usize, to: usize, datagram: &[u8]) {
        let now = Instant::from_micros(self.now_us);
        if to != DEVICE {
            self.parties[to - 1].receive(now, &mut self.random, address(from), datagram);
        } else if let Some(mut node) = self.node.take() {
            node.receive(&mut self.moment(), address(from), datagram);
            self.device_us = self.now_us;
            self.keep(node);
        }
    }

    /// Hands on what the device and the parties send, and reads nothing of it.
    fn send(&mut self, from: usize, to: &Address, datagram: Vec<u8>) {
        self.books.check_private("a datagram", &datagram);
        let Address::Udp(socket) = to else { return };
        let Some(to) = place_at(*socket).map(|to| to as usize) else { return };
        for (delay_us, datagram) in self.network.carry(from, to, datagram) {
            self.under_way.plan(self.now_us + delay_us, (from, to, datagram));
        }
    }

    fn attend_to_device(&mut self) {
        let Some(mut node) = self.node.take() else { return self.boot() };
        if !self.is_quiet && self.now_us >= self.sleep_us {
            self.sleep_us = u64::MAX;
            return self.fall_asleep(node);
        }
        if self.loses_power && !self.is_quiet && self.now_us >= self.cut_us {
            self.cut_us = u64::MAX;
            let operations = self.random.between(0..=OPERATIONS_BEFORE_CUT);
            self.flash.cut_power_after(operations, self.random.number());
        }
        if !self.is_quiet && self.now_us >= self.hands_us {
            self.lay_hands_on(&mut node);
        } else if self.is_quiet && !std::mem::replace(&mut self.hands_are_off, true) {
            self.take_hands_off(&mut node);
        }
        if self.flash.is_off() {
            return self.lose_power();
        }
        let wake = node.poll(&mut self.moment());
        self.device_us = match wake {
            Wake::Now => self.now_us + SLICE_US,
            Wake::At(at) => self.clock.world_us(at).max(self.now_us + 1),
            Wake::Never => u64::MAX,
        };
        self.keep(node);
    }

    /// Takes what the device says, unless its power failed meanwhile.
    fn keep(&mut self, mut node: Box<Node<Partition>>) {
        if self.flash.is_off() {
            return self.lose_power();
        }
        while let Some(notice) = node.notice() {
            if let Notice::Log(line) = notice {
                let machine = line.machine.as_str();
                self.books.logged(self.now_us, machine, &line.message, self.has_clock);
            }
        }
        while let Some((to, datagram)) = node.transmit() {
            self.send(DEVICE, &to, datagram);
        }
        self.node = Some(node);
    }

    fn lose_power(&mut self) {
        let off_us = self.random.millis(10..=2_000).as_micros() as u64;
        self.books.switched_off(self.now_us);
        self.books.cuts += 1;
        self.flash.with_bytes(|bytes| self.books.check_private("the flash", bytes));
        self.is_asleep = false;
        self.device_us = self.now_us + off_us;
        self.plan_trouble();
    }

    fn fall_asleep(&mut self, mut node: Box<Node<Partition>>) {
        let span_us = self.random.millis(50..=3_000).as_micros() as u64;
        let mut moment = self.moment();
        let until = moment.now + Duration::from_micros(span_us);
        node.take(&mut moment, Input::WillSleepUntil(until));
        self.is_asleep = node.fall_asleep(&mut moment).is_ok();
        if !self.is_asleep {
            return self.keep(node);
        }
        self.keep(node);
        if self.node.take().is_some() {
            self.books.switched_off(self.now_us);
            self.books.sleeps += 1;
            self.device_us = self.now_us + span_us;
        }
    }

    fn boot(&mut self) {
        self.flash.restore_power();
        if !self.is_asleep {
            self.clock.booted_us = self.now_us;
        }
        let was_asleep = std::mem::take(&mut self.is_asleep);
        let is_first = self.books.device(None).is_none();
        if self.loses_power && !is_first && !self.is_quiet && self.random.chance(200) {
            let operations = self.random.between(0..=OPERATIONS_BEFORE_CUT);
            self.flash.cut_power_after(operations, self.random.number());
        }
        let mut config = Config::new("attic".parse().expect("a name"), self.keys.known);
        config.kernel.slice_fuel = 2_000;
        config.checkpoint = CHECKPOINT;
        config.receipt_period = Duration::from_secs(PERIOD_S);
        let part = |first, count| self.flash.partition(first, count);
        let parts = Parts {
            store: part(0, STORE_SECTORS),
            code: part(STORE_SECTORS, CODE_SECTORS),
            staging: part(STORE_SECTORS + CODE_SECTORS, STAGING_SECTORS),
        };
        let booted = Node::boot(config, parts, &mut self.moment());
        if self.flash.is_off() {
            return self.lose_power();
        }
        let node = booted.unwrap_or_else(|error| panic!("the device doesn't start: {error}"));
        assert!(!was_asleep || node.slept().is_some(), "the device lost what it did in its sleep");
        self.device_us = self.now_us;
        self.sleep_us = self.now_us + self.random.millis(500..=12_000).as_micros() as u64;
        self.books.switched_on(self.now_us, was_asleep);
        self.keep(Box::new(node));
    }

    fn install(&mut self) {
        for (index, (_, name)) in TENANTS.into_iter().enumerate() {
            let bytes = self.package(index);
            let package = Package::parse(&bytes).expect("a package");
            let mut node = self.node.take().expect("it is on");
            let term = self.term();
            let placement = guests::placement(&package, node.device_key(), term, 1);
            let placement = placement.sign(&self.keys.owner).expect("well formed");
            node.install(&mut self.moment(), &bytes, &placement).expect("room for it");
            // Only the first one's lease is renewed; the other one's ends, and begins anew with an update.
            self.books.granted(name, 1, end_us(&term), self.now_us);
            self.keep(node);
        }
    }

    /// A term that begins now.
    fn term(&mut self) -> Term {
        let lasts_s = if self.is_quiet { 1_000 } else { self.random.between(4..=20) };
        let signed_unix_s = self.unix_s();
        Term {
            signed_unix_s,
            ends_unix_s: Some(signed_unix_s + lasts_s),
            grace_s: 1_000_000,
            receipts_every_s: PERIOD_S,
        }
    }

    fn attend_to_parties(&mut self) {
        for index in 0..self.parties.len() {
            let place = index + 1;
            let now = Instant::from_micros(self.now_us);
            if let Some((errand, result)) = self.parties[index].attend(now, &mut self.random) {
                self.done(place, errand, result);
            }
            if self.parties[index].is_free(self.now_us) {
                self.set_out(place);
            }
            while let Some((to, datagram)) = self.parties[index].transmit() {
                self.send(place, &to, datagram);
            }
        }
    }

    /// Lets a party do the next thing that it has to do.
    fn set_out(&mut self, place: usize) {
        let Some((device_key, device)) = self.books.device(self.node.as_deref()) else { return };
        let (errand, function, parameter) = match place {
            OWNER => self.owners_errand(device_key),
            _ => self.tenants_errand(place - OWNER - 1, device_key, &device),
        };
        let now = Instant::from_micros(self.now_us);
        let party = &mut self.parties[place - 1];
        party.call(now, &mut self.random, (address(DEVICE), device), (function, parameter), errand);
        let rest = if self.is_quiet { 100..=500 } else { 300..=4_000 };
        self.parties[place - 1]
            .rest_until(self.now_us + self.random.millis(rest).as_micros() as u64);
    }

    fn owners_errand(&mut self, device: VerifyingKey) -> (Errand, &'static str, Vec<u8>) {
        if let Some(forget) = self.books.forget() {
            return (
                Errand::Forget,
                Function::receipts_forget.name(),
                encode::<ReceiptForget>(&forget),
            );
        }
        let is_due = self.is_quiet && !self.books.is_leased_until(TROUBLE_US + QUIET_US);
        match self.random.between(0..=4) {
            what if what == 0 || is_due => {
                let number = self.books.next_lease(0);
                let term = self.term();
                let machine = TENANTS[0].1.parse().expect("a name");
                let renewal = Renewal { device, machine, term, sequence: number };
                let renewal = renewal.sign(&self.keys.owner).expect("well formed");
                self.books.offered(0, number, end_us(&term), self.now_us);
                (
                    Errand::Renew { number },
                    Function::renew.name(),
                    encode(&Renew { renewal, ends_now: false }),
                )
            }
            1..=2 if self.is_quiet => {
                let (begun, on_us) = (self.books.begun(), self.books.on_us(self.now_us));
                (Errand::Close { begun, on_us }, Function::receipts_close.name(), Vec::new())
            }
            3 => {
                let (sent_us, cuts) = (self.now_us, self.books.cuts);
                let time = TellTime { unix_s: self.unix_s() };
                (Errand::Tell { sent_us, cuts }, Function::time.name(), encode(&time))
            }
            _ => (Errand::Fetch, Function::receipts.name(), encode(&ReceiptQuery { skip: 0 })),
        }
    }

    fn tenants_errand(
        &mut self,
        index: usize,
        device: VerifyingKey,
        machine: &PublicKey,
    ) -> (Errand, &'static str, Vec<u8>) {
        let tenant = &self.tenants[index];
        let (version, value) = self.books.next_secret(index, self.random.chance(250));
        let place = (device, machine);
        let name = SECRET.parse().expect("a name");
        let change = match value {
            Some(value) => {
                let key = tenant.verifying_key();
                let value = value.as_bytes();
                SecretChange::set(&mut self.random, &key, place, (name, version), value)
                    .expect("short enough")
            }
            None => SecretChange::remove(device, name, version),
        };
        let change = change.sign(tenant).expect("well formed");
        (Errand::Change { version }, Function::secret_change.name(), change)
    }

    fn done(&mut self, place: usize, errand: Errand, result: party::Outcome) {
        // A party without an answer doesn't know whether it was done.
        let Ok(reply) = result else { return };
        let reply = reply.unwrap_or_default();
        match errand {
            Errand::Renew { number } if is_yes(&reply) => {
                self.books.renewed(number, self.now_us);
            }
            Errand::Change { version } if is_yes(&reply) => {
                self.books.changed(place - OWNER - 1, version);
            }
            // A time that was told before the last loss of power is forgotten.
            Errand::Tell { sent_us, cuts } if is_yes(&reply) && cuts == self.books.cuts => {
                self.books.told(sent_us, self.now_us);
            }
            Errand::Close { begun, on_us } if is_yes(&reply) => self.books.closed(begun, on_us),
            Errand::Fetch => {
                let page = decode_answer::<ReceiptPage>(&reply);
                let page = page.unwrap_or_else(|error| panic!("no receipts: {error}"));
                self.books.received(&page.receipts);
                if !page.more {
                    self.books.fetched_all();
                }
            }
            _ => {}
        }
    }

    fn moment(&mut self) -> Moment<'_> {
        let unix = UnixTime { seconds: self.unix_s() };
        Moment {
            now: self.clock.local(self.now_us),
            unix_time: self.has_clock.then_some(unix),
            entropy: &mut self.random,
        }
    }
}

fn address(place: usize) -> Address {
    Address::Udp(socket_at(place as u32))
}

/// When a term ends, by the world's clock.
fn end_us(term: &Term) -> u64 {
    (term.ends_unix_s.unwrap_or(u64::MAX) - UNIX_S_AT_START) * 1_000_000
}

fn is_yes(reply: &[u8]) -> bool {
    decode_answer::<()>(reply).is_ok()
}

fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain data")
}

fn trouble(random: &mut Random) -> NetworkPlan {
    let worst = |random: &mut Random, most: u64| *random.pick(&[0, most / 3, most]);
    NetworkPlan {
        delay_ms: 1..=random.between(2..=150),
        lost: worst(random, 300),
        doubled: worst(random, 200),
        replayed: worst(random, 50),
        flipped: worst(random, 100),
        partition_every_ms: None,
    }
}

#[cfg(test)]
mod tests;
