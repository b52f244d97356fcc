//! A device's machines and events as resources of CoAP (RFC 7252), over UDP: a visitor's request is a call, its result the
//! answer.
//!
//! | resource | means |
//! |---|---|
//! | `/m/MACHINE/FUNCTION` | the function: `GET` and `FETCH` answer 2.05, `POST` and `PUT` 2.04; the parameter is the payload, or else the query |
//! | `/e/TOPIC` | the last event of a topic that the device's owner has opened |
//! | `/.well-known/core` | the list of these (RFC 6690) |
//!
//! Long payloads come and go in blocks (RFC 7959). A topic, or a function of a machine that publishes events, can be observed
//! (RFC 7641).
//!
//! [`Server`] is the protocol: datagrams and time in, datagrams and calls out; it has no socket, no clock and no thread.
//! `serve` gives it those.
//!
//! Invariants:
//! - What peers can fill has a limit for one host and for all: exchanges, calls, blocks under way, observers, messages that
//!   wait for an acknowledgement. A host that goes beyond it loses what is its own.
//! - A request runs once: a datagram that comes again gets the same answer.
//! - A message to an address that hasn't proved itself has three times the bytes of its request at most (RFC 9175 §2.4), and is
//!   sent again once at most.
//! - A machine's result is an allegation, and a visitor has no right but those of the lease: who calls is the key of these
//!   visitors.
#![forbid(unsafe_code)]

mod answer;
mod block;
mod confirmables;
mod entry;
mod exchanges;
mod format;
mod hosts;
mod links;
mod message;
mod observers;
mod place;
mod proofs;
mod serve;
mod server;
mod topics;
mod transfers;
mod wish;

pub use answer::NoAnswer;
pub use entry::Entry;
pub use serve::{Calls, Coap};
pub use server::{Call, Config, Figures, Server};

/// The port of CoAP over UDP (RFC 7252 §6.1).
pub const PORT: u16 = 5683;
