//! An attacker who has the device's answers sent to a victim: each datagram goes out from the attacker's own
//! address or in the victim's name, and everything that it ever sent goes out again.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_wire::datagram::{Challenge, Datagram, Echo, Probe};
use tenure_wire::{Address, PublicKey};

use super::attackers::prove;
use super::person::Person;
use super::{VICTIM, millis};

const INITIATION: u8 = 0x11;
/// How many of its datagrams, and of the challenges that it got, it remembers.
const SENT_MAX: usize = 200;
const CHALLENGES_MAX: usize = 8;

pub(super) struct Reflector {
    place: usize,
    person: Option<Person<()>>,
    sent: Vec<Vec<u8>>,
    challenges: Vec<Challenge>,
    forges: bool,
    /// The first message that goes out in the victim's name, if it goes by that; then from here as well.
    opening: Option<Opening>,
    next_us: u64,
}

/// How far somebody is who opens a session in the victim's name and reads the response here.
enum Opening {
    /// Nothing was sent yet.
    Begun,
    /// This was, in the victim's name.
    Forged(Vec<u8>),
    /// And again from here; from then on everything else in the victim's name.
    Repeated,
}

impl Reflector {
    pub(super) fn new(place: usize, random: &mut Random) -> Self {
        Self {
            place,
            person: None,
            sent: Vec::new(),
            challenges: Vec::new(),
            forges: true,
            opening: None,
            next_us: random.between(2_000_000..=6_000_000),
        }
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn next_us(&self) -> u64 {
        self.person.as_ref().map_or(u64::MAX, Person::next_us).min(self.next_us)
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        random: &mut Random,
        from: Address,
        datagram: &[u8],
    ) {
        if let Ok(Datagram::Challenge(challenge)) = Datagram::parse(datagram) {
            if self.challenges.len() >= CHALLENGES_MAX {
                self.challenges.remove(0);
            }
            self.challenges.push(challenge);
        }
        if let Some(person) = &mut self.person {
            person.receive(now, random, from, datagram);
        }
    }

    /// Does what is due; `talker` is a machine with long answers.
    pub(super) fn attend(
        &mut self,
        now: Instant,
        random: &mut Random,
        talker: &PublicKey,
        out: &mut Vec<(usize, Vec<u8>)>,
    ) {
        if now.as_micros() >= self.next_us {
            self.next_us = now.as_micros() + millis(random, 20..=700);
            self.forges = random.chance(600);
            self.strike(now, random, talker, out);
        }
        let Some(person) = &mut self.person else { return };
        person.attend(now, random);
        person.done();
        while let Some(datagram) = self.person.as_mut().and_then(Person::transmit) {
            if self.sent.len() >= SENT_MAX {
                self.sent.remove(0);
            }
            self.sent.push(datagram.clone());
            let is_first = datagram.first() == Some(&INITIATION);
            let from = match &mut self.opening {
                Some(opening) => {
                    if is_first && !matches!(opening, Opening::Repeated) {
                        *opening = Opening::Forged(datagram.clone());
                    }
                    VICTIM
                }
                None if self.forges => VICTIM,
                None => self.place,
            };
            out.push((from, datagram));
        }
    }

    fn strike(
        &mut self,
        now: Instant,
        random: &mut Random,
        talker: &PublicKey,
        out: &mut Vec<(usize, Vec<u8>)>,
    ) {
        if self.challenges.is_empty() || random.chance(100) {
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&random.number().to_le_bytes());
            out.push((self.place, Probe { nonce: Echo(nonce) }.to_bytes().to_vec()));
        }
        let epoch = self.challenges.last().map(|challenge| challenge.epoch);
        if self.person.is_none() || random.chance(60) {
            self.person = Some(Person::stranger(now, self.place, random));
            let opens = epoch.is_some() && random.chance(500);
            self.opening = opens.then_some(Opening::Begun);
        }
        if let Some(person) = self.person.as_mut().filter(|person| person.waiting() < 3) {
            let errand = ((), Duration::from_secs(20));
            person.call(now, random, talker, ("long", None), epoch, errand);
        }
        match &mut self.opening {
            Some(opening) => {
                if let (Opening::Forged(first), Some(challenge)) =
                    (&*opening, self.challenges.last())
                {
                    let mut first = first.clone();
                    prove(&mut first, &challenge.cookie.0);
                    out.push((self.place, first));
                    *opening = Opening::Repeated;
                }
            }
            None => self.repeat(random, out),
        }
    }

    /// Sends some of what was sent before once more, from here or in the victim's name.
    fn repeat(&mut self, random: &mut Random, out: &mut Vec<(usize, Vec<u8>)>) {
        for _ in 0..random.between(0..=3) {
            if self.sent.is_empty() {
                return;
            }
            let mut old = random.pick(&self.sent).clone();
            if old[0] == INITIATION && !self.challenges.is_empty() {
                prove(&mut old, &random.pick(&self.challenges).cookie.0);
            }
            out.push((*random.pick(&[self.place, VICTIM]), old));
        }
    }
}
