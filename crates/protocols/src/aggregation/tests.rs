//! Results of every aggregation over small networks: count, sum, average, least and greatest.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::Stack;

use super::{Aggregation, Config, Contributes, Method};
use crate::discovery::{self, Discovery};
use crate::gap::{self, Gap};
use crate::interface::{Contribute, LinkDown, LinkQuality, LinkUp, Summarise, Summary};
use crate::testing::{Network, id};

/// How far counts and averages may be off, and sums by as much for each node.
const BOUND: f64 = 0.01;

/// An aggregation that tests can set up.
pub(crate) trait Tested: Contributes {
    /// It, on a node with this value, in this of the node's lives; one node has the unit.
    fn with(value: f64, has_unit: bool, life: u32) -> Self;
}

impl<M: Method> Tested for Aggregation<M> {
    fn with(value: f64, has_unit: bool, _: u32) -> Self {
        Self::new(Config { value, has_unit, ..Config::default() })
    }
}

impl Tested for Gap {
    fn with(value: f64, _: bool, life: u32) -> Self {
        Self::new(gap::Config { value, life, ..gap::Config::default() })
    }
}

/// Sets up what begins its life of that number.
fn set_up<P: Tested>(life: u32) -> impl Fn(&mut Stack, usize) {
    move |stack, index| {
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        stack.start(Instant::BOOT, P::with(index as f64 + 1.0, index == 0, life));
    }
}

/// `count` nodes with the values from 1 on, the first of which has the unit.
pub(crate) fn network<P: Tested>(count: usize) -> Network {
    Network::new(count, set_up::<P>(1))
}

/// The knowledge of a node.
#[track_caller]
pub(crate) fn summary<P: Tested>(network: &Network, index: usize) -> Summary {
    let protocol = network.stacks[index].protocol::<P>().expect("it runs");
    protocol.summary().expect("something has come from everywhere")
}

/// All of the nodes know what the values from 1 to `count` come to.
#[track_caller]
fn assert_known<P: Tested>(network: &Network, nodes: impl IntoIterator<Item = usize>, count: u32) {
    let count = f64::from(count);
    for index in nodes {
        let summary = summary::<P>(network, index);
        let (sum, average) = (count * (count + 1.0) / 2.0, (count + 1.0) / 2.0);
        assert!((summary.count - count).abs() < BOUND, "{index}: {summary:?}, {count} nodes");
        assert!((summary.sum - sum).abs() < BOUND * count, "{index}: {summary:?}, sum {sum}");
        assert!((summary.average() - average).abs() < BOUND, "{index}: {summary:?}");
        assert_eq!((summary.min, summary.max), (1.0, count), "{index}");
    }
}

/// All come to it, whatever share of messages is lost.
#[track_caller]
pub(crate) fn check_sum<P: Tested>(lost_permille: u32) {
    let mut network = network::<P>(6).clique(lost_permille);
    network.run(Duration::from_secs(60));
    assert_known::<P>(&network, 0..6, 6);
}

/// Nodes that join, crash, start anew and leave are counted once while they are there: here of six in a
/// clique that loses a tenth.
#[track_caller]
pub(crate) fn check_churn<P: Tested>() {
    let mut network = network::<P>(6).clique(100);
    (0..5).for_each(|other| network.cut(5, other));
    network.run(Duration::from_secs(40));
    assert_known::<P>(&network, 0..5, 5);
    (0..5).for_each(|other| network.link(5, other, 100));
    network.run(Duration::from_secs(40));
    assert_known::<P>(&network, 0..6, 6);
    // One in the middle, and the one that is the root or has the unit.
    for crashed in [3, 0] {
        network.restart(crashed, set_up::<P>(2));
        network.run(Duration::from_secs(60));
        assert_known::<P>(&network, 0..6, 6);
    }
    (0..5).for_each(|other| network.cut(5, other));
    network.run(Duration::from_secs(90));
    assert_known::<P>(&network, 0..5, 5);
}

/// A link that one end takes for down for a moment doesn't unsettle what is known.
#[track_caller]
pub(crate) fn check_flapping<P: Tested>() {
    let mut network = network::<P>(5).line(0);
    network.run(Duration::from_secs(90));
    let quality = LinkQuality { to_us: 255, from_us: 255, signal_dbm: None };
    for (index, neighbour) in [(1, id(2)), (2, id(1)), (3, id(4))] {
        network.stacks[index].tell(&LinkDown { neighbour }, &[]);
        for _ in 0..3 {
            network.run(Duration::from_secs(1));
            assert_known::<P>(&network, 0..5, 5);
        }
        network.stacks[index].tell(&LinkUp { neighbour, quality }, &[]);
        network.run(Duration::from_secs(1));
        assert_known::<P>(&network, 0..5, 5);
    }
}

/// A value that changes is counted, and one that is no number refused.
#[track_caller]
pub(crate) fn check_contributing<P: Tested>() {
    let mut network = network::<P>(4).line(0);
    network.run(Duration::from_secs(60));
    for (value, is_taken) in [(f64::NAN, false), (f64::INFINITY, false), (13.0, true)] {
        network.stacks[2].request(&Contribute { value }, &[]);
        network.run(Duration::ZERO);
        let event = network.stacks[2].host_event().expect("an answer");
        let (_, taken) = event.reply::<Contribute>().expect("the answer to the question");
        assert_eq!(taken, Some(is_taken), "{value}");
    }
    network.run(Duration::from_secs(120));
    network.stacks[0].request(&Summarise, &[]);
    network.run(Duration::ZERO);
    let event = network.stacks[0].host_event().expect("an answer");
    let (_, summary) = event.reply::<Summarise>().expect("the answer to the question");
    let summary = summary.expect("it is served").expect("it is known");
    assert!((summary.count - 4.0).abs() < BOUND && (summary.sum - 20.0).abs() < 4.0 * BOUND);
    assert_eq!((summary.min, summary.max), (1.0, 13.0));
}
