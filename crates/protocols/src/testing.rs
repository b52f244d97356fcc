//! A small network for tests: stacks, links with loss, a clock.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{
    Context, Destination, Framer, FramerConfig, Hears, NodeId, Protocol, Question, Random, Serves,
    Stack, StackConfig, Unsealed,
};

use crate::interface::{LinkFailing, NextHopRated, Route, Routed};

/// How long a frame is on its way.
const FLIGHT: Duration = Duration::from_millis(1);

pub(crate) struct Network {
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

pub(crate) fn id(index: usize) -> NodeId {
    NodeId::from_number(index as u64 + 1)
}

impl Network {
    /// `count` nodes without links, set up by `set_up`.
    pub(crate) fn new(count: usize, set_up: impl Fn(&mut Stack, usize)) -> Self {
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

    /// Joins two nodes both ways.
    pub(crate) fn link(&mut self, one: usize, other: usize, lost_permille: u32) {
        self.links.insert((one, other), lost_permille);
        self.links.insert((other, one), lost_permille);
    }

    pub(crate) fn cut(&mut self, one: usize, other: usize) {
        self.links.remove(&(one, other));
        self.links.remove(&(other, one));
    }

    /// Joins all nodes in a row.
    pub(crate) fn line(mut self, lost_permille: u32) -> Self {
        for index in 1..self.stacks.len() {
            self.link(index - 1, index, lost_permille);
        }
        self
    }

    /// Joins every node with every other.
    pub(crate) fn clique(mut self, lost_permille: u32) -> Self {
        for one in 0..self.stacks.len() {
            for other in 0..one {
                self.link(one, other, lost_permille);
            }
        }
        self
    }

    /// Lets a node begin another life.
    pub(crate) fn restart(&mut self, index: usize, set_up: impl Fn(&mut Stack, usize)) {
        self.lives += 1;
        self.stacks[index] = self.stack(index);
        set_up(&mut self.stacks[index], index);
    }

    /// Frames that were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Lets `span` pass.
    pub(crate) fn run(&mut self, span: Duration) {
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

/// A router that was told its ways, for tests of what builds on routers.
#[derive(Debug, Default)]
pub(crate) struct FixedRouter {
    pub(crate) ways: BTreeMap<NodeId, NodeId>,
    pub(crate) failing: Vec<NodeId>,
    /// Which next hops were said to pass on, or not.
    pub(crate) rated: Vec<(NodeId, bool)>,
    /// Of all next hops.
    pub(crate) life: u32,
}

tenure_mesh::protocol! {
    FixedRouter = 250, "fixed router";
    serves { Route }
    hears { LinkFailing, NextHopRated }
}

impl Protocol for FixedRouter {}

impl Serves<Route> for FixedRouter {
    fn serve(
        &mut self,
        Route { destination }: Route,
        _: &Question<'_, Route>,
        _: &mut Context<'_, Self>,
    ) -> Option<Routed> {
        Some(Routed { next_hop: self.ways.get(&destination).copied(), life: self.life })
    }
}

impl Hears<LinkFailing> for FixedRouter {
    fn hear(&mut self, failing: LinkFailing, _: &[u8], _: &mut Context<'_, Self>) {
        self.failing.push(failing.neighbour);
    }
}

impl Hears<NextHopRated> for FixedRouter {
    fn hear(&mut self, rated: NextHopRated, _: &[u8], _: &mut Context<'_, Self>) {
        self.rated.push((rated.neighbour, rated.passes_on));
    }
}

/// The router of node `index` of a line of `count`.
pub(crate) fn line_router(index: usize, count: usize) -> FixedRouter {
    let next = |to| if to < index { index - 1 } else { index + 1 };
    let others = (0..count).filter(|to| *to != index);
    FixedRouter {
        ways: others.map(|to| (id(to), id(next(to)))).collect(),
        ..FixedRouter::default()
    }
}
