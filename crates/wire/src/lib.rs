//! The messages of Tenure's parts to one another: ids, names, messages, the host-call table.
//!
//! Invariants:
//! - A value of a type in here is valid: parsing checks, and what can be built can be sent.
//! - Everything that is parsed has a limit, and the limit stands in [`limits`].
//! - Integers are little-endian on the wire, whatever the CPU.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod audience;
mod budget;
pub mod capability;
pub mod carried;
mod code;
pub mod console;
pub mod control;
pub mod datagram;
pub mod directory;
pub mod frame;
pub mod host_call;
pub mod hub;
mod id;
mod label;
pub mod limits;
mod list;
pub mod live_log;
mod log_level;
pub mod message;
mod name;
mod no_result;
pub mod ownership;
pub mod path;
pub mod printable;
pub mod report;
pub mod rollout;
mod serialized_as_text;
pub mod share;
pub mod term;
mod text;
pub mod timer;
mod topic;
pub mod url;
pub mod usage;
mod version;

pub use address::Address;
pub use audience::Audience;
pub use budget::Budget;
pub use capability::{Capabilities, Grants};
pub use code::CodeKind;
pub use datagram::Epoch;
pub use id::{Digest, MachineId, PublicKey, Signature, VerifyingKey};
pub use label::{Label, LabelError};
pub use log_level::{LogLevel, NoLogLevel};
pub use name::{Name, NameError, Target};
pub use no_result::NoResult;
pub use share::Share;
pub use term::Term;
pub use text::TextError;
pub use topic::{Topic, TopicError, TopicPattern};
pub use url::Url;
pub use version::{Version, VersionError};
