//! A Linux process as a board: what a node needs of it, by the traits of `hal`.
//!
//! Invariants:
//! - Nothing blocks but [`wait_any`], [`dial`] and writes to a file.
//! - Every error of setting up names what it is about (path, address), the cause and the way out.
#![deny(unsafe_code)]

mod clock;
mod dial;
mod entropy;
mod file_flash;
mod multicast_link;
#[cfg(feature = "native-speed")]
mod native_speed;
mod null_modem;
#[allow(unsafe_code)] // an option of sockets, which nobody wraps
mod overflow;
#[allow(unsafe_code)] // addresses of packet sockets, which nobody wraps
mod packet_link;
mod satellite_thread;
mod serial_link;
mod udp_link;
mod wait;
mod watchdog;

pub use clock::{LinuxClock, worked};
pub use dial::{DialError, dial};
pub use entropy::LinuxEntropy;
pub use file_flash::{Durability, FileFlash, OpenError, OpenProblem, SECTOR_BYTES, SplitError};
pub use multicast_link::{JoinGroupError, MulticastLink, any_interface};
#[cfg(feature = "native-speed")]
pub use native_speed::{NativeSpeed, compile_for_a_device};
pub use null_modem::NullModem;
pub use packet_link::{EthernetPort, InterfaceError, PacketLink};
pub use satellite_thread::SatelliteThread;
pub use serial_link::{REOPEN_EVERY, SERIAL_FRAME_BYTES_MAX, SerialLink, SerialOpenError};
pub use udp_link::{BindError, UdpLink};
pub use wait::{Woken, wait_any};
pub use watchdog::{BITTEN, RetainedBytes, Watchdog};
