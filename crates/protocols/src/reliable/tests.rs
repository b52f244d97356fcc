use super::*;
use crate::forwarding::{self, Forwarding};
use crate::fragmentation::{self, Fragmentation};
use crate::testing::{Network, id, line_router};
use tenure_mesh::Stack;

fn set_up(stack: &mut Stack, index: usize) {
    // Hops that give up at once, so that the ends have something to repair.
    let config = forwarding::Config { sends_max: 1, ways_max: 1, ..Default::default() };
    stack.start(Instant::BOOT, Forwarding::new(config));
    stack.start(Instant::BOOT, Fragmentation::new(fragmentation::Config::default()));
    stack.start(Instant::BOOT, Reliable::new(Config::default()));
    stack.start(Instant::BOOT, line_router(index, 3));
    stack.subscribe::<DatagramArrived>();
}

fn send(network: &mut Network, body: &[u8]) {
    network.stacks[0].request(&SendReliably { to: id(2), port: Port::APPLICATION }, body);
}

fn arrived(network: &mut Network) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    while let Some(event) = network.stacks[2].host_event() {
        match event.notification::<DatagramArrived>() {
            Some((arrived, body)) if arrived.port == Port::APPLICATION => bodies.push(body.into()),
            _ => {}
        }
    }
    bodies
}

fn outcomes(network: &mut Network) -> Vec<Acknowledged> {
    let mut outcomes = Vec::new();
    while let Some(event) = network.stacks[0].host_event() {
        outcomes.extend(event.reply::<SendReliably>().and_then(|(_, outcome)| outcome));
    }
    outcomes
}

#[test]
fn bodies_arrive_once_and_in_order_over_a_lossy_way() {
    let mut network = Network::new(3, set_up).line(200);
    for number in 0..20_u8 {
        send(&mut network, &[number]);
    }
    network.run(Duration::from_secs(120));
    assert_eq!(outcomes(&mut network), [Acknowledged::Yes; 20]);
    let arrived = arrived(&mut network);
    assert!(arrived.iter().flatten().copied().eq(0..20), "{arrived:?}");
}

#[test]
fn nobody_acknowledges_what_doesnt_arrive() {
    let mut network = Network::new(3, set_up).line(0);
    network.cut(1, 2);
    send(&mut network, b"lost");
    network.run(Duration::from_secs(60));
    assert_eq!(outcomes(&mut network), [Acknowledged::No]);
}

#[test]
fn too_much_and_too_long_isnt_sent() {
    let mut network = Network::new(3, set_up).line(0);
    send(&mut network, &[0; 10 * 1024]);
    network.run(Duration::from_secs(1));
    assert_eq!(outcomes(&mut network), [Acknowledged::NotSent]);
    network.cut(0, 1);
    for _ in 0..40 {
        send(&mut network, &[0; 10]);
    }
    network.run(Duration::from_millis(1));
    assert_eq!(outcomes(&mut network).len(), 8);
}

#[test]
fn another_life_of_the_sender_is_heard() {
    let mut network = Network::new(3, set_up).line(0);
    for life in 0..3_u8 {
        send(&mut network, &[life]);
        network.run(Duration::from_secs(1));
        network.restart(0, set_up);
    }
    assert_eq!(arrived(&mut network), [[0], [1], [2]]);
}
