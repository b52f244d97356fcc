//! A node that runs every protocol there is, for tests of bad input and for fuzzing.

use std::time::Duration;

use tenure_crypto::SigningKey;
use tenure_hal::Instant;
use tenure_mesh::{
    Framer, FramerConfig, NodeId, PriorityQueues, Seal, Stack, StackConfig, TimerList,
};
use tenure_protocols::accrual_detector::{self, AccrualDetector};
use tenure_protocols::aggregation;
use tenure_protocols::aodv::{self, Aodv};
use tenure_protocols::babel::{self, Babel};
use tenure_protocols::batman::{self, Batman};
use tenure_protocols::broadcast::{Broadcast, Limits};
use tenure_protocols::counter_broadcast::Counter;
use tenure_protocols::coverage_broadcast::Coverage;
use tenure_protocols::discovery::{self, Discovery};
use tenure_protocols::distance_broadcast::Distance;
use tenure_protocols::experiment::Experiment;
use tenure_protocols::flooding::Everything;
use tenure_protocols::flow_updating::FlowUpdating;
use tenure_protocols::forwarding::{self, Forwarding};
use tenure_protocols::fragmentation::{self, Fragmentation};
use tenure_protocols::gap::{self, Gap};
use tenure_protocols::gossip::{self, Gossip};
use tenure_protocols::hyparview::{self, HyParView};
use tenure_protocols::limosense::LimoSense;
use tenure_protocols::membership::Membership;
use tenure_protocols::push_sum::PushSum;
use tenure_protocols::reliable::{self, Reliable};
use tenure_protocols::reliable_broadcast::{self, ReliableBroadcast};
use tenure_protocols::replicated_records::{self, ReplicatedRecords};
use tenure_protocols::timeout_detector::{self, TimeoutDetector};
use tenure_protocols::topology_control::put_in_place;

/// A stack with a seal.
pub(crate) type Full<S> = Stack<Framer<S>, PriorityQueues, TimerList>;

/// A node that runs every protocol.
pub(crate) fn node<S: Seal>(seal: S) -> Full<S> {
    let framer = Framer::new(FramerConfig::new(NodeId::from_number(1), 1, [0; 8]), seal);
    let mut stack = Stack::new(StackConfig::default(), framer);
    let now = Instant::BOOT;
    stack.start(now, Discovery::new(discovery::Config::default()));
    stack.start(now, Forwarding::new(forwarding::Config::default()));
    stack.start(now, Fragmentation::new(fragmentation::Config::default()));
    stack.start(now, Reliable::new(reliable::Config::default()));
    stack.start(now, Broadcast::new(Everything::default(), Limits::default()));
    stack.start(now, Broadcast::new(Counter::default(), Limits::default()));
    stack.start(now, Broadcast::new(Distance::default(), Limits::default()));
    stack.start(now, Broadcast::new(Coverage::default(), Limits::default()));
    stack.start(now, Gossip::new(gossip::Config::default()));
    stack.start(now, ReliableBroadcast::new(reliable_broadcast::Config::default()));
    stack.start(now, TimeoutDetector::new(timeout_detector::Config::default()));
    stack.start(now, AccrualDetector::new(accrual_detector::Config::default()));
    stack.start(now, Membership::new(Duration::from_secs(2)));
    stack.start(now, HyParView::new(hyparview::Config::default()));
    stack.start(now, ReplicatedRecords::new(replicated_records::Config::default(), ()));
    let router = NodeId::from_number(1);
    stack.start(now, Babel::new(router, 1, babel::Config::default()));
    stack.start(now, Batman::new(1, batman::Config::default()));
    stack.start(now, Aodv::new(1, aodv::Config::default()));
    stack.start(now, Gap::new(gap::Config::default()));
    stack.start(now, PushSum::new(aggregation::Config::default()));
    stack.start(now, FlowUpdating::new(aggregation::Config::default()));
    stack.start(now, LimoSense::new(aggregation::Config::default()));
    let owner = SigningKey::from_bytes(&[3; 32]).verifying_key();
    stack.start(now, Experiment::new(owner, 0));
    put_in_place(&mut stack, now).unwrap();
    stack
}

/// Lets a node do what it has to do; gives how many bytes it sends.
pub(crate) fn settle<S: Seal>(stack: &mut Full<S>, now: Instant) -> usize {
    let mut frame = Vec::new();
    let mut sent = 0;
    for _ in 0..10_000 {
        let wakes = stack.poll(now);
        while stack.transmit(now, &mut frame).is_some() {
            assert!(frame.len() <= 1232);
            sent += frame.len();
        }
        if wakes != Some(now) {
            return sent;
        }
    }
    panic!("a node doesn't come to rest");
}
