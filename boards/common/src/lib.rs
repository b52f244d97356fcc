//! The parts that boards without an operating system share: settings in flash, UDP and the mesh's frames over
//! Ethernet, the node's main loop.
//!
//! Invariants:
//! - Nothing here names a register or a CPU: a board hands in what `hal` asks of it, a network card
//!   as `smoltcp` wants one, and a console.
//! - Nothing blocks: [`Device::turn`] does a bounded amount of work and says when it wants to go on.
//! - Unsafe code is the heap's, which Rust has no safe trait for, that of pieces of it that machines are
//!   given, and what the linker gives the emulated boards as a page that stays powered.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

#[cfg(target_os = "none")]
#[allow(unsafe_code)]
mod always_on;
#[cfg(target_os = "none")]
#[allow(unsafe_code)]
mod block;
#[cfg(test)]
mod cable;
#[cfg(any(test, feature = "costs"))]
mod costs;
mod device;
#[cfg(target_os = "none")]
#[allow(unsafe_code)]
mod heap;
mod layout;
mod leaf_device;
mod line_device;
mod native;
#[cfg(any(test, target_os = "none"))]
mod pieces;
#[cfg(any(test, target_arch = "arm"))]
mod pmsa;
#[cfg(any(test, feature = "publisher"))]
mod publisher;
mod settings;
mod tap;
mod ticks;
mod told;
mod udp_link;
mod wall;

#[cfg(target_os = "none")]
pub use always_on::{AlwaysOn, RetainedMemory};
#[cfg(target_os = "none")]
pub use block::Block;
#[cfg(any(test, feature = "costs"))]
pub use costs::Costs;
pub use device::{Board, Device, StartError, small_class};
#[cfg(target_os = "none")]
pub use heap::Heap;
pub use layout::{Layout, Parts};
pub use leaf_device::{LeafBoard, LeafDevice};
pub use line_device::{LineBoard, LineDevice};
pub use native::NativeMachines;
#[cfg(any(test, target_arch = "arm"))]
pub use pmsa::{STEP_BYTES, Window, is_store};
#[cfg(any(test, feature = "publisher"))]
pub use publisher::{
    Broken, BrokerHost, ElementPlace, MemoryUse, Papers, Publisher, PublisherBoard, PublisherError,
    PublisherSettings, Setback,
};
pub use settings::{LeafSettings, LineSettings, Settings, SettingsError};
pub use tenure_kernel::MACHINE_FORMAT;
pub use tenure_node::HeapUse;
pub use ticks::microseconds;
pub use told::{Range, Told};
pub use udp_link::UdpLink;
pub use wall::GuardedVm;
