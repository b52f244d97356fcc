//! Compiled code: what a package carries beside its wasm for one kind of processor, made from the image
//! that its devices translate that wasm to.
//!
//! It is a hint. A device runs it only for the very image that it was compiled from, and only behind memory
//! protection. What it reaches is its machine's: who compiled it need not be trusted.
//!
//! In a file, integers are little-endian: [`MAGIC`], the kind and three zeros, [`Image::module_checksum`]
//! of the image, the offset of the function to call (odd for Thumb code), the length of the code, 12 zeros;
//! the code with its constants, which runs at any address that is a multiple of [`ALIGNMENT`]; and the CRC-32C
//! of all that.

use alloc::vec::Vec;
use core::fmt;

use crc::{CRC_32_ISCSI, Crc, Table};
use tenure_vm::Image;
use tenure_wire::CodeKind;

const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISCSI);
/// The first bytes of compiled code; the last of them is the version of the format.
const MAGIC: [u8; 4] = *b"tnc\x01";
const WORD: usize = size_of::<u32>();
const HEADER_BYTES: usize = 8 * WORD;
/// The alignment of the code and of its length, in bytes: memory protection divides memory so, on small
/// cores.
const ALIGNMENT: usize = 32;
const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGNMENT));

/// Bytes of native stack that compiled code has: for its entry, for calls that nest, and one function's own
/// frame on top.
pub const COMPILED_STACK_BYTES: usize = 1920;

/// Compiled code whose form has been checked; nothing of what it does has been.
#[derive(Clone, Copy, Debug)]
pub struct CompiledCode<'a> {
    kind: CodeKind,
    module_checksum: u32,
    entry: u32,
    code: &'a [u8],
}

impl<'a> CompiledCode<'a> {
    /// Checks the form of `bytes`, which must be one section of compiled code and nothing more.
    ///
    /// # Errors
    /// See [`CompiledError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, CompiledError> {
        let (body, checksum) = bytes.split_last_chunk().ok_or(CompiledError::Truncated)?;
        let compiled = Self::reopen(bytes)?;
        if CRC.checksum(body) != u32::from_le_bytes(*checksum) {
            return Err(CompiledError::Damaged);
        }
        Ok(compiled)
    }

    /// As [`Self::parse`], of bytes that have been checked before.
    pub(crate) fn reopen(bytes: &'a [u8]) -> Result<Self, CompiledError> {
        let (header, rest) =
            bytes.split_at_checked(HEADER_BYTES).ok_or(CompiledError::Truncated)?;
        if header[..WORD] != MAGIC {
            return Err(CompiledError::NotCompiledCode);
        }
        let kind = match header[WORD..2 * WORD] {
            [1, 0, 0, 0] => CodeKind::Rv32,
            [2, 0, 0, 0] => CodeKind::Thumb,
            _ => return Err(CompiledError::NotCompiledCode),
        };
        let field = |index: usize| {
            let at = header[(2 + index) * WORD..].first_chunk();
            at.map_or(u32::MAX, |word| u32::from_le_bytes(*word))
        };
        let (module_checksum, entry, code_bytes) = (field(0), field(1), field(2));
        let (code, checksum) =
            rest.split_at_checked(code_bytes as usize).ok_or(CompiledError::Truncated)?;
        if checksum.len() != WORD {
            return Err(CompiledError::Truncated);
        }
        let is_odd = kind == CodeKind::Thumb;
        let is_laid_out = code.len().is_multiple_of(ALIGNMENT)
            && entry < code_bytes
            && (entry & 1 == 1) == is_odd
            && header[5 * WORD..].iter().all(|byte| *byte == 0);
        if !is_laid_out {
            return Err(CompiledError::Layout);
        }
        Ok(Self { kind, module_checksum, entry, code })
    }

    /// The processors that it is for.
    pub fn kind(&self) -> CodeKind {
        self.kind
    }

    /// Whether it was compiled from `image`, as it says. Goes through the image.
    pub fn is_of(&self, image: &Image<'_>) -> bool {
        self.module_checksum == image.module_checksum()
    }

    /// The code and its constants.
    pub fn code(&self) -> &'a [u8] {
        self.code
    }

    /// The offset of the function to call.
    pub fn entry(&self) -> usize {
        self.entry as usize
    }
}

/// The parts of compiled code in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledParts {
    /// The processors that it is for.
    pub kind: CodeKind,
    /// [`Image::module_checksum`] of the image that it was compiled from.
    pub module_checksum: u32,
    /// The offset of the function to call; odd for Thumb code.
    pub entry: u32,
    /// Code and constants.
    pub code: Vec<u8>,
}

impl CompiledParts {
    /// The section of a package.
    ///
    /// # Errors
    /// As [`CompiledCode::parse`] of it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CompiledError> {
        let kind = match self.kind {
            CodeKind::Rv32 => 1,
            CodeKind::Thumb => 2,
            CodeKind::WebAssembly => return Err(CompiledError::NotCompiledCode),
        };
        let code_bytes = self.code.len().next_multiple_of(ALIGNMENT);
        let length = u32::try_from(code_bytes).map_err(|_| CompiledError::Layout)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([kind, 0, 0, 0]);
        bytes.extend(
            [self.module_checksum, self.entry, length].iter().flat_map(|n| n.to_le_bytes()),
        );
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(&self.code);
        bytes.resize(HEADER_BYTES + code_bytes, 0);
        bytes.extend(CRC.checksum(&bytes).to_le_bytes());
        CompiledCode::parse(&bytes)?;
        Ok(bytes)
    }
}

/// Why bytes are no compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompiledError {
    /// They don't begin as compiled code of this version does.
    NotCompiledCode,
    /// They are not as long as they say.
    Truncated,
    /// The checksum differs.
    Damaged,
    /// Its function or its length can't be.
    Layout,
}

impl fmt::Display for CompiledError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCompiledCode => "not compiled code of this version; build the package again",
            Self::Truncated => "the compiled code is cut off",
            Self::Damaged => "the compiled code is damaged: its checksum differs",
            Self::Layout => "the compiled code's function or length can't be",
        })
    }
}

impl core::error::Error for CompiledError {}

#[cfg(test)]
mod tests;
