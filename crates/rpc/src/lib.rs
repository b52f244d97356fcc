//! Secure sessions between machines, and calls over them that run at most once, over datagrams that
//! may be lost, repeated, reordered, read and forged.
//!
//! An [`Endpoint`] is one device's end of all its sessions. It does no input or output and reads no
//! clock: its owner hands it datagrams, the time and randomness, and takes datagrams and [`Event`]s
//! out. `docs/rpc.md` describes the protocol, `docs/adr/0002-at-most-once-calls.md` why a call
//! runs at most once.
//!
//! Invariants:
//! - A call is handed out as [`Event::IncomingCall`] at most once, whatever is lost, repeated or
//!   replayed, and whoever restarts. A call that may have been executed is never sent to somebody
//!   who can't know whether it was.
//! - A call that was made ends with exactly one [`Event::CallDone`], at its deadline at the latest.
//! - A call in a session isn't handed out after its caller's deadline, nor after its end may have been reported as
//!   unreachable, wherever it was held up (feature `deadlines`).
//! - Nothing that isn't authenticated changes more than what is tried next.
//! - No datagram makes this panic, take more memory than [`Config`] allows, or send more bytes to
//!   an address than three times those that came from it, unless it is known to receive there.
//!
//! ```
//! use core::time::Duration;
//! use tenure_crypto::StaticSecret;
//! use tenure_hal::{Entropy, EntropyError, Instant};
//! use tenure_rpc::{Config, Endpoint, Event, OutgoingCall};
//!
//! # struct Example(u8);
//! # impl Entropy for Example {
//! #     fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
//! #         bytes.iter_mut().for_each(|byte| { self.0 = self.0.wrapping_mul(5).wrapping_add(3); *byte = self.0 });
//! #         Ok(())
//! #     }
//! # }
//! # let mut entropy = Example(1);
//! let now = Instant::BOOT;
//! let mut attic = Endpoint::<u32>::new(Config::default(), now, &mut entropy)?;
//! let mut cellar = Endpoint::<u32>::new(Config::default(), now, &mut entropy)?;
//! let thermostat = StaticSecret::generate(&mut entropy)?;
//! let key = thermostat.public_key();
//! attic.add_machine(thermostat)?;
//! let boiler = cellar.add_machine(StaticSecret::generate(&mut entropy)?)?;
//!
//! let call = OutgoingCall {
//!     function: "read".into(),
//!     parameter: None,
//!     deadline: now + Duration::from_secs(5),
//!     attempts: 6,
//! };
//! // The address of the attic is 1 here, that of the cellar 2.
//! cellar.call(now, &mut entropy, &boiler, &key, 1, Some(attic.epoch()), call)?;
//! while let Some((_, datagram)) = cellar.transmit() {
//!     attic.receive(now, &mut entropy, 2, &datagram);
//! }
//! let called = core::iter::from_fn(|| attic.event()).find_map(|event| match event {
//!     Event::IncomingCall { handle, function, .. } if function == "read" => Some(handle),
//!     _ => None,
//! });
//! attic.reply(now, called.expect("the first datagram carries the call"), Ok(Some(b"22.5".to_vec())));
//! while let Some((_, datagram)) = attic.transmit() {
//!     cellar.receive(now, &mut entropy, 1, &datagram);
//! }
//! let Some(Event::CallDone { result, .. }) = cellar.event() else { panic!("a result") };
//! assert_eq!(result, Ok(Some(b"22.5".to_vec())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod assembly;
mod budget;
mod callers;
mod calls;
mod config;
mod endpoint;
mod event;
mod gate;
#[cfg(feature = "deadlines")]
mod lateness;
#[cfg(not(feature = "deadlines"))]
#[path = "no_lateness.rs"]
mod lateness;
#[cfg(test)]
mod model;
mod noise;
mod peer_address;
mod places;
mod question;
mod rest;
mod round_trip;
mod session;
mod sessions;
mod window;

pub use config::{Config, ConfigError};
pub use endpoint::{Endpoint, HandshakeRequest, Whose};
pub use event::{
    CallError, CallHandle, EndpointError, Event, Fullness, IdentifyHandle, Identity,
    IncomingCallHandle, OutgoingCall, TooManyMachines,
};
pub use peer_address::PeerAddress;
pub use rest::Rest;
pub use tenure_wire::NoResult;
pub use tenure_wire::datagram::Epoch;
