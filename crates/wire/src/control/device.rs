//! Requests of an owner about the device itself: its state, its name, time, hub and firmware.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::directory::Enrolment;
use crate::directory::SignedRecord;
use crate::message::growing;
use crate::ownership::SignedSuccession;
use crate::{Address, Name, PublicKey, Signature, VerifyingKey};

/// How a device is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Its name.
    pub name: Name,
    /// Its own key.
    pub key: VerifyingKey,
    /// The key of its own machine.
    pub device_machine: PublicKey,
    /// Its owner.
    pub owner: VerifyingKey,
    /// The version of the software on it.
    pub version: String,
    /// Milliseconds since it booted.
    pub uptime_ms: u64,
    /// The time that leases go by, from its clock, its owner, or a hub whose key is pinned, in seconds since 1970
    /// UTC; `None` if none has told it since it booted.
    pub unix_s: Option<u64>,
    /// How often it has booted.
    pub boots: u32,
    /// The directory it registers with, and whether it has answered.
    pub hub: Option<(Address, bool)>,
    /// How many machines are on it.
    pub machines: u32,
    /// The scheduling policy.
    pub policy: String,
    /// The fuel that it burns in a second, as far as it was measured.
    pub fuel_per_second: u64,
    /// How many machines are in the trash.
    pub trash_machines: u32,
    /// The flash that they take, in bytes.
    pub trash_bytes: u32,
    /// The longest image or package that still fits, in bytes.
    pub code_bytes_free: u32,
    /// Its heap, where the device has one of a fixed size.
    #[serde(with = "growing::option")]
    pub heap: Option<HeapStatus>,
    /// The record that it would publish in a directory: the proof that its owner enrolled it and that the machine
    /// that answers is its own. `None` if it isn't enrolled.
    pub record: Option<SignedRecord>,
    /// The number of the owner's list of revoked keys that is in force, 0 if there is none.
    #[serde(default)]
    pub revocations: u64,
    /// The number of the succession by which its owner holds it, 0 if it is the first one.
    #[serde(default)]
    pub succession: u64,
    /// How far the flash below its store is worn; `None` where there is no store, or an older version doesn't say.
    #[serde(default, with = "growing::option")]
    pub wear: Option<FlashWear>,
    /// How many changes that were acknowledged can't be read any more, as its store found when it booted: damaged values,
    /// and records that are lost with their keys.
    #[serde(default)]
    pub changes_lost: u32,
    /// How many machines' records in its store can't be read; their slots are kept for them.
    #[serde(default)]
    pub machines_unreadable: u32,
    /// How many machines it takes, those in its trash among them; 0 where it takes none, or an older version doesn't say.
    #[serde(default)]
    pub machines_max: u32,
}

/// How far the flash below a store is worn. Its sectors wear evenly: the store takes them in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashWear {
    /// The sectors of the store.
    pub sectors: u32,
    /// How many of their erases were spent since the store was made, all sectors together.
    pub erases: u32,
    /// Those since the device booted.
    pub erases_since_boot: u32,
    /// How many erases the maker of the flash promises for each sector, where the board knows.
    pub rated_per_sector: Option<u32>,
}

/// How much room a device has for machines, in bytes unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomStatus {
    /// Memory and stacks that its machines' budgets promise.
    pub memory_bytes_promised: u64,
    /// All that it has for them. Where machines are swapped to flash, more may be promised.
    pub memory_bytes_max: u64,
    /// Records in its store, as they count against `store_bytes_max`.
    pub store_bytes_used: u64,
    /// Where the store is full.
    pub store_bytes_max: u64,
    /// Code flash in use: images, packages, what machines begin with, and machines that were swapped.
    pub code_bytes_used: u32,
    /// All of code flash.
    pub code_bytes_max: u32,
    /// How often each sector of the store was erased since it was made, rounded up: it wears evenly.
    pub store_erases: u32,
}

/// How much of a device's heap is used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapStatus {
    /// Now.
    pub used_bytes: u32,
    /// At most since the device booted.
    pub peak_bytes: u32,
    /// In all.
    pub total_bytes: u32,
    /// Bytes that the board itself took before the node booted: its drivers' buffers.
    pub board_bytes: u32,
    /// The bytes of others' calls and their answers, kept so that each call runs once at most and its answer can be
    /// asked for again; dropped with the acknowledgements, or when there is need for the room.
    pub answers_bytes: u32,
}

/// The owner's word that this device carries its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrol {
    /// Which name, and which device key.
    pub enrolment: Enrolment,
    /// The owner's signature over it.
    pub signature: Signature,
}

/// An owner's word that other keys hold the device from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeOwner {
    /// The succession, signed with the key that it replaces.
    pub succession: SignedSuccession,
    /// The new owner's word that the device carries its name, to be taken with it.
    pub enrol: Option<Enrol>,
}

/// The owner's word for what time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TellTime {
    /// Seconds since 1970 UTC, by the owner's clock.
    pub unix_s: u64,
}

/// How a device stands with its hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubStatus {
    /// Where the hub is.
    pub address: Address,
    /// Whether the hub lists the device.
    pub is_registered: bool,
    /// The hub's key, as far as it is known.
    pub key: Option<PublicKey>,
    /// Why the device takes that key for the hub's.
    pub trust: HubTrust,
    /// A different key that the hub's address showed last; the device doesn't speak to its holder.
    pub shown: Option<PublicKey>,
}

/// Why a device takes a key for its hub's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HubTrust {
    /// No key is known.
    Unknown,
    /// The hub's address showed it, and has not proved it yet.
    Shown,
    /// It was the first key that registered the device. Its word on time moves no lease.
    FirstSeen,
    /// The owner or the device's settings named it. Its word on time counts for leases.
    Owner,
    /// The owner revoked it. The device speaks to no hub until the owner names another key.
    Revoked,
}

/// The owner's word on the hub's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustHub {
    /// The only key to trust; `None` to forget the one that was kept, so that the next first one is.
    pub key: Option<PublicKey>,
}

/// Announces a firmware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareBegin {
    /// The signed release.
    pub release: Vec<u8>,
}

/// The firmware of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareStatus {
    /// The name of the board.
    pub board: String,
    /// The number of the firmware that runs.
    pub number: u32,
    /// The slot that it stands in.
    pub slot: String,
    /// Whether it is on trial.
    pub on_trial: bool,
    /// The image in the other slot, if that is known.
    #[serde(with = "growing::option")]
    pub other: Option<OtherFirmware>,
    /// How long a firmware may be, in bytes.
    pub slot_bytes: u32,
    /// How long a trial lasts at most, in milliseconds.
    pub trial_ms: u32,
    /// Why the device started.
    pub started_by: String,
    /// Milliseconds since power came.
    pub uptime_ms: u64,
}

/// A firmware in the slot that doesn't run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherFirmware {
    /// Its number.
    pub number: u32,
    /// Whether the next start tries it.
    pub is_next: bool,
    /// Its fate so far, in words.
    pub fate: String,
}
