//! The occupant of a seat while it is switched on: bare protocols, or a whole device.

use tenure_hal::Instant;
use tenure_mesh::{HostEvent, NodeId};
use tenure_protocols::forwarding;
use tenure_protocols::interface::Summary;

use super::device::Device;
use super::participant::Participant;

/// A node that is switched on at a seat.
pub(super) enum Occupant {
    /// A stack with the protocols that the scenario names.
    Bare(Box<Participant>),
    /// A device.
    Device(Device),
}

impl Occupant {
    /// A frame came; whether it was taken.
    pub(super) fn receive(&mut self, now: Instant, frame: &[u8], signal_dbm: i8) -> bool {
        match self {
            Self::Bare(participant) => participant.receive(now, frame, signal_dbm),
            Self::Device(device) => device.receive(now, frame, signal_dbm),
        }
    }

    /// A frame for `neighbour` was not answered.
    pub(super) fn undelivered(&mut self, now: Instant, neighbour: NodeId) {
        match self {
            Self::Bare(participant) => participant.undelivered(neighbour),
            Self::Device(device) => device.undelivered(now, neighbour),
        }
    }

    /// Does what is due when it is `now_us` in the world; gives when it wants to run again.
    pub(super) fn poll(&mut self, now: Instant, now_us: u64) -> Option<Instant> {
        match self {
            Self::Bare(participant) => participant.poll(now),
            Self::Device(device) => device.poll(now, now_us),
        }
    }

    /// The next frame to send, and to which neighbour if it is for one.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<(Option<NodeId>, Vec<u8>)> {
        match self {
            Self::Bare(participant) => participant.transmit(now),
            Self::Device(device) => device.transmit(now),
        }
    }

    /// The next event that bare protocols report to their host.
    pub(super) fn event(&mut self) -> Option<HostEvent> {
        match self {
            Self::Bare(participant) => participant.event(),
            Self::Device(_) => None,
        }
    }

    /// The aggregate of all nodes' values, as far as it is known here.
    pub(super) fn summary(&self) -> Option<Summary> {
        match self {
            Self::Bare(participant) => participant.summary(),
            Self::Device(_) => None,
        }
    }

    /// The next hop on the way to `to`, as the router knows it now, and in which of its lives.
    pub(super) fn next_hop(&self, to: NodeId) -> Option<(NodeId, u32)> {
        match self {
            Self::Bare(participant) => participant.next_hop(to),
            Self::Device(device) => device.next_hop(to),
        }
    }

    /// Which life of the node this is, as its router counts.
    pub(super) fn life(&self) -> u32 {
        match self {
            Self::Bare(participant) => participant.life(),
            Self::Device(device) => device.life(),
        }
    }

    /// The counters of forwarding.
    pub(super) fn forwarding(&self) -> Option<&forwarding::Counters> {
        match self {
            Self::Bare(participant) => participant.forwarding(),
            Self::Device(device) => device.forwarding(),
        }
    }

    /// The protocols, if they are bare.
    pub(super) fn bare(&mut self) -> Option<&mut Participant> {
        match self {
            Self::Bare(participant) => Some(participant),
            Self::Device(_) => None,
        }
    }

    /// The device, if it is one.
    pub(super) fn device(&mut self) -> Option<&mut Device> {
        match self {
            Self::Bare(_) => None,
            Self::Device(device) => Some(device),
        }
    }
}
