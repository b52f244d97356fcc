//! Somebody who has the device's answers sent to a victim: each datagram goes out from the attacker's own
//! address or in the victim's name, and everything that it ever sent goes out again.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_wire::datagram::{Challenge, Datagram};
use tenure_wire::{Address, PublicKey};

use super::attackers::prove;
use super::person::Person;
use super::{VICTIM, millis};
use crate::random::Random;

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
    next_us: u64,
}

impl Reflector {
    pub(super) fn new(place: usize, random: &mut Random) -> Self {
        let next_us = random.between(2_000_000..=6_000_000);
        let (sent, challenges) = (Vec::new(), Vec::new());
        Self { place, person: None, sent, challenges, forges: true, next_us }
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

    /// Does what is due; `guest` is a machine with long answers.
    pub(super) fn attend(
        &mut self,
        now: Instant,
        random: &mut Random,
        guest: &PublicKey,
        out: &mut Vec<(usize, Vec<u8>)>,
    ) {
        if now.as_micros() >= self.next_us {
            self.next_us = now.as_micros() + millis(random, 20..=700);
            self.forges = random.chance(600);
            self.strike(now, random, guest, out);
        }
        let Self { place, person, sent, forges, .. } = self;
        let Some(person) = person else { return };
        person.attend(now, random);
        person.done();
        while let Some(datagram) = person.transmit() {
            if sent.len() >= SENT_MAX {
                sent.remove(0);
            }
            sent.push(datagram.clone());
            out.push((if *forges { VICTIM } else { *place }, datagram));
        }
    }

    fn strike(
        &mut self,
        now: Instant,
        random: &mut Random,
        guest: &PublicKey,
        out: &mut Vec<(usize, Vec<u8>)>,
    ) {
        if self.person.is_none() || random.chance(60) {
            self.person = Some(Person::stranger(now, self.place, random));
        }
        if let Some(person) = self.person.as_mut().filter(|person| person.waiting() < 3) {
            let errand = ((), Duration::from_secs(20));
            person.call(now, random, guest, ("long", None), None, errand);
        }
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
