//! Native binaries: code of a processor's own that a machine is made of, in the form in which
//! packages carry it.
//!
//! A binary is one image of memory, linked as if it began at address 0:
//!
//! | what | from | up to |
//! |---|---|---|
//! | code and constants, which it only reads | 0 | `code_bytes` |
//! | its stack, which grows down: what overruns it meets the code | `code_bytes` | and `stack_bytes` |
//! | variables: `data_bytes` with a value, then `zero_bytes` without | there | and those |
//! | its heap | there | the end of its memory |
//!
//! It runs at any address at which it is loaded: `relocations` says which of its words are addresses
//! in it. The first word of its variables is where its memory ends, which the loader writes.
//!
//! In a file, integers are little-endian: [`MAGIC`], kind and three zeros, then the lengths above,
//! the count of relocations, the length of the exports, 4 bytes each; the relocations (offsets, rising,
//! 4 bytes each); the exports (length of the name in a byte, name, offset in 4 bytes); code;
//! variables; and the CRC-32C of all that.

use alloc::vec::Vec;
use core::fmt;

use crc::{CRC_32_ISCSI, Crc, Table};
use tenure_wire::CodeKind;
use tenure_wire::limits::FUNCTION_BYTES_MAX;

const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISCSI);
/// The first bytes of a binary; the last of them is the version of the format.
const MAGIC: [u8; 4] = *b"tnb\x01";
const WORD: usize = size_of::<u32>();
/// Magic, kind, and six lengths.
const HEADER_BYTES: usize = 8 * WORD;
/// The parts of a binary begin at a multiple of this.
const PART_ALIGNMENT: u32 = 16;
/// The most memory that a binary may ask for; what no device has keeps sums of lengths in range.
const MEMORY_BYTES_MAX: u32 = 1 << 28;

/// A native binary whose form has been checked; nothing of what its code does has been.
#[derive(Clone, Copy, Debug)]
pub struct NativeBinary<'a> {
    kind: CodeKind,
    stack_bytes: u32,
    zero_bytes: u32,
    relocations: &'a [u8],
    exports: &'a [u8],
    code: &'a [u8],
    data: &'a [u8],
}

impl<'a> NativeBinary<'a> {
    /// Checks the form of `bytes`, which must be one binary and nothing more.
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NativeError> {
        let (body, checksum) = bytes.split_last_chunk().ok_or(NativeError::Truncated)?;
        let binary = Self::reopen(bytes)?;
        if CRC.checksum(body) != u32::from_le_bytes(*checksum) {
            return Err(NativeError::Damaged);
        }
        binary.check()?;
        Ok(binary)
    }

    /// As [`Self::parse`], of bytes that have been checked before.
    pub(crate) fn reopen(bytes: &'a [u8]) -> Result<Self, NativeError> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(NativeError::Truncated)?;
        if header[..WORD] != MAGIC {
            return Err(NativeError::NotABinary);
        }
        let kind = match header[WORD..2 * WORD] {
            [1, 0, 0, 0] => CodeKind::Rv32,
            [2, 0, 0, 0] => CodeKind::Thumb,
            _ => return Err(NativeError::NotABinary),
        };
        let field = |index: usize| word_at(header, WORD * (2 + index)).unwrap_or(u32::MAX);
        let (code_bytes, stack_bytes, data_bytes) = (field(0), field(1), field(2));
        let (zero_bytes, count, exports_bytes) = (field(3), field(4), field(5));
        let parts = [code_bytes, stack_bytes, data_bytes, zero_bytes];
        let sum = parts.iter().try_fold(0_u32, |sum, part| sum.checked_add(*part));
        if sum.is_none_or(|sum| sum > MEMORY_BYTES_MAX) || count > MEMORY_BYTES_MAX {
            return Err(NativeError::Layout);
        }
        let (relocations, rest) = split(rest, count as usize * WORD)?;
        let (exports, rest) = split(rest, exports_bytes as usize)?;
        let (code, rest) = split(rest, code_bytes as usize)?;
        let (data, rest) = split(rest, data_bytes as usize)?;
        if rest.len() != WORD {
            return Err(NativeError::Truncated);
        }
        Ok(Self { kind, stack_bytes, zero_bytes, relocations, exports, code, data })
    }

    fn check(&self) -> Result<(), NativeError> {
        let aligned = [self.code_bytes(), self.stack_bytes, self.data.len() as u32]
            .iter()
            .all(|bytes| bytes.is_multiple_of(PART_ALIGNMENT));
        if !aligned || self.stack_bytes == 0 || self.data.len() < WORD {
            return Err(NativeError::Layout);
        }
        let mut least = 0;
        for offset in self.relocations() {
            if offset < least || self.place(offset).is_none() {
                return Err(NativeError::Relocation);
            }
            least = offset.saturating_add(1);
        }
        let named: usize = self.exports().map(|(name, _)| 1 + name.len() + WORD).sum();
        let callable = self.exports().all(|(name, offset)| {
            !name.is_empty() && name.len() <= FUNCTION_BYTES_MAX && offset < self.code_bytes()
        });
        if named == self.exports.len() && callable { Ok(()) } else { Err(NativeError::Export) }
    }

    /// The processors that it is for.
    pub fn kind(&self) -> CodeKind {
        self.kind
    }

    /// How long code and constants are, in bytes.
    pub fn code_bytes(&self) -> u32 {
        self.code.len() as u32
    }

    /// Where its variables begin, which is where its stack begins to grow down from.
    pub fn data_at(&self) -> u32 {
        self.code_bytes() + self.stack_bytes
    }

    /// The memory that it needs at least, in bytes: all but a heap.
    pub fn memory_bytes(&self) -> u32 {
        self.data_at() + self.data.len() as u32 + self.zero_bytes
    }

    /// The functions that can be called, with the offset of each.
    pub fn exports(&self) -> impl Iterator<Item = (&'a str, u32)> + use<'a> {
        let mut rest = self.exports;
        core::iter::from_fn(move || {
            let (&length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(length.into())?;
            let (offset, after) = after.split_first_chunk()?;
            rest = after;
            Some((core::str::from_utf8(name).ok()?, u32::from_le_bytes(*offset)))
        })
    }

    /// Where the function `name` begins, if it can be called.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.exports().find(|(known, _)| *known == name).map(|(_, offset)| offset)
    }

    /// Writes it to `memory`, whose other bytes are zero, to be run at `address`.
    ///
    /// # Errors
    /// [`NativeError::Memory`] if `memory` is too short.
    pub fn load(&self, memory: &mut [u8], address: u32) -> Result<(), NativeError> {
        if memory.len() < self.memory_bytes() as usize {
            return Err(NativeError::Memory);
        }
        let end = address.wrapping_add(memory.len() as u32);
        let data_at = self.data_at() as usize;
        memory[..self.code.len()].copy_from_slice(self.code);
        memory[data_at..data_at + self.data.len()].copy_from_slice(self.data);
        for offset in self.relocations() {
            let place = memory.get_mut(offset as usize..).and_then(<[u8]>::first_chunk_mut);
            let word: &mut [u8; WORD] = place.ok_or(NativeError::Relocation)?;
            *word = u32::from_le_bytes(*word).wrapping_add(address).to_le_bytes();
        }
        memory[data_at..data_at + WORD].copy_from_slice(&end.to_le_bytes());
        Ok(())
    }

    fn relocations(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (words, _) = self.relocations.as_chunks();
        words.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// The word at `offset`, if the file has it.
    fn place(&self, offset: u32) -> Option<u32> {
        let in_data = offset.checked_sub(self.data_at());
        let (part, offset) = in_data.map_or((self.code, offset), |offset| (self.data, offset));
        word_at(part, offset as usize)
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), NativeError> {
    bytes.split_at_checked(at).ok_or(NativeError::Truncated)
}

/// The parts of a binary in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeParts {
    /// The processors that it is for.
    pub kind: CodeKind,
    /// Code and constants.
    pub code: Vec<u8>,
    /// The length of its stack.
    pub stack_bytes: u32,
    /// Variables with a value.
    pub data: Vec<u8>,
    /// The length of variables without.
    pub zero_bytes: u32,
    /// The offsets of words that are addresses, rising.
    pub relocations: Vec<u32>,
    /// Functions, by name and offset.
    pub exports: Vec<(alloc::string::String, u32)>,
}

impl NativeParts {
    /// The binary.
    ///
    /// # Errors
    /// As [`NativeBinary::parse`] of it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NativeError> {
        let mut exports = Vec::new();
        for (name, offset) in &self.exports {
            exports.push(u8::try_from(name.len()).map_err(|_| NativeError::Export)?);
            exports.extend(name.as_bytes());
            exports.extend(offset.to_le_bytes());
        }
        let kind = match self.kind {
            CodeKind::Rv32 => 1,
            CodeKind::Thumb => 2,
            CodeKind::WebAssembly => return Err(NativeError::NotABinary),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([kind, 0, 0, 0]);
        let lengths = [
            self.code.len(),
            self.stack_bytes as usize,
            self.data.len(),
            self.zero_bytes as usize,
            self.relocations.len(),
            exports.len(),
        ];
        for length in lengths {
            bytes.extend(u32::try_from(length).map_err(|_| NativeError::Layout)?.to_le_bytes());
        }
        bytes.extend(self.relocations.iter().flat_map(|offset| offset.to_le_bytes()));
        for part in [&exports, &self.code, &self.data] {
            bytes.extend_from_slice(part);
        }
        bytes.extend(CRC.checksum(&bytes).to_le_bytes());
        NativeBinary::parse(&bytes)?;
        Ok(bytes)
    }
}

/// Why bytes are no native binary that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeError {
    /// They don't begin as a binary of this version does.
    NotABinary,
    /// They are not as long as they say.
    Truncated,
    /// The checksum differs.
    Damaged,
    /// Its parts are too long, or don't begin where they must.
    Layout,
    /// A word to be made an address isn't there.
    Relocation,
    /// A function's name or offset can't be.
    Export,
    /// There is too little memory for it.
    Memory,
}

impl fmt::Display for NativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotABinary => "not a native binary of this version; build it again",
            Self::Truncated => "the native binary is cut off",
            Self::Damaged => "the native binary is damaged: its checksum differs",
            Self::Layout => "the native binary's parts are too long or misplaced",
            Self::Relocation => "the native binary has an address where it has no word",
            Self::Export => "the native binary has a function without a name or a place",
            Self::Memory => "the native binary needs more memory than there is",
        })
    }
}

impl core::error::Error for NativeError {}

#[cfg(test)]
mod tests;
