//! Devices: as a process, enrolled, looked at, given another firmware, or spoken with line by line.

pub mod contexts;
pub mod debug;
pub mod deep_sleep;
pub mod enrol;
pub mod events;
pub mod firmware;
pub mod flash;
pub mod link;
pub mod peripherals;
pub mod ping;
pub mod plugged_in;
pub mod process;
pub mod profile;
mod recorded;
pub mod replay;
pub mod serial;
pub mod shell;
mod source;
pub mod status;
pub mod top;
