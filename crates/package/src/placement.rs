//! The owner's word on where a package runs, as what, and with how much.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey};
use tenure_wire::{Budget, Capabilities, Digest, Name, Share, Term, VerifyingKey};

use crate::signed::{Kind, SignedError};

/// The longest placement, in bytes: one that grants as much as can be asked for.
pub const PLACEMENT_BYTES_MAX: usize = 16 * 1024;

const KIND: Kind = Kind {
    magic: *b"tenurpl\x03",
    context: Context::new("placement"),
    bytes_max: PLACEMENT_BYTES_MAX,
};

/// A machine to be: which package, on which device, under which name, with what rights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The package, by its digest.
    pub package: Digest,
    /// The only device for which this counts.
    pub device: VerifyingKey,
    /// The machine's name there.
    pub machine: Name,
    /// The most that it may use; its package's wish counts too, whichever is smaller.
    pub budget: Budget,
    /// Its share of the processor, which its package has no say in.
    pub share: Share,
    /// The rights it has; what its package didn't ask for it doesn't get.
    pub grants: Capabilities,
    /// For how long that counts.
    pub term: Term,
    /// Grows with every placement of this machine; a device takes none that isn't greater than the
    /// last one.
    pub sequence: u64,
}

impl Placement {
    /// The placement as bytes, signed by the owner who holds `key`.
    ///
    /// # Errors
    /// [`PlacementError::Form`] if its grants or its share are not well formed.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, PlacementError> {
        self.check()?;
        KIND.sign(self, key).map_err(|_| PlacementError::Form)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a placement does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, PlacementError> {
        Ok(KIND.signer(bytes)?)
    }

    /// The placement in `bytes`, once it is sure that `owner` signed it.
    ///
    /// # Errors
    /// See [`PlacementError`].
    pub fn verify(bytes: &[u8], owner: &VerifyingKey) -> Result<Self, PlacementError> {
        if KIND.signer(bytes)? != *owner {
            return Err(PlacementError::OtherOwner);
        }
        let (placement, _): (Self, _) = KIND.verify(bytes)?;
        placement.check().map(|()| placement)
    }

    fn check(&self) -> Result<(), PlacementError> {
        let well_formed = self.grants.check().is_ok() && self.share.check().is_ok();
        if well_formed { Ok(()) } else { Err(PlacementError::Form) }
    }
}

/// Why bytes are not a placement that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// They don't begin as a placement of a known format does, or are too long for one.
    NotAPlacement,
    /// It is in a version of the format that isn't read here.
    FormatVersion,
    /// They end too soon.
    Truncated,
    /// Another owner's key stands in it.
    OtherOwner,
    /// The owner did not sign these bytes: they were changed since, or forged.
    Signature,
    /// The signed bytes can't be read: the tool that made them is to blame.
    Form,
}

impl From<SignedError> for PlacementError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::Kind => Self::NotAPlacement,
            SignedError::Version => Self::FormatVersion,
            SignedError::Truncated => Self::Truncated,
            SignedError::Signature => Self::Signature,
            SignedError::Form => Self::Form,
        }
    }
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FormatVersion => {
                "the placement is in another version of its format; make it with a `tenure` of the device's version"
            }
            Self::NotAPlacement => "not a placement of a format that is known here",
            Self::Truncated => "the placement is cut off; send it again",
            Self::OtherOwner => {
                "the placement is by an owner who doesn't hold this device; sign it with the \
                 owner's key"
            }
            Self::Signature => {
                "the placement was not signed by the owner it names: it was changed or forged"
            }
            Self::Form => "the placement can't be read; make it with a tool of this version",
        })
    }
}

impl core::error::Error for PlacementError {}
