//! A protocol as somebody else writes it, in a crate of his own: it uses what is published and nothing else.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Declared as _, Expires, Handles, NodeId, NumberTaken, Protocol, ProtocolNumber,
    Reception, Stack,
};
use tenure_protocols::testing::{Network, id};

/// The lowest id that a node has heard of lately leads.
struct Leader {
    claim: Option<(NodeId, Instant)>,
}

/// Somebody leads; how many nodes have passed that on since it said so.
#[derive(Serialize, Deserialize)]
struct Claim {
    leader: NodeId,
    hops: u8,
}

#[derive(Serialize, Deserialize)]
struct Beat;

tenure_mesh::protocol! {
    Leader = 130, "leader";
    messages { Claim = 1 }
    timers { Beat = 1 }
}

const PERIOD: Duration = Duration::from_millis(500);
const HOPS_MAX: u8 = 16;

impl Leader {
    fn leader(&self, own: NodeId, now: Instant) -> NodeId {
        let lately = self.claim.filter(|(_, at)| now.since(*at) < PERIOD * 4);
        lately.map_or(own, |(leader, _)| leader.min(own))
    }
}

impl Protocol for Leader {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.every(PERIOD, &Beat);
    }
}

impl Expires<Beat> for Leader {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        let own = context.node();
        if self.leader(own, context.now()) == own {
            context.broadcast(&Claim { leader: own, hops: 0 });
        }
    }
}

impl Handles<Claim> for Leader {
    fn handle(
        &mut self,
        Claim { leader, hops }: Claim,
        _: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let now = context.now();
        let was_heard =
            |(known, at): (NodeId, Instant)| known == leader && now.since(at) < PERIOD / 2;
        let is_better = leader < context.node() && leader <= self.leader(context.node(), now);
        if is_better && !self.claim.is_some_and(was_heard) && hops < HOPS_MAX {
            self.claim = Some((leader, now));
            context.broadcast(&Claim { leader, hops: hops + 1 });
        }
    }
}

fn leaders(network: &Network) -> Vec<NodeId> {
    let of = |stack: &Stack| {
        let leader = stack.protocol::<Leader>().expect("it runs");
        leader.leader(stack.node(), network.now())
    };
    network.stacks().iter().map(of).collect()
}

#[test]
fn a_protocol_of_anybodys_runs_in_the_network_for_tests() {
    let set_up = |stack: &mut Stack, _: usize| {
        stack.register(Instant::BOOT, Leader { claim: None }).expect("130 is free");
    };
    let mut network = Network::new(5, set_up).line(50);
    network.run(Duration::from_secs(5));
    assert_eq!(leaders(&network), [id(0); 5]);
    network.cut(1, 2);
    network.run(Duration::from_secs(5));
    assert_eq!(leaders(&network), [id(0), id(0), id(2), id(2), id(2)]);
    network.link(1, 2, 0);
    network.run(Duration::from_secs(5));
    assert_eq!(leaders(&network), [id(0); 5]);
}

/// Another protocol that took the same number.
struct Rival;

tenure_mesh::protocol! {
    Rival = 130, "rival";
}

impl Protocol for Rival {}

#[test]
fn a_number_that_is_taken_is_an_error_and_whatever_has_it_runs_on() {
    let set_up = |stack: &mut Stack, _: usize| {
        stack.register(Instant::BOOT, Leader { claim: None }).expect("130 is free");
    };
    let mut network = Network::new(2, set_up).line(0);
    let taken = NumberTaken { number: ProtocolNumber(130), by: "leader", wanted_by: "rival" };
    assert_eq!(network.stack_mut(0).register(Instant::BOOT, Rival), Err(taken));
    assert_eq!(taken.to_string(), "the protocol number 130 of \"rival\" is taken by \"leader\"");
    network.run(Duration::from_secs(3));
    assert_eq!(leaders(&network), [id(0); 2]);
    let number = Leader::DESCRIPTION.number;
    let now = network.now();
    assert!(network.stack_mut(0).stop(now, number), "it ran until it was stopped");
    assert_eq!(network.stack_mut(0).register(now, Rival), Ok(()));
}
