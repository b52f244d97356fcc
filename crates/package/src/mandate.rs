//! The owner's word that a hub may update one machine on many devices, or put it there, within bounds that each
//! device checks.
//!
//! A mandate says what may happen; the hub says when. A device that follows it does no more than it says, once.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey};
use tenure_wire::{Budget, Capabilities, Digest, Label, Name, Share, Term, VerifyingKey, Version};

use crate::signed::{Kind, SignedError};

/// The longest mandate, in bytes: it fits an answer of a hub with what goes with it.
pub const MANDATE_BYTES_MAX: usize = 7 * 1024;

/// A mandate that says on what terms devices get the machine that have none of that name.
const KIND: Kind =
    Kind { magic: *b"tenurmd\x02", context: Context::new("mandate"), bytes_max: MANDATE_BYTES_MAX };
/// One that updates machines alone, as devices of earlier versions follow it, too.
const UPDATING: Kind = KIND.of_version(1);

/// A right, limited and for a time, to update one machine on the devices that it names, and to put back what a
/// device had before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mandate {
    /// Grows with every mandate for a machine; a device follows none that is older than its last one.
    pub number: u64,
    /// The machine.
    pub machine: Name,
    /// The devices for which this counts.
    pub devices: Selector,
    /// The tenant of the machine before and after.
    pub tenant: VerifyingKey,
    /// The package that the machine may be updated to.
    pub package: Digest,
    /// The version of that package; a machine that has a later one isn't taken back to it.
    pub version: Version,
    /// The oldest version that may be updated.
    pub from: Version,
    /// The most that the machine may use; its package's wish counts too, whichever is smaller.
    pub budget: Budget,
    /// The rights of the machine, as far as its package asks for them; `None` for those that it holds, and for none
    /// where it is new.
    pub grants: Option<Capabilities>,
    /// Until when a device may be updated, in seconds since 1970 UTC.
    pub ends_unix_s: u64,
    /// Until when a device may be put back to what it had, in seconds since 1970 UTC.
    pub back_until_unix_s: u64,
    /// The terms on which a device gets the machine that has none of that name; `None` if it gets none.
    #[serde(skip)]
    pub placed: Option<Placed>,
}

/// The terms of a machine that a mandate places where there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Its share of the processor.
    pub share: Share,
    /// For how long its lease counts.
    pub term: Term,
}

/// Which devices a mandate is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selector {
    /// Those with these names, which their owner gave them.
    Names(Vec<Name>),
    /// Those that carry all of these labels.
    Labels(Vec<Label>),
}

impl Selector {
    /// Whether it selects the device of that name and with these labels.
    pub fn selects(&self, name: &Name, labels: &[Label]) -> bool {
        match self {
            Self::Names(names) => names.contains(name),
            Self::Labels(wanted) => wanted.iter().all(|label| labels.contains(label)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Names(names) => names.is_empty(),
            Self::Labels(labels) => labels.is_empty(),
        }
    }
}

impl Mandate {
    /// The mandate as bytes, signed by the owner who holds `key`.
    ///
    /// # Errors
    /// [`MandateError::Form`] if it selects nobody or its grants aren't well formed, or
    /// [`MandateError::TooLong`].
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, MandateError> {
        self.check()?;
        let bytes = match &self.placed {
            None => UPDATING.sign(self, key)?,
            Some(placed) => KIND.sign(&(self, placed), key)?,
        };
        if bytes.len() > MANDATE_BYTES_MAX { Err(MandateError::TooLong) } else { Ok(bytes) }
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a mandate does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, MandateError> {
        match KIND.signer(bytes) {
            Err(SignedError::Version) => Ok(UPDATING.signer(bytes)?),
            signer => Ok(signer?),
        }
    }

    /// The mandate in `bytes`, once it is sure that `owner` signed it.
    ///
    /// # Errors
    /// See [`MandateError`].
    pub fn verify(bytes: &[u8], owner: &VerifyingKey) -> Result<Self, MandateError> {
        if Self::signer(bytes)? != *owner {
            return Err(MandateError::OtherOwner);
        }
        let mandate = match KIND.verify::<(Self, Placed)>(bytes) {
            Ok(((mandate, placed), _)) => Self { placed: Some(placed), ..mandate },
            Err(SignedError::Version) => UPDATING.verify::<Self>(bytes)?.0,
            Err(error) => return Err(error.into()),
        };
        mandate.check().map(|()| mandate)
    }

    fn check(&self) -> Result<(), MandateError> {
        let is_formed = self.grants.as_ref().is_none_or(|grants| grants.check().is_ok());
        let is_placed = self.placed.is_none_or(|placed| placed.share.check().is_ok());
        if is_formed && is_placed && !self.devices.is_empty() {
            Ok(())
        } else {
            Err(MandateError::Form)
        }
    }
}

/// Why bytes are no mandate that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MandateError {
    /// They don't begin as a mandate of a known format does, or are too long for one.
    NotAMandate,
    /// It is in a version of the format that isn't read here.
    FormatVersion,
    /// They end too soon.
    Truncated,
    /// Another owner's key stands in it.
    OtherOwner,
    /// The owner did not sign these bytes: they were changed since, or forged.
    Signature,
    /// The words that the owner signed can't be read, select no device, or grant rights that can't be.
    Form,
    /// It is longer than a hub can pass on: it names too many devices.
    TooLong,
}

impl From<SignedError> for MandateError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::Kind => Self::NotAMandate,
            SignedError::Version => Self::FormatVersion,
            SignedError::Truncated => Self::Truncated,
            SignedError::Signature => Self::Signature,
            SignedError::Form => Self::Form,
        }
    }
}

impl fmt::Display for MandateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAMandate => "not a mandate of a format that is known here",
            Self::FormatVersion => {
                "the mandate is in another version of its format; make it with a `tenure` of the device's version"
            }
            Self::Truncated => "the mandate is cut off",
            Self::OtherOwner => "the mandate is by an owner who doesn't hold this device",
            Self::Signature => {
                "the mandate was not signed by the owner it names: it was changed or forged"
            }
            Self::Form => "the mandate can't be read, or selects no device",
            Self::TooLong => {
                "the mandate names too many devices; select them by labels, or make several rollouts"
            }
        })
    }
}

impl core::error::Error for MandateError {}
