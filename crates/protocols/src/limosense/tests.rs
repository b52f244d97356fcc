//! Sums over small networks that lose, and that nodes leave.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::Stack;

use super::{Config, LimoSense};
use crate::discovery::{self, Discovery};
use crate::interface::Summary;
use crate::testing::Network;

fn set_up(stack: &mut Stack, index: usize) {
    stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
    let value = index as f64 + 1.0;
    let config = Config { value, has_unit: index == 0, ..Config::default() };
    stack.start(Instant::BOOT, LimoSense::new(config));
}

fn summary(network: &Network, index: usize) -> Summary {
    let protocol = network.stacks[index].protocol::<LimoSense>().expect("it runs");
    protocol.summary().expect("something has come from everywhere")
}

#[track_caller]
fn assert_near(summary: Summary, count: f64, sum: f64) {
    assert!((summary.count - count).abs() < 0.01, "{summary:?}, expected a count of {count}");
    assert!((summary.sum - sum).abs() < 0.05, "{summary:?}, expected a sum of {sum}");
}

#[test]
fn all_come_to_the_sum_although_messages_are_lost() {
    let mut network = Network::new(6, set_up).clique(200);
    network.run(Duration::from_secs(60));
    for index in 0..6 {
        let summary = summary(&network, index);
        assert_near(summary, 6.0, 21.0);
        assert_eq!((summary.min, summary.max), (1.0, 6.0));
    }
}

#[test]
fn a_node_that_leaves_takes_its_own_value_along_and_no_more() {
    let mut network = Network::new(5, set_up).clique(0);
    network.run(Duration::from_secs(30));
    (0..4).for_each(|other| network.cut(4, other));
    network.run(Duration::from_secs(90));
    for index in 0..4 {
        let summary = summary(&network, index);
        assert_near(summary, 4.0, 10.0);
        assert_eq!(summary.max, 4.0);
    }
}
