//! Two nodes, one of which falls silent.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{NodeId, Stack};

use super::{Detector, Judgement};
use crate::accrual_detector;
use crate::testing::{Network, id};
use crate::timeout_detector;

/// Two nodes that watch each other.
pub(crate) fn network<J: Judgement + Default>(lost_permille: u32) -> Network {
    let set_up = |stack: &mut Stack, _: usize| {
        stack.start(Instant::BOOT, Detector::new(J::default()));
    };
    Network::new(2, set_up).line(lost_permille)
}

/// The first node's detector.
pub(crate) fn detector<J: Judgement>(network: &Network) -> &Detector<J> {
    network.stacks[0].protocol().unwrap()
}

/// The nodes that the first node suspects.
pub(crate) fn suspected<J: Judgement>(network: &Network) -> Vec<NodeId> {
    detector::<J>(network).suspected().collect()
}

fn check<J: Judgement + Default>() {
    let mut network = network::<J>(0);
    network.run(Duration::from_secs(60));
    assert_eq!(suspected::<J>(&network), []);
    network.cut(0, 1);
    network.run(Duration::from_secs(5));
    assert_eq!(suspected::<J>(&network), [id(1)], "{}", J::NAME);
    network.link(0, 1, 0);
    network.run(Duration::from_secs(3));
    assert_eq!(suspected::<J>(&network), []);
}

#[test]
fn who_falls_silent_is_suspected_and_who_comes_back_is_trusted() {
    check::<timeout_detector::Config>();
    check::<accrual_detector::Config>();
}
