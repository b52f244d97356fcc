use super::*;
use crate::failure_detection::tests::{detector, network};

#[test]
fn each_mistake_makes_the_next_one_later() {
    let mut network = network::<Config>(0);
    for mistake in 0..3 {
        network.run(Duration::from_secs(3));
        let detector = detector::<Config>(&network);
        let patience = detector.judgement.patience(&detector.neighbours[0].history);
        let expected = Duration::from_millis(3500) + Duration::from_secs(1) * mistake;
        assert_eq!(patience, Some(expected));
        network.cut(0, 1);
        network.run(Duration::from_secs(10));
        network.link(0, 1, 0);
    }
}
