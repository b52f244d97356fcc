use alloc::vec::Vec;
use core::time::Duration;

use super::Halves;
use crate::aggregation::tests::{check_contributing, check_sum, network, summary};

#[test]
fn all_come_to_the_sum_where_nothing_is_lost() {
    check_sum::<Halves>(0);
}

#[test]
fn a_value_that_changes_is_counted() {
    check_contributing::<Halves>();
}

#[test]
fn what_a_link_loses_is_lost_to_the_sum() {
    let mut network = network::<Halves>(6).clique(200);
    network.run(Duration::from_secs(6));
    // Nodes agree all the same; what they agree on is what the losses left.
    let counts: Vec<f64> = (0..6).map(|index| summary::<Halves>(&network, index).count).collect();
    assert!(counts.iter().any(|count| (count - 6.0).abs() > 0.01), "{counts:?}");
}

#[test]
fn a_node_keeps_the_mass_that_nobody_is_there_to_take() {
    let mut network = network::<Halves>(1);
    network.run(Duration::from_secs(10));
    assert_eq!(summary::<Halves>(&network, 0).sum, 1.0);
}
