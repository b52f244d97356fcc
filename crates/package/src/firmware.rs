//! Firmware on its way to devices: the image of a board, and a release that its maker or owner signed.
//!
//! A file holds the length of the signed release (2 bytes, little endian), the release, and the image.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey, sha256};
use tenure_wire::{Digest, VerifyingKey};

use crate::signed::{Kind, SignedError};

/// The longest signed release, in bytes.
pub const RELEASE_BYTES_MAX: usize = 512;

const KIND: Kind = Kind {
    magic: *b"tenurfw\x01",
    context: Context::new("firmware"),
    bytes_max: RELEASE_BYTES_MAX,
};
const LENGTH_BYTES: usize = 2;

/// The subject of a signature: an image, the board that it is for, and its place among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The board, by the name in the image's header.
    pub board: String,
    /// Its number; a device takes none that isn't greater than what it runs.
    pub number: u32,
    /// The version of the images of machines that it runs.
    pub machine_format: u16,
    /// The length of the image.
    pub bytes: u32,
    /// SHA-256 of the image.
    pub digest: Digest,
}

impl Release {
    /// The release of `image`.
    pub fn new(board: &str, number: u32, machine_format: u16, image: &[u8]) -> Self {
        Self {
            board: board.into(),
            number,
            machine_format,
            bytes: image.len() as u32,
            digest: sha256(&[image]),
        }
    }

    /// The file that brings `image` to devices, its release signed with `key`.
    ///
    /// # Errors
    /// [`FirmwareError::Form`] if the board's name is too long, or the image isn't the release's.
    pub fn to_file(&self, image: &[u8], key: &SigningKey) -> Result<Vec<u8>, FirmwareError> {
        let signed = KIND.sign(self, key).map_err(|_| FirmwareError::Form)?;
        if signed.len() > RELEASE_BYTES_MAX || sha256(&[image]) != self.digest {
            return Err(FirmwareError::Form);
        }
        let mut file = Vec::with_capacity(LENGTH_BYTES + signed.len() + image.len());
        file.extend((signed.len() as u16).to_le_bytes());
        file.extend(signed);
        file.extend(image);
        Ok(file)
    }

    /// Whose key stands in `signed`; nothing says yet that its holder signed it.
    ///
    /// # Errors
    /// It doesn't begin as a release does.
    pub fn signer(signed: &[u8]) -> Result<VerifyingKey, FirmwareError> {
        Ok(KIND.signer(signed)?)
    }

    /// The release in `signed`, once it is sure that one of `signers` signed it.
    ///
    /// # Errors
    /// See [`FirmwareError`].
    pub fn verify(signed: &[u8], signers: &[VerifyingKey]) -> Result<Self, FirmwareError> {
        if !signers.contains(&KIND.signer(signed)?) {
            return Err(FirmwareError::OtherSigner);
        }
        Ok(KIND.verify(signed)?.0)
    }

    /// The release in a file, its signed form, who signed it, and the image that it vouches for.
    ///
    /// # Errors
    /// See [`FirmwareError`].
    pub fn from_file(file: &[u8]) -> Result<FirmwareFile<'_>, FirmwareError> {
        let (length, rest) = file.split_first_chunk().ok_or(FirmwareError::Truncated)?;
        let length = usize::from(u16::from_le_bytes(*length));
        let (signed, image) = rest.split_at_checked(length).ok_or(FirmwareError::NotFirmware)?;
        let (release, signer): (Self, _) = KIND.verify(signed)?;
        if release.bytes as usize > image.len() {
            return Err(FirmwareError::Truncated);
        }
        if release.bytes as usize != image.len() || sha256(&[image]) != release.digest {
            return Err(FirmwareError::Signature);
        }
        Ok(FirmwareFile { release, signed, signer, image })
    }
}

/// The content of a file of firmware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareFile<'a> {
    /// The release.
    pub release: Release,
    /// The release as it was signed.
    pub signed: &'a [u8],
    /// The signer.
    pub signer: VerifyingKey,
    /// The image.
    pub image: &'a [u8],
}

/// Why bytes are no firmware that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareError {
    /// They don't begin as a signed firmware of a known format does.
    NotFirmware,
    /// It is in a version of the format that isn't read here.
    FormatVersion,
    /// They end too soon.
    Truncated,
    /// Its signer is none of those from whom the device takes firmware.
    OtherSigner,
    /// It isn't what was signed: it was changed since, or forged.
    Signature,
    /// The signed bytes can't be read: the tool that made them is to blame.
    Form,
}

impl From<SignedError> for FirmwareError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::Kind => Self::NotFirmware,
            SignedError::Version => Self::FormatVersion,
            SignedError::Truncated => Self::Truncated,
            SignedError::Signature => Self::Signature,
            SignedError::Form => Self::Form,
        }
    }
}

impl fmt::Display for FirmwareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FormatVersion => {
                "the firmware is in another version of its format; make it with a `tenure` of the device's version"
            }
            Self::NotFirmware => "not a signed firmware; make it with `tenure firmware sign`",
            Self::Truncated => "the firmware is cut off; fetch it again",
            Self::OtherSigner => {
                "the firmware is signed by neither the device's owner nor the maker in its settings"
            }
            Self::Signature => "the firmware isn't what was signed: it was changed or forged",
            Self::Form => "the firmware can't be read; sign it with a tool of this version",
        })
    }
}

impl core::error::Error for FirmwareError {}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn what_was_signed_comes_out_and_nothing_that_was_changed() {
        let key = SigningKey::from_bytes(&[5; 32]);
        let image = vec![7; 300];
        let release = Release::new("board", 3, 2, &image);
        let file = release.to_file(&image, &key).unwrap();
        let found = Release::from_file(&file).unwrap();
        assert_eq!((&found.release, found.image), (&release, &image[..]));
        assert_eq!(found.signer, key.verifying_key());
        let owner = [key.verifying_key()];
        assert_eq!(Release::verify(found.signed, &owner), Ok(release.clone()));
        assert_eq!(Release::verify(found.signed, &[]), Err(FirmwareError::OtherSigner));
        for bit in 0..file.len() * 8 {
            let mut changed = file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Release::from_file(&changed).is_err(), "bit {bit}");
        }
        for length in 0..file.len() {
            assert!(Release::from_file(&file[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(release.to_file(&image[1..], &key), Err(FirmwareError::Form));
    }
}
