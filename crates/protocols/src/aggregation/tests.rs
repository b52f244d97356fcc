//! Sums over small networks, by every method.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::Stack;

use super::{Aggregation, Config, Method};
use crate::discovery::{self, Discovery};
use crate::interface::{Contribute, Summarise, Summary};
use crate::testing::Network;

/// `count` nodes with the values from 1 on, the first of which has the unit.
pub(crate) fn network<M: Method>(count: usize) -> Network {
    Network::new(count, |stack: &mut Stack, index| {
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        let value = index as f64 + 1.0;
        let config = Config { value, has_unit: index == 0, ..Config::default() };
        stack.start(Instant::BOOT, Aggregation::<M>::new(config));
    })
}

/// What a node knows.
#[track_caller]
pub(crate) fn summary<M: Method>(network: &Network, index: usize) -> Summary {
    let protocol = network.stacks[index].protocol::<Aggregation<M>>().expect("it runs");
    protocol.summary().expect("something has come from everywhere")
}

#[track_caller]
fn assert_near(summary: Summary, count: f64, sum: f64) {
    assert!((summary.count - count).abs() < 0.01, "{summary:?}, expected a count of {count}");
    assert!((summary.sum - sum).abs() < 0.05, "{summary:?}, expected a sum of {sum}");
}

/// All come to the sum, whatever share of messages is lost.
#[track_caller]
pub(crate) fn check_sum<M: Method>(lost_permille: u32) {
    let mut network = network::<M>(6).clique(lost_permille);
    network.run(Duration::from_secs(60));
    for index in 0..6 {
        let summary = summary::<M>(&network, index);
        assert_near(summary, 6.0, 21.0);
        assert_eq!((summary.min, summary.max), (1.0, 6.0));
    }
}

/// A node that leaves takes its own value along, and no more.
#[track_caller]
pub(crate) fn check_leaving<M: Method>() {
    let mut network = network::<M>(5).clique(0);
    network.run(Duration::from_secs(30));
    (0..4).for_each(|other| network.cut(4, other));
    network.run(Duration::from_secs(90));
    for index in 0..4 {
        let summary = summary::<M>(&network, index);
        assert_near(summary, 4.0, 10.0);
        assert_eq!(summary.max, 4.0);
    }
}

/// A value that changes is counted, and one that is no number refused.
#[track_caller]
pub(crate) fn check_contributing<M: Method>() {
    let mut network = network::<M>(4).line(0);
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
    assert_near(summary, 4.0, 20.0);
    assert_eq!(summary.max, 13.0);
}
