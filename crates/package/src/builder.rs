//! Making packages: what the developer's tool does.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tenure_crypto::SigningKey;
use tenure_wire::timer::{PackageTimer, When};

use crate::layout::{
    BODY_AT, CODE_BYTES_MAX, COMPILED_BYTES_MAX, COMPILED_LENGTH_BYTES, CONTEXT, MAGIC, MAGIC_NAME,
    MANIFEST_BYTES_MAX, SIGNATURE_BYTES, TREE_BYTES_MAX, VERSION_WITH_COMPILED, VERSION_WITH_STAR,
    VERSION_WITHOUT_COMPILED,
};
use crate::package::compiled_kind_bytes;
use crate::{CodeKind, Entry, Manifest, PackageError, ValueKind};

/// A package in the making.
#[derive(Clone, Debug)]
pub struct PackageBuilder {
    manifest: Manifest,
    code: Vec<u8>,
    compiled: BTreeMap<CodeKind, Vec<u8>>,
    tree: BTreeMap<String, (ValueKind, Vec<u8>)>,
}

impl PackageBuilder {
    /// A package with this manifest, code of the one kind that it lists, and an empty tree.
    ///
    /// # Errors
    /// As [`PackageBuilder::with_code`].
    pub fn new(manifest: Manifest, code: Vec<u8>) -> Result<Self, PackageError> {
        Self::with_code(manifest, &[code])
    }

    /// A package with this manifest, code of each kind that it lists, and an empty tree.
    ///
    /// # Errors
    /// [`PackageError::Manifest`], [`PackageError::Code`] if there isn't code of each kind, or
    /// [`PackageError::TooLarge`].
    pub fn with_code(manifest: Manifest, sections: &[Vec<u8>]) -> Result<Self, PackageError> {
        manifest.check().map_err(PackageError::Manifest)?;
        if sections.len() != manifest.code.len() {
            return Err(PackageError::Code);
        }
        let mut code = Vec::new();
        for section in sections {
            code.extend(u32::try_from(section.len()).unwrap_or(u32::MAX).to_le_bytes());
            code.extend_from_slice(section);
        }
        if code.len() > CODE_BYTES_MAX {
            return Err(PackageError::TooLarge);
        }
        Ok(Self { manifest, code, compiled: BTreeMap::new(), tree: BTreeMap::new() })
    }

    /// Adds the code that was compiled from the package's wasm for processors of that kind.
    ///
    /// # Errors
    /// [`PackageError::Code`] if `kind` is no processor's, or the package carries no wasm.
    pub fn compiled(mut self, kind: CodeKind, code: Vec<u8>) -> Result<Self, PackageError> {
        if kind == CodeKind::WebAssembly || !self.manifest.code.contains(&CodeKind::WebAssembly) {
            return Err(PackageError::Code);
        }
        self.compiled.insert(kind, code);
        Ok(self)
    }

    /// Puts a value into the initial tree, replacing what was at `path`.
    ///
    /// # Errors
    /// [`PackageError::Tree`] if path or value is not well formed.
    pub fn value(
        mut self,
        path: &str,
        kind: ValueKind,
        value: &[u8],
    ) -> Result<Self, PackageError> {
        Entry { path, kind, value }.check().map_err(PackageError::Tree)?;
        self.tree.insert(path.into(), (kind, value.into()));
        Ok(self)
    }

    /// The package's bytes, signed by the tenant who holds `key`.
    ///
    /// # Errors
    /// [`PackageError::TooLarge`] if manifest or tree outgrow their limits.
    pub fn sign(&self, key: &SigningKey) -> Result<Vec<u8>, PackageError> {
        let manifest =
            postcard::to_allocvec(&self.manifest).map_err(|_| PackageError::ManifestForm)?;
        let mut tree = Vec::new();
        for (path, (kind, value)) in &self.tree {
            Entry { path, kind: *kind, value }.write(&mut tree);
        }
        let mut compiled = Vec::new();
        for (kind, code) in &self.compiled {
            compiled.extend(compiled_kind_bytes(*kind));
            compiled.extend(u32::try_from(code.len()).unwrap_or(u32::MAX).to_le_bytes());
            compiled.extend_from_slice(code);
        }
        let is_too_large = manifest.len() > MANIFEST_BYTES_MAX
            || tree.len() > TREE_BYTES_MAX
            || compiled.len() > COMPILED_BYTES_MAX;
        if is_too_large {
            return Err(PackageError::TooLarge);
        }
        let all = [&manifest, &tree, &self.code, &compiled];
        let version = self.version();
        let parts = if version == VERSION_WITHOUT_COMPILED { &all[..3] } else { &all[..] };
        let sum = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(BODY_AT + COMPILED_LENGTH_BYTES + sum + SIGNATURE_BYTES);
        bytes.extend(MAGIC_NAME);
        bytes.push(version);
        bytes.extend(key.verifying_key().0);
        for part in parts {
            bytes.extend((part.len() as u32).to_le_bytes());
        }
        for part in parts {
            bytes.extend(*part);
        }
        let signature = key.sign(CONTEXT, &bytes);
        bytes.extend(signature.to_bytes());
        Ok(bytes)
    }

    /// The oldest format that says all that the package is.
    fn version(&self) -> u8 {
        let has_odd_star = |timer: &PackageTimer| match timer.when {
            When::At(schedule) => schedule.has_odd_star(),
            When::Every(_) | When::AtLocal(_) => false,
        };
        let has_zone = |timer: &PackageTimer| matches!(timer.when, When::AtLocal(_));
        if self.manifest.timers.iter().any(has_zone) {
            MAGIC[MAGIC_NAME.len()]
        } else if self.manifest.timers.iter().any(has_odd_star) {
            VERSION_WITH_STAR
        } else if self.compiled.is_empty() {
            VERSION_WITHOUT_COMPILED
        } else {
            VERSION_WITH_COMPILED
        }
    }
}
