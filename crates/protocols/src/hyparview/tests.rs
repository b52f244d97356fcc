use super::*;
use crate::discovery::{self, Discovery};
use crate::forwarding::{self, Forwarding};
use crate::fragmentation::{self, Fragmentation};
use crate::reliable::{self, Reliable};
use crate::testing::{FixedRouter, Network, id};
use alloc::collections::BTreeSet;
use tenure_hal::Instant;
use tenure_mesh::Stack;

/// Every node has every other as a neighbour, and joins by the first.
fn network(count: usize) -> Network {
    overlay(count, |index| (index > 0).then(|| id(0))).clique(0)
}

/// Nodes without links, which reach each other once they have some, and join by those.
fn overlay(count: usize, contact: impl Fn(usize) -> Option<NodeId> + Copy + 'static) -> Network {
    Network::new(count, move |stack: &mut Stack, index| {
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        let ways = (0..count).map(|to| (id(to), id(to))).collect();
        stack.start(Instant::BOOT, FixedRouter { ways, ..FixedRouter::default() });
        stack.start(Instant::BOOT, Forwarding::new(forwarding::Config::default()));
        stack.start(Instant::BOOT, Fragmentation::new(fragmentation::Config::default()));
        stack.start(Instant::BOOT, Reliable::new(reliable::Config::default()));
        let config = Config { contact: contact(index), ..Config::default() };
        stack.start(Instant::BOOT, HyParView::new(config));
    })
}

fn active(network: &Network, index: usize) -> &[NodeId] {
    network.stacks[index].protocol::<HyParView>().unwrap().active()
}

/// How many nodes the active views reach from the first of `nodes`.
fn reached(network: &Network, nodes: core::ops::Range<usize>) -> usize {
    let mut reached = BTreeSet::new();
    let mut next = Vec::from([nodes.start]);
    while let Some(index) = next.pop() {
        if reached.insert(index) {
            let known = active(network, index).iter().map(|it| it.number() as usize - 1);
            next.extend(known.filter(|it| nodes.contains(it)));
        }
    }
    reached.len()
}

#[test]
fn the_active_views_connect_everybody_and_stay_small() {
    let mut network = network(24);
    network.run(Duration::from_secs(60));
    assert_eq!(reached(&network, 0..24), 24);
    for index in 0..24 {
        assert!((1..=5).contains(&active(&network, index).len()));
        let passive = &network.stacks[index].protocol::<HyParView>().unwrap().passive;
        assert!(passive.len() <= 30);
    }
}

#[test]
fn those_that_are_left_find_new_neighbours_when_half_fail() {
    let mut network = network(16);
    network.run(Duration::from_secs(120));
    network.links.retain(|(from, to), _| *from >= 8 && *to >= 8);
    network.run(Duration::from_secs(240));
    assert_eq!(reached(&network, 8..16), 8);
    let all = (8..16).flat_map(|index| active(&network, index));
    assert!(all.into_iter().all(|it| it.number() > 8), "nobody keeps a dead neighbour");
}

#[test]
fn neighbours_are_neighbours_of_each_other() {
    let mut network = network(12);
    network.run(Duration::from_secs(120));
    let one_sided = (0..12)
        .flat_map(|index| active(&network, index).iter().map(move |it| (index, *it)))
        .filter(|(index, it)| !active(&network, it.number() as usize - 1).contains(&id(*index)))
        .count();
    assert!(one_sided <= 2, "{one_sided} one-sided neighbours while some are being exchanged");
}

#[test]
fn those_that_begin_at_once_without_a_contact_become_one_network() {
    let mut network = overlay(40, |_| None).clique(0);
    network.run(Duration::from_secs(60));
    assert_eq!(reached(&network, 0..40), 40);
}

#[test]
fn those_that_are_left_become_one_network_when_four_fifths_fail() {
    let mut network = network(50);
    network.run(Duration::from_secs(120));
    network.links.retain(|(from, to), _| *from >= 40 && *to >= 40);
    network.run(Duration::from_secs(400));
    assert_eq!(reached(&network, 40..50), 10);
}
