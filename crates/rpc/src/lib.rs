//! Secure sessions between machines, and calls over them that run at most once.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod assembly;
mod callers;
mod calls;
mod config;
mod endpoint;
mod event;
mod gate;
mod noise;
mod question;
mod round_trip;
mod session;
mod window;

pub use config::{Config, ConfigError};
pub use endpoint::Endpoint;
pub use event::{
    CallError, CallHandle, EndpointError, Event, Failure, IdentifyHandle, Identity,
    IncomingCallHandle, OutgoingCall, TooManyMachines,
};
pub use tenure_wire::datagram::Epoch;
pub use tenure_wire::frame::Declined;
