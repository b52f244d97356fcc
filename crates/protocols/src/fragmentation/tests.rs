use super::*;
use crate::forwarding::{self, Forwarding};
use crate::testing::{Network, id, line_router};
use tenure_mesh::Stack;

fn network(lost_permille: u32) -> Network {
    let set_up = |stack: &mut Stack, index: usize| {
        stack.start(Instant::BOOT, Forwarding::new(forwarding::Config::default()));
        stack.start(Instant::BOOT, Fragmentation::new(Config::default()));
        stack.start(Instant::BOOT, line_router(index, 3));
        stack.subscribe::<DatagramArrived>();
    };
    Network::new(3, set_up).line(lost_permille)
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
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

#[test]
fn bodies_of_any_length_arrive_whole_over_lossy_hops() {
    let mut network = network(200);
    for bytes in [0, 1, 1000, 1300, 5000, 9_000] {
        network.stacks[0].request(&SendLarge { to: id(2), port: Port::APPLICATION }, &body(bytes));
        network.run(Duration::from_secs(5));
        assert!(arrived(&mut network) == [body(bytes)], "{bytes} bytes");
    }
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    let mut network = network(0);
    network.stacks[0].request(&SendLarge { to: id(2), port: Port::APPLICATION }, &body(10_000));
    network.run(Duration::from_secs(1));
    let event = network.stacks[0].host_event().unwrap();
    assert_eq!(event.reply::<SendLarge>().unwrap().1, Some(Taken::TooLong));
}

#[test]
fn fragments_that_never_become_whole_take_a_bounded_room() {
    let mut network = network(0);
    for number in 0..2000_u16 {
        let mut fragment = Vec::new();
        let header = Header { port: Port::APPLICATION, number, index: 0, count: 64 };
        header.emit(&mut fragment);
        fragment.extend_from_slice(&[0; 900]);
        let arrived = DatagramArrived { from: id(1), port: Port::FRAGMENTS };
        network.stacks[0].tell(&arrived, &fragment);
        network.run(Duration::from_millis(1));
    }
    let fragmentation = network.stacks[0].protocol::<Fragmentation>().unwrap();
    assert!(fragmentation.bytes() <= 16 * 1024 + 3000, "{}", fragmentation.bytes());
}

#[test]
fn lying_headers_are_nothing() {
    for bytes in [&[1, 0, 0, 5, 5][..], &[1, 0, 0, 0, 0], &[1, 0, 0, 0, 65], &[1, 2, 3]] {
        assert_eq!(Header::split(bytes), None);
    }
}
