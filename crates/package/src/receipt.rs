//! Receipts: what a machine used in one period, signed by its device, each bound to the one before.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey, sha256};
use tenure_wire::usage::Usage;
use tenure_wire::{Digest, MachineId, Name, VerifyingKey};

#[cfg(feature = "journals")]
use crate::journal::Commitment;
use crate::signed::{Kind, SignedError};

const KIND: Kind =
    Kind { magic: *b"tenurrc\x02", context: Context::new("receipt"), bytes_max: 1024 };

/// The version of receipts that commit to a journal: one of version 2, and the commitment behind it.
#[cfg(feature = "journals")]
const COMMITTED_VERSION: u8 = 3;
#[cfg(feature = "journals")]
const COMMITTED: Kind = KIND.of_version(COMMITTED_VERSION);

/// The use of a machine in one period of its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The device's owner.
    pub owner: VerifyingKey,
    /// Whose machine it is.
    pub tenant: VerifyingKey,
    /// The machine.
    pub machine: MachineId,
    /// Its name.
    pub name: Name,
    /// The package it was made from.
    pub package: Digest,
    /// The number of the placement that was in force: the lease.
    pub lease: u64,
    /// The tier of that lease.
    pub tier: u16,
    /// How many seconds a receipt of that lease is for; one that ends with the lease is for fewer.
    pub period_s: u64,
    /// The receipt's number: 0, then one more each time.
    pub number: u64,
    /// The digest of the receipt before this one; zeros for the first.
    pub previous: Digest,
    /// The wall clock when the period began, in seconds since 1970 UTC, if the device knew it.
    pub began_unix_s: Option<u64>,
    /// The wall clock when it ended, if the device knew it.
    pub ended_unix_s: Option<u64>,
    /// How long the device was on and counted in that time, in milliseconds.
    pub counted_ms: u64,
    /// The amounts used.
    pub usage: Usage,
}

/// The digest in a machine's first receipt, for the receipt before it.
pub const NO_RECEIPT: Digest = Digest([0; 32]);

impl Receipt {
    /// The receipt as bytes, signed by the device that holds `key`.
    ///
    /// # Errors
    /// [`ReceiptError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, ReceiptError> {
        Ok(KIND.sign(self, key)?)
    }

    /// The receipt in `bytes`, and the device that signed it.
    ///
    /// # Errors
    /// See [`ReceiptError`].
    pub fn verify(bytes: &[u8]) -> Result<(Self, VerifyingKey), ReceiptError> {
        #[cfg(feature = "journals")]
        if COMMITTED.signer(bytes).is_ok() {
            let ((receipt, _), device): ((Self, Commitment), _) = COMMITTED.verify(bytes)?;
            return Ok((receipt, device));
        }
        Ok(KIND.verify(bytes)?)
    }
}

#[cfg(feature = "journals")]
impl Receipt {
    /// As [`Receipt::sign`], with what it commits to of the machine's journal.
    ///
    /// # Errors
    /// [`ReceiptError::Form`] if it can't be encoded.
    pub fn sign_with(
        &self,
        journal: &Commitment,
        key: &SigningKey,
    ) -> Result<Vec<u8>, ReceiptError> {
        Ok(COMMITTED.sign(&(self, journal), key)?)
    }

    /// The journal to which the receipt in `bytes` commits, if it does.
    ///
    /// # Errors
    /// See [`ReceiptError`].
    pub fn commitment(bytes: &[u8]) -> Result<Option<Commitment>, ReceiptError> {
        if COMMITTED.signer(bytes).is_err() {
            return KIND.verify::<Self>(bytes).map(|_| None).map_err(ReceiptError::from);
        }
        let ((_, journal), _) = COMMITTED.verify::<(Self, Commitment)>(bytes)?;
        Ok(Some(journal))
    }
}

/// The digest of a signed receipt, by which the next one is bound to it.
pub fn digest_of_receipt(bytes: &[u8]) -> Digest {
    sha256(&[bytes])
}

/// A chain of receipts of one machine, checked link by link.
#[derive(Clone, Debug)]
pub struct ReceiptChain {
    device: VerifyingKey,
    last: Receipt,
    digest: Digest,
    /// The sum of all of its receipts.
    pub total: Usage,
    /// How long all of its periods were together, in milliseconds.
    pub counted_ms: u64,
    /// How many there are.
    pub length: u64,
}

impl ReceiptChain {
    /// A chain that begins with the receipt in `bytes`, by whatever device: who takes a chain from
    /// its middle must know what came before by other means.
    ///
    /// # Errors
    /// See [`ReceiptError`].
    pub fn begin(bytes: &[u8]) -> Result<Self, ReceiptError> {
        let (last, device) = Receipt::verify(bytes)?;
        if (last.number == 0) != (last.previous == NO_RECEIPT) {
            return Err(ReceiptError::Broken);
        }
        let (total, digest) = (last.usage, digest_of_receipt(bytes));
        let counted_ms = last.counted_ms;
        Ok(Self { device, last, digest, total, counted_ms, length: 1 })
    }

    /// Takes the next receipt.
    ///
    /// # Errors
    /// It isn't this device's, or doesn't follow the last one; the chain is as before then.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<&Receipt, ReceiptError> {
        let (next, device) = Receipt::verify(bytes)?;
        if device != self.device {
            return Err(ReceiptError::OtherDevice);
        }
        if next.machine != self.last.machine || next.number <= self.last.number {
            return Err(ReceiptError::Twice);
        }
        if next.number != self.last.number + 1 {
            return Err(ReceiptError::Missing { number: self.last.number + 1 });
        }
        if next.previous != self.digest {
            return Err(ReceiptError::Broken);
        }
        self.total = self.total.and(next.usage);
        self.counted_ms = self.counted_ms.saturating_add(next.counted_ms);
        self.length += 1;
        self.digest = digest_of_receipt(bytes);
        self.last = next;
        Ok(&self.last)
    }

    /// Whose device signed it.
    pub fn device(&self) -> VerifyingKey {
        self.device
    }

    /// The last receipt.
    pub fn last(&self) -> &Receipt {
        &self.last
    }
}

/// Why bytes are no receipt that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptError {
    /// They are no receipt of a known format.
    NotAReceipt,
    /// It is in a version of the format that isn't read here.
    FormatVersion,
    /// The device that they name did not sign them: they were changed since, or forged.
    Signature,
    /// The signed bytes can't be read.
    Form,
    /// Another device signed this one than those before.
    OtherDevice,
    /// That period was billed already.
    Twice,
    /// A receipt is missing before this one.
    Missing {
        /// Its number.
        number: u64,
    },
    /// It doesn't follow the one before it: one of the two was made in another history.
    Broken,
}

impl From<SignedError> for ReceiptError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::Kind | SignedError::Truncated => Self::NotAReceipt,
            SignedError::Version => Self::FormatVersion,
            SignedError::Signature => Self::Signature,
            SignedError::Form => Self::Form,
        }
    }
}

impl fmt::Display for ReceiptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FormatVersion => f.write_str(
                "the receipt is in another version of its format; read it with a `tenure` of the device's version",
            ),
            Self::NotAReceipt => f.write_str("not a receipt in a format that is known here"),
            Self::Signature => {
                f.write_str("not signed by the device it names: it was changed or forged")
            }
            Self::Form => f.write_str("it can't be read; use a tool of the device's version"),
            Self::OtherDevice => f.write_str("signed by another device than those before"),
            Self::Twice => f.write_str("that period was billed already"),
            Self::Missing { number } => write!(f, "receipt {number} is missing before it"),
            Self::Broken => f.write_str("it doesn't follow the receipt before it"),
        }
    }
}

impl core::error::Error for ReceiptError {}

#[cfg(test)]
mod tests;
