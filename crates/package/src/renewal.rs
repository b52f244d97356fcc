//! The owner's word that a lease goes on, or ends sooner, without the package being sent again.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey};
use tenure_wire::{Name, Term, VerifyingKey};

use crate::placement::PlacementError;
use crate::signed::Kind;

const KIND: Kind =
    Kind { magic: *b"tenurrn\x01", context: Context::new("renewal"), bytes_max: 512 };

/// Another term for a machine that is there; all else of its lease stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// The only device for which this counts.
    pub device: VerifyingKey,
    /// The machine.
    pub machine: Name,
    /// The new term.
    pub term: Term,
    /// Of the same row of numbers as the placements of this machine: it must be greater than the last.
    pub sequence: u64,
}

impl Renewal {
    /// The renewal as bytes, signed by the owner who holds `key`.
    ///
    /// # Errors
    /// [`PlacementError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, PlacementError> {
        Ok(KIND.sign(self, key)?)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a renewal does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, PlacementError> {
        Ok(KIND.signer(bytes)?)
    }

    /// The renewal in `bytes`, once it is sure that `owner` signed it.
    ///
    /// # Errors
    /// See [`PlacementError`].
    pub fn verify(bytes: &[u8], owner: &VerifyingKey) -> Result<Self, PlacementError> {
        if KIND.signer(bytes)? != *owner {
            return Err(PlacementError::OtherOwner);
        }
        Ok(KIND.verify(bytes)?.0)
    }
}
