//! A checked view of an image.

use super::{
    EXPORT_BYTES, FOOTER_BYTES, FUNCTION_BYTES, Footer, GLOBAL_BYTES, HEADER_BYTES, MAGIC, NONE,
    Range, SEGMENT_BYTES, TABLE_BYTES, TYPE_BYTES, VERSION, verify::verify,
};
use crate::{
    checksum::Crc32,
    checksum::crc32,
    interpreter,
    memory::as_words,
    translate::{MemoryType, TableType},
    value::{FunctionType, ValueType},
};

/// Why bytes are not an image that may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// No image begins here.
    NotAnImage,
    /// Made by another version of the translator: translate the module again.
    Version(u16),
    /// Not as long as it says.
    Truncated,
    /// The checksum differs.
    Damaged,
    /// Made for another package.
    ForeignPackage,
    /// The checksum is right, but the contents break a rule at this offset: not our translator's work.
    Forged(u32),
    /// The bytes must begin at an address that four divides, and not among the first 17 KB.
    Misaligned,
    /// The heap had no room for what a check of the image takes: a bit for each unit of its longest function.
    OutOfMemory,
}

impl core::fmt::Display for ImageError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ImageError::NotAnImage => formatter.write_str("not an image"),
            ImageError::Version(found) => {
                write!(
                    formatter,
                    "image of version {found}, not {VERSION}: translate the module again"
                )
            }
            ImageError::Truncated => formatter.write_str("image is truncated"),
            ImageError::Damaged => formatter.write_str("image is damaged: its checksum differs"),
            ImageError::ForeignPackage => formatter.write_str("image was made for another package"),
            ImageError::Forged(at) => write!(formatter, "image breaks a rule at byte {at}"),
            ImageError::Misaligned => formatter
                .write_str("image does not lie at a multiple of four, beyond the first 17 KB"),
            ImageError::OutOfMemory => formatter.write_str("out of memory while it was checked"),
        }
    }
}

impl core::error::Error for ImageError {}

/// Number of a function, imported ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionIndex(pub u32);

/// Names an image that [`Image::parse`] has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageToken {
    pub(crate) length: u32,
    pub(crate) checksum: u32,
    /// The table of functions, which every run needs.
    pub(crate) functions: Range,
}

/// An image: code and constants of a machine, shared by all its instances.
///
/// The table of functions lies in the bytes, at a multiple of four.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    bytes: &'a [u8],
    /// Bytes of the address space behind the image: how far ahead of `pc` the interpreter's `limit` may
    /// be, wherever in the image a branch takes both.
    pub(crate) room: usize,
    pub(crate) token: ImageToken,
}

/// An exported function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionExport<'a> {
    /// The figures that `Instance::prepare` takes.
    pub index: FunctionIndex,
    /// Its parameters and results.
    pub signature: FunctionType<'a>,
}

/// The facts of a function that a call of it needs.
#[derive(Clone, Copy, Debug)]
pub struct FunctionShape<'a> {
    /// Where its code begins, counted from the image's first byte.
    pub code_at: u32,
    /// Bytes of its frame.
    pub frame_bytes: u16,
    /// Offset of the return link in the frame.
    pub link: u16,
    /// Slots behind the link that a call clears.
    pub zeros: u16,
    /// Units of fuel for entering it, beside the length of the call.
    pub entry_units: u32,
    /// Number of its type: functions of one type have the same.
    pub type_number: u16,
    /// Its parameters and results: each takes a slot, from the frame's first on.
    pub signature: FunctionType<'a>,
}

/// The kind of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// A function.
    Function(FunctionIndex),
    /// A table.
    Table(u32),
    /// The memory.
    Memory,
    /// A global variable.
    Global(u32),
}

/// A named part of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export<'a> {
    /// The name.
    pub name: &'a str,
    /// The thing that it names.
    pub kind: ExportKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionEntry {
    pub(crate) code: u32,
    pub(crate) frame_bytes: u16,
    pub(crate) link: u16,
    pub(crate) zeros: u16,
    pub(crate) canonical: u16,
    pub(crate) params: u16,
    pub(crate) results: u16,
}

impl FunctionEntry {
    pub(crate) fn to_bytes(self) -> [u8; FUNCTION_BYTES] {
        let mut bytes = [0; FUNCTION_BYTES];
        bytes[..4].copy_from_slice(&self.code.to_le_bytes());
        let halves =
            [self.frame_bytes, self.link, self.zeros, self.canonical, self.params, self.results];
        for (bytes, half) in bytes[4..].chunks_exact_mut(2).zip(halves) {
            bytes.copy_from_slice(&half.to_le_bytes());
        }
        bytes
    }
}

#[derive(Clone, Copy)]
pub(crate) struct GlobalEntry {
    pub(crate) initial: u64,
    pub(crate) value_type: ValueType,
}

#[derive(Clone, Copy)]
pub(crate) struct TableEntry {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct DataSegment<'a> {
    /// Address, of an active segment.
    pub(crate) address: Option<u32>,
    pub(crate) bytes: &'a [u8],
}

#[derive(Clone, Copy)]
pub(crate) struct ElementSegment<'a> {
    /// Table and first index, of an active segment.
    pub(crate) place: Option<(u32, u32)>,
    /// A declared segment holds nothing when the program starts.
    pub(crate) declared: bool,
    items: &'a [u8],
}

impl ElementSegment<'_> {
    pub(crate) fn len(&self) -> usize {
        self.items.len() / 4
    }

    /// Copies as many items as `to` has room for, from the one of this index on.
    pub(crate) fn copy_to(&self, from: usize, to: &mut [u32]) {
        let items = self.items.get(from * 4..(from + to.len()) * 4).unwrap_or(&[]);
        if let Some(words) = as_words(items).filter(|words| words.len() == to.len()) {
            return to.copy_from_slice(words);
        }
        for (item, bytes) in to.iter_mut().zip(items.chunks_exact(4)) {
            *item = bytes.first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes));
        }
    }
}

/// Where digest, length and checksum stand in the footer; before the digest there are words.
const DIGEST_AT: usize = 7 * 8 + 24;
const LENGTH_AT: usize = DIGEST_AT + 32;
const CHECKSUM_AT: usize = LENGTH_AT + 4;
const _: () = assert!(CHECKSUM_AT + 4 == FOOTER_BYTES);

/// Words of the footer behind the sections.
const CODE_END_AT: usize = 7 * 8;
const START_AT: usize = CODE_END_AT + 4;
const PAGES_MIN_AT: usize = CODE_END_AT + 8;
const PAGES_MAX_AT: usize = CODE_END_AT + 12;
const PAGE_SHIFT_AT: usize = CODE_END_AT + 16;
const MEMORIES_AT: usize = CODE_END_AT + 20;

/// The sections, as the footer counts them up.
#[derive(Clone, Copy)]
pub(crate) enum Section {
    Functions,
    Types,
    Exports,
    Globals,
    Tables,
    Elements,
    Data,
}

/// Where a section is; `bytes` has a footer.
fn section(bytes: &[u8], section: Section) -> Range {
    let at = bytes.len() - FOOTER_BYTES + section as usize * 8;
    Range { at: word(bytes, at), count: word(bytes, at + 4) }
}

/// Out of line, as nothing that is read here is read often.
#[inline(never)]
fn word(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(&bytes) => u32::from_le_bytes(bytes),
        None => 0,
    }
}

#[inline(never)]
fn half(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(&bytes) => u16::from_le_bytes(bytes),
        None => 0,
    }
}

impl<'a> Image<'a> {
    /// Checks all of an image: version, length, checksum, and every instruction and table in it, so that
    /// running it needs no checks. Takes time in proportion to its size: do it once.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>, ImageError> {
        let image = Image::open(bytes)?;
        if crc32(&bytes[..bytes.len() - 4]) != image.token.checksum {
            return Err(ImageError::Damaged);
        }
        verify(&image)?;
        Ok(image)
    }

    /// As [`Image::parse`], for an image that must belong to the package with this digest.
    pub fn parse_bound(bytes: &'a [u8], digest: &[u8; 32]) -> Result<Image<'a>, ImageError> {
        let image = Image::parse(bytes)?;
        if image.digest() != digest {
            return Err(ImageError::ForeignPackage);
        }
        Ok(image)
    }

    /// Looks again at bytes that `parse` accepted, in constant time. The bytes must not have changed
    /// since; of that only length and checksum field are compared.
    pub fn reopen(bytes: &'a [u8], token: &ImageToken) -> Result<Image<'a>, ImageError> {
        if bytes.last_chunk() != Some(&token.checksum.to_le_bytes())
            || bytes.len() != token.length as usize
        {
            return Err(ImageError::Damaged);
        }
        Image::at(bytes, *token)
    }

    fn open(bytes: &'a [u8]) -> Result<Image<'a>, ImageError> {
        if bytes.len() < HEADER_BYTES || bytes[..4] != MAGIC {
            return Err(ImageError::NotAnImage);
        }
        if half(bytes, 4) != VERSION {
            return Err(ImageError::Version(half(bytes, 4)));
        }
        let Some(at) = bytes.len().checked_sub(FOOTER_BYTES).filter(|&at| at >= HEADER_BYTES)
        else {
            return Err(ImageError::Truncated);
        };
        let functions = section(bytes, Section::Functions);
        let token = ImageToken {
            length: word(bytes, at + LENGTH_AT),
            checksum: word(bytes, at + CHECKSUM_AT),
            functions,
        };
        if token.length as usize != bytes.len() {
            return Err(ImageError::Truncated);
        }
        // The reader of the table of functions relies on this.
        let functions_end = functions.at as u64 + functions.count as u64 * FUNCTION_BYTES as u64;
        if functions_end > at as u64 || !functions.at.is_multiple_of(4) {
            return Err(ImageError::Forged(functions.at));
        }
        Image::at(bytes, token)
    }

    fn at(bytes: &'a [u8], token: ImageToken) -> Result<Image<'a>, ImageError> {
        // Cores that cannot read across a word boundary execute the image as well.
        if crate::interpreter::STRICT_ALIGNMENT && !bytes.as_ptr().addr().is_multiple_of(4) {
            return Err(ImageError::Misaligned);
        }
        // Fuel owed lies below `pc` as an address, and must not wrap.
        if bytes.as_ptr().addr() < crate::interpreter::OVERRUN_BYTES {
            return Err(ImageError::Misaligned);
        }
        Ok(Image { bytes, room: !bytes.as_ptr_range().end.addr(), token })
    }

    /// All that stands at the image's end: for what isn't done often.
    pub(crate) fn footer(&self) -> Footer {
        let mut words = [0; DIGEST_AT / 4];
        for (index, value) in words.iter_mut().enumerate() {
            *value = self.footer_word(index * 4);
        }
        let range = |index: usize| Range { at: words[index * 2], count: words[index * 2 + 1] };
        let after = |index: usize| words[14 + index];
        Footer {
            functions: self.token.functions,
            types: range(1),
            exports: range(2),
            globals: range(3),
            tables: range(4),
            elements: range(5),
            data: range(6),
            code_end: after(0),
            start: after(1),
            pages_min: after(2),
            pages_max: after(3),
            page_shift: after(4),
            memories: after(5),
            digest: *self.digest(),
        }
    }

    /// Number of a section's entries.
    #[inline(never)]
    pub(crate) fn count(&self, of: Section) -> u32 {
        section(self.bytes, of).count
    }

    /// Pages of memory at the start, and log2 of a page's bytes.
    pub(crate) fn pages(&self) -> (u32, u32) {
        (self.footer_word(PAGES_MIN_AT), self.footer_word(PAGE_SHIFT_AT))
    }

    fn footer_word(&self, at: usize) -> u32 {
        word(self.bytes, self.bytes.len() - FOOTER_BYTES + at)
    }

    /// The mark by which [`Image::reopen`] knows the image again.
    pub fn token(&self) -> ImageToken {
        self.token
    }

    /// Digest of the package that the image was made from; zeros if it was bound to none.
    pub fn digest(&self) -> &'a [u8; 32] {
        let from = self.bytes.len() - FOOTER_BYTES + DIGEST_AT;
        self.bytes[from..].first_chunk().unwrap_or(&[0; 32])
    }

    /// The CRC-32 of all that the module became, whatever package the image is bound to: what code compiled
    /// from the image is known by. Goes through the image.
    pub fn module_checksum(&self) -> u32 {
        let bytes = self.bytes.len() - FOOTER_BYTES + DIGEST_AT;
        let mut checksum = Crc32::new();
        checksum.update(&self.bytes[..bytes]);
        checksum.value()
    }

    /// Looks a function up by the name it is exported under.
    pub fn function(&self, name: &str) -> Option<FunctionExport<'a>> {
        self.named_items().find_map(|(found, kind)| match kind {
            ExportKind::Function(index) if found == name.as_bytes() => {
                Some(FunctionExport { index, signature: self.signature(index)? })
            }
            _ => None,
        })
    }

    /// Everything that is exported, in the module's order.
    pub fn exports(&self) -> impl Iterator<Item = Export<'a>> + 'a {
        self.named_items()
            .map_while(|(name, kind)| Some(Export { name: core::str::from_utf8(name).ok()?, kind }))
    }

    fn named_items(&self) -> impl Iterator<Item = (&'a [u8], ExportKind)> + 'a {
        let bytes = self.bytes;
        let exports = section(bytes, Section::Exports);
        let mut at = exports.at as usize;
        (0..exports.count).map_while(move |_| {
            let length = half(bytes, at + 2) as usize;
            let index = word(bytes, at + 4);
            let kind = match bytes.get(at)? {
                0 => ExportKind::Function(FunctionIndex(index)),
                1 => ExportKind::Table(index),
                2 => ExportKind::Memory,
                _ => ExportKind::Global(index),
            };
            let name = bytes.get(at + EXPORT_BYTES..at + EXPORT_BYTES + length)?;
            at = (at + EXPORT_BYTES + length).next_multiple_of(4);
            Some((name, kind))
        })
    }

    /// The function that a new instance runs first, if the module names one.
    pub fn start_function(&self) -> Option<FunctionIndex> {
        let start = self.footer_word(START_AT);
        (start != NONE).then_some(FunctionIndex(start))
    }

    /// Number of functions, imported ones included.
    pub fn functions(&self) -> u32 {
        self.token.functions.count
    }

    /// Parameters and results of a function.
    pub fn signature(&self, function: FunctionIndex) -> Option<FunctionType<'a>> {
        self.signature_of(&self.function_entry(function.0)?)
    }

    /// Numbers of parameters and results of a type.
    pub(crate) fn arity_of_type(&self, canonical: u16) -> (u16, u16) {
        let at = section(self.bytes, Section::Types).at as usize + canonical as usize * TYPE_BYTES;
        (half(self.bytes, at + 4), half(self.bytes, at + 6))
    }

    pub(crate) fn signature_of(&self, entry: &FunctionEntry) -> Option<FunctionType<'a>> {
        let at =
            section(self.bytes, Section::Types).at as usize + entry.canonical as usize * TYPE_BYTES;
        let from = word(self.bytes, at) as usize;
        let (params, results) = (entry.params as usize, entry.results as usize);
        let types = self.bytes.get(from..from.checked_add(params + results)?)?;
        Some(FunctionType::new(&types[..params], &types[params..]))
    }

    /// Code of a function, for the disassembler.
    pub fn code(&self, function: FunctionIndex) -> Option<&'a [u8]> {
        let (start, end) = self.code_range(function.0)?;
        self.bytes.get(start..end)
    }

    /// Bytes of linear memory that the module declares: at the start, and at most.
    pub fn memory_bytes(&self) -> Option<(u64, u64)> {
        let (pages, page_shift) = self.pages();
        (self.footer_word(MEMORIES_AT) != 0)
            .then(|| ((pages as u64) << page_shift, self.memory_bytes_max()))
    }

    /// Bytes of RAM that an instance takes beside frames and memory from its start on: 8 for each global
    /// variable, 4 for each element of a table, 4 for every 32 segments.
    pub fn fixed_bytes(&self) -> u64 {
        let tables = self.count(Section::Tables);
        let elements = (0..tables).map(|index| self.table(index).map_or(0, |it| it.min as u64));
        let marks = [Section::Data, Section::Elements].map(|of| self.count(of).div_ceil(32));
        self.count(Section::Globals) as u64 * 8
            + 4 * (elements.sum::<u64>() + marks[0] as u64 + marks[1] as u64)
    }

    /// The most bytes that memory may grow to; zero if there is none.
    pub(crate) fn memory_bytes_max(&self) -> u64 {
        const ALL: u64 = 1 << 32;
        match (self.footer_word(MEMORIES_AT), self.footer_word(PAGES_MAX_AT)) {
            (0, _) => 0,
            (_, NONE) => ALL,
            (_, pages) => ((pages as u64) << self.footer_word(PAGE_SHIFT_AT)).min(ALL),
        }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn function_entry(&self, function: u32) -> Option<FunctionEntry> {
        interpreter::function_entry(self, function)
    }

    /// Where a function's code begins and ends.
    pub(crate) fn code_range(&self, function: u32) -> Option<(usize, usize)> {
        let start = self.function_entry(function)?.code;
        let end = self
            .function_entry(function + 1)
            .map_or(self.footer_word(CODE_END_AT), |next| next.code);
        Some((start as usize, end as usize))
    }

    /// The imported function whose stub begins at `position`, where host calls wait. Stubs come first, and
    /// are of one length but where results differ.
    pub(crate) fn stub_at(&self, position: u32) -> Option<u32> {
        let (first, second) = (self.function_entry(0)?.code, self.function_entry(1));
        let stub_bytes = second.map_or(1, |second| second.code.wrapping_sub(first));
        let guess = position.wrapping_sub(first).checked_div(stub_bytes)?;
        let is_there = self.function_entry(guess).is_some_and(|entry| entry.code == position);
        if is_there { Some(guess) } else { self.function_at(position) }
    }

    /// The function whose code holds the byte at `position`.
    pub(crate) fn function_at(&self, position: u32) -> Option<u32> {
        let (mut low, mut high) = (0, self.token.functions.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.function_entry(middle)?.code <= position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if position < self.footer_word(CODE_END_AT) { low.checked_sub(1) } else { None }
    }

    pub(crate) fn global(&self, index: u32) -> Option<GlobalEntry> {
        let globals = section(self.bytes, Section::Globals);
        if index >= globals.count {
            return None;
        }
        let at = globals.at as usize + index as usize * GLOBAL_BYTES;
        Some(GlobalEntry {
            initial: word(self.bytes, at) as u64 | (word(self.bytes, at + 4) as u64) << 32,
            value_type: ValueType::from_byte(*self.bytes.get(at + 8)?)?,
        })
    }

    pub(crate) fn table(&self, index: u32) -> Option<TableEntry> {
        let tables = section(self.bytes, Section::Tables);
        if index >= tables.count {
            return None;
        }
        let at = tables.at as usize + index as usize * TABLE_BYTES;
        Some(TableEntry { min: word(self.bytes, at + 4), max: word(self.bytes, at + 8) })
    }

    pub(crate) fn data(&self, index: u32) -> Option<DataSegment<'a>> {
        let data = section(self.bytes, Section::Data);
        if index >= data.count {
            return None;
        }
        let at = data.at as usize + index as usize * SEGMENT_BYTES;
        let (from, length) =
            (word(self.bytes, at + 8) as usize, word(self.bytes, at + 12) as usize);
        Some(DataSegment {
            address: (word(self.bytes, at) != 0).then(|| word(self.bytes, at + 4)),
            bytes: self.bytes.get(from..from.checked_add(length)?)?,
        })
    }

    pub(crate) fn elements(&self, index: u32) -> Option<ElementSegment<'a>> {
        let elements = section(self.bytes, Section::Elements);
        if index >= elements.count {
            return None;
        }
        let at = elements.at as usize + index as usize * SEGMENT_BYTES;
        let mode = half(self.bytes, at);
        let (from, count) = (word(self.bytes, at + 8) as usize, word(self.bytes, at + 12) as usize);
        let items = self.bytes.get(from..from.checked_add(count.checked_mul(4)?)?)?;
        Some(ElementSegment {
            place: (mode == 1).then(|| (half(self.bytes, at + 2) as u32, word(self.bytes, at + 4))),
            declared: mode == 2,
            items,
        })
    }
}

impl Image<'_> {
    /// The facts of a function that a call of it needs, imported ones included.
    pub fn shape(&self, function: FunctionIndex) -> Option<FunctionShape<'_>> {
        let entry = self.function_entry(function.0)?;
        Some(FunctionShape {
            code_at: entry.code,
            frame_bytes: entry.frame_bytes,
            link: entry.link,
            zeros: entry.zeros,
            entry_units: interpreter::entry_units(entry.zeros as usize) as u32,
            type_number: entry.canonical,
            signature: self.signature_of(&entry)?,
        })
    }

    /// Parameters and results of the type of this number.
    pub fn type_signature(&self, type_number: u16) -> Option<FunctionType<'_>> {
        let of_type = |&function: &u32| {
            self.function_entry(function).is_some_and(|entry| entry.canonical == type_number)
        };
        let function = (0..self.functions()).find(of_type)?;
        self.signature(FunctionIndex(function))
    }

    /// Size of the memory that the module declares.
    pub fn memory_type(&self) -> Option<MemoryType> {
        let footer = self.footer();
        (footer.memories != 0).then(|| MemoryType {
            pages_min: footer.pages_min,
            pages_max: (footer.pages_max != NONE).then_some(footer.pages_max),
            page_bytes: 1 << footer.page_shift,
        })
    }

    /// Kind and size of a table.
    pub fn table_type(&self, table: u32) -> Option<TableType> {
        let entry = self.table(table)?;
        let at = section(self.bytes, Section::Tables).at as usize + table as usize * TABLE_BYTES;
        Some(TableType {
            element: ValueType::from_byte(*self.bytes.get(at)?)?,
            min: entry.min,
            max: (entry.max != NONE).then_some(entry.max),
        })
    }

    /// Whether a program may change a global variable.
    pub fn is_global_mutable(&self, global: u32) -> Option<bool> {
        self.global(global)?;
        let at = section(self.bytes, Section::Globals).at as usize + global as usize * GLOBAL_BYTES;
        Some(*self.bytes.get(at + 9)? != 0)
    }
}
