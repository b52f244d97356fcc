//! The state of a device's ways outside, as its node tells it the owner.

use std::time::Duration;

use tenure_board_linux::FileFlash;
use tenure_hal::Instant;
use tenure_node::{Door as _, Input, Moment};
use tenure_replay::Recorded;
use tenure_wire::Address;
use tenure_wire::control::{BridgeStatus, CoapStatus, OutsideError, OutsideStatus, ReachStatus};

use super::bridging::Bridging;
use super::coap::DeviceCoap;
use super::reaching::Reaching;

/// How often the node is told at most.
const PERIOD: Duration = Duration::from_secs(1);

/// The state of a bridge, and its broker.
type OfBridge = (String, tenure_bridge::State);
/// The state of a server of CoAP, and where it listens.
type OfCoap = (Address, tenure_coap::Figures);

/// The state of each way, where the device has it.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Ways {
    bridge: Option<OfBridge>,
    reach: Option<tenure_reach::State>,
    coap: Option<OfCoap>,
}

impl Ways {
    pub(super) fn of(
        bridging: Option<&Bridging>,
        reaching: Option<&Reaching>,
        coap: Option<&DeviceCoap>,
    ) -> Self {
        Self {
            bridge: bridging.map(Bridging::state),
            reach: reaching.map(Reaching::state),
            coap: coap.map(DeviceCoap::state),
        }
    }

    /// The same for the owner, at the device's time `now`.
    fn status(&self, now: Instant) -> OutsideStatus {
        OutsideStatus {
            bridge: self.bridge.as_ref().map(|bridge| of_bridge(bridge, now)),
            reach: self.reach.as_ref().map(|reach| of_reach(reach, now)),
            coap: self.coap.as_ref().map(of_coap),
            // The node knows it.
            date: None,
        }
    }
}

/// Tells a node the state of the ways beside it.
#[derive(Default)]
pub(super) struct Outside {
    /// The state that the node knows.
    told: Ways,
    /// When it was last compared.
    at: Option<Instant>,
}

impl Outside {
    /// Tells the node, if something has changed and it wasn't told a moment ago.
    pub(super) fn tell(
        &mut self,
        moment: &mut Moment<'_>,
        node: &mut Recorded<FileFlash>,
        ways: impl FnOnce() -> Ways,
    ) {
        let now = moment.now;
        if self.at.is_some_and(|at| now < at + PERIOD) {
            return;
        }
        self.at = Some(now);
        let ways = ways();
        if ways != self.told {
            node.take(moment, Input::Outside(Box::new(ways.status(now))));
            self.told = ways;
        }
    }
}

fn of_bridge((broker, state): &OfBridge, now: Instant) -> BridgeStatus {
    BridgeStatus {
        broker: broker.clone(),
        connected_at_ms: state.connected_at.map(|at| uptime_ms(at, now)),
        connections: state.connections,
        queued_messages: state.queued_messages as u64,
        queued_bytes: state.queued_bytes as u64,
        dropped: state.dropped,
        last_error: of_error(state.last_error.as_ref(), now),
        resumed: state.resumed,
    }
}

fn of_reach(state: &tenure_reach::State, now: Instant) -> ReachStatus {
    ReachStatus {
        requests: state.visits,
        answered: state.answered,
        failed: state.failed.iter().map(|(code, count)| (*code, *count)).collect(),
        names: state.names as u32,
        last_error: of_error(state.last_error.as_ref(), now),
        handshakes: state.handshakes,
        resumed: state.resumed,
    }
}

fn of_coap((address, figures): &OfCoap) -> CoapStatus {
    CoapStatus {
        address: address.to_string(),
        requests: figures.requests,
        refused: figures.refused,
        observers: figures.observers as u32,
    }
}

fn of_error(error: Option<&(std::time::Instant, String)>, now: Instant) -> Option<OutsideError> {
    error.map(|(at, words)| OutsideError { at_ms: uptime_ms(*at, now), words: words.clone() })
}

/// The device's uptime at `at`, where it is `now`.
fn uptime_ms(at: std::time::Instant, now: Instant) -> u64 {
    now.as_millis().saturating_sub(at.elapsed().as_millis() as u64)
}
