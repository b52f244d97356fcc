//! The last 16 KiB of the chip's flash. The emulator's flash can't be written, so they are the file
//! `flash.img` in the folder that it runs in, reached by semihosting: nothing of them is in RAM.
//!
//! Written bytes have reached the host's kernel, so that killing the emulator loses nothing.
//! `NorFlash` enforces what a chip would. Its sectors of 4 KiB are four pages of this chip.

use core::ffi::CStr;

use semihosting::fs::{File, OpenOptions};
use semihosting::io::{Read, Seek, SeekFrom, Write};
use tenure_hal::{FlashError, Medium};

const FILE: &CStr = c"flash.img";
const BYTES: usize = 16 << 10;

/// The sector with the settings.
pub(crate) const SETTINGS: u32 = 0;
/// The first sector of the store.
pub(crate) const STORE: u32 = 1;
/// How many it has.
pub(crate) const STORE_SECTORS: u32 = 3;

/// A handle of the file, for one of its parts.
#[derive(Debug)]
pub(crate) struct Chip(File);

impl Chip {
    /// Opens the file; `None` if it isn't there or too short.
    pub(crate) fn open() -> Option<Self> {
        let mut file = OpenOptions::new().read(true).write(true).open(FILE).ok()?;
        let end = file.seek(SeekFrom::End(0)).ok()?;
        (end >= BYTES as u64).then_some(Self(file))
    }

    fn seek(&mut self, offset: usize, length: usize) -> Result<(), FlashError> {
        if offset.checked_add(length).is_none_or(|end| end > BYTES) {
            return Err(FlashError::OutOfRange);
        }
        let place = SeekFrom::Start(offset as u64);
        self.0.seek(place).map(drop).map_err(|_| FlashError::Hardware)
    }
}

impl Medium for Chip {
    fn length(&self) -> usize {
        BYTES
    }

    fn read(&mut self, offset: usize, into: &mut [u8]) -> Result<(), FlashError> {
        self.seek(offset, into.len())?;
        self.0.read_exact(into).map_err(|_| FlashError::Hardware)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), FlashError> {
        self.seek(offset, bytes.len())?;
        self.0.write_all(bytes).map_err(|_| FlashError::Hardware)
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}
