//! A small network for tests, of protocols in here and of anybody's: stacks, links with loss, and a clock that
//! nobody waits for. The same calls are the same run.

#[cfg(test)]
mod fixed_router;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{
    Destination, Framer, FramerConfig, NodeId, Random, Stack, StackConfig, Unsealed,
};

#[cfg(test)]
pub(crate) use fixed_router::{FixedRouter, line_router};

/// How long a frame is on its way.
const FLIGHT: Duration = Duration::from_millis(1);

/// Nodes with a stack each, on links that lose what they are told to.
pub struct Network {
    pub(crate) now: Instant,
    pub(crate) stacks: Vec<Stack>,
    /// The permille of frames that each link loses; no entry, no link.
    pub(crate) links: BTreeMap<(usize, usize), u32>,
    /// Whether a lost frame for one neighbour is reported to the sender, as 802.11 does.
    pub(crate) reports: bool,
    random: Random,
    flying: BTreeMap<(Instant, u64), (usize, usize, Vec<u8>)>,
    sent: u64,
    lives: u32,
}

/// The id of the node of that index.
pub fn id(index: usize) -> NodeId {
    NodeId::from_number(index as u64 + 1)
}

impl Network {
    /// `count` nodes without links, set up by `set_up`.
    pub fn new(count: usize, set_up: impl Fn(&mut Stack, usize)) -> Self {
        let mut network = Self {
            now: Instant::BOOT,
            stacks: Vec::new(),
            links: BTreeMap::new(),
            reports: false,
            random: Random::new(7),
            flying: BTreeMap::new(),
            sent: 0,
            lives: 1,
        };
        for index in 0..count {
            let mut stack = network.stack(index);
            set_up(&mut stack, index);
            network.stacks.push(stack);
        }
        network
    }

    fn stack(&self, index: usize) -> Stack {
        let seed = (index as u64 + 1) * 1000 + u64::from(self.lives);
        let framer = FramerConfig::new(id(index), self.lives, [0; 8]);
        let config = StackConfig { seed, ..StackConfig::default() };
        Stack::new(config, Framer::new(framer, Unsealed))
    }

    /// Joins two nodes both ways, by a link that loses so many of a thousand frames.
    pub fn link(&mut self, one: usize, other: usize, lost_permille: u32) {
        self.links.insert((one, other), lost_permille);
        self.links.insert((other, one), lost_permille);
    }

    /// Parts two nodes, both ways.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.links.remove(&(one, other));
        self.links.remove(&(other, one));
    }

    /// Joins all nodes in a row, as [`Self::link`] does.
    pub fn line(mut self, lost_permille: u32) -> Self {
        for index in 1..self.stacks.len() {
            self.link(index - 1, index, lost_permille);
        }
        self
    }

    /// Joins every node with every other, as [`Self::link`] does.
    pub fn clique(mut self, lost_permille: u32) -> Self {
        for one in 0..self.stacks.len() {
            for other in 0..one {
                self.link(one, other, lost_permille);
            }
        }
        self
    }

    /// Lets a node begin another life.
    pub fn restart(&mut self, index: usize, set_up: impl Fn(&mut Stack, usize)) {
        self.lives += 1;
        self.stacks[index] = self.stack(index);
        set_up(&mut self.stacks[index], index);
    }

    /// The time, from the boot of the first nodes on.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The nodes' stacks.
    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    /// The stack of the node of that index.
    ///
    /// # Panics
    /// There is no such node.
    pub fn stack_mut(&mut self, index: usize) -> &mut Stack {
        &mut self.stacks[index]
    }

    /// Frames that were sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Lets `span` pass.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let mut next = self.flying.keys().next().map(|(at, _)| *at);
            for index in 0..self.stacks.len() {
                self.settle(index);
                let wakes = self.stacks[index].poll_at(self.now);
                next = next.into_iter().chain(wakes).min();
            }
            next = next.into_iter().chain(self.flying.keys().next().map(|(at, _)| *at)).min();
            match next {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => break,
            }
            while let Some(entry) = self.flying.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (_, to, frame) = entry.remove();
                let _ = self.stacks[to].receive(self.now, &frame, Some(-60));
                self.settle(to);
            }
        }
        self.now = end;
    }

    /// Lets a node do what it has to do now, and takes what it sends.
    fn settle(&mut self, from: usize) {
        let mut frame = Vec::new();
        loop {
            let wakes = self.stacks[from].poll(self.now);
            let mut quiet = true;
            while let Some(to) = self.stacks[from].transmit(self.now, &mut frame) {
                quiet = false;
                self.carry(from, to, &frame);
            }
            if quiet && wakes != Some(self.now) {
                return;
            }
        }
    }

    fn carry(&mut self, from: usize, to: Destination, frame: &[u8]) {
        self.sent += 1;
        let links: Vec<_> = self
            .links
            .range((from, 0)..(from + 1, 0))
            .map(|(&(_, to), &lost)| (to, lost))
            .collect();
        let mut arrived = false;
        for (node, lost) in links {
            let meant = match to {
                Destination::All => true,
                Destination::One(one) => one == id(node),
            };
            if meant && !self.random.chance(lost) {
                arrived = true;
                let key = (self.now + FLIGHT, self.sent << 16 | node as u64);
                self.flying.insert(key, (from, node, frame.to_vec()));
            }
        }
        if let (Destination::One(neighbour), false, true) = (to, arrived, self.reports) {
            self.stacks[from].undelivered(neighbour);
        }
    }
}
