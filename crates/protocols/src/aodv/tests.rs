//! Requests, replies and errors in small networks.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{NodeId, Stack};

use super::{Aodv, Config};
use crate::discovery::{self, Discovery};
use crate::interface::{Route, Routed};
use crate::testing::{Network, id};

fn set_up(stack: &mut Stack, _: usize) {
    stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
    stack.start(Instant::BOOT, Aodv::new(1, Config::default()));
}

/// Asks for a route, and gives the answer.
#[track_caller]
fn ask(network: &mut Network, from: usize, to: usize) -> Option<NodeId> {
    network.stacks[from].request(&Route { destination: id(to) }, &[]);
    network.run(Duration::from_secs(20));
    let event = network.stacks[from].host_event().expect("an answer");
    let (_, reply) = event.reply::<Route>().expect("the answer to the question");
    let Some(Routed { next_hop, .. }) = reply else { panic!("nobody routes") };
    next_hop
}

#[test]
fn a_route_is_found_when_it_is_asked_for() {
    let mut network = Network::new(6, set_up).line(0);
    network.run(Duration::from_secs(5));
    let aodv = network.stacks[0].protocol::<Aodv>().expect("it runs");
    assert_eq!(aodv.next_hop(id(5)), None);
    assert_eq!(ask(&mut network, 0, 5), Some(id(1)));
}

#[test]
fn who_is_not_there_is_not_found() {
    let mut network = Network::new(3, set_up).line(0);
    network.run(Duration::from_secs(5));
    assert_eq!(ask(&mut network, 0, 7), None);
}

#[test]
fn a_route_that_broke_is_found_elsewhere() {
    let mut network = Network::new(5, set_up).line(0);
    network.link(4, 0, 0);
    network.run(Duration::from_secs(5));
    assert_eq!(ask(&mut network, 0, 3), Some(id(4)));
    network.cut(4, 0);
    network.run(Duration::from_secs(60));
    assert_eq!(ask(&mut network, 0, 3), Some(id(1)));
}
