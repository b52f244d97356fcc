//! Secure sessions between machines, and calls over them that run at most once.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod endpoint;
mod event;

pub use config::{Config, ConfigError};
pub use endpoint::Endpoint;
pub use event::{
    CallError, CallHandle, EndpointError, Event, Failure, IdentifyHandle, Identity,
    IncomingCallHandle, OutgoingCall, TooManyMachines,
};
pub use tenure_wire::datagram::Epoch;
pub use tenure_wire::frame::Declined;
