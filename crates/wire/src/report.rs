//! Reports: a device tells its hub how it and its machines are, in few bytes.
//!
//! A machine's counters count on from the device's boot or the machine's last update, so that a report which is lost costs nothing. A machine that is as
//! the hub knows it is left out.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::control::{HeapStatus, RoomStatus};
use crate::{Digest, Name, Version, list};

/// The most bytes of a fault's text in a report.
pub const FAULT_BYTES_MAX: usize = 256;
/// The most faults in one report.
pub const FAULTS_MAX: usize = 8;
/// The most metrics of one machine.
pub const METRICS_MAX: usize = 8;

/// The word of a device on itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How often the device has booted.
    pub boot: u32,
    /// Grows with each report since then.
    pub number: u64,
    /// The device itself.
    pub device: DeviceReport,
    /// The machines that aren't as the device told them last, at most
    /// [`MACHINES_MAX`](crate::limits::MACHINES_MAX).
    #[serde(deserialize_with = "list::read")]
    pub machines: Vec<MachineReport>,
    /// Faults that the hub doesn't know of yet, at most [`FAULTS_MAX`].
    #[serde(deserialize_with = "list::read")]
    pub faults: Vec<FaultReport>,
    /// How many faults since the boot were left out, as there were too many.
    pub faults_lost: u64,
}

/// A device without its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The version of its software.
    pub version: String,
    /// Seconds since it booted.
    pub uptime_s: u64,
    /// Its memory, its store with the wear of that, and its code flash.
    pub room: RoomStatus,
    /// Its heap, where it has one of a fixed size.
    pub heap: Option<HeapStatus>,
    /// How many neighbours it has in its mesh; `None` outside one.
    pub neighbours: Option<u32>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineReport {
    /// Its name.
    pub name: Name,
    /// The digest of its package.
    pub package: Digest,
    /// The version of that.
    pub version: Version,
    /// Its state, in a word.
    pub state: String,
    /// Its repute for its faults: `good`, `probation` or `banned`.
    pub repute: String,
    /// Tasks waiting.
    pub queue_length: u32,
    /// Tasks finished since the boot, or since its last update.
    pub tasks_done: u64,
    /// Fuel used since the boot, or since its last update.
    pub fuel_used: u64,
    /// The longest it has waited for its turn since the boot, or since its last update, in microseconds.
    pub waited_max_us: u64,
    /// Linear memory in use, in bytes.
    pub memory_bytes: u32,
    /// The most that it may use, in bytes.
    pub memory_bytes_max: u32,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: u32,
    /// Whole numbers that the machine keeps in its tree below `metrics`, at most [`METRICS_MAX`].
    #[serde(deserialize_with = "list::read")]
    pub metrics: Vec<(Name, i64)>,
}

/// A fault of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultReport {
    /// The number of its line in the device's log.
    pub number: u64,
    /// The machine.
    pub machine: Name,
    /// When it happened, in seconds since 1970 UTC, if the device knew.
    pub unix_s: Option<u64>,
    /// The line: what happened, and where in the code.
    pub text: String,
}

/// The hub's answer to a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// In how many seconds to report again.
    pub again_s: u32,
    /// Whether the hub knows none of the device's machines, and all are to be told.
    pub wants_all: bool,
}
