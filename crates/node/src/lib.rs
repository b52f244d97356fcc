//! One device: machines, sessions, directory and owner, behind `poll`.
//!
//! Invariants:
//! - Sans-IO: a board hands in all input by [`Door::take`], takes all output by [`Door::give`], and hands in a
//!   turn again when the [`Wake`] says.
//! - Each `poll` does a bounded amount of work: what is due, and one slice of one machine.
//! - Only the owner's key is answered by the device's own machine; only what a package exports is
//!   callable by others.
//! - A record from the directory is used only if it proves itself and its owner is this device's.
//!
//! The heap is used for: the kernel and the sessions (see there), peers, log lines, directory
//! records and calls under way, each bounded by a number in [`Config`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod boot_error;
mod calibration;
#[cfg(feature = "mesh")]
mod carriage;
mod claim;
mod clock;
mod config;
mod directory;
mod door;
#[cfg(feature = "mesh")]
mod doorstep;
mod exchange;
#[cfg(feature = "experiments")]
pub mod experiment;
mod firmware;
mod former_numbers;
mod handover;
mod hub;
#[cfg(feature = "hub-addresses")]
mod hub_addresses;
mod identity;
mod install;
#[cfg(feature = "journals")]
mod journals;
mod kept_hub;
mod kept_owner;
mod known_hub;
#[cfg(feature = "mesh")]
mod leaf;
mod lease_time;
#[cfg(feature = "reports")]
mod live_log;
mod log;
#[cfg(feature = "mesh")]
mod lookup;
#[cfg(feature = "rollouts")]
mod mandated;
#[cfg(feature = "mesh")]
mod membership;
#[cfg(feature = "mesh")]
mod mesh;
mod meter;
mod moment;
#[cfg(feature = "discovery")]
mod neighbours;
mod node;
mod notice;
mod outbound;
mod peers;
mod peripherals;
#[cfg(feature = "reports")]
mod reporting;
mod sealing;
mod secrets;
mod services;
mod serving;
mod sleep;
mod snapshot;
mod tenancy;
mod toll;
mod transfer;
mod trees;
mod unreadable;

pub use boot_error::BootError;
pub use config::{Config, HeapUse, Hub, HubKeyError, Owner, Parts, SleepPolicy};
pub use door::{AsOwner, Door, Input, Outlet, Output, Taken};
pub use firmware::FirmwareParts;
#[cfg(feature = "mesh")]
pub use leaf::{Ask, Leaf, LeafConfig, LeafNotice, Outcome, Service, ServiceCall, ServiceTree};
#[cfg(feature = "mesh")]
pub use membership::{JoinError, MeshStack};
pub use moment::{Moment, Wake};
pub use node::Node;
pub use notice::Notice;
pub use peripherals::AttachError;
pub use sealing::unseal_store;
pub use sleep::{Bedtime, SleepError};
