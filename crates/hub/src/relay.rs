//! The relay: datagrams between two of one owner, both of whom have sessions with this hub.
//!
//! Invariants:
//! - A way has two ends of one owner. What comes for it comes from where one end has shown that it receives, and goes to where
//!   the other has. Everything else is dropped without an answer.
//! - So many datagrams go out as came in, each as long as it was: nothing is amplified, and nothing is read.
//! - What waits is bounded. Owners are served in turn, at one rate for all; where there is no room, the owner of whom most
//!   waits loses a datagram.
//! - There are [`WAYS_MAX`] ways. The owner who has most loses the one that was used longest ago to a new one.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::Bound;
use core::time::Duration;

use tenure_hal::{DATAGRAM_BYTES_MAX, Entropy, Instant};
use tenure_wire::datagram::Relayed;
use tenure_wire::directory::NotRelayed;
use tenure_wire::{Address, PublicKey, VerifyingKey};

use crate::admission::Bucket;

/// The most ways at once.
const WAYS_MAX: usize = 16 * 1024;
/// How long a way is kept that nobody uses.
const IDLE_MAX: Duration = Duration::from_secs(10 * 60);
/// The most datagrams that wait, of one owner and of all.
const WAITING_OF_ONE_MAX: usize = 256;
const WAITING_MAX: usize = 4 * 1024;
/// How much of a second's bytes may go out at once: one part in so many.
const BURSTS_PER_SECOND: u32 = 4;
/// How soon it is looked again whether more may go out.
const REFILL: Duration = Duration::from_millis(2);

/// What a hub has relayed since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// The ways that are open.
    pub ways: u64,
    /// The datagrams that went out.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The datagrams that came for no way, or from neither end of theirs.
    pub foreign: u64,
    /// Those whose other end isn't there.
    pub absent: u64,
    /// Those for which there was no room.
    pub crowded: u64,
}

/// The ways, and what waits to go out.
pub(crate) struct Relay {
    /// `None` relays nothing.
    bytes_per_second: Option<u32>,
    ways: BTreeMap<[u8; 8], Ends>,
    of_ends: BTreeMap<(Caller, PublicKey), [u8; 8]>,
    waiting: BTreeMap<VerifyingKey, VecDeque<(Address, Vec<u8>)>>,
    waiting_count: usize,
    /// The owner who was served last.
    served: VerifyingKey,
    budget: Bucket,
    now: Instant,
    counts: RelayCounts,
}

/// The end that asked for a way, by the key of its sessions with the hub; and its incarnation, if several may be there at once:
/// the commands of a person have one key.
pub(crate) type Caller = (PublicKey, Option<u64>);

/// The two ends of a way.
#[derive(Clone, Copy, Debug)]
struct Ends {
    owner: VerifyingKey,
    caller: Caller,
    device: PublicKey,
    used_at: Instant,
}

impl Relay {
    pub(crate) fn new(now: Instant, bytes_per_second: Option<u32>) -> Self {
        Self {
            bytes_per_second,
            ways: BTreeMap::new(),
            of_ends: BTreeMap::new(),
            waiting: BTreeMap::new(),
            waiting_count: 0,
            served: VerifyingKey([0; 32]),
            budget: Bucket::full(now, burst_of(bytes_per_second)),
            now,
            counts: RelayCounts::default(),
        }
    }

    /// Whether it relays for anybody.
    pub(crate) fn is_on(&self) -> bool {
        self.bytes_per_second.is_some()
    }

    /// The way from `caller` to `device`, both of `owner`: the one that is there, or a new one.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        owner: VerifyingKey,
        (caller, device): (Caller, PublicKey),
    ) -> Result<[u8; 8], NotRelayed> {
        if let Some(way) = self.of_ends.get(&(caller, device))
            && let Some(ends) = self.ways.get_mut(way)
            && ends.owner == owner
        {
            ends.used_at = now;
            return Ok(*way);
        }
        self.make_room(now);
        let mut way = [0; 8];
        entropy.fill(&mut way).map_err(|_| NotRelayed::Busy)?;
        if self.ways.contains_key(&way) {
            return Err(NotRelayed::Busy);
        }
        // One of a former owner of both.
        if let Some(before) = self.of_ends.insert((caller, device), way) {
            self.ways.remove(&before);
        }
        self.ways.insert(way, Ends { owner, caller, device, used_at: now });
        Ok(way)
    }

    /// Takes a datagram that came from `from` for a way, of whose ends `route_of` knows where each has shown that it receives.
    pub(crate) fn take<'a>(
        &mut self,
        now: Instant,
        from: &Address,
        relayed: &Relayed<'_>,
        route_of: impl Fn(&PublicKey, Option<u64>) -> Option<&'a Address>,
    ) {
        let Some(ends) = self.ways.get_mut(&relayed.way) else {
            self.counts.foreign += 1;
            return;
        };
        let (key, incarnation) = ends.caller;
        let (caller, device) = (route_of(&key, incarnation), route_of(&ends.device, None));
        let to = match () {
            () if caller == Some(from) => device,
            () if device == Some(from) => caller,
            () => {
                self.counts.foreign += 1;
                return;
            }
        };
        ends.used_at = now;
        let owner = ends.owner;
        match to {
            Some(to) => self.wait(owner, to.clone(), relayed.to_bytes()),
            None => self.counts.absent += 1,
        }
    }

    /// Lets go out what the rate allows by `now`.
    pub(crate) fn fill(&mut self, now: Instant) {
        self.now = now;
        let burst = burst_of(self.bytes_per_second);
        let bytes_per_second = self.bytes_per_second.unwrap_or(0).max(1);
        self.budget.fill(now, burst, Duration::from_secs(burst.into()) / bytes_per_second);
    }

    /// The next datagram that goes out.
    pub(crate) fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        let after = (Bound::Excluded(self.served), Bound::Unbounded);
        let next = self.waiting.range(after).next().or_else(|| self.waiting.iter().next());
        let (owner, datagrams) = next?;
        let (owner, length) = (*owner, datagrams.front()?.1.len() as u32);
        if self.budget.tokens() < length {
            return None;
        }
        self.budget.take(length);
        self.served = owner;
        let datagrams = self.waiting.get_mut(&owner)?;
        let datagram = datagrams.pop_front();
        if datagrams.is_empty() {
            self.waiting.remove(&owner);
        }
        self.waiting_count -= 1;
        self.counts.datagrams += 1;
        self.counts.bytes += u64::from(length);
        datagram
    }

    /// When something that waits may go out.
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        (self.waiting_count > 0).then(|| self.now + REFILL)
    }

    /// What was relayed since the start.
    pub(crate) fn counts(&self) -> RelayCounts {
        RelayCounts { ways: self.ways.len() as u64, ..self.counts }
    }

    /// Keeps a datagram until it is its owner's turn.
    fn wait(&mut self, owner: VerifyingKey, to: Address, datagram: Vec<u8>) {
        let own = self.waiting.get(&owner).map_or(0, VecDeque::len);
        if own >= WAITING_OF_ONE_MAX || datagram.len() > DATAGRAM_BYTES_MAX {
            self.counts.crowded += 1;
            return;
        }
        if self.waiting_count >= WAITING_MAX {
            self.counts.crowded += 1;
            let longest = self.waiting.iter().max_by_key(|(_, waiting)| waiting.len());
            let Some((&longest, waiting)) = longest.filter(|(_, waiting)| waiting.len() > own)
            else {
                return;
            };
            let is_last = waiting.len() == 1;
            if let Some(waiting) = self.waiting.get_mut(&longest) {
                waiting.pop_back();
            }
            if is_last {
                self.waiting.remove(&longest);
            }
            self.waiting_count -= 1;
        }
        self.waiting.entry(owner).or_default().push_back((to, datagram));
        self.waiting_count += 1;
    }

    /// Makes room for one more way, if there are as many as may be.
    fn make_room(&mut self, now: Instant) {
        if self.ways.len() < WAYS_MAX {
            return;
        }
        let idle: Vec<[u8; 8]> = self
            .ways
            .iter()
            .filter(|(_, ends)| now.since(ends.used_at) > IDLE_MAX)
            .map(|(way, _)| *way)
            .collect();
        idle.iter().for_each(|way| self.close(way));
        if !idle.is_empty() {
            return;
        }
        let mut of_owner: BTreeMap<VerifyingKey, usize> = BTreeMap::new();
        for ends in self.ways.values() {
            *of_owner.entry(ends.owner).or_default() += 1;
        }
        let most = of_owner.iter().max_by_key(|(_, count)| **count).map(|(owner, _)| *owner);
        let of_most = self.ways.iter().filter(|(_, ends)| Some(ends.owner) == most);
        let oldest = of_most.min_by_key(|(_, ends)| ends.used_at).map(|(way, _)| *way);
        oldest.iter().for_each(|way| self.close(way));
    }

    fn close(&mut self, way: &[u8; 8]) {
        if let Some(Ends { caller, device, .. }) = self.ways.remove(way) {
            self.of_ends.remove(&(caller, device));
        }
    }
}

/// How many bytes go out at once.
fn burst_of(bytes_per_second: Option<u32>) -> u32 {
    // A datagram at least, or none ever goes out.
    (bytes_per_second.unwrap_or(0) / BURSTS_PER_SECOND).max(DATAGRAM_BYTES_MAX as u32)
}

#[cfg(test)]
mod tests;
