use super::*;
use crate::testing::{Network, id};
use tenure_mesh::Stack;

fn network(lost_permille: u32) -> Network {
    let set_up = |stack: &mut Stack, _: usize| {
        stack.start(Instant::BOOT, AccrualDetector::new(Config::default()));
        stack.subscribe::<Suspected>();
    };
    Network::new(2, set_up).line(lost_permille)
}

fn suspected(network: &Network) -> Vec<NodeId> {
    network.stacks[0].protocol::<AccrualDetector>().unwrap().suspected().collect()
}

/// How long after the link was cut the silence is suspected.
fn latency(mut network: Network) -> Duration {
    network.run(Duration::from_secs(60));
    network.cut(0, 1);
    let cut = network.now;
    while suspected(&network).is_empty() {
        network.run(Duration::from_millis(100));
    }
    network.now.since(cut)
}

#[test]
fn who_falls_silent_is_suspected_and_who_comes_back_is_trusted() {
    let mut network = network(0);
    network.run(Duration::from_secs(60));
    assert_eq!(suspected(&network), []);
    let detector = network.stacks[0].protocol::<AccrualDetector>().unwrap();
    assert!(detector.phi(id(1), network.now).unwrap() < 8);
    assert_eq!(detector.phi(id(1), network.now + Duration::from_secs(60)), Some(12));
    assert_eq!(detector.phi(id(7), network.now), None);
    network.cut(0, 1);
    network.run(Duration::from_secs(5));
    assert_eq!(suspected(&network), [id(1)]);
    network.link(0, 1, 0);
    network.run(Duration::from_secs(3));
    assert_eq!(suspected(&network), []);
}

#[test]
fn over_a_lossy_link_it_waits_longer() {
    let (calm, lossy) = (latency(network(0)), latency(network(400)));
    assert!(calm < Duration::from_secs(4), "{calm:?}");
    assert!(lossy > calm, "{lossy:?}");
}

#[test]
fn phi_follows_the_quantiles_of_the_normal_distribution() {
    let neighbour = Neighbour {
        id: id(0),
        heard: Instant::BOOT,
        spans: [900, 1100, 900, 1100].into(),
        suspected: false,
    };
    // Mean 1000, deviation 100: the tail is 10⁻³ from 1309 ms on.
    let at = neighbour.reaches_at(3, &Config::default());
    assert_eq!(at, Some(Instant::from_millis(1309)));
}
