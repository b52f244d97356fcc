//! Flash: a part of the machine's PSRAM that stands for a chip. Its contents are in the file
//! `flash.img` of the folder that the emulator runs in, which semihosting reads and writes.
//!
//! The file is written first and then the memory, and what is written has reached the host's kernel,
//! so that killing the emulator loses nothing. `NorFlash` enforces what a chip would.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::slice;

use semihosting::fs::{File, OpenOptions};
use semihosting::io::{Read, Seek, SeekFrom, Write};
use tenure_hal::{FlashError, Medium};

const FILE: &CStr = c"flash.img";

/// Where the chip lies, and its size.
const BASE: usize = 0x2100_0000;
const BYTES: usize = 4 << 20;

/// The file, once it was opened.
struct Opened(UnsafeCell<Option<File>>);

// SAFETY: one core, and nobody asks in a handler.
unsafe impl Sync for Opened {}

static OPENED: Opened = Opened(UnsafeCell::new(None));

/// A handle of the chip. Several may exist: each part of the flash has one, and parts don't overlap.
#[derive(Clone, Debug)]
pub struct Chip {
    file: &'static File,
}

impl Chip {
    /// Reads the file; `None` if it isn't there or too short. Called once.
    pub fn load() -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open(FILE).ok()?;
        // SAFETY: nothing else uses the PSRAM, and nobody holds a slice of it yet; bytes are valid
        // whatever they are.
        let contents = unsafe { slice::from_raw_parts_mut(BASE as *mut u8, BYTES) };
        (&file).read_exact(contents).ok()?;
        // SAFETY: called once, so that nobody holds what is there.
        let file = unsafe { (*OPENED.0.get()).insert(file) };
        Some(Self { file })
    }

    /// The flash from `offset` on, as memory.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn contents(offset: usize, length: usize) -> &'static [u8] {
        assert!(offset + length <= BYTES);
        // SAFETY: the PSRAM is memory for good; whoever asks writes nothing there while it holds the
        // slice.
        unsafe { slice::from_raw_parts((BASE + offset) as *const u8, length) }
    }
}

impl Medium for Chip {
    fn length(&self) -> usize {
        BYTES
    }

    fn read(&mut self, offset: usize, into: &mut [u8]) -> Result<(), FlashError> {
        into.copy_from_slice(Chip::contents(offset, into.len()));
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        // SAFETY: the PSRAM is memory for good; whoever writes to a part of it holds that part's
        // handle mutably, so that nobody holds a slice of what changes.
        Some(unsafe { slice::from_raw_parts(BASE as *const u8, BYTES) })
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), FlashError> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > BYTES) {
            return Err(FlashError::OutOfRange);
        }
        let mut file = self.file;
        let place = SeekFrom::Start(offset as u64);
        file.seek(place).and_then(|_| file.write_all(bytes)).map_err(|_| FlashError::Hardware)?;
        // SAFETY: inside the chip, as checked; `bytes` can't lie in what this handle has mutably.
        unsafe {
            ((BASE + offset) as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        Ok(())
    }
}
