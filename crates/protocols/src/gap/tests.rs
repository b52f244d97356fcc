//! Sums over small networks, exact, with loss, and when nodes join, crash and leave.

use core::time::Duration;

use super::Gap;
use crate::aggregation::tests::{
    check_churn, check_contributing, check_flapping, check_sum, network, summary,
};
use crate::interface::{LinkChanged, LinkQuality, Summary};
use crate::testing::{Network, id};

#[track_caller]
fn assert_exact(network: &Network, nodes: core::ops::Range<usize>, expected: Summary) {
    nodes.for_each(|index| assert_eq!(summary::<Gap>(network, index), expected, "{index}"));
}

#[test]
fn every_node_knows_the_exact_sum() {
    let mut network = network::<Gap>(8).line(0);
    network.link(0, 5, 0);
    network.run(Duration::from_secs(15));
    assert_exact(&network, 0..8, Summary { count: 8.0, sum: 36.0, min: 1.0, max: 8.0 });
}

#[test]
fn loss_delays_the_sum_and_does_not_change_it() {
    check_sum::<Gap>(200);
    let mut network = network::<Gap>(6).line(200);
    network.run(Duration::from_secs(60));
    assert_exact(&network, 0..6, Summary { count: 6.0, sum: 21.0, min: 1.0, max: 6.0 });
}

#[test]
fn who_joins_crashes_and_leaves_is_counted_while_it_is_there() {
    check_churn::<Gap>();
}

#[test]
fn a_link_that_is_down_for_a_moment_unsettles_nothing() {
    check_flapping::<Gap>();
}

#[test]
fn a_value_that_changes_is_counted() {
    check_contributing::<Gap>();
}

#[test]
fn a_root_that_leaves_is_replaced() {
    let mut network = network::<Gap>(4).clique(0);
    network.run(Duration::from_secs(10));
    (1..4).for_each(|other| network.cut(0, other));
    network.run(Duration::from_secs(90));
    assert_exact(&network, 1..4, Summary { count: 3.0, sum: 9.0, min: 2.0, max: 4.0 });
}

#[test]
fn a_way_over_two_good_links_is_nearer_than_one_over_a_bad_one() {
    let mut network = network::<Gap>(3).clique(0);
    network.run(Duration::from_secs(10));
    let parent = |network: &Network| network.stacks[2].protocol::<Gap>()?.said.map(|it| it.parent);
    assert_eq!(parent(&network), Some(id(0)));
    // A third of the frames arrive either way.
    let quality = LinkQuality { to_us: 85, from_us: 85, signal_dbm: None };
    network.stacks[2].tell(&LinkChanged { neighbour: id(0), quality }, &[]);
    network.run(Duration::from_secs(3));
    assert_eq!(parent(&network), Some(id(1)));
    assert_exact(&network, 0..3, Summary { count: 3.0, sum: 6.0, min: 1.0, max: 3.0 });
}
