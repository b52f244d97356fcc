//! Requests of an owner and a tenant about leases, grants, receipts and secrets.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::capability::GrantUse;
use crate::message::growing;
use crate::{MachineId, Name};

/// Gives a machine another term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// The owner's signed renewal.
    pub renewal: Vec<u8>,
    /// Whether a term that is over already is meant; without this it is refused.
    pub ends_now: bool,
}

/// Asks for the number that counts for a machine's lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseNumber {
    /// The machine's name; whether it is there, was removed or never was.
    pub machine: Name,
}

/// Asks what a machine may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantQuery {
    /// Which machine.
    pub machine: Name,
}

/// The rights of a machine, and its use of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantReport {
    /// Each right that it holds, with its uses since the device booted.
    #[serde(with = "growing::list")]
    pub uses: Vec<GrantUse>,
    /// How often it tried, or others tried with it, what isn't granted.
    pub denied: u64,
}

/// Has a machine keep a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalKeep {
    /// Which machine.
    pub machine: Name,
    /// How long its pages may be together, in bytes; 0 ends the journal.
    pub bytes: u32,
}

/// Asks for the receipts that wait to be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptQuery {
    /// How many receipts to skip.
    pub skip: u32,
}

/// Some of the receipts that wait: machine by machine, each one's in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptPage {
    /// Signed receipts.
    pub receipts: Vec<Vec<u8>>,
    /// Whether there are more.
    pub more: bool,
}

/// Tells that receipts were fetched and are kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptForget {
    /// Whose.
    pub machine: MachineId,
    /// The highest number of those fetched.
    pub through: u64,
}

/// A tenant's secrets on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretList {
    /// The secrets.
    #[serde(with = "growing::list")]
    pub secrets: Vec<SecretStatus>,
    /// The number of the last change of any of them; the next change has a higher one.
    pub last: u64,
}

/// A secret that a device holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretStatus {
    /// Its name.
    pub name: Name,
    /// The number of the change that set it.
    pub version: u64,
}
