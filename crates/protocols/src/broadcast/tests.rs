use super::*;
use crate::counter_broadcast::{Counter, CounterBroadcast};
use crate::coverage_broadcast::{Coverage, CoverageBroadcast};
use crate::discovery::{self, Discovery};
use crate::distance_broadcast::{Distance, DistanceBroadcast};
use crate::flooding::{Everything, Flooding};
use crate::testing::{Network, id};
use tenure_mesh::{Destination, Dispatcher, Framer, FramerConfig, ProtocolNumber, Stack, Unsealed};

/// A network in which every node runs the broadcast that `policy` makes.
fn network<P: Policy>(count: usize, policy: impl Fn() -> P) -> Network {
    Network::new(count, |stack: &mut Stack, _| {
        stack.start(Instant::BOOT, Broadcast::new(policy(), Limits::default()));
        stack.subscribe::<Published>();
    })
}

fn publish(network: &mut Network, from: usize, body: &[u8]) {
    network.stacks[from].request(&Publish { port: Port::APPLICATION }, body);
    network.run(Duration::from_secs(2));
}

/// How many bodies each node was told.
fn told(network: &mut Network) -> Vec<usize> {
    let count = |stack: &mut Stack| {
        let mut count = 0;
        while let Some(event) = stack.host_event() {
            count += usize::from(event.notification::<Published>().is_some());
        }
        count
    };
    network.stacks.iter_mut().map(count).collect()
}

#[test]
fn flooding_reaches_all_once_and_everybody_sends_once() {
    let mut network = network(8, Everything::default).line(0);
    network.link(0, 7, 0);
    publish(&mut network, 3, b"hello");
    assert_eq!(told(&mut network), [1, 1, 1, 0, 1, 1, 1, 1]);
    assert_eq!(network.sent(), 8);
    let flooding = network.stacks[0].protocol::<Flooding>().unwrap();
    assert_eq!((flooding.passed_on(), flooding.waiting.len()), (1, 0));
}

#[test]
fn counting_saves_most_of_it_where_many_are_near() {
    let mut network = network(24, Counter::default).clique(0);
    publish(&mut network, 0, b"hello");
    assert_eq!(told(&mut network).iter().sum::<usize>(), 23);
    assert!(network.sent() < 8, "{} transmissions", network.sent());
    assert!(network.stacks[1].protocol::<CounterBroadcast>().is_some());
}

#[test]
fn in_a_line_nothing_is_redundant_by_count() {
    let mut network = network(10, Counter::default).line(0);
    publish(&mut network, 0, b"hello");
    assert_eq!(told(&mut network).iter().sum::<usize>(), 9);
}

#[test]
fn a_strong_signal_is_redundant_and_a_weak_one_not() {
    // The network's signals are -60 dBm.
    for (near_dbm, passed_on) in [(-65, 0), (-55, 1)] {
        let policy = || Distance { near_dbm, ..Distance::default() };
        let mut network = network(2, policy).line(0);
        publish(&mut network, 0, b"hello");
        assert_eq!(told(&mut network), [0, 1]);
        let second = network.stacks[1].protocol::<DistanceBroadcast>().unwrap();
        assert_eq!(second.passed_on(), passed_on);
    }
}

#[test]
fn another_life_of_a_node_is_heard() {
    let set_up = |stack: &mut Stack, _: usize| {
        stack.start(Instant::BOOT, Broadcast::new(Everything::default(), Limits::default()));
        stack.subscribe::<Published>();
    };
    let mut network = Network::new(2, set_up).line(0);
    for _ in 0..4 {
        publish(&mut network, 0, b"hello");
        network.restart(0, set_up);
    }
    assert_eq!(told(&mut network)[1], 4);
}

#[test]
fn a_storm_of_bodies_takes_a_bounded_room() {
    let mut network = network(2, Everything::default).line(0);
    for _ in 0..1000 {
        network.stacks[0].request(&Publish { port: Port::APPLICATION }, &[0; 500]);
        network.run(Duration::from_micros(100));
    }
    let second = network.stacks[1].protocol::<Flooding>().unwrap();
    assert!(second.waiting.len() <= 16 && second.names.known.len() <= 256);
    assert_eq!(id(1), network.stacks[1].node());
}

/// A network whose nodes know their neighbours.
fn acquainted(count: usize) -> Network {
    Network::new(count, |stack: &mut Stack, _| {
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        stack.start(Instant::BOOT, Broadcast::new(Coverage::default(), Limits::default()));
        stack.subscribe::<Published>();
    })
}

fn passed_on(network: &Network) -> Vec<u64> {
    let count = |stack: &Stack| stack.protocol::<CoverageBroadcast>().unwrap().passed_on();
    network.stacks.iter().map(count).collect()
}

#[test]
fn who_is_covered_passes_nothing_on() {
    // 0 reaches 1, 2 and 3, who hear each other; 4 is reached by 3 alone.
    let mut network = acquainted(5);
    for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (1, 3), (3, 4)] {
        network.link(one, other, 0);
    }
    network.run(Duration::from_secs(20));
    publish(&mut network, 0, b"hello");
    assert_eq!(told(&mut network), [0, 1, 1, 1, 1]);
    assert_eq!(passed_on(&network), [0, 0, 0, 1, 0]);
}

#[test]
fn a_lie_about_who_is_reached_is_cut_off_with_the_body() {
    let mut network = acquainted(2).line(0);
    network.run(Duration::from_secs(20));
    let copy = Copied {
        name: Name { source: id(7), number: 1 },
        port: Port::APPLICATION,
        hops_left: 9,
        reached: 200,
    };
    let mut message = alloc::vec![1];
    message.extend(postcard::to_allocvec(&copy).unwrap());
    message.extend([0; 399]);
    let now = network.now;
    let number = ProtocolNumber(Coverage::NUMBER);
    let mut framer = Framer::new(FramerConfig::new(id(1), 9, [0; 8]), Unsealed);
    framer.send(now, number, Destination::All, Duration::ZERO, &message).unwrap();
    let mut frame = Vec::new();
    framer.transmit(now, &mut frame);
    network.stacks[0].receive(now, &frame, None).unwrap();
    network.run(Duration::from_secs(1));
    assert_eq!(told(&mut network), [0, 0]);
}

#[test]
fn a_neighbour_that_others_come_first_to_reach_is_left_to_them() {
    // 0 and 4 are both reached by 1, 2 and 3, none of which hears another.
    let mut network = acquainted(5);
    for between in 1..4 {
        network.link(0, between, 0);
        network.link(between, 4, 0);
    }
    network.run(Duration::from_secs(20));
    publish(&mut network, 4, b"whom 4 reaches");
    publish(&mut network, 0, b"hello");
    assert_eq!(told(&mut network), [1, 2, 2, 2, 1]);
    // Of the first three know nothing of each other; of the second, two send in case one lacks it.
    assert_eq!(passed_on(&network)[1..4].iter().sum::<u64>(), 3 + 2);
}
