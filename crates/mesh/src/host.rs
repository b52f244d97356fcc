//! The host of the stack, as its protocols see it: it asks, and hears what is told.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::NodeId;
use crate::event::{Event, Notification, Request, decode};

/// The framework tells: a neighbour lives anew; what it said before no longer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// The neighbour.
    pub neighbour: NodeId,
}

impl Notification for Restarted {
    const NUMBER: u16 = 1;
}

/// The framework tells: a link that expects acknowledgements got none for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undelivered {
    /// The neighbour that it was for.
    pub neighbour: NodeId,
}

impl Notification for Undelivered {
    const NUMBER: u16 = 2;
}

/// Something for the host: an answer to its request, or a notification it wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    pub(crate) event: Event,
    pub(crate) bytes: Vec<u8>,
}

impl HostEvent {
    /// The notification, and what follows its head, if it is an `N`.
    pub fn notification<N: Notification>(&self) -> Option<(N, &[u8])> {
        match self.event {
            Event::Notification { number } if number == N::NUMBER => decode(&self.bytes),
            _ => None,
        }
    }

    /// The request and its answer, if it is an answer to an `R`.
    pub fn reply<R: Request>(&self) -> Option<(R, Option<R::Reply>)> {
        match self.event {
            Event::Reply { number, request_bytes, answered, .. } if number == R::NUMBER => {
                let (request, reply) = self.bytes.split_at_checked(request_bytes.into())?;
                let (request, _) = decode(request)?;
                let reply = if answered { Some(decode(reply)?.0) } else { None };
                Some((request, reply))
            }
            _ => None,
        }
    }
}
