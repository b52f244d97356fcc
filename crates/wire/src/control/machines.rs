//! Requests of an owner about machines: lists, installs, removals, the trash, snapshots.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::message::growing;
use crate::{
    Budget, CodeKind, Digest, MachineId, Name, PublicKey, Share, Term, VerifyingKey, Version,
};

/// The most bytes of a package that one [`InstallChunk`] carries.
pub const CHUNK_BYTES_MAX: usize = 4096;

/// From which machine on to list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMachines {
    /// How many machines to skip.
    pub skip: u32,
}

/// The machines on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineList {
    /// A page of them.
    #[serde(with = "growing::list")]
    pub machines: Vec<MachineStatus>,
    /// How many there are in all.
    pub total: u32,
}

/// How a machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineStatus {
    /// Its name.
    pub name: Name,
    /// Its id.
    pub id: MachineId,
    /// Its public key.
    pub key: PublicKey,
    /// The package it was made from.
    pub package: Name,
    /// The digest of that package.
    pub digest: Digest,
    /// The tenant, who signed the package.
    pub tenant: VerifyingKey,
    /// The functions that others may call.
    pub exports: Vec<String>,
    /// Its state, in a word.
    pub state: String,
    /// Tasks waiting.
    pub queue_length: u32,
    /// Tasks finished since the device booted.
    pub tasks_done: u64,
    /// Fuel used since the device booted.
    pub fuel_used: u64,
    /// Faults that count against it.
    pub faults: u32,
    /// Its standing for them: `good`, `probation` or `banned`.
    pub repute: String,
    /// The last fault since the device booted.
    pub last_fault: Option<String>,
    /// Linear memory in use, in bytes.
    pub memory_bytes: u32,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: u32,
    /// Its budget.
    #[serde(with = "growing")]
    pub budget: Budget,
    /// Whether it is run by its device's engine, and not by the vm.
    pub at_native_speed: bool,
    /// The kind of its code.
    pub code: CodeKind,
    /// Its share of the processor.
    pub share: Share,
    /// For how long its lease counts.
    pub term: Term,
    /// The time by which the device judges this lease, in seconds since 1970 UTC.
    pub lease_unix_s: u64,
    /// The number of the placement or renewal in force; the next one has a higher one.
    pub lease_number: u64,
    /// For how much longer the machine stays once its lease is over, in seconds that the device is on.
    pub grace_left_s: u64,
    /// How much of its tree was given by its package and lies with its code, in bytes.
    pub base_bytes: u32,
    /// The longest it has waited for its turn since the device booted, or since its last update, in microseconds.
    pub waited_max_us: u64,
    /// The longest that it has to wait, as the policy promises, in microseconds.
    pub wait_bound_us: u64,
    /// The function that it is in the middle of, if any.
    pub serves: Option<String>,
    /// For how long it has been in the middle of that, in milliseconds.
    pub serves_ms: u64,
    /// The version of its package.
    #[serde(default)]
    pub version: Version,
}

impl MachineStatus {
    /// A machine called `name` of which nothing else is known: in good standing, it has nothing and has done nothing.
    pub fn empty(name: Name) -> Self {
        Self {
            package: name.clone(),
            name,
            id: MachineId([0; 12]),
            key: PublicKey([0; 32]),
            digest: Digest([0; 32]),
            tenant: VerifyingKey([0; 32]),
            exports: Vec::new(),
            state: String::new(),
            queue_length: 0,
            tasks_done: 0,
            fuel_used: 0,
            faults: 0,
            repute: String::from("good"),
            last_fault: None,
            memory_bytes: 0,
            stored_bytes: 0,
            budget: Budget::default(),
            at_native_speed: false,
            code: CodeKind::WebAssembly,
            share: Share::default(),
            term: Term::default(),
            lease_unix_s: 0,
            lease_number: 0,
            grace_left_s: 0,
            base_bytes: 0,
            waited_max_us: 0,
            wait_bound_us: 0,
            serves: None,
            serves_ms: 0,
            version: Version::default(),
        }
    }
}

/// The machines that were removed and can be fetched back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trash {
    /// All of them; a device has fewer slots than would fill an answer.
    #[serde(with = "growing::list")]
    pub machines: Vec<TrashedMachine>,
}

/// A machine in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedMachine {
    /// The name that it had; another machine may have it now.
    pub name: Name,
    /// Its id.
    pub id: MachineId,
    /// The package it was made from.
    pub package: Name,
    /// The tenant, who signed the package and pays for the flash that it takes.
    pub tenant: VerifyingKey,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: u32,
    /// Its code, in bytes.
    pub code_bytes: u32,
    /// For how much longer it stays there, in seconds that the device is on.
    pub left_s: u64,
}

/// Fetches a machine back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashRestore {
    /// The machine's id.
    pub machine: MachineId,
}

/// Deletes what is in the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashEmpty {
    /// Only the machine with that id; `None` for all of them.
    pub machine: Option<MachineId>,
}

/// Announces a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallBegin {
    /// The length of the package in bytes.
    pub bytes: u32,
}

/// A part of a package; parts come in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallChunk<'a> {
    /// Where it belongs, in bytes from the start.
    pub offset: u32,
    /// At most [`CHUNK_BYTES_MAX`] bytes.
    #[serde(borrow)]
    pub bytes: &'a [u8],
}

/// Makes a machine of the package that was transferred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallCommit {
    /// The owner's signed placement.
    pub placement: Vec<u8>,
}

/// Removes a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remove {
    /// The machine's name.
    pub machine: Name,
    /// Whether all it stored is deleted at once, and not kept in the trash.
    pub for_good: bool,
}

/// Lifts what is held against a machine for its faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unban {
    /// The machine.
    pub machine: Name,
}

/// Starts a machine again from its entry; what it keeps stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Which.
    pub machine: Name,
}

/// Stops a machine until it is started; what it keeps stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Which.
    pub machine: Name,
}

/// Starts a machine that was stopped, from its entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Which.
    pub machine: Name,
}

/// Asks for a machine's tree to be frozen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotBegin {
    /// Whose.
    pub machine: Name,
}

/// A snapshot that is ready to be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// Its length in bytes.
    pub bytes: u32,
    /// How many values are in it.
    pub keys: u32,
}

/// Asks for a part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRead {
    /// Where it begins: where the part before ended.
    pub offset: u32,
}

/// Puts a machine's tree back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// Whose.
    pub machine: Name,
}
