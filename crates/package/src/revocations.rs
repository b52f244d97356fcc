//! The owner's list of whom it trusts no more: tenants, devices and hubs, by their keys.
//!
//! A list is whole: the one with the highest number replaces the one before, so that a device which was
//! away needs the last one alone.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey};
use tenure_wire::{Name, PublicKey, VerifyingKey};

use crate::signed::{Kind, SignedError};

/// The most tenants, and the most devices, in a list.
pub const REVOKED_MAX: usize = 24;
/// The most hubs in a list.
pub const REVOKED_HUBS_MAX: usize = 8;
/// The longest list, in bytes.
pub const REVOCATIONS_BYTES_MAX: usize = 4096;

const KIND: Kind = Kind {
    magic: *b"tenurrv\x01",
    context: Context::new("revocations"),
    bytes_max: REVOCATIONS_BYTES_MAX,
};

/// Keys that an owner trusts no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// Goes up with each list; a device takes none that isn't greater than its last one. The first is 1.
    pub number: u64,
    /// Tenants whose packages run nowhere any more, by the keys that sign them.
    pub tenants: Vec<VerifyingKey>,
    /// Devices whose records and calls count no more.
    pub devices: Vec<RevokedDevice>,
    /// Hubs that devices speak to no more.
    pub hubs: Vec<PublicKey>,
}

/// A device that its owner revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedDevice {
    /// The name that it had.
    pub name: Name,
    /// The key that signs its records.
    pub key: VerifyingKey,
    /// The key of its own machine.
    pub machine: PublicKey,
}

impl Revocations {
    /// The list as bytes, signed by the owner who holds `key`.
    ///
    /// # Errors
    /// [`RevocationsError::TooMany`] if it has more entries than a device keeps.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, RevocationsError> {
        self.check()?;
        Ok(KIND.sign(self, key)?)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a list does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, RevocationsError> {
        Ok(KIND.signer(bytes)?)
    }

    /// The list in `bytes`, and who signed it.
    ///
    /// # Errors
    /// See [`RevocationsError`].
    pub fn verify(bytes: &[u8]) -> Result<(Self, VerifyingKey), RevocationsError> {
        let (list, signer): (Self, _) = KIND.verify(bytes)?;
        list.check().map(|()| (list, signer))
    }

    /// Whether it names that tenant.
    pub fn has_tenant(&self, tenant: &VerifyingKey) -> bool {
        self.tenants.contains(tenant)
    }

    /// Whether it names the device that signs its records with `key`.
    pub fn has_device(&self, key: &VerifyingKey) -> bool {
        self.devices.iter().any(|device| device.key == *key)
    }

    /// Whether it names the device whose own machine has `key`.
    pub fn has_device_machine(&self, key: &PublicKey) -> bool {
        self.devices.iter().any(|device| device.machine == *key)
    }

    /// Whether it names that hub.
    pub fn has_hub(&self, key: &PublicKey) -> bool {
        self.hubs.contains(key)
    }

    fn check(&self) -> Result<(), RevocationsError> {
        let fits = self.tenants.len() <= REVOKED_MAX
            && self.devices.len() <= REVOKED_MAX
            && self.hubs.len() <= REVOKED_HUBS_MAX;
        if fits { Ok(()) } else { Err(RevocationsError::TooMany) }
    }
}

/// Why bytes are no list that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationsError {
    /// They are no such list of a known format.
    NotAList,
    /// It is in a version of the format that isn't read here.
    FormatVersion,
    /// The owner whom they name did not sign them.
    Signature,
    /// The signed bytes can't be read.
    Form,
    /// The list has more entries than a device keeps.
    TooMany,
}

impl From<SignedError> for RevocationsError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::Kind | SignedError::Truncated => Self::NotAList,
            SignedError::Version => Self::FormatVersion,
            SignedError::Signature => Self::Signature,
            SignedError::Form => Self::Form,
        }
    }
}

impl fmt::Display for RevocationsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FormatVersion => f.write_str(
                "the list of revoked keys is in another version of its format; make it with a `tenure` of the device's version",
            ),
            Self::NotAList => {
                f.write_str("not a list of revoked keys in a format that is known here")
            }
            Self::Signature => {
                f.write_str("the list of revoked keys was not signed by the owner it names")
            }
            Self::Form => f.write_str(
                "the list of revoked keys can't be read; make it with a tool of this version",
            ),
            Self::TooMany => write!(
                f,
                "a list has at most {REVOKED_MAX} tenants, {REVOKED_MAX} devices and \
                 {REVOKED_HUBS_MAX} hubs; take off old ones with --undo"
            ),
        }
    }
}

impl core::error::Error for RevocationsError {}

#[cfg(test)]
mod tests;
