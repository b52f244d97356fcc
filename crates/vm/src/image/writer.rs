//! Writing an image from front to back.

use alloc::vec::Vec;

use super::{FOOTER_BYTES, MAGIC, VERSION};
use crate::{
    checksum::Crc32,
    error::{Limit, TranslateErrorKind},
};

/// The sink has no room for more of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkFull;

/// Takes an image as it is made, front to back: a buffer, or flash that was erased.
pub trait ImageSink {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkFull>;
}

impl ImageSink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkFull> {
        self.try_reserve(bytes.len()).map_err(|_| SinkFull)?;
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Counts and sums what goes to the sink.
pub(crate) struct ImageWriter<'s> {
    sink: &'s mut dyn ImageSink,
    position: u32,
    checksum: Crc32,
}

/// A section: where it begins, and how many entries it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) at: u32,
    pub(crate) count: u32,
}

/// The end of an image but for length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) functions: Range,
    pub(crate) types: Range,
    pub(crate) exports: Range,
    pub(crate) globals: Range,
    pub(crate) tables: Range,
    pub(crate) elements: Range,
    pub(crate) data: Range,
    pub(crate) code_end: u32,
    pub(crate) start: u32,
    pub(crate) pages_min: u32,
    pub(crate) pages_max: u32,
    /// log2 of the bytes of a page.
    pub(crate) page_shift: u32,
    /// 1 if there is a memory.
    pub(crate) memories: u32,
    pub(crate) digest: [u8; 32],
}

impl<'s> ImageWriter<'s> {
    pub(crate) fn new(sink: &'s mut dyn ImageSink) -> Result<ImageWriter<'s>, TranslateErrorKind> {
        let mut writer = ImageWriter { sink, position: 0, checksum: Crc32::new() };
        writer.write(&MAGIC)?;
        writer.write(&VERSION.to_le_bytes())?;
        writer.write(&[0; 10])?;
        Ok(writer)
    }

    pub(crate) fn position(&self) -> u32 {
        self.position
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), TranslateErrorKind> {
        let length = u32::try_from(bytes.len()).map_err(|_| Limit::ImageBytes)?;
        let position = self.position.checked_add(length);
        self.position = position.filter(|&end| end < 1 << 31).ok_or(Limit::ImageBytes)?;
        self.checksum.update(bytes);
        self.sink.write(bytes).map_err(|SinkFull| TranslateErrorKind::SinkFull)
    }

    pub(crate) fn word(&mut self, word: u32) -> Result<(), TranslateErrorKind> {
        self.write(&word.to_le_bytes())
    }

    pub(crate) fn align(&mut self) -> Result<(), TranslateErrorKind> {
        let padding = self.position.next_multiple_of(4) - self.position;
        self.write(&[0; 3][..padding as usize])
    }

    pub(crate) fn finish(mut self, footer: &Footer) -> Result<(), TranslateErrorKind> {
        self.align()?;
        for range in [
            footer.functions,
            footer.types,
            footer.exports,
            footer.globals,
            footer.tables,
            footer.elements,
            footer.data,
        ] {
            self.word(range.at)?;
            self.word(range.count)?;
        }
        for word in [
            footer.code_end,
            footer.start,
            footer.pages_min,
            footer.pages_max,
            footer.page_shift,
            footer.memories,
        ] {
            self.word(word)?;
        }
        self.write(&footer.digest)?;
        let length = self.position + 8;
        self.word(length)?;
        let checksum = self.checksum.value();
        self.sink.write(&checksum.to_le_bytes()).map_err(|SinkFull| TranslateErrorKind::SinkFull)
    }
}

const _: () = assert!(FOOTER_BYTES == 7 * 8 + 6 * 4 + 32 + 4 + 4);
