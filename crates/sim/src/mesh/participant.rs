//! A node of a mesh scenario: a stack with the protocols that the scenario names.

use std::hint::black_box;

use tenure_hal::Instant;
use tenure_mesh::{
    Air, Destination, Framer, FramerConfig, HostEvent, NodeId, Prepared, Stack, StackConfig,
    Unsealed,
};
use tenure_protocols::aggregation;
use tenure_protocols::aodv::{self, Aodv};
use tenure_protocols::babel::{self, Babel};
use tenure_protocols::batman::{self, Batman};
use tenure_protocols::broadcast::{Broadcast, Limits};
use tenure_protocols::counter_broadcast::Counter;
use tenure_protocols::coverage_broadcast::Coverage;
use tenure_protocols::discovery::{self, Discovery};
use tenure_protocols::distance_broadcast::Distance;
use tenure_protocols::flooding::Everything;
use tenure_protocols::flow_updating::FlowUpdating;
use tenure_protocols::forwarding::{self, Forwarding, Repair};
use tenure_protocols::fragmentation::{self, Fragmentation};
use tenure_protocols::gap::{self, Gap};
use tenure_protocols::gossip::{self, Gossip};
use tenure_protocols::hyparview::{self, HyParView};
use tenure_protocols::interface::{
    ANY_LIFE, DatagramArrived, LinkUp, Port, Publish, PublishReliably, Published,
    PublishedReliably, RouteChanged, SendDatagram, Summary,
};
use tenure_protocols::limosense::LimoSense;
use tenure_protocols::plug_in::Entry;
use tenure_protocols::plumtree::{self, Plumtree};
use tenure_protocols::push_sum::PushSum;
use tenure_protocols::reliable::{self, Reliable};
use tenure_protocols::reliable_broadcast::{self, ReliableBroadcast};

use super::liar::{self, Full, Hole};
use super::options::{Defect, Options};
use super::scenario::{Aggregation, Broadcasting, HopRepair, Lie, Router, Scenario};

/// The node by which those aggregations count that need one for it.
pub(super) const UNIT_HOLDER: u32 = 0;

/// A node that is switched on.
pub(super) struct Participant {
    stack: Stack<Framer<Unsealed>>,
    router: Router,
    life: u32,
    forwarding: forwarding::Config,
    frame: Vec<u8>,
}

/// The id of the node with that number in a scenario.
pub(super) fn id_of(number: u32) -> NodeId {
    NodeId::from_number(u64::from(number) + 1)
}

/// The number of the node with that id.
pub(super) fn number_of(id: NodeId) -> u32 {
    (id.number() as u32).wrapping_sub(1)
}

impl Participant {
    /// Node `number` in its life `boot`, which begins now.
    pub(super) fn boot(
        number: u32,
        boot: u32,
        scenario: &Scenario,
        options: Options,
        seed: u64,
    ) -> Self {
        let node = id_of(number);
        let air = air_of(scenario);
        let framer = FramerConfig { seed, air, ..FramerConfig::new(node, boot, [0; 8]) };
        let config = StackConfig { seed: seed ^ 1, ..StackConfig::default() };
        let mut stack = Stack::new(config, Framer::new(framer, Unsealed));
        let now = Instant::BOOT;
        if options.watches_loops {
            stack.subscribe::<RouteChanged>();
        }
        stack.subscribe::<DatagramArrived>();
        let life = if options.defect == Some(Defect::LivesOnce) { 1 } else { boot };
        match scenario.protocols.router {
            Router::Babel => {
                let destinations_max =
                    scenario.topology.nodes().max(babel::Config::default().destinations_max);
                let is_destination = scenario
                    .protocols
                    .destinations
                    .is_none_or(|destinations| number < destinations);
                let config =
                    babel::Config { destinations_max, is_destination, ..babel::Config::default() };
                stack.start(now, Babel::new(node, life, config));
            }
            Router::Batman => {
                let originators_max =
                    scenario.topology.nodes().max(batman::Config::default().originators_max);
                let config = batman::Config { originators_max, ..batman::Config::default() };
                stack.start(now, Batman::new(life, config));
            }
            Router::Aodv => {
                stack.start(now, Discovery::new(discovery::Config::default()));
                stack.start(now, Aodv::new(boot, aodv::Config::default()));
            }
        }
        if scenario.protocols.router == Router::Batman {
            stack.start(now, Discovery::new(discovery::Config::default()));
        }
        start_aggregation(&mut stack, number, boot, scenario);
        start_broadcast(&mut stack, scenario);
        let repair = match scenario.hop_repair() {
            HopRepair::Acknowledged => Repair::Acknowledged,
            HopRepair::Link => Repair::ByLink,
            HopRepair::Off => Repair::Never,
        };
        let sources_max = scenario.topology.nodes().max(forwarding::Config::default().sources_max);
        let mut forwarding =
            forwarding::Config { life, repair, sources_max, ..forwarding::Config::default() };
        if options.defect == Some(Defect::ForgetsDatagrams) {
            (forwarding.remembered, forwarding.sources_max) = (1, 0);
        }
        stack.start(now, Forwarding::new(forwarding));
        let (router, frame) = (scenario.protocols.router, Vec::new());
        Self { stack, router, life, forwarding, frame }
    }

    /// Starts a further protocol, and tells it of the links that are up.
    pub(super) fn plug_in(&mut self, now: Instant, prepared: Prepared) {
        let number = prepared.description().number;
        self.stack.start_prepared(now, prepared);
        let links: Vec<LinkUp> = match self.stack.protocol::<Babel>() {
            Some(babel) => babel.links().collect(),
            None => Vec::new(),
        };
        links.iter().for_each(|link| self.stack.tell_one(number, link, &[]));
    }

    /// Tells `figure` what a further protocol has come to.
    pub(super) fn figures(
        &self,
        entry: &Entry,
        now: Instant,
        figure: &mut dyn FnMut(&'static str, f64),
    ) {
        entry.figures(&self.stack, now, figure);
    }

    /// Passes nothing on any more, as goes with a lie, or is honest again.
    pub(super) fn swallow(&mut self, now: Instant, lie: Option<Lie>) {
        match lie {
            Some(Lie::Busy) => self.stack.start(now, Full),
            Some(_) => self.stack.start(now, Hole),
            None => self.stack.start(now, Forwarding::new(self.forwarding)),
        }
    }

    /// Lies for the time of that `number`; returns frames in others' names, whose present lives are `lives`.
    pub(super) fn lie(
        &mut self,
        now: Instant,
        lie: Lie,
        number: u32,
        lives: &[u32],
    ) -> Vec<Vec<u8>> {
        let own = self.stack.node();
        let lives = lives.iter().zip(0..).map(|(life, other)| (id_of(other), *life));
        let lives: Vec<_> = lives.collect();
        self.stack.act::<Babel, _>(now, |babel, context| {
            liar::tell_lines(lie, number, &lives, babel, context);
        });
        let others = lives.into_iter().filter(|(other, _)| *other != own);
        others.filter_map(|(other, life)| liar::forge(now, lie, number, other, life)).collect()
    }

    /// A frame came; whether it was taken.
    pub(super) fn receive(&mut self, now: Instant, frame: &[u8], signal_dbm: i8) -> bool {
        self.stack.receive(now, frame, Some(signal_dbm)).is_ok()
    }

    /// Looks at what taking a frame of `neighbour` looks at, and changes nothing.
    pub(super) fn approach(&self, now: Instant, neighbour: NodeId) {
        let believes = self.stack.dispatcher().believes(neighbour);
        let cost = self.stack.protocol::<Babel>().map(|babel| babel.cost(neighbour));
        black_box((self.stack.poll_at(now), believes, cost));
    }

    /// A frame for `neighbour` was not answered.
    pub(super) fn undelivered(&mut self, neighbour: NodeId) {
        self.stack.undelivered(neighbour);
    }

    /// Does what is due; gives when it wants to run again.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Instant> {
        self.stack.poll(now)
    }

    /// The next frame to send, and to which neighbour if it is for one.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<(Option<NodeId>, Vec<u8>)> {
        let to = match self.stack.transmit(now, &mut self.frame)? {
            Destination::All => None,
            Destination::One(node) => Some(node),
        };
        Some((to, self.frame.clone()))
    }

    /// The next event that it reports to its host.
    pub(super) fn event(&mut self) -> Option<HostEvent> {
        self.stack.host_event()
    }

    /// Sends a datagram over as many hops as it takes.
    pub(super) fn carry(&mut self, to: u32, payload: &[u8]) {
        self.stack.request(&SendDatagram { to: id_of(to), port: Port::APPLICATION }, payload);
    }

    /// Sends something to everybody.
    pub(super) fn publish(&mut self, payload: &[u8]) {
        let port = Port::APPLICATION;
        if self.stack.protocol::<ReliableBroadcast>().is_some() {
            self.stack.request(&PublishReliably { port }, payload);
        } else {
            self.stack.request(&Publish { port }, payload);
        }
    }

    /// The aggregate of all nodes' values, as far as it is known here.
    pub(super) fn summary(&self) -> Option<Summary> {
        let stack = &self.stack;
        None.or_else(|| stack.protocol::<Gap>()?.summary())
            .or_else(|| stack.protocol::<PushSum>()?.summary())
            .or_else(|| stack.protocol::<LimoSense>()?.summary())
            .or_else(|| stack.protocol::<FlowUpdating>()?.summary())
    }

    /// The next hop on the way to `to`, as the router knows it now, and in which of its lives.
    pub(super) fn next_hop(&self, to: NodeId) -> Option<(NodeId, u32)> {
        match self.router {
            Router::Babel => self.stack.protocol::<Babel>()?.next_hop(to),
            Router::Batman => self.stack.protocol::<Batman>()?.next_hop(to),
            Router::Aodv => {
                self.stack.protocol::<Aodv>()?.next_hop(to).map(|next| (next, ANY_LIFE))
            }
        }
    }

    /// The counters of forwarding.
    pub(super) fn forwarding(&self) -> Option<&forwarding::Counters> {
        self.stack.protocol::<Forwarding>().map(Forwarding::counters)
    }

    /// Which of the node's lives this is.
    pub(super) fn life(&self) -> u32 {
        self.life
    }
}

/// Returns the scenario's radio, and the share of it for control traffic.
fn air_of(scenario: &Scenario) -> Air {
    let bytes_per_second = (scenario.radio.bit_rate / 8).min(u64::from(u32::MAX)) as u32;
    let control_permille = scenario.protocols.control_permille;
    let control_permille = control_permille.unwrap_or(Air::RADIO.control_permille);
    Air { bytes_per_second, control_permille }
}

fn start_aggregation(
    stack: &mut Stack<Framer<Unsealed>>,
    number: u32,
    boot: u32,
    scenario: &Scenario,
) {
    let (now, value) = (Instant::BOOT, value_of(number));
    let config = aggregation::Config {
        value,
        has_unit: number == UNIT_HOLDER,
        ..aggregation::Config::default()
    };
    match scenario.protocols.aggregation {
        None => {}
        Some(Aggregation::Gap) => {
            stack.start(now, Gap::new(gap::Config { value, life: boot, ..gap::Config::default() }));
        }
        Some(Aggregation::PushSum) => stack.start(now, PushSum::new(config)),
        Some(Aggregation::FlowUpdating) => stack.start(now, FlowUpdating::new(config)),
        Some(Aggregation::LimoSense) => stack.start(now, LimoSense::new(config)),
    }
}

fn start_broadcast(stack: &mut Stack<Framer<Unsealed>>, scenario: &Scenario) {
    let (now, limits) = (Instant::BOOT, Limits::default());
    match scenario.protocols.broadcast {
        None => return,
        Some(Broadcasting::Flooding) => {
            stack.start(now, Broadcast::new(Everything::default(), limits));
        }
        Some(Broadcasting::Distance) => {
            stack.start(now, Broadcast::new(Distance::default(), limits));
        }
        Some(Broadcasting::Gossip) => stack.start(now, Gossip::new(gossip::Config::default())),
        Some(Broadcasting::Counter) => {
            stack.start(now, Broadcast::new(Counter::default(), limits));
        }
        Some(Broadcasting::Coverage | Broadcasting::Reliable) => {
            stack.start(now, Broadcast::new(Coverage::default(), limits));
        }
        Some(Broadcasting::Plumtree) => {
            stack.start(now, Fragmentation::new(fragmentation::Config::default()));
            stack.start(now, Reliable::new(reliable::Config::default()));
            stack.start(now, HyParView::new(hyparview::Config::default()));
            stack.start(now, Plumtree::new(plumtree::Config::default()));
        }
    }
    if scenario.protocols.broadcast == Some(Broadcasting::Reliable) {
        stack.start(now, ReliableBroadcast::new(reliable_broadcast::Config::default()));
        stack.subscribe::<PublishedReliably>();
    } else {
        stack.subscribe::<Published>();
    }
}

/// A node's own value in the sum.
pub(super) fn value_of(number: u32) -> f64 {
    f64::from(number) + 1.0
}
