//! Where a hub keeps its identity and the records that it accepted.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_wire::NoResult;
use tenure_wire::directory::{DeviceRecord, SignedRecord};
use tenure_wire::{Address, Name, PublicKey};

/// The answer to whoever waits for a storage that is away.
pub(crate) const LATER: NoResult = NoResult::Deferred { again_in: Duration::from_secs(5) };

/// A device as the storage keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its last record, as it was signed.
    pub record: SignedRecord,
    /// Where it was last heard from.
    pub seen_at: Address,
}

/// A record that was checked and is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Accepted<'a> {
    /// The record as it was signed, and its sender's address.
    pub kept: &'a Kept,
    /// The same record, read.
    pub record: &'a DeviceRecord,
    /// The wall clock, in seconds since 1970 UTC.
    pub unix_s: u64,
    /// Until when the device is in force unless it is heard again, in seconds since 1970 UTC: to the record's end, or as long as
    /// a device that touches may be silent.
    pub ends_unix_s: u64,
}

/// A device that touched, and that in memory alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The device.
    pub device: Name,
    /// When it was heard last, in seconds since 1970 UTC.
    pub heard_unix_s: u64,
    /// Until when it is in force unless it is heard again.
    pub ends_unix_s: u64,
}

/// A device that touched, as an earlier run of the hub left it in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The device.
    pub device: Name,
    /// When it was heard last, as far as that was stored, in seconds since 1970 UTC.
    pub heard_unix_s: u64,
    /// Until when it was in force.
    pub ends_unix_s: u64,
    /// Whether that was later than when the hub heard anybody last.
    pub was_there: bool,
}

/// The next record of a device, which says what the one before said but for how long and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The device.
    pub device: Name,
    /// The device as it stood in the storage by what the hub knows.
    pub before: Kept,
    /// The device as it is to stand there.
    pub kept: Kept,
    /// Until when the device is in force unless it is heard again, in seconds since 1970 UTC.
    pub ends_unix_s: u64,
}

/// The record of a device in a storage that others may write to as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Nobody else writes there: the device is as this hub put it.
    AsPut,
    /// Others may write there, and this is what stands there now, if anything does.
    Now(Option<Kept>),
}

/// The devices that others changed who share a storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether these are all the devices that there are: any other one is gone.
    pub are_all: bool,
    /// Each device with its record, or without one if it is gone.
    pub devices: Vec<(Name, Option<Kept>)>,
}

/// The answer to a call, or why there is none.
pub type Answered = Result<Option<Vec<u8>>, NoResult>;

/// How a device can be reached that keeps in touch with a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachable {
    /// It answers whoever asks.
    Directly,
    /// It answers nobody else; the hub relays.
    ByHub,
    /// It answers nobody else, and the hub doesn't relay.
    ByNobody,
}

/// A call of a function that isn't the directory's.
#[derive(Clone, Copy, Debug)]
pub struct ServiceCall<'a> {
    /// The caller's key, which its session proved.
    pub peer: &'a PublicKey,
    /// The hub's own key.
    pub hub: &'a PublicKey,
    /// The function.
    pub function: &'a str,
    /// Its parameter.
    pub parameter: &'a [u8],
    /// The wall clock, in seconds since 1970 UTC.
    pub unix_s: u64,
}

/// Where a hub keeps its identity and records.
///
/// Writes count together from [`Storage::commit`] on: after a power cut either all or none of those
/// since the last one are there. A storage may write earlier, and more than it promised.
///
/// Several hubs may share one, which tells each of them what the others changed ([`Storage::changes`]), and what stands
/// there when that matters ([`Storage::stored`]).
pub trait Storage {
    /// The seed of the hub's keys, if it has one.
    ///
    /// # Errors
    /// The storage fails, or what it holds is no seed.
    fn seed(&mut self) -> Result<Option<[u8; 32]>, StorageError>;

    /// Stores the seed of a new hub.
    ///
    /// # Errors
    /// The storage fails or is full.
    fn set_seed(&mut self, seed: &[u8; 32]) -> Result<(), StorageError>;

    /// Every record that was accepted. A record that can't be read any more is left out: its device
    /// will register again.
    ///
    /// # Errors
    /// The storage fails.
    fn records(&mut self) -> Result<Vec<Kept>, StorageError>;

    /// Stores a record in the place of the device's last one.
    ///
    /// # Errors
    /// The storage fails or is full.
    fn put(&mut self, accepted: &Accepted<'_>) -> Result<(), StorageError>;

    /// Whether the storage takes the renewals of a turn at once, by [`Self::renew`].
    fn renews(&self) -> bool {
        false
    }

    /// Stores the next records of devices whose records before stand there still and that nobody revoked, at the moment
    /// `unix_s`. They are safe when this returns, whatever becomes of what else was written since the last commit. Returns of
    /// each whether it was stored; any other is [put](Self::put) like a new record.
    ///
    /// # Errors
    /// The storage fails or is full. Some may be stored all the same.
    fn renew(&mut self, renewals: &[Renewal], unix_s: u64) -> Result<Vec<bool>, StorageError> {
        let _ = (renewals, unix_s);
        Ok(Vec::new())
    }

    /// Stores that devices were heard which touch, all in one statement: of each device that is there as late an end as is
    /// known. It is safe after a commit.
    ///
    /// # Errors
    /// The storage fails or is full.
    fn heard(&mut self, heard: &[Heard]) -> Result<(), StorageError> {
        let _ = heard;
        Ok(())
    }

    /// The devices that touched, as an earlier run of the only hub here left them: those whose record lasts longer than they
    /// were in force. None where several hubs share the storage, as others hear them.
    ///
    /// # Errors
    /// The storage fails.
    fn left(&mut self) -> Result<Vec<Left>, StorageError> {
        Ok(Vec::new())
    }

    /// Until when a device is in force as it stands there, in seconds since 1970 UTC, where others may hear it: zero for one that
    /// isn't there. `None` where there is one hub.
    ///
    /// # Errors
    /// The storage fails.
    fn ends(&mut self, device: &Name) -> Result<Option<u64>, StorageError> {
        let _ = device;
        Ok(None)
    }

    /// Whether a device that asks for work may get some. `true` where that isn't known.
    fn may_have_work(&self) -> bool {
        true
    }

    /// Keeps how a device can be reached, until it registers from another address.
    ///
    /// # Errors
    /// The storage fails or is full.
    fn judged(&mut self, device: &Name, reachable: Reachable) -> Result<(), StorageError> {
        let _ = (device, reachable);
        Ok(())
    }

    /// Deletes a device's record, so that its name is free.
    ///
    /// # Errors
    /// The storage fails.
    fn delete(&mut self, device: &Name) -> Result<(), StorageError>;

    /// The devices that may be forgotten, some of them: whose records ended before `over_before_unix_s`, and which weren't
    /// heard for `forget_after_s` beyond that in which a hub heard. `None` where the storage doesn't know when one heard.
    ///
    /// # Errors
    /// The storage fails.
    fn forgettable(
        &mut self,
        over_before_unix_s: u64,
        forget_after_s: u64,
    ) -> Result<Option<Vec<Name>>, StorageError> {
        let _ = (over_before_unix_s, forget_after_s);
        Ok(None)
    }

    /// Waits until everything that was written is safe from a power cut.
    ///
    /// # Errors
    /// The storage fails or is full; nothing since the last commit counts then.
    fn commit(&mut self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Whether the owner of a device has revoked it.
    ///
    /// # Errors
    /// The storage fails.
    fn is_revoked(&mut self, record: &DeviceRecord) -> Result<bool, StorageError> {
        let _ = record;
        Ok(false)
    }

    /// Devices that the storage deleted by itself since the last call of this: their owner revoked them. A commit
    /// follows if there are any.
    ///
    /// # Errors
    /// The storage fails.
    fn forgotten(&mut self) -> Result<Vec<Name>, StorageError> {
        Ok(Vec::new())
    }

    /// The record of a device as it stands there, where other hubs may have written it. What is written until the next
    /// commit counts only if that record is the same then.
    ///
    /// # Errors
    /// The storage fails.
    fn stored(&mut self, device: &Name) -> Result<Stored, StorageError> {
        let _ = device;
        Ok(Stored::AsPut)
    }

    /// The devices that other hubs on the same storage changed since the last call of this, once their writes are safe.
    ///
    /// # Errors
    /// The storage fails; the next call tells of them.
    fn changes(&mut self) -> Result<Changes, StorageError> {
        Ok(Changes::default())
    }

    /// Does what is due by the clock, a bounded piece at a time; it is called every few seconds. Returns whether it
    /// wrote something, which is safe after a commit.
    ///
    /// # Errors
    /// The storage fails or is full.
    fn tick(&mut self, unix_s: u64) -> Result<bool, StorageError> {
        let _ = unix_s;
        Ok(false)
    }

    /// The answer to a call of a function that isn't the directory's, of which nothing was kept because the storage is away
    /// or others are in the way: whoever asks tries again.
    ///
    /// # Errors
    /// That is said by a [`NoResult`].
    fn unkept(&self) -> Result<Option<Vec<u8>>, NoResult> {
        Err(LATER)
    }

    /// Takes a call of a function that isn't the directory's to be answered beside the hub, if the storage does that; what
    /// comes of it is one of [`Self::answers`] then. Returns whether it took the call.
    fn hand_over(&mut self, number: u64, call: &ServiceCall<'_>) -> bool {
        let _ = (number, call);
        false
    }

    /// The answers to calls that were handed over, as far as they are there, by the calls' numbers. What they wrote is safe.
    fn answers(&mut self) -> Vec<(u64, Answered)> {
        Vec::new()
    }

    /// Answers a call of a function that isn't the directory's. The reply is sent after a commit.
    ///
    /// # Errors
    /// As [`NoResult`] says.
    fn call(&mut self, call: &ServiceCall<'_>) -> Result<Option<Vec<u8>>, NoResult> {
        let _ = call;
        Err(NoResult::NoSuchFunction)
    }
}

/// Why a storage failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageError {
    /// In words.
    pub reason: String,
    /// The meaning of it for what was written since the last commit.
    pub failure: Failure,
}

/// The meaning of a failure for what was written since the last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The storage is there and refused, as one that is full. Nothing counts.
    Refused,
    /// It is away, as a server that starts. Nothing counts; whoever asks tries again later.
    Away,
    /// Another hub wrote in between. Nothing counts; the same may succeed at once.
    Conflict,
    /// It went away in the middle of the commit: all of it counts, or nothing.
    Unsure,
}

impl StorageError {
    /// A storage that is there, and refused.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), failure: Failure::Refused }
    }

    /// A storage that isn't there now.
    pub fn away(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), failure: Failure::Away }
    }

    /// Whether the storage couldn't be reached.
    pub fn is_away(&self) -> bool {
        matches!(self.failure, Failure::Away | Failure::Unsure)
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl core::error::Error for StorageError {}
