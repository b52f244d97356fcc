//! The four kinds of event, and their one form: a typed head, encoded, and bytes after it.
//!
//! An event that waits is bytes in a queue, whatever its type. So queues have a bound in bytes,
//! nothing is boxed, and an event can be intercepted, logged or handed to another thread.

use alloc::alloc::handle_alloc_error;
use alloc::vec::Vec;
use core::alloc::Layout;

use postcard::ser_flavors::Flavor;
use postcard::{Deserializer, de_flavors};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::NodeId;
use crate::room::Growing;

#[cfg(test)]
mod tests;

/// A type that can stand at the head of an event. Its encoding is postcard's: the same on every CPU.
pub trait Head: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Head for T {}

/// Something a protocol says to a neighbour, or to all of them.
pub trait Message: Head {
    /// Which of its protocol's messages it is, on the wire.
    const KIND: u8;
}

/// Something a protocol wants to be reminded of. A timer is known by its value: setting one that is
/// pending sets it anew, and cancelling takes an equal value.
pub trait Timer: Head {
    /// Which of its protocol's timers it is.
    const KIND: u8;
}

/// A question to whichever protocol of the same node answers it.
pub trait Request: Head {
    /// The request's number, one in the whole node.
    const NUMBER: u16;
    /// The reply.
    type Reply: Head;
}

/// Word to every protocol of the same node that wants to hear it.
pub trait Notification: Head {
    /// The notification's number, one in the whole node.
    const NUMBER: u16;
}

/// The number of a protocol, which frames carry.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
pub struct ProtocolNumber(pub u8);

impl ProtocolNumber {
    /// The host of the stack, seen from its protocols.
    pub const HOST: Self = Self(0);
}

/// The receiver of a message.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
pub enum Destination {
    /// Every node in reach.
    All,
    /// That neighbour.
    One(NodeId),
}

/// The facts of an event in a queue, beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The protocol it is for.
    pub to: ProtocolNumber,
    /// The kind.
    pub event: Event,
}

/// One of the kinds of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A timer went off.
    Timer {
        /// Which of the protocol's timers.
        kind: u8,
    },
    /// Word from another protocol, or from the framework.
    Notification {
        /// Its number.
        number: u16,
    },
    /// A message came. Its kind is its first byte.
    Message {
        /// The neighbour that sent it.
        from: NodeId,
        /// Whether it was for this node alone.
        addressed: bool,
        /// How strong the signal was in dBm, if the link knows.
        signal_dbm: Option<i8>,
        /// How many interceptions it has passed.
        passed: u8,
    },
    /// Another protocol asks.
    Request {
        /// The request's number.
        number: u16,
        /// The asker.
        asker: ProtocolNumber,
        /// Which life of the asking protocol.
        incarnation: u16,
        /// How many of the bytes are the request's head; the rest is its body.
        head_bytes: u16,
    },
    /// An answer, behind the request that is answered.
    Reply {
        /// The request's number.
        number: u16,
        /// Which life of the asking protocol.
        incarnation: u16,
        /// How many of the bytes are the request; the rest is the answer.
        request_bytes: u16,
        /// Whether there is an answer at all.
        answered: bool,
    },
}

/// Appends the encoding of `head` to `bytes`: for what travels in another message's body.
pub fn encode<T: Serialize>(head: &T, bytes: &mut Vec<u8>) {
    let mut growing = Growing { bytes: core::mem::take(bytes), is_cut: false };
    write(head, &mut growing);
    if growing.is_cut {
        handle_alloc_error(Layout::new::<T>());
    }
    *bytes = growing.bytes;
}

/// Appends the encoding of `head` as far as there is room for it.
pub(crate) fn write<T: Serialize>(head: &T, to: &mut Growing) {
    // Postcard fails for sequences of unknown length and for full buffers; this has neither.
    let encoded = postcard::serialize_with_flavor(head, Appending(to));
    debug_assert!(encoded.is_ok(), "an event's type has an encoding");
}

/// The head in front of `bytes`, and what follows it. A list in it takes memory as its items are read,
/// and none for the length that it claims: a neighbour wrote that length.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let mut deserializer = Deserializer::from_flavor(Remaining(bytes));
    let head = T::deserialize(&mut deserializer).ok()?;
    Some((head, deserializer.finalize().ok()?))
}

/// Bytes that are read, and that promise no list its length.
struct Remaining<'de>(&'de [u8]);

impl<'de> de_flavors::Flavor<'de> for Remaining<'de> {
    type Remainder = &'de [u8];
    type Source = &'de [u8];

    fn pop(&mut self) -> postcard::Result<u8> {
        let (first, rest) =
            self.0.split_first().ok_or(postcard::Error::DeserializeUnexpectedEnd)?;
        self.0 = rest;
        Ok(*first)
    }

    /// serde reserves room for as many items as this lets a list claim, and an item may take a hundred
    /// times as much memory as it took on the way.
    fn size_hint(&self) -> Option<usize> {
        Some(0)
    }

    fn try_take_n(&mut self, count: usize) -> postcard::Result<&'de [u8]> {
        let split = self.0.split_at_checked(count);
        let (taken, rest) = split.ok_or(postcard::Error::DeserializeUnexpectedEnd)?;
        self.0 = rest;
        Ok(taken)
    }

    fn finalize(self) -> postcard::Result<&'de [u8]> {
        Ok(self.0)
    }
}

struct Appending<'a>(&'a mut Growing);

impl Flavor for Appending<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.append(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
