//! Strangers, the hostile tenant and the false hub, and the moves that they draw.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_crypto::{Hmac, Seed, SigningKey};
use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_node::Node;
use tenure_package::SecretChange;
use tenure_wire::control::{Function, decode_answer};
use tenure_wire::datagram::{Challenge, Datagram, Echo, Initiation, Probe};
use tenure_wire::directory::{self, Registered};
use tenure_wire::{Address, PublicKey, VerifyingKey};

use super::person::Person;
use super::promises::Promises;
use super::reflector::Reflector;
use super::{Cast, HUB, STRANGERS, TENANT, machines, millis};
use crate::flash::Partition;

/// A data datagram's first byte, the length of a call in parts, and those of a datagram with its last part.
const DATA: u8 = 0x13;
const HALF_SENT_BYTES: usize = 7_400;
const LAST_PART_BYTES: std::ops::Range<usize> = 300..1_100;
/// The most calls that one attacker has under way.
const CALLS_MAX: usize = 12;
/// How many times as often as otherwise each attacker does something where everybody attacks.
const HASTE: u64 = 5;
/// A time that is far away.
const FAR_UNIX_S: u64 = 4_000_000_000;

/// A way to attack; one stranger goes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Calls in parts of which the last never comes, repeated without end.
    HalfSent,
    /// Initiations with a cookie that are nothing, from one address.
    Initiations,
    /// Questions for the device's record, and changes of secrets with wrong signatures.
    Signatures,
    /// Calls of machines that are slow, by several callers.
    Hogs,
    /// Calls of a machine that must ask the directory for their callers' names.
    Unnamed,
    /// Calls of a machine that lets nobody in.
    Denied,
    /// New sessions without end, so that epochs pass.
    Sessions,
    /// Datagrams of bits that are chance, and others' with a bit that isn't.
    Noise,
}

const WAYS: [Way; 8] = [
    Way::HalfSent,
    Way::Initiations,
    Way::Signatures,
    Way::Hogs,
    Way::Unnamed,
    Way::Denied,
    Way::Sessions,
    Way::Noise,
];

impl Way {
    fn takes_handshakes(self) -> bool {
        matches!(self, Self::Initiations | Self::Sessions)
    }
}

/// The kind of hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It says what is so, and knows nobody.
    Honest,
    /// It tells a time that is far away.
    Liar,
    /// It takes registrations and is silent about all else.
    Silent,
    /// Both at once.
    LyingAndSilent,
}

struct Stranger {
    way: Way,
    place: usize,
    person: Person<()>,
    /// Further keys at the same address.
    others: Vec<Person<()>>,
    next_us: u64,
    /// How many times as often as usual it does something.
    haste: u64,
    challenge: Option<Challenge>,
    /// A change of a secret that names a tenant of the device, who didn't sign it.
    forged: Vec<u8>,
}

/// All attackers but the member of the mesh and the machines.
pub(super) struct Attackers {
    strangers: Vec<Stranger>,
    reflector: Option<Reflector>,
    hub: Person<()>,
    manner: Manner,
    tenant: Person<()>,
    tenant_key: SigningKey,
    changes: Option<u64>,
    changes_us: u64,
    device: Option<(VerifyingKey, PublicKey)>,
    keys: BTreeMap<&'static str, PublicKey>,
    out: Vec<(usize, Vec<u8>)>,
}

impl Attackers {
    /// Those of one world: each takes part if `cast` lets it.
    pub(super) fn draw(cast: Cast, random: &mut Random, tenant_key: &SigningKey) -> Self {
        let mut strangers = Vec::new();
        let forged = forged_change(tenant_key);
        for (number, way) in WAYS.into_iter().enumerate() {
            if cast.takes(550, random) {
                let place = STRANGERS + number;
                let person = Person::stranger(Instant::BOOT, place, random);
                let next_us = match way.takes_handshakes() {
                    // The others have their sessions by then.
                    true => random.between(8_000_000..=15_000_000),
                    false => random.between(2_000_000..=6_000_000),
                };
                let (others, challenge, forged) = (Vec::new(), None, forged.clone());
                let haste = if cast == Cast::Everybody { HASTE } else { 1 };
                let stranger =
                    Stranger { way, place, person, others, next_us, haste, challenge, forged };
                strangers.push(stranger);
            }
        }
        let reflects = cast.takes(550, random);
        let reflector = reflects.then(|| Reflector::new(STRANGERS + WAYS.len(), random));
        let secret = Seed::from_bytes(&tenant_key.to_bytes()).device_secret();
        Self {
            strangers,
            reflector,
            hub: Person::stranger(Instant::BOOT, HUB, random),
            manner: match cast {
                Cast::Drawn => *random.pick(&[Manner::Honest, Manner::Liar, Manner::Silent]),
                Cast::Everybody => Manner::LyingAndSilent,
            },
            tenant: Person::with(Instant::BOOT, TENANT, secret, random),
            tenant_key: tenant_key.clone(),
            changes: cast.takes(550, random).then_some(0),
            changes_us: 3_000_000,
            device: None,
            keys: BTreeMap::new(),
            out: Vec::new(),
        }
    }

    pub(super) fn learn(&mut self, name: &'static str, key: PublicKey) {
        self.keys.insert(name, key);
    }

    pub(super) fn meet(&mut self, node: &Node<Partition>) {
        self.device = Some((node.device_key(), node.device_machine()));
    }

    /// When one of them wants to do something.
    pub(super) fn next_us(&self) -> u64 {
        let strangers = self.strangers.iter().map(|stranger| {
            let people = stranger.others.iter().chain([&stranger.person]);
            let people = people.map(Person::next_us).min().unwrap_or(u64::MAX);
            people.min(stranger.next_us)
        });
        let tenant = self.changes.map_or(u64::MAX, |_| self.changes_us);
        let reflector = self.reflector.as_ref().map(Reflector::next_us);
        let others = [self.hub.next_us(), self.tenant.next_us(), tenant];
        strangers.chain(others).chain(reflector).min().unwrap_or(u64::MAX)
    }

    /// The same when the siege is over and the hub alone goes on.
    pub(super) fn late_us(&self) -> u64 {
        self.hub.next_us()
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        random: &mut Random,
        to: usize,
        from: Address,
        datagram: &[u8],
    ) {
        match to {
            HUB => return self.hub.receive(now, random, from, datagram),
            TENANT => return self.tenant.receive(now, random, from, datagram),
            _ => {}
        }
        if let Some(reflector) = self.reflector.as_mut().filter(|it| it.place() == to) {
            return reflector.receive(now, random, from, datagram);
        }
        let Some(stranger) = self.strangers.iter_mut().find(|one| one.place == to) else { return };
        if let Ok(Datagram::Challenge(challenge)) = Datagram::parse(datagram) {
            stranger.challenge = Some(challenge);
        }
        stranger.person.receive(now, random, from.clone(), datagram);
        for other in &mut stranger.others {
            other.receive(now, random, from.clone(), datagram);
        }
    }

    pub(super) fn attend(&mut self, now: Instant, random: &mut Random, promises: &mut Promises) {
        self.serve_as_hub(now, random, promises);
        let Some((device_key, device)) = self.device else { return };
        self.change_secrets(now, random, promises, (device_key, &device));
        if let Some(reflector) = &mut self.reflector {
            let talker = self.keys[machines::TALKER];
            reflector.attend(now, random, &talker, &mut self.out);
        }
        let Self { strangers, keys, out, .. } = self;
        for stranger in strangers {
            stranger.person.attend(now, random);
            stranger.person.done();
            stranger.others.iter_mut().for_each(|other| other.attend(now, random));
            stranger.others.retain_mut(|other| other.done().is_empty());
            if now.as_micros() >= stranger.next_us {
                let pause_us = pause_us(stranger.way, random) / stranger.haste;
                stranger.next_us = now.as_micros() + pause_us;
                stranger.strike(now, random, &device, keys, out);
            }
            stranger.transmit(out);
        }
    }

    /// The hub answers after the siege as well.
    pub(super) fn attend_late(
        &mut self,
        now: Instant,
        random: &mut Random,
        promises: &mut Promises,
    ) {
        self.serve_as_hub(now, random, promises);
    }

    pub(super) fn transmit(&mut self) -> Option<(usize, Vec<u8>)> {
        self.out.pop()
    }

    fn serve_as_hub(&mut self, now: Instant, random: &mut Random, promises: &mut Promises) {
        self.hub.attend(now, random);
        for (handle, asked, _) in self.hub.incoming() {
            if asked == directory::function::REGISTER {
                promises.registered();
                let unix_s = match self.manner {
                    Manner::Liar | Manner::LyingAndSilent => FAR_UNIX_S,
                    Manner::Honest | Manner::Silent => {
                        super::UNIX_S_AT_START + now.as_micros() / 1_000_000
                    }
                };
                let (refusal, devices_max, takes_touches) = (None, None, false);
                let registered = Registered { refusal, unix_s, devices_max, takes_touches };
                let answer = postcard::to_allocvec(&registered);
                self.hub.reply(now, handle, Some(answer.expect("plain data")));
            } else if !matches!(self.manner, Manner::Silent | Manner::LyingAndSilent) {
                self.hub.reply(now, handle, None);
            }
        }
        while let Some(datagram) = self.hub.transmit() {
            self.out.push((HUB, datagram));
        }
    }

    /// The hostile tenant changes a secret again and again.
    fn change_secrets(
        &mut self,
        now: Instant,
        random: &mut Random,
        promises: &mut Promises,
        place: (VerifyingKey, &PublicKey),
    ) {
        self.tenant.attend(now, random);
        for ((), outcome) in self.tenant.done() {
            let taken = outcome.ok().flatten().map(|answer| decode_answer::<()>(&answer));
            if taken == Some(Ok(())) {
                promises.secret_changed();
            }
        }
        if let Some(changes) = &mut self.changes
            && now.as_micros() >= self.changes_us
        {
            self.changes_us = now.as_micros() + millis(random, 5..=60);
            *changes += 1;
            let name = ("wifi".parse().expect("a name"), *changes);
            let tenant = self.tenant_key.verifying_key();
            let change = SecretChange::set(random, &tenant, place, name, &[7; 400]);
            let change = change.and_then(|it| it.sign(&self.tenant_key)).expect("short enough");
            let call = (Function::secret_change.name(), Some(change));
            let errand = ((), Duration::from_secs(8));
            if self.tenant.waiting() < CALLS_MAX {
                self.tenant.call(now, random, place.1, call, None, errand);
            }
        }
        while let Some(datagram) = self.tenant.transmit() {
            self.out.push((TENANT, datagram));
        }
    }
}

impl Stranger {
    /// Makes the next move.
    fn strike(
        &mut self,
        now: Instant,
        random: &mut Random,
        device: &PublicKey,
        keys: &BTreeMap<&'static str, PublicKey>,
        out: &mut Vec<(usize, Vec<u8>)>,
    ) {
        let long = Some(vec![7; HALF_SENT_BYTES]);
        match self.way {
            Way::HalfSent => {
                let call = (Function::install_chunk.name(), long);
                self.call_as_one_of(3, now, random, device, call);
            }
            Way::Initiations => self.flood(random, device, out),
            Way::Signatures => {
                if random.chance(500) {
                    return self.call(now, random, device, (Function::record.name(), Some(vec![])));
                }
                let forged = self.forged.clone();
                self.call(now, random, device, (Function::secret_change.name(), Some(forged)));
            }
            Way::Hogs => {
                // More of them than the device has shares of its calls keep neighbours' callers out, too.
                let slow = if self.haste > 1 { &machines::SLOW[..] } else { &machines::SLOW[..4] };
                let slow = &keys[*random.pick(slow)];
                self.call_as_one_of(6, now, random, slow, ("sleep", None));
            }
            Way::Unnamed => {
                let named = &keys[machines::NAMED];
                self.call_as_one_of(6, now, random, named, ("sleep", None));
            }
            Way::Denied => {
                self.call(now, random, &keys[machines::VAULT], ("open", None));
            }
            Way::Sessions => {
                let mut other = Person::stranger(now, self.place, random);
                let errand = ((), Duration::from_secs(5));
                let call = (Function::status.name(), Some(vec![]));
                other.call(now, random, device, call, None, errand);
                self.others.push(other);
            }
            Way::Noise => {
                let length = random.between(0..=1_300);
                let mut datagram: Vec<u8> = (0..length).map(|_| random.number() as u8).collect();
                if let Some(first) = datagram.first_mut() {
                    *first = 0x10 | (*first % 8);
                }
                out.push((self.place, datagram));
            }
        }
    }

    fn call(
        &mut self,
        now: Instant,
        random: &mut Random,
        to: &PublicKey,
        call: (&str, Option<Vec<u8>>),
    ) {
        if self.person.waiting() < CALLS_MAX {
            let errand = ((), Duration::from_secs(30));
            self.person.call(now, random, to, call, None, errand);
        }
    }

    /// Calls as one of so many people at this address.
    fn call_as_one_of(
        &mut self,
        people: usize,
        now: Instant,
        random: &mut Random,
        to: &PublicKey,
        call: (&str, Option<Vec<u8>>),
    ) {
        let errand = ((), Duration::from_secs(55));
        if self.others.len() < people {
            let mut other = Person::stranger(now, self.place, random);
            other.call(now, random, to, call, None, errand);
            return self.others.push(other);
        }
        let one = random.between(0..=people as u64 - 1) as usize;
        let other = &mut self.others[one];
        if other.waiting() < 3 {
            other.call(now, random, to, call, None, errand);
        }
    }

    /// Sends initiations that look right and decrypt to nothing, a burst at a time.
    fn flood(&mut self, random: &mut Random, device: &PublicKey, out: &mut Vec<(usize, Vec<u8>)>) {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&random.number().to_le_bytes());
        out.push((self.place, Probe { nonce: Echo(nonce) }.to_bytes().to_vec()));
        let Some(challenge) = &self.challenge else { return };
        for _ in 0..random.between(1..=12) {
            let mut bytes = vec![0x11];
            bytes.extend_from_slice(&tenure_crypto::machine_id(device).0);
            bytes.extend_from_slice(&[7; 4]);
            bytes.extend_from_slice(&challenge.epoch.0);
            bytes.extend((0..16 + 96 + 40).map(|_| random.number() as u8));
            prove(&mut bytes, &challenge.cookie.0);
            out.push((self.place, bytes));
        }
    }

    fn transmit(&mut self, out: &mut Vec<(usize, Vec<u8>)>) {
        for person in self.others.iter_mut().chain([&mut self.person]) {
            while let Some(datagram) = person.transmit() {
                let is_last_part =
                    datagram.first() == Some(&DATA) && LAST_PART_BYTES.contains(&datagram.len());
                if self.way != Way::HalfSent || !is_last_part {
                    out.push((self.place, datagram));
                }
            }
        }
    }
}

/// Makes an initiation prove that its sender was given `cookie`.
pub(super) fn prove(initiation: &mut [u8], cookie: &[u8]) {
    let mut mac = Hmac::new(cookie);
    mac.update(&initiation[..25]);
    mac.update(&initiation[41..]);
    let code = mac.finish();
    Initiation::set_proof(initiation, code.first_chunk().expect("sixteen bytes"));
}

/// A change of a secret that names a tenant whom the device knows, with a signature that is wrong.
fn forged_change(tenant: &SigningKey) -> Vec<u8> {
    let name = "wifi".parse().expect("a name");
    let change = SecretChange::remove(VerifyingKey([1; 32]), name, 1).sign(tenant);
    let mut bytes = change.expect("well formed");
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes
}

/// How long an attacker rests after a move, in microseconds.
fn pause_us(way: Way, random: &mut Random) -> u64 {
    millis(
        random,
        match way {
            Way::HalfSent => 100..=1_500,
            Way::Initiations => 20..=150,
            Way::Signatures => 20..=200,
            Way::Hogs | Way::Unnamed => 50..=600,
            Way::Denied => 30..=300,
            Way::Sessions => 150..=400,
            Way::Noise => 20..=300,
        },
    )
}
