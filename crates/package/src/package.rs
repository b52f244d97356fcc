//! A package as bytes, and the checked view of it.

use core::fmt;

use tenure_crypto::{sha256, verify_digest};
use tenure_wire::{CodeKind, Digest, Signature, VerifyingKey};

use crate::layout::{
    BODY_AT, CODE_BYTES_MAX, COMPILED_BYTES_MAX, COMPILED_HEADER_BYTES, COMPILED_LENGTH_BYTES,
    CONTEXT, KEY_AT, LENGTHS_AT, MAGIC, MAGIC_NAME, MANIFEST_BYTES_MAX, SIGNATURE_BYTES,
    TREE_BYTES_MAX, VERSION_WITH_COMPILED, VERSION_WITH_STAR, VERSION_WITHOUT_COMPILED,
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
    /// All compiled code, with its kinds and lengths.
    compiled: &'a [u8],
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
        let version = *bytes.get(MAGIC_NAME.len()).ok_or(PackageError::Truncated)?;
        let has_compiled = match version {
            VERSION_WITHOUT_COMPILED => false,
            VERSION_WITH_COMPILED | VERSION_WITH_STAR => true,
            _ if version == MAGIC[MAGIC_NAME.len()] => true,
            _ => return Err(PackageError::FormatVersion { version }),
        };
        let body_at = BODY_AT + if has_compiled { COMPILED_LENGTH_BYTES } else { 0 };
        let header = bytes.get(..body_at).ok_or(PackageError::Truncated)?;
        let length = |index: usize, limit: usize| {
            let at = LENGTHS_AT + 4 * index;
            let field = header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            let length = usize::try_from(field).unwrap_or(usize::MAX);
            if length > limit { Err(PackageError::TooLarge) } else { Ok(length) }
        };
        let body = &bytes[body_at..];
        let (manifest, body) = split(body, length(0, MANIFEST_BYTES_MAX)?)?;
        let (tree, body) = split(body, length(1, TREE_BYTES_MAX)?)?;
        let (code, body) = split(body, length(2, CODE_BYTES_MAX)?)?;
        let compiled = if has_compiled { length(3, COMPILED_BYTES_MAX)? } else { 0 };
        let (compiled, body) = split(body, compiled)?;
        let (signature, rest) =
            body.split_first_chunk::<SIGNATURE_BYTES>().ok_or(PackageError::Truncated)?;
        if !rest.is_empty() {
            return Err(PackageError::TrailingBytes { bytes: rest.len() });
        }
        let (key, _) = header[KEY_AT..].split_first_chunk().ok_or(PackageError::Truncated)?;
        let manifest = parse_manifest(manifest)?;
        check_sections(code, manifest.code.len())?;
        check_compiled(compiled, version)?;
        Ok(Self {
            bytes,
            tenant: VerifyingKey(*key),
            manifest,
            tree: Tree::parse(tree).map_err(PackageError::Tree)?,
            code,
            compiled,
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

    /// The package's description of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The values that a machine of it finds in its tree at first.
    pub fn tree(&self) -> Tree<'a> {
        self.tree
    }

    /// The code of that kind, if the package carries it; nothing of it has been checked.
    pub fn code(&self, kind: CodeKind) -> Option<&'a [u8]> {
        let kinds = self.manifest.code.iter();
        kinds.zip(sections(self.code)).find(|(listed, _)| **listed == kind).map(|(_, code)| code)
    }

    /// The code that was compiled from the wasm for processors of that kind, if the package carries it;
    /// nothing of it has been checked.
    pub fn compiled(&self, kind: CodeKind) -> Option<&'a [u8]> {
        let mut found = compiled_sections(self.compiled);
        found.find(|(of, _)| *of == kind).map(|(_, code)| code)
    }

    /// The kinds of processors that it carries compiled code for.
    pub fn compiled_kinds(&self) -> impl Iterator<Item = CodeKind> {
        compiled_sections(self.compiled).map(|(kind, _)| kind)
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

/// The sections of a package's compiled code, as far as they are whole.
fn compiled_sections(mut compiled: &[u8]) -> impl Iterator<Item = (CodeKind, &[u8])> {
    core::iter::from_fn(move || {
        let (header, rest) = compiled.split_first_chunk::<COMPILED_HEADER_BYTES>()?;
        let kind = COMPILED_KINDS
            .into_iter()
            .find(|kind| header[..COMPILED_HEADER_BYTES / 2] == compiled_kind_bytes(*kind))?;
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let (section, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        compiled = rest;
        Some((kind, section))
    })
}

const COMPILED_KINDS: [CodeKind; 2] = [CodeKind::Rv32, CodeKind::Thumb];

/// A kind of processor, as it stands before its compiled code.
pub(crate) fn compiled_kind_bytes(kind: CodeKind) -> [u8; COMPILED_HEADER_BYTES / 2] {
    [kind as u8, 0, 0, 0]
}

/// Checks that compiled code is whole sections in the order of their kinds, and that there is some where
/// the format says so.
fn check_compiled(compiled: &[u8], version: u8) -> Result<(), PackageError> {
    let (mut bytes, mut last) = (0, None);
    for (kind, section) in compiled_sections(compiled) {
        if last >= Some(kind) {
            return Err(PackageError::Code);
        }
        bytes += COMPILED_HEADER_BYTES + section.len();
        last = Some(kind);
    }
    let is_well = bytes == compiled.len() && (version != VERSION_WITH_COMPILED || last.is_some());
    if is_well { Ok(()) } else { Err(PackageError::Code) }
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
                "a package of format {version}, and only {VERSION_WITHOUT_COMPILED} to {} are known \
                 here; build it again, or update what reads it",
                MAGIC[MAGIC_NAME.len()]
            ),
            Self::Truncated => f.write_str("the package is cut off; copy or build it again"),
            Self::TrailingBytes { bytes } => {
                write!(f, "{bytes} bytes follow the package; copy or build it again")
            }
            Self::TooLarge => write!(
                f,
                "the package is too large: its manifest may have {MANIFEST_BYTES_MAX} bytes, its \
                 tree {TREE_BYTES_MAX}, its code {CODE_BYTES_MAX}, and its compiled code {COMPILED_BYTES_MAX}"
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
