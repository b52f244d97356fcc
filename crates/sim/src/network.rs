//! The network: what becomes of a datagram.

use tenure_hal::simulated::Random;

use crate::scenario::NetworkPlan;

/// How late somebody who kept a datagram delivers it again, in milliseconds.
const REPLAY_MS: std::ops::RangeInclusive<u64> = 1..=60_000;

/// The network between all places.
#[derive(Debug)]
pub(crate) struct Network {
    plan: NetworkPlan,
    /// The part of the network that each place is in.
    parts: Vec<u64>,
    is_parted: bool,
    random: Random,
}

impl Network {
    /// A network of `places` places, whole.
    pub(crate) fn new(plan: NetworkPlan, places: usize, random: Random) -> Self {
        Self { plan, parts: vec![0; places], is_parted: false, random }
    }

    /// When each copy of a datagram arrives, in microseconds from now, and what it has become.
    pub(crate) fn carry(
        &mut self,
        from: usize,
        to: usize,
        datagram: Vec<u8>,
    ) -> Vec<(u64, Vec<u8>)> {
        let mut copies = Vec::new();
        if self.parts[from] == self.parts[to] && !self.random.chance(self.plan.lost) {
            copies.push((self.delay_us(), datagram.clone()));
        }
        if !copies.is_empty() && self.random.chance(self.plan.doubled) {
            copies.push((self.delay_us(), datagram.clone()));
        }
        if self.random.chance(self.plan.flipped) {
            let mut flipped = datagram.clone();
            if !flipped.is_empty() {
                let at = self.random.between(0..=flipped.len() as u64 - 1) as usize;
                flipped[at] ^= 1 << self.random.between(0..=7);
            }
            copies.push((self.delay_us(), flipped));
        }
        if self.random.chance(self.plan.replayed) {
            let later = self.random.millis(REPLAY_MS).as_micros() as u64;
            copies.push((later, datagram));
        }
        copies
    }

    /// How long the network stays as it is, in microseconds, if it is ever parted.
    pub(crate) fn partition_span(&mut self) -> Option<u64> {
        let span = self.plan.partition_every_ms.clone()?;
        Some(self.random.millis(span).as_micros() as u64)
    }

    /// Parts the network, or makes it whole; says which, and for how long.
    pub(crate) fn part(&mut self) -> (String, u64) {
        self.is_parted = !self.is_parted;
        for part in &mut self.parts {
            *part = if self.is_parted { self.random.between(0..=1) } else { 0 };
        }
        let span = self.partition_span().unwrap_or(u64::MAX / 2);
        (format!("parted: {:?}", self.parts), span)
    }

    /// Whether it is parted.
    pub(crate) fn is_parted(&self) -> bool {
        self.is_parted
    }

    /// Ends all trouble; what is under way still arrives.
    pub(crate) fn calm(&mut self) {
        self.parts.fill(0);
        self.is_parted = false;
        self.plan = NetworkPlan {
            delay_ms: self.plan.delay_ms.clone(),
            lost: 0,
            doubled: 0,
            replayed: 0,
            flipped: 0,
            partition_every_ms: None,
        };
    }

    fn delay_us(&mut self) -> u64 {
        self.random.millis(self.plan.delay_ms.clone()).as_micros() as u64
    }
}
