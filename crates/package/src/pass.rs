//! The owner's pass: a tenant may speak to a device that leases it a machine by way of the owner's other
//! devices, whose mesh carries the datagrams.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey};
use tenure_wire::{PublicKey, VerifyingKey};

use crate::signed::{Kind, SignedError};

const PASS: Kind = Kind { magic: *b"tenurpa\x01", context: Context::new("pass"), bytes_max: 256 };
const SHOWN: Kind =
    Kind { magic: *b"tenurps\x01", context: Context::new("pass that is shown"), bytes_max: 512 };

/// A tenant's pass to one device, for members of the owner's mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// The only tenant for whom it counts.
    pub tenant: VerifyingKey,
    /// The only device to which it leads.
    pub device: VerifyingKey,
    /// The time from which it doesn't count any more.
    pub ends_unix_s: u64,
}

impl Pass {
    /// The pass as bytes, signed by the owner who holds `key`.
    ///
    /// # Errors
    /// [`PassError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, PassError> {
        Ok(PASS.sign(self, key)?)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a pass does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, PassError> {
        Ok(PASS.signer(bytes)?)
    }

    /// The pass in `bytes`, once it is sure that `owner` signed it.
    ///
    /// # Errors
    /// See [`PassError`].
    pub fn verify(bytes: &[u8], owner: &VerifyingKey) -> Result<Self, PassError> {
        if PASS.signer(bytes)? != *owner {
            return Err(PassError::OtherOwner);
        }
        Ok(PASS.verify(bytes)?.0)
    }
}

/// A tenant shows its pass to a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassShown {
    /// As the owner signed it.
    pub pass: Vec<u8>,
    /// The only caller who may show it with this.
    pub caller: PublicKey,
}

impl PassShown {
    /// The statement as bytes, signed by the tenant who holds `key`.
    ///
    /// # Errors
    /// [`PassError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, PassError> {
        Ok(SHOWN.sign(self, key)?)
    }

    /// The statement in `bytes`, and the tenant who signed it.
    ///
    /// # Errors
    /// See [`PassError`].
    pub fn verify(bytes: &[u8]) -> Result<(Self, VerifyingKey), PassError> {
        Ok(SHOWN.verify(bytes)?)
    }
}

/// Why bytes are no pass that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassError {
    /// They are no such statement of a known format.
    NotAPass,
    /// It is in a version of the format that isn't read here.
    FormatVersion,
    /// Another owner's key stands in it.
    OtherOwner,
    /// The one whose key stands in it did not sign these bytes.
    Signature,
    /// The signed bytes can't be read.
    Form,
}

impl From<SignedError> for PassError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::Kind | SignedError::Truncated => Self::NotAPass,
            SignedError::Version => Self::FormatVersion,
            SignedError::Signature => Self::Signature,
            SignedError::Form => Self::Form,
        }
    }
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAPass => "not a pass in a format that is known here",
            Self::FormatVersion => "the pass is in another version of its format",
            Self::OtherOwner => "the pass is by an owner who doesn't hold this device",
            Self::Signature => "the pass was changed or forged",
            Self::Form => "the pass can't be read",
        })
    }
}

impl core::error::Error for PassError {}
