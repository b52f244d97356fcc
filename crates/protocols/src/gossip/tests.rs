use super::*;
use crate::discovery::{self, Discovery};
use crate::testing::Network;
use core::time::Duration;
use tenure_hal::Instant;
use tenure_mesh::Stack;

fn network(count: usize, fanout: usize) -> Network {
    Network::new(count, |stack: &mut Stack, _| {
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        stack.start(Instant::BOOT, Gossip::new(Config { fanout, ..Config::default() }));
        stack.subscribe::<Published>();
    })
}

fn reached(network: &mut Network) -> usize {
    network.stacks[0].request(&Publish { port: Port::APPLICATION }, b"psst");
    network.run(Duration::from_secs(1));
    let told = |stack: &mut Stack| {
        let published = |event: tenure_mesh::HostEvent| event.notification::<Published>().is_some();
        core::iter::from_fn(|| stack.host_event()).filter(|event| published(event.clone())).count()
    };
    network.stacks.iter_mut().map(told).sum()
}

#[test]
fn a_rumour_reaches_nearly_all_by_few_transmissions_each() {
    let mut network = network(24, 5).clique(0);
    network.run(Duration::from_secs(5));
    let before = network.sent();
    let reached = reached(&mut network);
    assert!(reached >= 22, "{reached} of 23");
    assert!(network.sent() - before <= 24 * 5 + 24);
}

#[test]
fn in_a_line_it_passes_along() {
    let mut network = network(6, 2).line(0);
    network.run(Duration::from_secs(5));
    assert_eq!(reached(&mut network), 5);
}

#[test]
fn a_neighbour_whose_link_is_down_isnt_chosen() {
    let mut network = network(3, 2).line(0);
    network.run(Duration::from_secs(5));
    network.cut(0, 1);
    network.run(Duration::from_secs(30));
    assert_eq!(network.stacks[0].protocol::<Gossip>().unwrap().neighbours, []);
}
