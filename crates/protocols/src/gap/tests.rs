//! Sums over small networks, exact, with loss, and when nodes leave.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::Stack;

use super::{Config, Gap};
use crate::discovery::{self, Discovery};
use crate::interface::Summary;
use crate::testing::Network;

fn set_up(stack: &mut Stack, index: usize) {
    stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
    let config = Config { value: index as f64 + 1.0, ..Config::default() };
    stack.start(Instant::BOOT, Gap::new(config));
}

fn summaries(network: &Network) -> impl Iterator<Item = Option<Summary>> {
    network.stacks.iter().map(|stack| stack.protocol::<Gap>()?.summary())
}

#[test]
fn every_node_knows_the_exact_sum() {
    let mut network = Network::new(8, set_up).line(0);
    network.link(0, 5, 0);
    network.run(Duration::from_secs(15));
    let expected = Summary { count: 8.0, sum: 36.0, min: 1.0, max: 8.0 };
    assert!(summaries(&network).all(|summary| summary == Some(expected)));
}

#[test]
fn loss_delays_the_sum_and_does_not_change_it() {
    let mut network = Network::new(6, set_up).line(200);
    network.run(Duration::from_secs(60));
    let exact = summaries(&network).flatten().filter(|summary| summary.sum == 21.0).count();
    assert!(exact >= 5, "{exact} of 6 know the sum");
}

#[test]
fn a_root_that_leaves_is_replaced() {
    let mut network = Network::new(4, set_up).clique(0);
    network.run(Duration::from_secs(10));
    (1..4).for_each(|other| network.cut(0, other));
    network.run(Duration::from_secs(90));
    let expected = Summary { count: 3.0, sum: 9.0, min: 2.0, max: 4.0 };
    assert!(summaries(&network).skip(1).all(|summary| summary == Some(expected)));
}
