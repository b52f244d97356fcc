//! Between protocols and links: one of the framework's parts that can be replaced.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;

use crate::NodeId;
use crate::air::{Account, Traffic};
use crate::event::{Destination, ProtocolNumber};

/// Turns protocols' messages into frames, and frames into messages.
pub trait Dispatcher: Send {
    /// The node that it speaks for.
    fn node(&self) -> NodeId;

    /// The longest message that a frame carries.
    fn message_bytes_max(&self) -> usize;

    /// Takes a message to send.
    ///
    /// # Errors
    /// [`SendError`]; it isn't sent then.
    fn send(
        &mut self,
        now: Instant,
        protocol: ProtocolNumber,
        to: Destination,
        patience: Duration,
        message: &[u8],
    ) -> Result<(), SendError>;

    /// Whether there is air for `message`, which counts as sent then. A dispatcher without a budget lets all pass.
    fn admit(
        &mut self,
        now: Instant,
        protocol: ProtocolNumber,
        to: Destination,
        traffic: Traffic,
        message: &[u8],
    ) -> bool {
        let _ = (now, protocol, to, traffic, message);
        true
    }

    /// Messages sent and refused of each kind, since the node was switched on.
    fn accounts(&self) -> &[Account] {
        &[]
    }

    /// Takes a frame that came.
    ///
    /// # Errors
    /// Why it isn't believed.
    fn receive<'a>(&'a mut self, now: Instant, frame: &'a [u8]) -> Result<Received<'a>, Rejected>;

    /// Writes the next frame that is due into `frame`, and says whom it is for.
    fn transmit(&mut self, now: Instant, frame: &mut Vec<u8>) -> Option<Destination>;

    /// When [`Self::transmit`] will have a frame.
    fn transmit_at(&self) -> Option<Instant>;
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The neighbour that sent it.
    pub from: NodeId,
    /// Whether it was for this node alone.
    pub addressed: bool,
    /// Whether the neighbour lives anew since it was last heard.
    pub restarted: bool,
    /// Well-formed records: see [`crate::frame::split_record`].
    pub records: &'a [u8],
}

/// Why a message isn't sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The protocol's mistake: it is longer than a frame.
    TooLong,
    /// Too much waits to be sent, or the heap has no room.
    Full,
}

/// Why a frame isn't taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It isn't one: too short, or its lengths lie.
    Malformed,
    /// It is of another version.
    Version,
    /// The heap has no room for it.
    NoRoom,
    /// It is this node's own.
    Own,
    /// It is for another node.
    NotForUs,
    /// It wasn't sealed with the network's key, or was changed.
    Forged,
    /// It was taken before, or is older than what is.
    Replayed,
    /// Its sender hasn't proved yet that it is alive.
    Unproven,
    /// It is plain, and kept for the host: see [`crate::Stack::plain_frame`].
    Plain,
}
