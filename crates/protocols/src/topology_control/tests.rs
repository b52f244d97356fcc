use super::*;
use crate::discovery::{self, Discovery};
use crate::testing::{Network, id};
use core::time::Duration;
use tenure_hal::Instant;

fn set_up(stack: &mut Stack, _: usize) {
    stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
    put_in_place(stack, Instant::BOOT).unwrap();
}

fn shape(network: &mut Network, one: usize, other: usize, lost_permille: u16) {
    for (node, neighbour) in [(one, id(other)), (other, id(one))] {
        network.stacks[node].request(&Shape { neighbour, lost_permille }, &[]);
    }
}

fn links(network: &Network, index: usize) -> Vec<NodeId> {
    let mut links: Vec<_> =
        network.stacks[index].protocol::<Discovery>().unwrap().links().map(|it| it.0).collect();
    links.sort();
    links
}

#[test]
fn a_clique_becomes_a_line_and_a_clique_again() {
    let mut network = Network::new(3, set_up).clique(0);
    shape(&mut network, 0, 2, 1000);
    network.run(Duration::from_secs(5));
    assert_eq!(links(&network, 0), [id(1)]);
    assert_eq!(links(&network, 1), [id(0), id(2)]);
    shape(&mut network, 0, 2, 0);
    network.run(Duration::from_secs(10));
    assert_eq!(links(&network, 0), [id(1), id(2)]);
}

#[test]
fn a_shaped_link_loses_as_it_is_told() {
    let mut network = Network::new(2, set_up).clique(0);
    shape(&mut network, 0, 1, 400);
    network.run(Duration::from_secs(400));
    let (_, quality) = network.stacks[0].protocol::<Discovery>().unwrap().links().next().unwrap();
    assert!((80..=230).contains(&quality.to_us), "{quality:?}");
}

#[test]
fn more_links_than_fit_are_refused() {
    let mut network = Network::new(1, set_up);
    for node in 0..130 {
        let neighbour = NodeId::from_number(1000 + node);
        network.stacks[0].request(&Shape { neighbour, lost_permille: 1000 }, &[]);
    }
    network.run(Duration::from_secs(1));
    let events = core::iter::from_fn(|| network.stacks[0].host_event());
    let refused = events.filter(|it| it.reply::<Shape>().unwrap().1 == Some(Shaped::Full)).count();
    assert_eq!(refused, 2);
}
