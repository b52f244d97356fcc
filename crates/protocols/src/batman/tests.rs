//! Windows, and small networks.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::Stack;

use super::{AVERAGED, Batman, Config, Originator, Said, Way, Window};
use crate::testing::{Network, id};

fn set_up(stack: &mut Stack, _: usize) {
    stack.start(Instant::BOOT, Batman::new(1, Config::default()));
}

fn next_hop(network: &Network, from: usize, to: usize) -> Option<tenure_mesh::NodeId> {
    network.stacks[from].protocol::<Batman>()?.next_hop(id(to)).map(|(next, _)| next)
}

#[test]
fn a_window_counts_what_came() {
    let mut window = Window::default();
    assert_eq!(window.share(0), 0);
    window.note(1);
    assert_eq!(window.share(1), 255);
    window.note(3);
    assert_eq!(window.share(3), 170);
    window.note(2);
    assert_eq!(window.share(3), 255);
    assert_eq!(window.share(6), 127);
    assert_eq!(window.share(300), 0);
}

#[test]
fn a_line_finds_its_way() {
    let mut network = Network::new(6, set_up).line(0);
    network.run(Duration::from_secs(15));
    for from in 1..6 {
        assert_eq!(next_hop(&network, from, 0), Some(id(from - 1)));
        assert_eq!(next_hop(&network, from - 1, 5), Some(id(from)));
    }
}

#[test]
fn a_link_that_carries_one_way_only_is_not_used() {
    let mut network = Network::new(3, set_up).line(0);
    network.links.insert((0, 2), 0);
    network.run(Duration::from_secs(15));
    assert_eq!(next_hop(&network, 2, 0), Some(id(1)));
    assert_eq!(next_hop(&network, 0, 2), Some(id(1)));
}

#[test]
fn the_better_of_two_ways_is_taken_and_the_other_when_it_is_cut() {
    let mut network = Network::new(4, set_up);
    network.link(0, 1, 0);
    network.link(1, 3, 0);
    network.link(0, 2, 300);
    network.link(2, 3, 300);
    network.run(Duration::from_secs(40));
    assert_eq!(next_hop(&network, 0, 3), Some(id(1)));
    network.cut(1, 3);
    network.run(Duration::from_secs(20));
    assert_eq!(next_hop(&network, 0, 3), Some(id(2)));
}

#[test]
fn present_way_is_kept_while_another_is_as_good() {
    // The other has the greater number, by which equals would be told apart.
    for (quality_of_other, next) in [(200, id(1)), (201, id(2))] {
        let way = |neighbour, quality| Way {
            neighbour,
            said: Said { sequence: 1, quality },
            life: 1,
            qualities: [quality; AVERAGED],
            at: 0,
            heard_at: Instant::BOOT,
        };
        let known = || Originator {
            boot: 1,
            sequence: 1,
            heard_at: Instant::BOOT,
            ways: [way(id(1), 200), way(id(2), quality_of_other)].into(),
            next: Some(id(1)),
            told: None,
        };
        // A node alone, which chooses each time that it says something.
        let mut network = Network::new(1, |stack, _| {
            let mut batman = Batman::new(1, Config::default());
            batman.originators.insert(id(3), known());
            stack.start(Instant::BOOT, batman);
        });
        network.run(Duration::from_secs(3));
        assert_eq!(next_hop(&network, 0, 3), Some(next), "beside {quality_of_other}");
    }
}
