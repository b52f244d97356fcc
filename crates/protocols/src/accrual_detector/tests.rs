use super::*;
use crate::failure_detection::tests::{detector, network, suspected};
use crate::testing::{Network, id};

/// How long after the link was cut the silence is suspected.
fn latency(mut network: Network) -> Duration {
    network.run(Duration::from_secs(60));
    network.cut(0, 1);
    let cut = network.now;
    while suspected::<Config>(&network).is_empty() {
        network.run(Duration::from_millis(100));
    }
    network.now.since(cut)
}

#[test]
fn phi_grows_with_the_silence() {
    let mut network = network::<Config>(0);
    network.run(Duration::from_secs(60));
    let detector = detector::<Config>(&network);
    assert!(detector.phi(id(1), network.now).unwrap() < 8);
    assert_eq!(detector.phi(id(1), network.now + Duration::from_secs(60)), Some(12));
    assert_eq!(detector.phi(id(7), network.now), None);
}

#[test]
fn over_a_lossy_link_it_waits_longer() {
    let (calm, lossy) = (latency(network::<Config>(0)), latency(network::<Config>(400)));
    assert!(calm < Duration::from_secs(4), "{calm:?}");
    assert!(lossy > calm, "{lossy:?}");
}

#[test]
fn phi_follows_the_quantiles_of_the_normal_distribution() {
    let spans = Spans([900, 1100, 900, 1100].into());
    // Mean 1000, deviation 100: the tail is 10⁻³ from 1309 ms on.
    assert_eq!(spans.silence(3, &Config::default()), Some(Duration::from_millis(1309)));
    assert_eq!(Spans::default().silence(3, &Config::default()), None);
}
