use super::*;
use crate::testing::{Network, id};
use tenure_mesh::Stack;

fn network() -> Network {
    let set_up = |stack: &mut Stack, _: usize| {
        stack.start(Instant::BOOT, TimeoutDetector::new(Config::default()));
    };
    Network::new(2, set_up).line(0)
}

fn suspected(network: &Network) -> Vec<NodeId> {
    network.stacks[0].protocol::<TimeoutDetector>().unwrap().suspected().collect()
}

#[test]
fn who_falls_silent_is_suspected_and_who_comes_back_is_trusted() {
    let mut network = network();
    network.run(Duration::from_secs(60));
    assert_eq!(suspected(&network), []);
    network.cut(0, 1);
    network.run(Duration::from_secs(5));
    assert_eq!(suspected(&network), [id(1)]);
    network.link(0, 1, 0);
    network.run(Duration::from_secs(3));
    assert_eq!(suspected(&network), []);
}

#[test]
fn each_mistake_makes_the_next_one_later() {
    let mut network = network();
    for mistake in 0..3 {
        network.run(Duration::from_secs(3));
        let detector = network.stacks[0].protocol::<TimeoutDetector>().unwrap();
        let timeout = detector.neighbours[0].timeout;
        assert_eq!(timeout, Duration::from_millis(3500) + Duration::from_secs(1) * mistake);
        network.cut(0, 1);
        network.run(Duration::from_secs(10));
        network.link(0, 1, 0);
    }
}
