//! What boards without an operating system share: settings in flash, NOR rules, UDP over Ethernet,
//! the node's main loop.
//!
//! Invariants:
//! - Nothing here names a register or a CPU: a board hands in what `hal` asks of it, a network card
//!   as `smoltcp` wants one, and a console.
//! - Nothing blocks: [`Device::turn`] does a bounded amount of work and says when it wants to go on.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod device;
mod layout;
mod nor;
mod settings;
mod udp_link;
mod wall;

pub use device::{Board, Device, StartError, small_class};
pub use layout::{Layout, Parts};
pub use nor::{Medium, NorFlash};
pub use settings::{Settings, SettingsError};
pub use udp_link::{DATAGRAM_BYTES_MAX, UdpLink};
pub use wall::GuardedVm;
