use super::*;
use crate::forwarding::{self, Forwarding};
use crate::fragmentation::{self, Fragmentation};
use crate::hyparview::{self, HyParView};
use crate::reliable::{self, Reliable};
use crate::testing::{FixedRouter, Network, id};
use tenure_hal::Instant;
use tenure_mesh::Stack;

const PORT: Port = Port::APPLICATION;

/// Every node has every other as a neighbour; HyParView keeps a few as members.
fn network(count: usize, lost_permille: u32) -> Network {
    Network::new(count, move |stack: &mut Stack, index| {
        let ways = (0..count).map(|to| (id(to), id(to))).collect();
        let now = Instant::BOOT;
        stack.start(now, FixedRouter { ways, ..FixedRouter::default() });
        stack.start(now, Forwarding::new(forwarding::Config::default()));
        stack.start(now, Fragmentation::new(fragmentation::Config::default()));
        stack.start(now, Reliable::new(reliable::Config::default()));
        let contact = (index > 0).then(|| id(0));
        let views = hyparview::Config { contact, ..hyparview::Config::default() };
        stack.start(now, HyParView::new(views));
        stack.start(now, Plumtree::new(Config::default()));
        stack.subscribe::<Published>();
    })
    .clique(lost_permille)
}

fn publish(network: &mut Network, from: usize, body: &[u8]) {
    network.stack_mut(from).request(&Publish { port: PORT }, body);
}

/// How many of `nodes` got a body since the last count, and how many times in all.
fn got(network: &mut Network, nodes: core::ops::Range<usize>) -> (usize, usize) {
    let (mut reached, mut times) = (0, 0);
    for index in nodes {
        let mut here = 0;
        while let Some(event) = network.stack_mut(index).host_event() {
            here += usize::from(event.notification::<Published>().is_some());
        }
        reached += here.min(1);
        times += here;
    }
    (reached, times)
}

/// Bodies that went from member to member, by what all have in their trees.
fn eager_links(network: &Network) -> usize {
    let members = network
        .stacks()
        .iter()
        .flat_map(|stack| stack.protocol::<Plumtree>().unwrap().members.iter());
    members.filter(|member| member.is_eager).count()
}

#[test]
fn body_reaches_all_and_later_ones_go_along_a_tree() {
    let mut network = network(30, 0);
    network.run(Duration::from_secs(120));
    for number in 0..10_u8 {
        publish(&mut network, usize::from(number), &[number]);
        network.run(Duration::from_secs(10));
        assert_eq!(got(&mut network, 0..30), (29, 29), "body {number}");
    }
    let links = eager_links(&network);
    assert!(links <= 2 * 29 + 12, "{links} ends of links give bodies; a tree of 30 has 58");
}

#[test]
fn what_the_tree_loses_comes_by_those_who_named_it() {
    let mut network = network(30, 0);
    network.run(Duration::from_secs(120));
    publish(&mut network, 0, b"first");
    network.run(Duration::from_secs(10));
    got(&mut network, 0..30);
    // A third of the nodes is gone at once, with all branches over them.
    network.links.retain(|(from, to), _| *from >= 10 && *to >= 10);
    publish(&mut network, 29, b"second");
    network.run(Duration::from_secs(60));
    assert_eq!(got(&mut network, 10..30), (19, 19));
}

#[test]
fn strangers_and_liars_fill_no_more_than_there_is_room_for() {
    let mut network = network(2, 0);
    network.run(Duration::from_secs(30));
    let config = Config::default();
    let mut most = 0;
    for number in 0..1_000_u32 {
        let mut bytes = Vec::new();
        encode(&Word::Have { name: Name { source: id(77), number } }, &mut bytes);
        let request = SendDatagram { to: id(1), port: Port::TREE };
        network.stack_mut(0).request(&request, &bytes);
        network.run(Duration::from_millis(5));
        while network.stack_mut(0).host_event().is_some() {}
        let told = network.stacks()[1].protocol::<Plumtree>().unwrap();
        most = most.max(told.missing.len());
    }
    assert_eq!(most, config.named_max, "a member is heard, and no further");
    network.run(Duration::from_secs(60));
    let told = network.stacks()[1].protocol::<Plumtree>().unwrap();
    assert!(told.missing.is_empty() && told.kept.len() <= config.kept);
    publish(&mut network, 1, b"well");
    network.run(Duration::from_secs(10));
    assert_eq!(got(&mut network, 0..1), (1, 1));
}

#[test]
fn who_is_no_member_names_bodies_to_nobody() {
    let mut network = network(30, 0);
    network.run(Duration::from_secs(120));
    let tree = |network: &Network| {
        let tree = network.stacks()[1].protocol::<Plumtree>().unwrap();
        let members: Vec<_> = tree.members.iter().map(|member| member.node).collect();
        (members, tree.missing.len())
    };
    let (members, missing) = tree(&network);
    assert!(members.len() > 1 && missing == 0);
    let stranger = (2..30).find(|index| !members.contains(&id(*index))).unwrap();
    let mut bytes = Vec::new();
    encode(&Word::Have { name: Name { source: id(77), number: 1 } }, &mut bytes);
    let request = SendDatagram { to: id(1), port: Port::TREE };
    network.stack_mut(stranger).request(&request, &bytes);
    network.run(Duration::from_millis(500));
    assert_eq!(tree(&network), (members.clone(), 0));
    let member = (0..30).find(|index| members.contains(&id(*index))).unwrap();
    network.stack_mut(member).request(&request, &bytes);
    network.run(Duration::from_millis(500));
    assert_eq!(tree(&network), (members, 1));
}
