//! The scene: whatever everybody in the world is lent, which is the time, chance, the keys, the network and the books.

use std::ops::RangeInclusive;

use tenure_crypto::SigningKey;
use tenure_hal::Instant;
use tenure_hal::simulated::{Random, place_at};
use tenure_wire::{Address, Term};

use super::books::Books;
use super::{PERIOD_S, SECRET, TENANTS, UNIX_S_AT_START};
use crate::agenda::Agenda;
use crate::guests;
use crate::network::Network;
use crate::place::Keys;
use crate::scenario::Role;

/// How long a machine rests before each read, in milliseconds.
const PAUSE_MS: u32 = 150;

/// A datagram on its way.
pub(super) struct Parcel {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) datagram: Vec<u8>,
}

pub(super) struct Scene {
    pub(super) now_us: u64,
    /// Whether the trouble is over.
    pub(super) is_quiet: bool,
    pub(super) random: Random,
    pub(super) keys: Keys,
    pub(super) tenants: [SigningKey; TENANTS.len()],
    pub(super) books: Books,
    network: Network,
    under_way: Agenda<Parcel>,
}

impl Scene {
    pub(super) fn new(
        keys: Keys,
        tenants: [SigningKey; TENANTS.len()],
        network: Network,
        random: Random,
    ) -> Self {
        Self {
            now_us: 0,
            is_quiet: false,
            random,
            keys,
            tenants,
            books: Books::default(),
            network,
            under_way: Agenda::default(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    /// The time on the wall clock.
    pub(super) fn unix_s(&self) -> u64 {
        UNIX_S_AT_START + self.now_us / 1_000_000
    }

    /// A span that chance takes from so many milliseconds, in microseconds.
    pub(super) fn span_us(&mut self, millis: RangeInclusive<u64>) -> u64 {
        self.random.millis(millis).as_micros() as u64
    }

    /// A term that begins now.
    pub(super) fn term(&mut self) -> Term {
        let lasts_s = if self.is_quiet { 1_000 } else { self.random.between(4..=20) };
        let signed_unix_s = self.unix_s();
        Term {
            signed_unix_s,
            ends_unix_s: Some(signed_unix_s + lasts_s),
            grace_s: 1_000_000,
            receipts_every_s: PERIOD_S,
        }
    }

    /// The package of a tenant's machine.
    pub(super) fn package(&self, index: usize) -> Vec<u8> {
        let role = Role::Reader { secret: SECRET.to_string(), pause_ms: PAUSE_MS };
        guests::package(TENANTS[index].1, &role, &self.tenants[index])
    }

    /// Hands on what the device and the parties send, and reads nothing of it.
    pub(super) fn send(&mut self, from: usize, to: &Address, datagram: Vec<u8>) {
        self.books.check_private("a datagram", &datagram);
        let Address::Udp(socket) = to else { return };
        let Some(to) = place_at(*socket).map(|to| to as usize) else { return };
        for (delay_us, datagram) in self.network.carry(from, to, datagram) {
            self.under_way.plan(self.now_us + delay_us, Parcel { from, to, datagram });
        }
    }

    /// The next datagram that has arrived.
    pub(super) fn arrival(&mut self) -> Option<Parcel> {
        self.under_way.next_at().filter(|at_us| *at_us <= self.now_us)?;
        self.under_way.next().map(|(_, parcel)| parcel)
    }

    /// When the next datagram arrives.
    pub(super) fn arrival_us(&self) -> Option<u64> {
        self.under_way.next_at()
    }

    /// Ends the trouble.
    pub(super) fn calm(&mut self) {
        self.is_quiet = true;
        self.network.calm();
    }
}

/// When a term ends, by the world's clock.
pub(super) fn end_us(term: &Term) -> u64 {
    (term.ends_unix_s.unwrap_or(u64::MAX) - UNIX_S_AT_START) * 1_000_000
}
