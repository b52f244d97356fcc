use super::*;
use crate::broadcast::{Broadcast, Limits};
use crate::flooding::Everything;
use crate::testing::{Network, id};
use tenure_mesh::Stack;

fn set_up(stack: &mut Stack, _: usize) {
    stack.start(Instant::BOOT, Broadcast::new(Everything::default(), Limits::default()));
    stack.start(Instant::BOOT, Membership::new(Duration::from_secs(2)));
    stack.subscribe::<MemberDown>();
}

fn members(network: &mut Network, index: usize) -> Vec<NodeId> {
    network.stacks[index].request(&Members, &[]);
    network.run(Duration::from_millis(1));
    let events = core::iter::from_fn(|| network.stacks[index].host_event());
    events.filter_map(|event| event.reply::<Members>()?.1).last().unwrap()
}

#[test]
fn everybody_knows_everybody_over_many_hops() {
    let mut network = Network::new(6, set_up).line(100);
    network.run(Duration::from_secs(10));
    assert_eq!(members(&mut network, 0), [id(1), id(2), id(3), id(4), id(5)]);
    assert_eq!(members(&mut network, 3).len(), 5);
}

#[test]
fn who_is_cut_off_is_a_member_no_more_and_who_returns_is_again() {
    let mut network = Network::new(3, set_up).line(0);
    network.run(Duration::from_secs(5));
    network.cut(1, 2);
    network.run(Duration::from_secs(12));
    assert_eq!(members(&mut network, 0), [id(1)]);
    network.link(1, 2, 0);
    network.run(Duration::from_secs(4));
    assert_eq!(members(&mut network, 0), [id(1), id(2)]);
}
