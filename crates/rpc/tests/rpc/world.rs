//! A seeded world of endpoints and the network between them, which loses, delays and repeats.
//!
//! The world itself checks what must always hold: no call is executed twice, none ends twice, and
//! what comes back is what was asked for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use tenure_crypto::{Hmac, StaticSecret};
use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_rpc::{
    CallHandle, Config, Endpoint, Epoch, Event, IncomingCallHandle, NoResult, OutgoingCall,
};
use tenure_wire::datagram::Initiation;
use tenure_wire::{MachineId, PublicKey};

/// An address is a number; the first of them belong to the nodes, in order.
pub(crate) type Place = u32;

pub(crate) struct Node {
    pub(crate) endpoint: Endpoint<Place>,
    pub(crate) config: Config,
    pub(crate) secret: StaticSecret,
    pub(crate) key: PublicKey,
    pub(crate) id: MachineId,
    pub(crate) published: Epoch,
    pub(crate) seen: Vec<(PublicKey, Place)>,
    running: Vec<(Instant, IncomingCallHandle, Outcome)>,
}

type Outcome = Result<Option<Vec<u8>>, NoResult>;

/// How the network misbehaves.
#[derive(Clone, Copy)]
pub(crate) struct Network {
    pub(crate) loss_percent: u64,
    pub(crate) repeat_percent: u64,
    pub(crate) delay_ms: (u64, u64),
}

impl Network {
    pub(crate) const PERFECT: Self = Self { loss_percent: 0, repeat_percent: 0, delay_ms: (5, 5) };
    pub(crate) const BAD: Self = Self { loss_percent: 20, repeat_percent: 10, delay_ms: (1, 80) };
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InFlight {
    arrives: Instant,
    serial: u64,
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) bytes: Vec<u8>,
}

/// A call whose end is awaited.
#[cfg_attr(not(feature = "deadlines"), expect(dead_code, reason = "for calls that come late"))]
pub(crate) struct Asked {
    pub(crate) tag: u64,
    /// When the caller stops waiting, and when it did.
    pub(crate) deadline: Instant,
    pub(crate) ended: Option<Instant>,
    pub(crate) result: Option<Result<Option<Vec<u8>>, NoResult>>,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    pub(crate) random: Random,
    pub(crate) seed: u64,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    serial: u64,
    /// Everything that was ever sent.
    pub(crate) captured: Vec<InFlight>,
    /// When each call, by its tag, began.
    pub(crate) began: BTreeMap<u64, Instant>,
    /// How often each call, by its tag, was executed.
    pub(crate) executed: BTreeMap<u64, u32>,
    pub(crate) asked: BTreeMap<(usize, CallHandle), Asked>,
    pub(crate) execution_ms: (u64, u64),
    /// How long callers wait, and how often they send something without an answer.
    pub(crate) patience: (Duration, u8),
    /// A node that stands still: what comes for it waits.
    pub(crate) still: Option<usize>,
    next_tag: u64,
    /// Drops datagrams by what they are, when set.
    pub(crate) filter: fn(&InFlight) -> bool,
    /// The first place's datagrams seem to come from the second, which leads there.
    pub(crate) translate: Option<(Place, Place)>,
    /// The first place's datagrams seem to come from the second, which leads nowhere.
    pub(crate) disguise: Option<(Place, Place)>,
    pub(crate) identified: Vec<Option<tenure_rpc::Identity>>,
}

impl World {
    pub(crate) fn new(seed: u64, nodes: usize, network: Network) -> Self {
        Self::with_config(seed, nodes, network, &Config::default())
    }

    pub(crate) fn with_config(seed: u64, nodes: usize, network: Network, config: &Config) -> Self {
        let mut random = Random::new(seed);
        let now = Instant::from_millis(1_000);
        let nodes = (0..nodes).map(|_| Node::new(now, &mut random, config)).collect();
        Self {
            // Long enough after their boot that the nodes' memories reach back.
            now: now + Duration::from_secs(10),
            nodes,
            network,
            random,
            seed,
            in_flight: BinaryHeap::new(),
            serial: 0,
            captured: Vec::new(),
            began: BTreeMap::new(),
            executed: BTreeMap::new(),
            asked: BTreeMap::new(),
            execution_ms: (0, 0),
            patience: (Duration::from_secs(60), 12),
            still: None,
            next_tag: 0,
            filter: |_| true,
            translate: None,
            disguise: None,
            identified: Vec::new(),
        }
    }

    /// Calls `function` of node `to` with a parameter of about `length` bytes.
    pub(crate) fn call(&mut self, from: usize, to: usize, length: usize) -> CallHandle {
        let hint = Some(self.nodes[to].published);
        self.call_with(from, to, length, hint, "echo")
    }

    pub(crate) fn call_with(
        &mut self,
        from: usize,
        to: usize,
        length: usize,
        hint: Option<Epoch>,
        function: &str,
    ) -> CallHandle {
        self.call_at(from, to, to as Place, length, hint, function)
    }

    /// As [`Self::call_with`], though the caller believes node `to` to be at `place`.
    pub(crate) fn call_at(
        &mut self,
        from: usize,
        to: usize,
        place: Place,
        length: usize,
        hint: Option<Epoch>,
        function: &str,
    ) -> CallHandle {
        self.next_tag += 1;
        let tag = self.next_tag;
        let mut parameter = tag.to_le_bytes().to_vec();
        parameter.extend((8..length).map(|at| filler(tag, at)));
        let call = OutgoingCall {
            function: function.to_owned(),
            parameter: Some(parameter),
            deadline: self.now + self.patience.0,
            attempts: self.patience.1,
        };
        let deadline = call.deadline;
        let (id, peer) = (self.nodes[from].id, self.nodes[to].key);
        let handle = self.nodes[from]
            .endpoint
            .call(self.now, &mut self.random, &id, &peer, place, hint, call)
            .expect("a call that can be made");
        self.asked.insert((from, handle), Asked { tag, deadline, ended: None, result: None });
        self.drain(from);
        handle
    }

    pub(crate) fn result(
        &self,
        from: usize,
        handle: CallHandle,
    ) -> &Result<Option<Vec<u8>>, NoResult> {
        self.asked[&(from, handle)].result.as_ref().expect("the call is over")
    }

    /// Puts a datagram into the network, as anybody could.
    pub(crate) fn inject(&mut self, from: Place, to: Place, bytes: Vec<u8>) {
        self.serial += 1;
        let serial = self.serial;
        let datagram = InFlight { arrives: self.now, serial, from, to, bytes };
        self.in_flight.push(Reverse(datagram));
    }

    /// As [`Self::inject`], and counts as sent.
    pub(crate) fn send(&mut self, from: Place, to: Place, bytes: Vec<u8>) {
        self.inject(from, to, bytes.clone());
        let (arrives, serial) = (self.now, self.serial);
        self.captured.push(InFlight { arrives, serial, from, to, bytes });
    }

    /// A device loses power and boots again: everything but its keys is gone.
    pub(crate) fn restart(&mut self, node: usize) {
        let now = self.now;
        let random = &mut self.random;
        let node_ref = &mut self.nodes[node];
        node_ref.endpoint = Endpoint::new(node_ref.config.clone(), now, random).expect("boots");
        node_ref.endpoint.add_machine(node_ref.secret.clone()).expect("room");
        node_ref.endpoint.identify_as(&node_ref.id.clone());
        node_ref.running.clear();
        self.asked.retain(|(from, _), asked| *from != node || asked.result.is_some());
    }

    /// Writes down what an endpoint takes along into a deep sleep, takes it up again after `span`,
    /// during which nothing reaches it, and goes on with what it was serving.
    pub(crate) fn sleep(&mut self, node: usize, span: Duration) {
        let rest =
            postcard::to_allocvec(&self.nodes[node].endpoint.rest(|_| true)).expect("written");
        let asked = std::mem::take(&mut self.asked);
        let running = std::mem::take(&mut self.nodes[node].running);
        self.restart(node);
        self.asked = asked;
        let end = self.now + span;
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.in_flight.retain(|one| one.0.to != node as Place);
            self.step();
        }
        self.now = end;
        let rest = postcard::from_bytes(&rest).expect("read");
        let (now, random, slept) = (self.now, &mut self.random, &mut self.nodes[node]);
        slept.endpoint = Endpoint::wake(slept.config.clone(), now, random, rest).expect("wakes");
        slept.endpoint.add_machine(slept.secret.clone()).expect("room");
        slept.endpoint.identify_as(&slept.id.clone());
        slept.running = running;
    }

    /// Says to the callers of a node that it sleeps for `span`, and lets that arrive; then it does.
    pub(crate) fn sleep_announced(&mut self, node: usize, span: Duration) {
        self.nodes[node].endpoint.announce_sleep(span);
        self.step();
        self.sleep(node, span);
    }

    /// Brings the directory's knowledge up to date.
    pub(crate) fn publish(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.published = node.endpoint.epoch());
    }

    /// Lets time pass until nothing more happens, or until `span` is over.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
    }

    /// Lets time pass until every call is over.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000 {
            if self.asked.values().all(|asked| asked.result.is_some()) {
                return;
            }
            self.run(Duration::from_millis(200));
        }
        panic!("seed {}: a call has no end", self.seed);
    }

    pub(crate) fn pending(&self) -> usize {
        self.asked.values().filter(|asked| asked.result.is_none()).count()
    }

    /// A node stands still for `span` while the others go on; then it reads what waited for it.
    #[cfg_attr(not(feature = "deadlines"), expect(dead_code, reason = "for calls that come late"))]
    pub(crate) fn stand_still(&mut self, node: usize, span: Duration) {
        self.still = Some(node);
        self.run(span);
        self.still = None;
    }

    fn next_event(&self) -> Option<Instant> {
        let nodes: Vec<&Node> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(number, _)| self.still != Some(*number))
            .map(|(_, node)| node)
            .collect();
        let polls = nodes.iter().filter_map(|node| node.endpoint.poll_at());
        let runs = nodes.iter().flat_map(|node| node.running.iter().map(|run| run.0));
        let arriving = self.in_flight.iter().filter(|one| self.still != Some(one.0.to as usize));
        polls.chain(runs).chain(arriving.map(|one| one.0.arrives).min()).min()
    }

    fn step(&mut self) {
        let mut waits = Vec::new();
        while self.in_flight.peek().is_some_and(|one| one.0.arrives <= self.now) {
            let Some(Reverse(one)) = self.in_flight.pop() else { break };
            let to = one.to as usize;
            if self.still == Some(to) {
                waits.push(Reverse(one));
                continue;
            }
            if let Some(node) = self.nodes.get_mut(to) {
                node.endpoint.receive(self.now, &mut self.random, one.from, &one.bytes);
                self.drain(to);
            }
        }
        self.in_flight.extend(waits);
        for node in 0..self.nodes.len() {
            if self.still == Some(node) {
                continue;
            }
            let now = self.now;
            let due = self.nodes[node].running.extract_if(.., |run| run.0 <= now);
            for (_, handle, result) in due.collect::<Vec<_>>() {
                self.nodes[node].endpoint.reply(now, handle, result);
            }
            if self.nodes[node].endpoint.poll_at().is_some_and(|at| at <= now) {
                self.nodes[node].endpoint.poll(now, &mut self.random);
                let again = self.nodes[node].endpoint.poll_at();
                assert!(again.is_none_or(|at| at > now), "seed {}: polls forever", self.seed);
            }
            self.drain(node);
        }
    }

    pub(crate) fn drain(&mut self, node: usize) {
        while let Some((to, bytes)) = self.nodes[node].endpoint.transmit() {
            assert!(bytes.len() <= self.nodes[node].config.datagram_bytes_max);
            self.carry(node as Place, to, bytes);
        }
        while let Some(event) = self.nodes[node].endpoint.event() {
            self.take(node, event);
        }
    }

    fn carry(&mut self, from: Place, to: Place, bytes: Vec<u8>) {
        let (from, to) = match self.translate {
            Some((inside, outside)) if from == inside => (outside, to),
            Some((inside, outside)) if to == outside => (from, inside),
            _ => (from, to),
        };
        let from = match self.disguise {
            Some((inside, outside)) if from == inside => outside,
            _ => from,
        };
        let copies = 1 + u64::from(self.random.chance(10 * self.network.repeat_percent));
        for _ in 0..copies {
            let (least, most) = self.network.delay_ms;
            let delay = least + self.random.below(most - least + 1);
            self.serial += 1;
            let arrives = self.now + Duration::from_millis(delay);
            let one = InFlight { arrives, serial: self.serial, from, to, bytes: bytes.clone() };
            self.captured.push(one.clone());
            let lost = self.random.chance(10 * self.network.loss_percent);
            if !lost && (self.filter)(&one) {
                self.in_flight.push(Reverse(one));
            }
        }
    }

    fn take(&mut self, node: usize, event: Event<Place>) {
        match event {
            Event::IncomingCall { handle, function, parameter, to, .. } => {
                assert_eq!(to, self.nodes[node].id);
                let parameter = parameter.expect("every call here has one");
                let tag = u64::from_le_bytes(parameter[..8].try_into().expect("a tag"));
                self.began.insert(tag, self.now);
                let executions = self.executed.entry(tag).or_default();
                *executions += 1;
                assert_eq!(*executions, 1, "seed {}: call {tag} ran twice", self.seed);
                let result = match function.as_str() {
                    "echo" => Ok(Some(parameter)),
                    "long" => Ok(Some((0..8_000).map(|at| filler(tag, at)).collect())),
                    "nothing" => Ok(None),
                    "fail" => Err(NoResult::Execution),
                    _ => Err(NoResult::NoSuchFunction),
                };
                let (least, most) = self.execution_ms;
                let lasts = Duration::from_millis(least + self.random.below(most - least + 1));
                self.nodes[node].running.push((self.now + lasts, handle, result));
            }
            Event::CallDone { handle, result, .. } => {
                let Some(asked) = self.asked.get_mut(&(node, handle)) else {
                    panic!("seed {}: a call ended that nobody made", self.seed)
                };
                assert!(asked.result.is_none(), "seed {}: a call ended twice", self.seed);
                if let Ok(Some(value)) = &result {
                    let tag = asked.tag;
                    let echoed = value.starts_with(&tag.to_le_bytes())
                        && (8..value.len()).all(|at| value[at] == filler(tag, at));
                    let long = (0..value.len()).all(|at| value[at] == filler(tag, at));
                    assert!(echoed || long, "seed {}: another call's result", self.seed);
                }
                asked.result = Some(result);
                asked.ended = Some(self.now);
            }
            Event::PeerSeen { peer, from, .. } => self.nodes[node].seen.push((peer, from)),
            Event::Identified { identity, .. } => self.identified.push(identity),
        }
    }
}

impl Node {
    fn new(now: Instant, random: &mut Random, config: &Config) -> Self {
        let mut endpoint = Endpoint::new(config.clone(), now, random).expect("valid limits");
        let secret = StaticSecret::generate(random).expect("randomness");
        let id = endpoint.add_machine(secret.clone()).expect("room");
        endpoint.identify_as(&id);
        Self {
            published: endpoint.epoch(),
            endpoint,
            config: config.clone(),
            key: secret.public_key(),
            secret,
            id,
            seen: Vec::new(),
            running: Vec::new(),
        }
    }
}

fn filler(tag: u64, at: usize) -> u8 {
    (tag as usize * 31 + at * 7 + at / 251) as u8
}

/// Makes an initiation prove that its sender was given `cookie`.
pub(crate) fn prove(initiation: &mut [u8], cookie: &[u8]) {
    let mut mac = Hmac::new(cookie);
    mac.update(&initiation[..25]);
    mac.update(&initiation[41..]);
    let code = mac.finish();
    Initiation::set_proof(initiation, code.first_chunk().expect("sixteen bytes"));
}
