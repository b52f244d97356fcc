//! Nodes elect one leader, and another one when links are cut.

use std::time::Duration;

use protocol::Leader;
use tenure_hal::Instant;
use tenure_mesh::{NodeId, Stack};
use tenure_protocols::testing::{Network, id};

fn leaders(network: &Network) -> Vec<NodeId> {
    let of = |stack: &Stack| {
        let leader = stack.protocol::<Leader>().expect("it runs");
        leader.leader(stack.node(), network.now())
    };
    network.stacks().iter().map(of).collect()
}

#[test]
fn nodes_that_are_parted_elect_a_leader_each_and_one_when_they_meet_again() {
    let set_up = |stack: &mut Stack, _: usize| {
        let leader = Leader::new(Duration::from_millis(500));
        stack.register(Instant::BOOT, leader).expect("its number is free");
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
