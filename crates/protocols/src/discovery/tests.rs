use super::*;
use crate::testing::{Network, id};
use tenure_mesh::Stack;

fn set_up(stack: &mut Stack, _: usize) {
    stack.start(Instant::BOOT, Discovery::new(Config::default()));
    stack.subscribe::<LinkUp>();
    stack.subscribe::<LinkDown>();
}

fn links(network: &Network, index: usize) -> Vec<NodeId> {
    let mut links: Vec<_> =
        network.stacks[index].protocol::<Discovery>().unwrap().links().map(|link| link.0).collect();
    links.sort();
    links
}

#[test]
fn neighbours_in_a_line_find_each_other_within_half_a_second() {
    let mut network = Network::new(3, set_up).line(0);
    network.run(Duration::from_millis(500));
    assert_eq!(links(&network, 0), [id(1)]);
    assert_eq!(links(&network, 1), [id(0), id(2)]);
    assert_eq!(links(&network, 2), [id(1)]);
    let event = network.stacks[0].host_event().unwrap();
    let (up, _) = event.notification::<LinkUp>().unwrap();
    assert_eq!((up.neighbour, up.quality.signal_dbm), (id(1), Some(-60)));
}

#[test]
fn a_link_that_carries_one_way_only_is_none() {
    let mut network = Network::new(2, set_up);
    network.links.insert((0, 1), 0);
    network.run(Duration::from_secs(20));
    assert_eq!(links(&network, 1), []);
    let heard: Vec<_> = network.stacks[1].protocol::<Discovery>().unwrap().heard().collect();
    assert_eq!(heard, [id(0)]);
}

#[test]
fn a_link_that_becomes_one_way_goes_down_on_both_sides() {
    let mut network = Network::new(2, set_up).line(0);
    network.run(Duration::from_secs(30));
    network.links.remove(&(0, 1));
    network.run(Duration::from_secs(25));
    assert_eq!(links(&network, 0), [], "it hears that it isn't heard");
    assert_eq!(links(&network, 1), [], "it hears nothing");
}

#[test]
fn a_link_comes_back() {
    let mut network = Network::new(2, set_up).line(0);
    network.run(Duration::from_secs(5));
    network.cut(0, 1);
    network.run(Duration::from_secs(30));
    assert_eq!(links(&network, 0), []);
    network.link(0, 1, 0);
    network.run(Duration::from_secs(6));
    assert_eq!(links(&network, 0), [id(1)]);
}

#[test]
fn hellos_become_rare_when_nothing_changes() {
    let mut network = Network::new(2, set_up).line(0);
    network.run(Duration::from_secs(30));
    let before = network.sent();
    network.run(Duration::from_secs(40));
    let rate = network.sent() - before;
    assert!((18..=24).contains(&rate), "{rate} hellos of two nodes in 40 s");
}

#[test]
fn quality_is_what_the_link_delivers() {
    let mut network = Network::new(2, set_up).line(0);
    network.links.insert((0, 1), 400);
    network.run(Duration::from_secs(300));
    let discovery = network.stacks[0].protocol::<Discovery>().unwrap();
    let (_, quality) = discovery.links().next().unwrap();
    assert!(quality.to_us > 240, "{quality:?}");
    assert!((80..=230).contains(&quality.from_us), "{quality:?}");
    assert!(quality.etx() > 256);
}

#[test]
fn a_neighbour_that_restarts_after_many_hellos_is_known_anew() {
    let mut network = Network::new(2, set_up).line(0);
    network.run(Duration::from_secs(600));
    network.restart(1, set_up);
    network.run(Duration::from_secs(2));
    assert_eq!(links(&network, 0), [id(1)]);
    let mut told = Vec::new();
    while let Some(event) = network.stacks[0].host_event() {
        told.push(event.notification::<LinkUp>().is_some());
    }
    assert_eq!(told, [true, false, true], "up, down, up");
}

#[test]
fn more_neighbours_than_a_hello_lists_are_all_found() {
    let mut network = Network::new(40, set_up).clique(0);
    network.run(Duration::from_secs(20));
    for index in 0..40 {
        assert_eq!(links(&network, index).len(), 39);
    }
}

#[test]
fn a_late_or_lying_number_changes_no_more_than_its_own_neighbour() {
    let mut neighbour = Neighbour {
        id: id(0),
        sequence: 5,
        history: 1,
        counted: 1,
        from_us: 0,
        from_us_until: Instant::BOOT,
        silent_at: Instant::BOOT,
        signal_dbm: None,
        told: None,
    };
    for sequence in [6, 8, 7, 7, 0, 40_000, 40_001, u16::MAX, 0, 1] {
        neighbour.count(sequence);
        assert!(neighbour.counted <= WINDOW);
    }
    assert_eq!((neighbour.history, neighbour.counted), (7, 3));
    assert_eq!(neighbour.arriving(), 255);
}
