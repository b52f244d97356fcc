//! Standing between a protocol and the network, or between it and other protocols.

use crate::event::{Destination, Envelope, Event, ProtocolNumber};

/// The fate of a passing message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, as it is now.
    Pass,
    /// It ends here; or it was kept, and goes on by [`crate::Context::resume`].
    Stop,
}

/// A message that passes an interceptor, and its way. It can be kept, to [`resume`](crate::Context::resume) it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The protocol whose message it is.
    pub protocol: ProtocolNumber,
    /// On which way.
    pub way: Way,
    /// How many interceptions it has passed.
    pub(crate) passed: u8,
}

/// The ways that pass interceptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A message of the protocol, to the network.
    Out {
        /// The receiver.
        to: Destination,
        /// How long it may wait, in microseconds.
        patience_us: u32,
    },
    /// A message to the protocol, from the network.
    In {
        /// The event without its bytes.
        envelope: Envelope,
    },
    /// A request, an answer or a notification to the protocol, from within the node.
    Within {
        /// The event without its bytes.
        envelope: Envelope,
    },
}

/// Which ways an interception covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// Messages to and from the network.
    Network,
    /// Requests, answers and notifications to the protocol.
    Node,
}

/// The order of interceptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interception {
    pub(crate) by: ProtocolNumber,
    /// `None`: before every protocol but `by` itself.
    pub(crate) before: Option<ProtocolNumber>,
    pub(crate) covers: Covers,
}

impl Interception {
    pub(crate) fn applies(&self, protocol: ProtocolNumber, covers: Covers) -> bool {
        self.covers == covers
            && self.by != protocol
            && self.before.is_none_or(|before| before == protocol)
    }
}

/// Whether an event came from the network or from within.
pub(crate) fn way_of(envelope: Envelope) -> (Way, Covers) {
    match envelope.event {
        Event::Message { .. } => (Way::In { envelope }, Covers::Network),
        _ => (Way::Within { envelope }, Covers::Node),
    }
}
