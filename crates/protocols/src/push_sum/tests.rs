use alloc::vec::Vec;
use core::time::Duration;

use super::PushSum;
use crate::aggregation::tests::{check_contributing, check_flapping, check_sum, network, summary};

#[test]
fn all_come_to_the_sum_where_nothing_is_lost() {
    check_sum::<PushSum>(0);
}

#[test]
fn a_link_that_is_down_for_a_moment_unsettles_nothing() {
    check_flapping::<PushSum>();
}

#[test]
fn a_value_that_changes_is_counted() {
    check_contributing::<PushSum>();
}

#[test]
fn who_joins_is_counted_and_who_leaves_stays_in_the_sum_but_not_among_the_extremes() {
    let mut network = network::<PushSum>(6).clique(0);
    (0..5).for_each(|other| network.cut(5, other));
    network.run(Duration::from_secs(30));
    (0..5).for_each(|other| network.link(5, other, 0));
    network.run(Duration::from_secs(30));
    for is_there in [true, false] {
        for index in 0..5 {
            // The mass that it takes along is of the same mixture as what stays.
            let summary = summary::<PushSum>(&network, index);
            assert!((summary.count - 6.0).abs() < 0.01, "{summary:?}");
            assert!((summary.sum - 21.0).abs() < 0.05, "{summary:?}");
            assert_eq!((summary.min, summary.max), (1.0, if is_there { 6.0 } else { 5.0 }));
        }
        (0..5).for_each(|other| network.cut(5, other));
        network.run(Duration::from_secs(90));
    }
}

#[test]
fn what_a_link_loses_is_lost_to_the_sum() {
    let mut network = network::<PushSum>(6).clique(200);
    network.run(Duration::from_secs(6));
    // Nodes agree all the same; what they agree on is what the losses left.
    let counts: Vec<f64> = (0..6).map(|index| summary::<PushSum>(&network, index).count).collect();
    assert!(counts.iter().any(|count| (count - 6.0).abs() > 0.01), "{counts:?}");
}

#[test]
fn a_node_keeps_the_mass_that_nobody_is_there_to_take() {
    let mut network = network::<PushSum>(1);
    network.run(Duration::from_secs(10));
    assert_eq!(summary::<PushSum>(&network, 0).sum, 1.0);
}
