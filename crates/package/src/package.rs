//! A package as bytes, and the checked view of it.

use core::fmt;

use tenure_crypto::{sha256, verify_digest};
use tenure_wire::{CodeKind, Digest, Signature, VerifyingKey};

use crate::layout::{
    BODY_AT, CODE_BYTES_MAX, CONTEXT, KEY_AT, LENGTHS_AT, MAGIC, MAGIC_NAME, MANIFEST_BYTES_MAX,
    SIGNATURE_BYTES, TREE_BYTES_MAX,
};
use crate::{Manifest, ManifestError, Tree, TreeError};

/// A package whose form has been checked. Whether its tenant signed it, [`Package::verify`] says.
#[derive(Clone, Debug)]
pub struct Package<'a> {
    bytes: &'a [u8],
    tenant: VerifyingKey,
    manifest: Manifest,
    tree: Tree<'a>,
    /// All kinds of code, with their lengths.
    code: &'a [u8],
    signature: Signature,
}

impl<'a> Package<'a> {
    /// Checks the form of `bytes`, which must be one package and nothing more.
    ///
    /// # Errors
    /// See [`PackageError`]. The signature is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PackageError> {
        if !bytes.starts_with(MAGIC_NAME) {
            return Err(PackageError::NotAPackage);
        }
        if let Some(&version) = bytes.get(MAGIC_NAME.len())
            && version != MAGIC[MAGIC_NAME.len()]
        {
            return Err(PackageError::FormatVersion { version });
        }
        let header = bytes.get(..BODY_AT).ok_or(PackageError::Truncated)?;
        let length = |index: usize, limit: usize| {
            let at = LENGTHS_AT + 4 * index;
            let field = header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            let length = usize::try_from(field).unwrap_or(usize::MAX);
            if length > limit { Err(PackageError::TooLarge) } else { Ok(length) }
        };
        let body = &bytes[BODY_AT..];
        let (manifest, body) = split(body, length(0, MANIFEST_BYTES_MAX)?)?;
        let (tree, body) = split(body, length(1, TREE_BYTES_MAX)?)?;
        let (code, body) = split(body, length(2, CODE_BYTES_MAX)?)?;
        let (signature, rest) =
            body.split_first_chunk::<SIGNATURE_BYTES>().ok_or(PackageError::Truncated)?;
        if !rest.is_empty() {
            return Err(PackageError::TrailingBytes { bytes: rest.len() });
        }
        let (key, _) = header[KEY_AT..].split_first_chunk().ok_or(PackageError::Truncated)?;
        let manifest = parse_manifest(manifest)?;
        check_sections(code, manifest.code.len())?;
        Ok(Self {
            bytes,
            tenant: VerifyingKey(*key),
            manifest,
            tree: Tree::parse(tree).map_err(PackageError::Tree)?,
            code,
            signature: Signature::from_bytes(signature),
        })
    }

    /// Checks that the tenant whom the package names signed these very bytes.
    ///
    /// # Errors
    /// [`PackageError::Signature`] if not.
    pub fn verify(&self) -> Result<(), PackageError> {
        verify_digest(&self.tenant, CONTEXT, &self.digest(), &self.signature)
            .map_err(|_| PackageError::Signature)
    }

    /// The SHA-256 of all that is signed: what a placement names the package by.
    pub fn digest(&self) -> Digest {
        sha256(&[&self.bytes[..self.bytes.len() - SIGNATURE_BYTES]])
    }

    /// The tenant whom the package names.
    pub fn tenant(&self) -> VerifyingKey {
        self.tenant
    }

    /// What the package says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What a machine of it finds in its tree at first.
    pub fn tree(&self) -> Tree<'a> {
        self.tree
    }

    /// The code of that kind, if the package carries it; nothing of it has been checked.
    pub fn code(&self, kind: CodeKind) -> Option<&'a [u8]> {
        let kinds = self.manifest.code.iter();
        kinds.zip(sections(self.code)).find(|(listed, _)| **listed == kind).map(|(_, code)| code)
    }

    /// How long the code of all kinds is together, in bytes.
    pub fn code_bytes(&self) -> usize {
        sections(self.code).map(<[u8]>::len).sum()
    }
}

/// The sections of a package's code, as far as they are whole.
fn sections(mut code: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let (length, rest) = code.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (section, rest) = rest.split_at_checked(length)?;
        code = rest;
        Some(section)
    })
}

fn check_sections(code: &[u8], count: usize) -> Result<(), PackageError> {
    let lengths = sections(code).map(|section| size_of::<u32>() + section.len());
    let (found, bytes) = lengths.fold((0, 0), |(found, sum), length| (found + 1, sum + length));
    if found == count && bytes == code.len() { Ok(()) } else { Err(PackageError::Code) }
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), PackageError> {
    bytes.split_at_checked(at).ok_or(PackageError::Truncated)
}

fn parse_manifest(bytes: &[u8]) -> Result<Manifest, PackageError> {
    match postcard::take_from_bytes::<Manifest>(bytes) {
        Ok((manifest, [])) => {
            manifest.check().map_err(PackageError::Manifest)?;
            Ok(manifest)
        }
        _ => Err(PackageError::ManifestForm),
    }
}

/// Why bytes are not a package that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageError {
    /// They don't begin as a package does: whoever chose the file is to blame.
    NotAPackage,
    /// They are of a format that this program doesn't know.
    FormatVersion {
        /// The format's version.
        version: u8,
    },
    /// They end too soon: the copy is incomplete.
    Truncated,
    /// Something follows the package.
    TrailingBytes {
        /// How much.
        bytes: usize,
    },
    /// A part is longer than a package's parts may be.
    TooLarge,
    /// The manifest can't be read: it was made by a newer tool, or tampered with.
    ManifestForm,
    /// The manifest says what it may not.
    Manifest(ManifestError),
    /// The code isn't what the manifest lists.
    Code,
    /// The initial tree is not well formed.
    Tree(TreeError),
    /// The tenant whom it names did not sign these bytes: they were changed since, or forged.
    Signature,
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPackage => f.write_str("not a package; make one with `tenure build`"),
            Self::FormatVersion { version } => write!(
                f,
                "a package of format {version}, and only {} is known here; build it again, or \
                 update what reads it",
                MAGIC[MAGIC_NAME.len()]
            ),
            Self::Truncated => f.write_str("the package is cut off; copy or build it again"),
            Self::TrailingBytes { bytes } => {
                write!(f, "{bytes} bytes follow the package; copy or build it again")
            }
            Self::TooLarge => write!(
                f,
                "the package is too large: its manifest may have {MANIFEST_BYTES_MAX} bytes, its \
                 tree {TREE_BYTES_MAX}, its code {CODE_BYTES_MAX}"
            ),
            Self::ManifestForm => f.write_str(
                "the package's manifest can't be read; build it again, or update what reads it",
            ),
            Self::Manifest(error) => write!(f, "the package's manifest is refused: {error}"),
            Self::Code => f.write_str(
                "the package's code isn't what its manifest lists; copy or build it again",
            ),
            Self::Tree(error) => write!(f, "the package's initial tree is refused: {error}"),
            Self::Signature => f.write_str(
                "the package was not signed by the tenant it names: it was changed or forged; \
                 get it again from its tenant",
            ),
        }
    }
}

impl core::error::Error for PackageError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Manifest(error) => Some(error),
            Self::Tree(error) => Some(error),
            _ => None,
        }
    }
}
