//! The library of machines written in Rust: serve calls and make them, keep values, log, wait.
//!
//! A machine is a program whose exported functions others call. [`export!`] names them; `entry`, if
//! it is among them, runs once when the machine starts:
//!
//! ```
//! use tenure::{Error, log, tree};
//!
//! tenure::export!(entry, greet);
//!
//! fn entry() {
//!     log!("ready");
//! }
//!
//! fn greet(whom: Option<&str>) -> Result<String, Error> {
//!     tree::set_text("last", whom.unwrap_or("nobody"))?;
//!     Ok(format!("hello, {}", whom.unwrap_or("world")))
//! }
//! ```
//!
//! Between calls a machine keeps its memory, and after a loss of power its [`tree`] alone. While it
//! waits ([`call`], [`sleep`], [`events::next`], [`resolve`]) other machines run. A function that returns an error makes
//! its call fail; its machine goes on. A panic does too, but stops the machine. Why goes to the log and
//! to the device's owner; other callers learn it if `tenure.toml` says `errors = "callers"`.
//!
//! Unsafe code is what talks to the host and what keeps the heap; each such place says why it is
//! sound.
#![no_std]

extern crate alloc;

mod calls;
pub mod events;
mod export;
mod fields;
#[cfg(any(target_arch = "wasm32", target_os = "none", test))]
mod heap;
#[path = "generated/host.rs"]
pub mod host;
pub mod http;
mod key;
mod log;
mod machine;
#[cfg(target_os = "none")]
mod native;
pub mod reach;
pub mod secret;
mod status;
pub mod timers;
pub mod tree;

pub use calls::{Task, call, call_with_deadline, callback_of, failure_text, queue, retry_after};
pub use export::{Function, Reply};
pub use host::Error;
pub use key::{KeyTextError, PublicKey};
pub use log::Level;
pub use machine::{
    Budget, Which, abort, budget_left, caller, peers, public_key, raise_tier, random, resolve,
    sleep, unix_time, uptime, yield_now,
};

/// The parts that the macros use.
#[doc(hidden)]
pub mod private {
    pub use crate::export::serve;
    pub use crate::log::write;
}
