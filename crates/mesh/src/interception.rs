//! Standing between a protocol and the network, or between it and other protocols.

use alloc::vec::Vec;

use crate::context::Context;
use crate::event::{Destination, Envelope, Event, ProtocolNumber};
use crate::protocol::Protocol;

/// The messages that may go through a protocol that intercepts: see [`crate::Stack::intercept`].
pub trait Intercepts: Protocol {
    /// `message` passes on its way; it may be changed, and is no longer than a frame if it goes to
    /// the network.
    fn intercept(
        &mut self,
        passage: &Passage,
        message: &mut Vec<u8>,
        context: &mut Context<'_, Self>,
    ) -> Verdict;
}

/// The function that [`Intercepts`] provides.
pub type Interceptor<P> = fn(&mut P, &Passage, &mut Vec<u8>, &mut Context<'_, P>) -> Verdict;

/// The fate of a passing message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, as it is now.
    Pass,
    /// It ends here; or it was kept, and goes on by [`Context::resume`].
    Stop,
}

/// A message that passes an interceptor, and its way. It can be kept, to [`Context::resume`] it.
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
