use super::*;
use crate::broadcast::{Broadcast, Limits};
use crate::counter_broadcast::Counter;
use crate::testing::Network;
use tenure_mesh::Stack;

fn set_up(stack: &mut Stack, _: usize) {
    stack.start(Instant::BOOT, Broadcast::new(Counter::default(), Limits::default()));
    stack.start(Instant::BOOT, ReliableBroadcast::new(Config::default()));
    stack.subscribe::<PublishedReliably>();
}

fn publish(network: &mut Network, from: usize, body: &[u8]) {
    network.stacks[from].request(&PublishReliably { port: Port::APPLICATION }, body);
}

fn bodies(network: &mut Network, index: usize) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    while let Some(event) = network.stacks[index].host_event() {
        if let Some((_, body)) = event.notification::<PublishedReliably>() {
            bodies.push(body.to_vec());
        }
    }
    bodies.sort();
    bodies
}

#[test]
fn what_lossy_hops_lose_reaches_everybody_in_the_end_and_once() {
    let mut network = Network::new(8, set_up).line(300);
    network.run(Duration::from_secs(3));
    for number in 0..20_u8 {
        publish(&mut network, usize::from(number % 8), &[number]);
        network.run(Duration::from_millis(500));
    }
    network.run(Duration::from_secs(60));
    for index in 0..8 {
        let expected: Vec<_> =
            (0..20).filter(|it| usize::from(it % 8) != index).map(|it: u8| [it].to_vec()).collect();
        assert_eq!(bodies(&mut network, index), expected, "node {index}");
    }
}

#[test]
fn a_node_that_was_away_gets_what_it_missed() {
    let mut network = Network::new(3, set_up).line(0);
    publish(&mut network, 0, b"before");
    network.run(Duration::from_secs(2));
    network.cut(1, 2);
    publish(&mut network, 0, b"while away");
    network.run(Duration::from_secs(20));
    network.link(1, 2, 0);
    network.run(Duration::from_secs(120));
    assert_eq!(bodies(&mut network, 2), [b"before".to_vec(), b"while away".to_vec()]);
}

#[test]
fn digests_become_rare_when_all_have_everything() {
    let mut network = Network::new(12, set_up).clique(0);
    publish(&mut network, 0, b"once");
    network.run(Duration::from_secs(120));
    let before = network.sent();
    network.run(Duration::from_secs(120));
    assert!(network.sent() - before <= 12, "{}", network.sent() - before);
}

#[test]
fn in_a_dense_network_a_body_takes_few_transmissions() {
    let mut network = Network::new(24, set_up).clique(100);
    network.run(Duration::from_secs(120));
    let before = network.sent();
    for number in 0..50_u8 {
        publish(&mut network, usize::from(number % 24), &[number]);
        network.run(Duration::from_secs(1));
    }
    network.run(Duration::from_secs(15));
    let each = (network.sent() - before) as f32 / 50.0;
    assert!(each < 12.0, "{each} transmissions each");
    for index in 0..24 {
        let own = (0..50).filter(|number| number % 24 == index).count();
        assert_eq!(bodies(&mut network, index).len(), 50 - own, "node {index}");
    }
}

#[test]
fn numbers_are_noted_once_in_any_order() {
    let mut source = Source {
        id: NodeId::from_number(1),
        session: 1,
        highest: 5,
        window: 1,
        heard: Instant::BOOT,
    };
    let new: Vec<bool> =
        [5, 7, 6, 6, 4, 100, 69, 68, 7, u32::MAX, 0].iter().map(|it| source.note(*it)).collect();
    assert_eq!(new, [false, true, true, false, true, true, true, false, false, true, false]);
}
