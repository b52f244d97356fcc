//! A house of two devices that know each other, whose hub goes away for good.

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, machine_id};
use tenure_directory::{Table, enrol};
use tenure_hal::Instant;
use tenure_hal::simulated::{Sequence, place_at, socket_at};
use tenure_node::{Config, Door as _, Hub, Moment, Node, Owner, Parts, Wake};
use tenure_package::{Revocations, RevokedDevice};
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::control::{self, Client as _, Enrol};
use tenure_wire::directory::{Enrolment, Query, Registered, SignedRecord, function};
use tenure_wire::{Address, Capabilities, Name, PublicKey};

use crate::hostile::CALLER;
use crate::leases::{Lease, anybody};
use crate::world::{Fuse, WiredFlash};

const NAMES: [&str; 2] = ["attic", "cellar"];
const HUB: Address = Address::Udp(socket_at(2));
const OWNER: Address = Address::Udp(socket_at(3));
const UNIX_S: u64 = 1_000_000_000;
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

struct House {
    now: Instant,
    entropy: Sequence,
    nodes: Vec<Node<WiredFlash>>,
    wakes: [Wake; 2],
    /// How often each device has been awake since the hub went away.
    awake: [u64; 2],
    hub: Option<(Endpoint<Address>, Table)>,
    owner: Endpoint<Address>,
    owner_key: PublicKey,
    answers: Vec<Option<Vec<u8>>>,
    /// The device that the hub hears nothing of.
    unheard: Option<u32>,
    /// Until then the hub opens no session, and says when it will.
    crowded_until: Instant,
    /// The answer that the owner's end gives to calls, as a device of somebody else's would, and how often it did.
    shows: Option<Vec<u8>>,
    shown: u32,
}

fn moment(now: Instant, entropy: &mut Sequence) -> Moment<'_> {
    Moment { now, unix_time: None, entropy }
}

fn party(secret: tenure_crypto::StaticSecret, entropy: &mut Sequence) -> Endpoint<Address> {
    let mut endpoint = Endpoint::new(tenure_rpc::Config::large(), Instant::BOOT, entropy).unwrap();
    let own = endpoint.add_machine(secret).unwrap();
    endpoint.identify_as(&own);
    endpoint
}

impl House {
    fn new() -> Self {
        Self::of_devices(Some(Hub { address: HUB, key: None }))
    }

    fn of_devices(at_hub: Option<Hub>) -> Self {
        let owner = SigningKey::from_bytes(&[7; 32]);
        let owner_secret = Seed::from_bytes(&owner.to_bytes()).device_secret();
        let owner_key = owner_secret.public_key();
        let keys = Owner { verifying_key: owner.verifying_key(), machine: owner_key };
        let mut entropy = Sequence(1);
        let fuse = Fuse::default();
        let mut boot = |name: &str| {
            let name: Name = name.parse().unwrap();
            let mut config = Config::new(name.clone(), keys);
            config.hub = at_hub.clone();
            let [store, code, staging] = [32, 64, 32].map(|size| WiredFlash::new(size, &fuse));
            let parts = Parts { store, code, staging };
            let mut moment = moment(Instant::BOOT, &mut entropy);
            let mut node = Node::boot(config, parts, &mut moment).unwrap();
            let enrolment = Enrolment { device: name, device_key: node.device_key(), number: 1 };
            let signature = enrol(&owner, &enrolment);
            node.as_owner(&mut moment).enrol(Enrol { enrolment, signature }).unwrap();
            node
        };
        let nodes = NAMES.iter().map(|name| boot(name)).collect();
        let hub = party(Seed::from_bytes(&[2; 32]).device_secret(), &mut entropy);
        let table = Table::new(vec![owner.verifying_key()], 8);
        Self {
            now: Instant::BOOT,
            nodes,
            wakes: [Wake::Now; 2],
            awake: [0; 2],
            hub: Some((hub, table)),
            owner: party(owner_secret, &mut entropy),
            owner_key,
            answers: Vec::new(),
            unheard: None,
            crowded_until: Instant::BOOT,
            shows: None,
            shown: 0,
            entropy,
        }
    }

    fn install(
        &mut self,
        device: usize,
        name: &str,
        text: &str,
        grants: Capabilities,
    ) -> PublicKey {
        let owner = SigningKey::from_bytes(&[7; 32]);
        let node = &mut self.nodes[device];
        let signed = Lease::of(name, text, grants).sign(&owner, node.device_key());
        let mut moment = moment(self.now, &mut self.entropy);
        node.install(&mut moment, &signed.package, &signed.placement).unwrap().key
    }

    /// Lets the owner have a machine of the first device call another one, and waits; returns the answer.
    fn ask(&mut self, to: &PublicKey, parameter: &[u8]) -> Option<Vec<u8>> {
        self.call((0, to), "ask", parameter)
    }

    /// Lets the owner call a machine of a device, and waits; returns the answer.
    fn call(
        &mut self,
        (device, to): (u32, &PublicKey),
        name: &str,
        parameter: &[u8],
    ) -> Option<Vec<u8>> {
        let call = OutgoingCall {
            function: name.to_string(),
            parameter: Some(parameter.to_vec()),
            deadline: self.now + Duration::from_secs(20),
            attempts: 20,
        };
        let own = machine_id(&self.owner_key);
        let (owner, entropy) = (&mut self.owner, &mut self.entropy);
        let to_device = Address::Udp(socket_at(device));
        owner.call(self.now, entropy, &own, to, to_device, None, call).unwrap();
        let until = self.now + Duration::from_secs(20);
        while self.answers.is_empty() && self.now < until {
            self.step(until);
        }
        self.answers.pop().flatten()
    }

    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.step(until);
        }
    }

    /// Everybody does what is due, all datagrams arrive, and time goes on to when somebody wants it next.
    fn step(&mut self, until: Instant) {
        let due = |wake: &Wake| match wake {
            Wake::Now => true,
            Wake::At(at) => *at <= self.now,
            Wake::Never => false,
        };
        let mut is_awake = [due(&self.wakes[0]), due(&self.wakes[1])];
        loop {
            let mut sent = Vec::new();
            for (index, node) in self.nodes.iter_mut().enumerate() {
                if is_awake[index] {
                    self.wakes[index] = node.poll(&mut moment(self.now, &mut self.entropy));
                }
                while let Some((to, datagram)) = node.transmit() {
                    sent.push((Address::Udp(socket_at(index as u32)), to, datagram));
                }
            }
            self.attend_others(&mut sent);
            if sent.is_empty() && !self.wakes.contains(&Wake::Now) {
                break;
            }
            for (from, to, datagram) in sent {
                self.arrive(from, &to, &datagram, &mut is_awake);
            }
        }
        for (count, is_awake) in self.awake.iter_mut().zip(is_awake) {
            *count += u64::from(is_awake);
        }
        let timers = self.wakes.iter().filter_map(|wake| match wake {
            Wake::At(at) => Some(*at),
            _ => None,
        });
        let others = self.hub.as_ref().and_then(|(hub, _)| hub.poll_at());
        let next = timers.chain(others).chain(self.owner.poll_at()).min().unwrap_or(until);
        self.now = next.min(until).max(self.now + Duration::from_micros(1));
    }

    fn arrive(&mut self, from: Address, to: &Address, datagram: &[u8], is_awake: &mut [bool; 2]) {
        let (now, entropy) = (self.now, &mut self.entropy);
        let device = match to {
            Address::Udp(socket) => place_at(*socket).filter(|place| *place < 2),
            _ => None,
        };
        match device {
            Some(device) => {
                let index = device as usize;
                self.nodes[index].receive(&mut moment(now, entropy), from, datagram);
                is_awake[index] = true;
                self.wakes[index] = Wake::Now;
            }
            None if *to == OWNER => self.owner.receive(now, entropy, from, datagram),
            None => {
                let is_heard =
                    self.unheard.is_none_or(|device| from != Address::Udp(socket_at(device)));
                if let Some((hub, _)) = self.hub.as_mut().filter(|_| is_heard) {
                    let is_put_off = now < self.crowded_until
                        && hub.handshake_request(now, &from, datagram).is_some();
                    match is_put_off {
                        true => hub.defer_request(from, datagram, self.crowded_until.since(now)),
                        false => hub.receive(now, entropy, from, datagram),
                    }
                }
            }
        }
    }

    /// Lets the hub and the owner do what is due.
    fn attend_others(&mut self, sent: &mut Vec<(Address, Address, Vec<u8>)>) {
        let (now, entropy) = (self.now, &mut self.entropy);
        self.owner.poll(now, entropy);
        while let Some(event) = self.owner.event() {
            match event {
                Event::CallDone { result, .. } => self.answers.push(result.ok().flatten()),
                Event::IncomingCall { handle, .. } => {
                    self.shown += 1;
                    self.owner.reply(now, handle, Ok(self.shows.clone()));
                }
                _ => {}
            }
        }
        while let Some((to, datagram)) = self.owner.transmit() {
            sent.push((OWNER, to, datagram));
        }
        let Some((hub, table)) = &mut self.hub else { return };
        hub.poll(now, entropy);
        while let Some(event) = hub.event() {
            let Event::IncomingCall { handle, function, parameter, .. } = event else { continue };
            let unix_s = UNIX_S + now.as_micros() / 1_000_000;
            let parameter = parameter.unwrap_or_default();
            let answer = serve_as_hub(table, unix_s, &function, &parameter);
            hub.reply(now, handle, answer);
        }
        while let Some((to, datagram)) = hub.transmit() {
            sent.push((HUB, to, datagram));
        }
    }
}

/// Serves the directory, and nothing beside it.
fn serve_as_hub(
    table: &mut Table,
    unix_s: u64,
    name: &str,
    parameter: &[u8],
) -> Result<Option<Vec<u8>>, NoResult> {
    if name == function::REGISTER {
        let record: SignedRecord = postcard::from_bytes(parameter).unwrap();
        let opened = tenure_directory::open_whenever(&record).unwrap();
        let position = NAMES.iter().position(|name| opened.enrolment.device.as_str() == *name);
        let seen_at = Address::Udp(socket_at(position.unwrap() as u32));
        let refusal = table.accept(record, seen_at, unix_s).err();
        let registered = Registered { refusal, unix_s, devices_max: None, takes_touches: false };
        return Ok(postcard::to_allocvec(&registered).ok());
    }
    if name != function::RESOLVE {
        return Err(NoResult::NoSuchFunction);
    }
    let query: Query = postcard::from_bytes(parameter).unwrap();
    let found = table.find(&query, unix_s).map(|entry| entry.found());
    Ok(found.map(|found| postcard::to_allocvec(&found).unwrap()))
}

/// A machine on the first device that calls one on the second, which that one alone may call.
fn two_that_call(house: &mut House) -> PublicKey {
    let echo = r#"(func (export "function") (drop (call $reply (i32.const 4) (i32.const 4))))"#;
    let echo = format!("(module {} {echo})", crate::world::PRELUDE);
    let named =
        Capabilities { callers: vec!["caller@attic".parse().unwrap()], ..Capabilities::default() };
    house.install(1, "echo", &echo, named);
    let caller = format!("(module {} {CALLER})", crate::world::PRELUDE);
    let caller = house.install(0, "caller", &caller, anybody());
    house.pass(Duration::from_secs(10));
    caller
}

/// Tells one device that its owner revoked the other.
fn revoke(house: &mut House, device: usize, revoked: usize) {
    let list = Revocations {
        number: 1,
        devices: vec![RevokedDevice {
            name: NAMES[revoked].parse().unwrap(),
            key: house.nodes[revoked].device_key(),
            machine: house.nodes[revoked].device_machine(),
        }],
        ..Revocations::default()
    };
    let list = list.sign(&SigningKey::from_bytes(&[7; 32])).unwrap();
    let to = house.nodes[device].device_machine();
    let answer = house.call((device as u32, &to), control::Function::revoke.name(), &list).unwrap();
    control::decode_answer::<()>(&answer).unwrap();
}

/// A call from the first device to the second goes well until `device` learns that `revoked` is revoked.
fn check_that_calls_end(device: usize, revoked: usize) {
    let mut house = House::new();
    let caller = two_that_call(&mut house);
    let done = Some(4_i32.to_le_bytes().to_vec());
    assert_eq!(house.ask(&caller, b"echo@cellar"), done);
    revoke(&mut house, device, revoked);
    assert_ne!(house.ask(&caller, b"echo@cellar"), done);
    // The hub has newer records of both by then.
    house.pass(Duration::from_secs(60));
    assert_ne!(house.ask(&caller, b"echo@cellar"), done);
}

#[test]
fn machine_on_a_revoked_device_is_found_by_no_other_device() {
    check_that_calls_end(0, 1);
}

#[test]
fn machine_on_a_revoked_device_has_its_name_no_more_where_it_calls() {
    check_that_calls_end(1, 0);
}

#[test]
fn devices_whose_hub_is_gone_for_a_week_go_on_calling_each_other_and_rest_between() {
    let mut house = House::new();
    let caller = two_that_call(&mut house);
    let done = Some(4_i32.to_le_bytes().to_vec());
    assert_eq!(house.ask(&caller, b"echo@cellar"), done, "with the hub");
    house.hub = None;
    let mut answered = 0;
    let gone_at = house.now;
    while house.now < gone_at + WEEK {
        answered += u32::from(house.ask(&caller, b"echo@cellar") == done);
        house.pass(Duration::from_secs(3600));
    }
    assert!(answered >= 167, "{answered} calls in a week, one an hour");
    // It saves no power, and asks for the hub once a minute, in several datagrams.
    for awake in house.awake {
        assert!(awake / (7 * 24) <= 600, "{awake} times awake in a week, calls included");
    }
}

#[test]
fn calls_go_on_while_a_hub_that_came_back_has_not_heard_of_the_other_device_yet() {
    let mut house = House::new();
    let caller = two_that_call(&mut house);
    let done = Some(4_i32.to_le_bytes().to_vec());
    assert_eq!(house.ask(&caller, b"echo@cellar"), done, "with the hub");
    let (hub, _) = house.hub.take().unwrap();
    house.pass(Duration::from_secs(30 * 60));
    assert_eq!(house.ask(&caller, b"echo@cellar"), done, "without it");
    let owner = SigningKey::from_bytes(&[7; 32]).verifying_key();
    house.hub = Some((hub, Table::new(vec![owner], 8)));
    house.unheard = Some(1);
    house.pass(Duration::from_secs(11 * 60));
    let (_, table) = house.hub.as_ref().unwrap();
    let listed: Vec<&str> =
        table.entries().map(|entry| entry.record.enrolment.device.as_str()).collect();
    assert_eq!(listed, ["attic"], "the hub has heard of the one that calls");
    assert_eq!(house.ask(&caller, b"echo@cellar"), done, "by the record of before");
    assert_ne!(house.ask(&caller, b"echo@barn"), done, "nobody has ever been called that");
    // A device that is revoked has no record any more.
    revoke(&mut house, 0, 1);
    assert_ne!(house.ask(&caller, b"echo@cellar"), done);
}

/// A hub that was away for half an hour and has lost its sessions and its list.
fn hub_comes_back(house: &mut House) {
    house.pass(Duration::from_secs(10));
    house.hub = None;
    house.pass(Duration::from_secs(30 * 60));
    let owner = SigningKey::from_bytes(&[7; 32]).verifying_key();
    let endpoint = party(Seed::from_bytes(&[2; 32]).device_secret(), &mut house.entropy);
    house.hub = Some((endpoint, Table::new(vec![owner], 8)));
}

fn listed(house: &House) -> usize {
    house.hub.as_ref().map_or(0, |(_, table)| table.count())
}

#[test]
fn device_that_finds_its_hub_again_is_listed_in_seconds_though_its_session_is_gone() {
    let mut house = House::new();
    hub_comes_back(&mut house);
    // It asks each 50 s at least, learns that its session is gone, and registers two seconds later.
    house.pass(Duration::from_secs(50 + 4));
    assert_eq!(listed(&house), 2);
}

#[test]
fn device_that_a_crowded_hub_gives_a_turn_is_listed_in_its_turn() {
    let mut house = House::new();
    hub_comes_back(&mut house);
    house.crowded_until = house.now + Duration::from_secs(90);
    house.pass(Duration::from_secs(90));
    assert_eq!(listed(&house), 0, "it opens no session yet");
    house.pass(Duration::from_secs(6));
    assert_eq!(listed(&house), 2);
}

#[cfg(feature = "discovery")]
mod nearby {
    use tenure_node::Input;
    use tenure_wire::control::Function;

    use super::*;

    const LIAR: Address = OWNER;

    /// A house that never had a hub, whose devices are told of `addresses` on their network.
    fn told_of(addresses: &[Address]) -> House {
        let mut house = House::of_devices(None);
        for index in 0..2 {
            for address in addresses {
                house.tell(index, address.clone());
            }
        }
        house
    }

    impl House {
        fn tell(&mut self, device: usize, address: Address) {
            let mut moment = moment(self.now, &mut self.entropy);
            self.nodes[device].take(&mut moment, Input::Neighbour(address));
            self.wakes[device] = Wake::Now;
        }
    }

    const BOTH: [Address; 2] = [Address::Udp(socket_at(0)), Address::Udp(socket_at(1))];

    #[test]
    fn devices_that_never_had_a_hub_call_each_other_by_name_and_know_who_calls() {
        let mut house = told_of(&BOTH);
        let caller = two_that_call(&mut house);
        assert_eq!(house.ask(&caller, b"echo@cellar"), Some(4_i32.to_le_bytes().to_vec()));
    }

    #[test]
    fn machine_that_is_installed_after_the_device_was_found_is_found_too() {
        let mut house = told_of(&BOTH);
        house.pass(Duration::from_secs(10));
        let caller = two_that_call(&mut house);
        assert_eq!(house.ask(&caller, b"echo@cellar"), Some(4_i32.to_le_bytes().to_vec()));
    }

    #[test]
    fn devices_that_were_told_of_nobody_reach_nobody() {
        let mut house = told_of(&[]);
        let caller = two_that_call(&mut house);
        assert_ne!(house.ask(&caller, b"echo@cellar"), Some(4_i32.to_le_bytes().to_vec()));
    }

    #[test]
    fn devices_that_know_each_other_sleep_although_they_were_announced() {
        let mut house = told_of(&BOTH);
        house.pass(Duration::from_secs(60));
        let before = house.awake;
        house.pass(Duration::from_secs(24 * 3600));
        for (before, after) in before.into_iter().zip(house.awake) {
            assert!(after - before < 1000, "{} times awake in a day", after - before);
        }
    }

    /// How often each device wakes in two hours after a stranger announced without pause, for two minutes, where the
    /// device itself is, the other one, and the hub; or after nobody did.
    fn wakes_in_two_hours(is_told: bool) -> [u64; 2] {
        let mut house = House::new();
        house.pass(Duration::from_secs(10));
        let caller = two_that_call(&mut house);
        for _ in 0..120 {
            for device in 0..if is_told { 2 } else { 0 } {
                BOTH.into_iter().chain([HUB]).for_each(|address| house.tell(device, address));
            }
            house.pass(Duration::from_secs(1));
        }
        assert_eq!(house.ask(&caller, b"echo@cellar"), Some(4_i32.to_le_bytes().to_vec()));
        house.pass(Duration::from_secs(60));
        let before = house.awake;
        house.pass(Duration::from_secs(2 * 3600));
        [0, 1].map(|device| house.awake[device] - before[device])
    }

    #[test]
    fn devices_that_hear_of_themselves_and_of_their_hub_without_pause_go_on_and_sleep_as_before() {
        let (told, untold) = (wakes_in_two_hours(true), wakes_in_two_hours(false));
        for (told, untold) in told.into_iter().zip(untold) {
            assert!(told <= untold + 20, "{told} and {untold} times awake");
        }
    }

    #[test]
    fn look_up_ends_in_seconds_although_a_liars_addresses_are_silent() {
        let silent: Vec<Address> = (10..50).map(|place| Address::Udp(socket_at(place))).collect();
        let mut house = told_of(&silent);
        let caller = two_that_call(&mut house);
        for address in &silent {
            house.tell(0, address.clone());
        }
        let asked_at = house.now;
        let answer = house.ask(&caller, b"echo@cellar");
        assert!(answer.is_some_and(|answer| answer != 4_i32.to_le_bytes()));
        assert!(house.now.since(asked_at) < Duration::from_secs(8), "{:?}", house.now);
    }

    /// A stranger whose own machine shows the signed record of another device.
    #[test]
    fn liar_who_shows_the_record_of_another_device_is_not_taken_for_it() {
        let mut house = told_of(&[LIAR]);
        let caller = two_that_call(&mut house);
        let cellar = house.nodes[1].device_machine();
        let record = house.call((1, &cellar), Function::record.name(), &[]).unwrap();
        house.shows = Some(record);
        house.tell(0, LIAR);
        house.pass(Duration::from_secs(120));
        assert!(house.shown > 0, "it was asked");
        assert_ne!(house.ask(&caller, b"echo@cellar"), Some(4_i32.to_le_bytes().to_vec()));
        house.tell(0, Address::Udp(socket_at(1)));
        house.pass(Duration::from_secs(10));
        // The device that is called asks who calls, and hears of it from its network as well.
        house.tell(1, Address::Udp(socket_at(0)));
        house.pass(Duration::from_secs(10));
        assert_eq!(house.ask(&caller, b"echo@cellar"), Some(4_i32.to_le_bytes().to_vec()));
    }
}
