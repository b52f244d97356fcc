//! TLS 1.3 (RFC 8446): client and server, over one buffer that the caller lends.
//!
//! Bytes come in, bytes go out, and [`Connection::poll`] says what happened. Nothing blocks, calls
//! back, reads a clock or allocates; keys are used through [`tenure_crypto::Security`].
//!
//! Invariants:
//! - Which message is due in which state stands in one table, and nothing else is taken.
//! - What a peer can fill has a limit: the lent buffer for what it sends, and the deadline, the
//!   number of certificates, tickets, key updates, warnings and empty records for what it repeats.
//! - TLS 1.2 and older, renegotiation, compression, and pre-shared keys without a key agreement don't
//!   exist here.
//! - A connection that ended forgets its secrets and wipes the buffer but for what is to be sent.
#![no_std]
#![forbid(unsafe_code)]

mod certificates;
mod channel;
mod client;
mod connection;
mod error;
mod hello;
#[cfg(feature = "keylog")]
mod keylog;
mod link;
mod record;
#[cfg(test)]
mod rfc8448;
mod schedule;
mod server;
mod state;
mod suite;
mod tickets;
mod wire;
pub mod x509;

pub use certificates::{Identity, Trust};
pub use client::{Client, ClientConfig, ClientHandshake, PreSharedKey, Ticket};
pub use connection::{Connection, Event, Now};
pub use error::{Alert, Error, Misbehaviour};
#[cfg(feature = "keylog")]
pub use keylog::KeyLogLines;
pub use link::{Keep, Link, LinkError, Network, Received};
pub use server::{ExternalKey, Server, ServerConfig, ServerHandshake};
pub use suite::{Suite, group_number, scheme_name};
pub use tickets::{EarlyDataGuard, TicketKey};
