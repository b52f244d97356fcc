//! Changes of a tenant's secrets on a device: signed by the tenant, and sealed to the device, so that
//! nobody between the two reads or changes them.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{
    Context, Encapsulated, SealToError, SigningKey, StaticSecret, TAG_BYTES, open_sealed, seal_to,
};
use tenure_hal::Entropy;
use tenure_wire::limits::SECRET_BYTES_MAX;
use tenure_wire::{Name, PublicKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::signed::{Kind, SignedError};

const CHANGE: Kind = Kind {
    magic: *b"tenurse\x01",
    context: Context::new("secret"),
    bytes_max: SECRET_BYTES_MAX + 512,
};
const QUERY: Kind =
    Kind { magic: *b"tenursq\x01", context: Context::new("secret query"), bytes_max: 512 };
/// The purpose of the sealing (RFC 9180 `info`).
const INFO: &[u8] = b"tenure 1 secret for a device";

/// A change of one of a tenant's secrets on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretChange {
    /// The only device for which it counts.
    pub device: VerifyingKey,
    /// The secret.
    pub name: Name,
    /// Grows with every change of any of the tenant's secrets on that device; a device takes none
    /// that isn't greater than the last one.
    pub version: u64,
    /// The new value, sealed to the device; `None` removes the secret.
    value: Option<SealedValue>,
}

/// A value that only its device opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SealedValue {
    ephemeral: PublicKey,
    ciphertext: Vec<u8>,
    tag: [u8; TAG_BYTES],
}

impl SecretChange {
    /// Sets the secret to `value`, which only the holder of `device_machine` will read.
    ///
    /// # Errors
    /// [`SecretError::TooLong`], or what keeps it from being sealed.
    pub fn set(
        entropy: &mut dyn Entropy,
        tenant: &VerifyingKey,
        (device, device_machine): (VerifyingKey, &PublicKey),
        (name, version): (Name, u64),
        value: &[u8],
    ) -> Result<Self, SecretError> {
        if value.len() > SECRET_BYTES_MAX {
            return Err(SecretError::TooLong);
        }
        let mut change = Self { device, name, version, value: None };
        let place = change.place(tenant);
        let mut ciphertext = value.to_vec();
        let Encapsulated { key, tag } =
            seal_to(entropy, device_machine, INFO, &place, &mut ciphertext)
                .map_err(SecretError::Seal)?;
        change.value = Some(SealedValue { ephemeral: key, ciphertext, tag });
        Ok(change)
    }

    /// Removes the secret.
    pub fn remove(device: VerifyingKey, name: Name, version: u64) -> Self {
        Self { device, name, version, value: None }
    }

    /// The change as bytes, signed by the tenant who holds `key`.
    ///
    /// # Errors
    /// [`SecretError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, SecretError> {
        Ok(CHANGE.sign(self, key)?)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a change does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, SecretError> {
        Ok(CHANGE.signer(bytes)?)
    }

    /// The change in `bytes`, and the tenant who signed it.
    ///
    /// # Errors
    /// See [`SecretError`].
    pub fn verify(bytes: &[u8]) -> Result<(Self, VerifyingKey), SecretError> {
        let (change, tenant): (Self, _) = CHANGE.verify(bytes)?;
        match &change.value {
            Some(value) if value.ciphertext.len() > SECRET_BYTES_MAX => Err(SecretError::TooLong),
            _ => Ok((change, tenant)),
        }
    }

    /// The new value, by the device that holds `secret`; `None` if the secret is removed.
    ///
    /// # Errors
    /// [`SecretError::Sealed`] if it wasn't sealed to that device for this place.
    pub fn open(
        &self,
        tenant: &VerifyingKey,
        secret: &StaticSecret,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, SecretError> {
        let Some(SealedValue { ephemeral, ciphertext, tag }) = &self.value else {
            return Ok(None);
        };
        let mut value = Zeroizing::new(ciphertext.clone());
        let encapsulated = Encapsulated { key: *ephemeral, tag: *tag };
        open_sealed(secret, &encapsulated, INFO, &self.place(tenant), &mut value)
            .map_err(|_| SecretError::Sealed)?;
        Ok(Some(value))
    }

    /// The facts that the sealed value is bound to: whose, where, which, and its number.
    fn place(&self, tenant: &VerifyingKey) -> Vec<u8> {
        let mut place = Vec::new();
        place.extend(self.device.0);
        place.extend(tenant.0);
        place.extend(self.version.to_le_bytes());
        place.extend(self.name.as_str().as_bytes());
        place
    }
}

/// A tenant asks which of its secrets a device holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretQuery {
    /// The device.
    pub device: VerifyingKey,
    /// The only caller who may ask with this.
    pub caller: PublicKey,
}

impl SecretQuery {
    /// The query as bytes, signed by the tenant who holds `key`.
    ///
    /// # Errors
    /// [`SecretError::Form`] if it can't be encoded.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, SecretError> {
        Ok(QUERY.sign(self, key)?)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    ///
    /// # Errors
    /// They don't begin as a query does.
    pub fn signer(bytes: &[u8]) -> Result<VerifyingKey, SecretError> {
        Ok(QUERY.signer(bytes)?)
    }

    /// The query in `bytes`, and the tenant who signed it.
    ///
    /// # Errors
    /// See [`SecretError`].
    pub fn verify(bytes: &[u8]) -> Result<(Self, VerifyingKey), SecretError> {
        Ok(QUERY.verify(bytes)?)
    }
}

/// Why a change of a secret doesn't count, or a question about one isn't answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretError {
    /// The bytes are no such statement of a known format.
    NotASecret,
    /// It is in a version of the format that isn't read here.
    FormatVersion,
    /// The tenant did not sign them.
    Signature,
    /// The signed bytes can't be read.
    Form,
    /// The value is longer than a secret may be.
    TooLong,
    /// The value is sealed to another device, or for another place.
    Sealed,
    /// The value can't be sealed.
    Seal(SealToError),
}

impl From<SignedError> for SecretError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::Kind | SignedError::Truncated => Self::NotASecret,
            SignedError::Version => Self::FormatVersion,
            SignedError::Signature => Self::Signature,
            SignedError::Form => Self::Form,
        }
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FormatVersion => f.write_str(
                "the secret is in another version of its format; make it with a `tenure` of the device's version",
            ),
            Self::NotASecret => f.write_str("not a secret in a format that is known here"),
            Self::Signature => f.write_str("the secret was not signed by the tenant it names"),
            Self::Form => {
                f.write_str("the secret can't be read; make it with a tool of this version")
            }
            Self::TooLong => write!(f, "a secret has at most {SECRET_BYTES_MAX} bytes"),
            Self::Sealed => f.write_str("the secret was sealed to another device"),
            Self::Seal(error) => write!(f, "the secret can't be sealed: {error}"),
        }
    }
}

impl core::error::Error for SecretError {}
