use super::*;
use crate::broadcast::{Broadcast, Limits};
use crate::discovery::{self, Discovery};
use crate::flooding::Everything;
use crate::forwarding::{self, Forwarding};
use crate::fragmentation::{self, Fragmentation};
use crate::membership::Membership;
use crate::reliable::{self, Reliable};
use crate::reliable_broadcast::{self, ReliableBroadcast};
use crate::testing::{Network, id, line_router};
use crate::topology_control::put_in_place;
use core::time::Duration;
use tenure_mesh::Declared;

fn owner() -> SigningKey {
    SigningKey::from_bytes(&[3; 32])
}

fn set_up(stack: &mut Stack, index: usize) {
    stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
    stack.start(Instant::BOOT, Forwarding::new(forwarding::Config::default()));
    stack.start(Instant::BOOT, Fragmentation::new(fragmentation::Config::default()));
    stack.start(Instant::BOOT, Reliable::new(reliable::Config::default()));
    stack.start(Instant::BOOT, Broadcast::new(Everything::default(), Limits::default()));
    stack.start(Instant::BOOT, ReliableBroadcast::new(reliable_broadcast::Config::default()));
    stack.start(Instant::BOOT, line_router(index, 4));
    stack.start(Instant::BOOT, Experiment::new(owner().verifying_key(), 0));
    put_in_place(stack, Instant::BOOT).unwrap();
    stack.subscribe::<Ordered>();
    stack.subscribe::<LogArrived>();
}

/// Carries out the order in the body of an [`Ordered`], for a host that lets membership be started.
fn obey(stack: &mut Stack, now: Instant, body: &[u8]) -> bool {
    let Some((order, _)) = decode::<Order>(body) else { return false };
    let membership = |_, settings: &[u8]| {
        let seconds = Duration::from_secs((*settings.first()?).into());
        Some(Prepared::new(Membership::new(seconds)))
    };
    let knows = |number| number == Membership::DESCRIPTION.number;
    carry_out(stack, now, &order, knows, membership)
}

/// Gives an order at node 0, lets it spread, and lets every host carry it out.
fn direct(network: &mut Network, number: u64, order: Order) -> Vec<bool> {
    let body = sign(&owner(), number, id(0), &order);
    network.stacks[0].request(&Direct, &body);
    network.run(Duration::from_secs(30));
    let now = network.now;
    let mut done = Vec::new();
    for stack in &mut network.stacks {
        while let Some(event) = stack.host_event() {
            if let Some((_, body)) = event.notification::<Ordered>() {
                let body = body.to_vec();
                done.push(obey(stack, now, &body));
            }
        }
    }
    network.run(Duration::from_secs(1));
    done
}

#[test]
fn a_deployment_starts_reconfigures_and_stops_a_protocol_by_one_order() {
    let mut network = Network::new(4, set_up).line(200);
    network.run(Duration::from_secs(3));
    let protocol = Membership::DESCRIPTION.number;
    let start = |seconds| Order::Start { protocol, settings: [seconds].into() };
    assert_eq!(direct(&mut network, 1, start(2)), [true; 4]);
    assert_eq!(direct(&mut network, 2, start(5)), [true; 4]);
    assert!(network.stacks.iter().all(|it| it.protocol::<Membership>().is_some()));
    assert_eq!(direct(&mut network, 3, Order::Stop { protocol }), [true; 4]);
    assert!(network.stacks.iter().all(|it| it.protocol::<Membership>().is_none()));
    let unlisted = Order::Stop { protocol: Discovery::DESCRIPTION.number };
    assert_eq!(direct(&mut network, 4, unlisted), [false; 4]);
}

#[test]
fn logs_are_collected_at_the_director() {
    let mut network = Network::new(4, set_up).line(100);
    network.run(Duration::from_secs(3));
    for index in 0..4 {
        network.stacks[index].request(&Note, &[b'0' + index as u8]);
    }
    network.stacks[0].request(&Direct, &sign(&owner(), 1, id(0), &Order::Collect));
    network.run(Duration::from_secs(30));
    let events = core::iter::from_fn(|| network.stacks[0].host_event());
    let mut logs: Vec<_> = events
        .filter_map(|event| {
            let (arrived, log) = event.notification::<LogArrived>()?;
            Some((arrived.from, log.to_vec()))
        })
        .collect();
    logs.sort();
    let expected: Vec<_> =
        (0..4).map(|index| (id(index), Vec::from([b'0' + index as u8, b'\n']))).collect();
    assert_eq!(logs, expected);
}

#[test]
fn a_log_longer_than_a_frame_is_collected_too() {
    let mut network = Network::new(4, set_up).line(0);
    network.run(Duration::from_secs(3));
    for _ in 0..80 {
        network.stacks[3].request(&Note, &[b'x'; 49]);
        network.run(Duration::from_millis(10));
    }
    network.stacks[0].request(&Direct, &sign(&owner(), 1, id(0), &Order::Collect));
    network.run(Duration::from_secs(30));
    let events = core::iter::from_fn(|| network.stacks[0].host_event());
    let mut logs = events.filter_map(|event| {
        let (arrived, log) = event.notification::<LogArrived>()?;
        Some((arrived.from, log.len()))
    });
    assert!(logs.any(|log| log == (id(3), 4000)));
}

#[test]
fn a_link_is_cut_by_an_order_at_both_ends() {
    let mut network = Network::new(4, set_up).line(0);
    network.run(Duration::from_secs(3));
    let order = Order::Shape { one: id(2), other: id(3), lost_permille: 1000 };
    direct(&mut network, 1, order);
    network.run(Duration::from_secs(30));
    assert_eq!(network.stacks[3].protocol::<Discovery>().unwrap().links().count(), 0);
    assert_eq!(network.stacks[2].protocol::<Discovery>().unwrap().links().count(), 1);
}

#[test]
fn an_order_that_was_overtaken_counts_unless_a_later_one_is_about_the_same() {
    let mut experiment = Experiment::new(owner().verifying_key(), 10);
    let protocol = Subject::Protocol(ProtocolNumber(12));
    experiment.note_number(Subject::Logs, 30);
    assert!(experiment.is_newer(protocol, 20), "it came late");
    experiment.note_number(protocol, 20);
    assert!(!experiment.is_newer(protocol, 20) && !experiment.is_newer(protocol, 15));
    assert!(!experiment.is_newer(Subject::Logs, 29) && !experiment.is_newer(Subject::Logs, 10));
    for other in 0..1000 {
        let link = Subject::Link(id(0), NodeId::from_number(other));
        experiment.note_number(link, 100 + other);
    }
    assert_eq!(experiment.last.len(), SUBJECTS_MAX);
    assert!(!experiment.is_newer(protocol, 20), "forgotten, and still not taken twice");
}

#[test]
fn an_order_that_is_old_changed_or_not_the_owners_is_refused() {
    let mut network = Network::new(1, set_up);
    let good = sign(&owner(), 5, id(0), &Order::Collect);
    let mut changed = sign(&owner(), 6, id(0), &Order::Collect);
    changed[0] ^= 1;
    let stranger = sign(&SigningKey::from_bytes(&[4; 32]), 7, id(0), &Order::Collect);
    for body in [&good, &good, &changed, &stranger, &Vec::new()] {
        network.stacks[0].request(&Direct, body);
    }
    network.run(Duration::from_secs(1));
    let events = core::iter::from_fn(|| network.stacks[0].host_event());
    let replies: Vec<_> = events.filter_map(|event| event.reply::<Direct>()?.1).collect();
    assert_eq!(replies[0], Directed::UnderWay);
    assert_eq!(replies[1..], [Directed::Refused; 4]);
}
