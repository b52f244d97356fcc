//! The framework in which distributed protocols are event-driven state machines.
//!
//! A [`Stack`] runs the protocols of one node. A protocol is local state and a handler for each
//! event that it [declares](protocol!): messages, timers, requests and answers, notifications.
//!
//! Invariants:
//! - Sans-IO: frames come in by [`Stack::receive`] and go out by [`Stack::transmit`]; time is an
//!   argument; [`Stack::poll`] does a bounded amount of work and says when it wants to run again.
//! - The same calls with the same seed do the same, bit for bit.
//! - A handler never runs within another: what it wants done is done after it returned.
//! - Every queue has a limit, and what overflows is counted in [`Counters`].
//! - Control traffic lives within a [budget of air](Air), whatever makes a protocol speak.
//! - A frame is taken whole or not at all; with a [`Seal`], only if a holder of the network's key
//!   made it, since this node first heard of that holder, and for the first time. What strangers say
//!   in [plain frames](Stack::plain_frame) reaches the host alone, and only one that asks for it.
//!
//! The heap is used for: protocols (their number is the host's choice), queues ([`StackConfig`]),
//! timers (`timers_max`), neighbours and messages that wait to be sent ([`FramerConfig`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod air;
mod carrier;
mod context;
mod counters;
mod dispatcher;
mod event;
mod executor;
pub mod frame;
mod framer;
mod host;
mod interception;
mod links;
mod node_id;
mod plain;
mod protocol;
mod queue;
mod random;
mod room;
mod satellite;
mod seal;
mod serial;
mod serial_line;
mod stack;
mod timers;

pub use air::{Account, Air, Traffic};
pub use carrier::{Carrier, CarrierError, Reach};
pub use context::{Asker, Context, Outgoing};
pub use counters::Counters;
pub use dispatcher::{Dispatcher, Received, Rejected, SendError};
pub use event::{
    Destination, Envelope, Event, Head, Message, Notification, ProtocolNumber, Request, Timer,
    decode, encode,
};
pub use executor::Prepared;
pub use framer::{Framer, FramerConfig};
pub use host::{HostEvent, Restarted, Undelivered};
pub use interception::{Covers, Passage, Verdict, Way};
pub use links::{Asks, Sends, Sets, Tells};
pub use node_id::NodeId;
pub use plain::PLAIN_BYTES_MAX;
pub use protocol::{
    Awaits, Declared, Description, Expires, Handler, Handles, Hears, Interceptor, Intercepts,
    Protocol, Question, Reception, Serves,
};
pub use queue::{PriorityQueues, QueueLimits, Queues};
pub use random::Random;
pub use satellite::{Parcel, Satellite, SatelliteNumber};
pub use seal::{FrameNumber, Salt, Seal, Unsealed};
pub use serial::{Deframer, SerialError, frame_for_serial, line_bytes_max};
pub use serial_line::{Port, SerialLine};
pub use stack::{NotHere, NumberTaken, Stack, StackConfig};
pub use timers::{Pending, TIMER_BYTES_MAX, TimerList, Timers};
