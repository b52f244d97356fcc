//! The holders of devices: an owner's word that other keys count from now on.
//!
//! A succession is signed with the key that it replaces, so it proves itself wherever it is found. Its
//! number only goes up on a device, so that an old one can't be brought back.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{PublicKey, Signature, VerifyingKey};

/// The owner's word that other keys hold a device, or all of the owner's devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Succession {
    /// The key that is replaced, which signs this.
    pub by: VerifyingKey,
    /// The key that signs enrolments and placements from then on.
    pub next: VerifyingKey,
    /// The key that the new owner's tool opens sessions with.
    pub next_machine: PublicKey,
    /// Why the keys change.
    pub kind: SuccessionKind,
    /// The only device for which this counts; `None` for all devices of that owner.
    pub device: Option<VerifyingKey>,
    /// Goes up with each succession; a device takes none that isn't greater than its last one.
    pub number: u64,
}

/// Why an owner's keys are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SuccessionKind {
    /// The same owner has new keys: machines, leases and what was revoked stay.
    Change,
    /// Another owner holds the device: grants of the former one end.
    HandOver,
}

/// A [`Succession`] as it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedSuccession {
    /// The succession in postcard's encoding.
    pub bytes: Vec<u8>,
    /// The signature over these bytes, with the key that is replaced.
    pub signature: Signature,
}
