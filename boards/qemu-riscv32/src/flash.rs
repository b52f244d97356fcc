//! Flash: the machine's second bank of parallel NOR (two 16-bit chips of Intel's command set, CFI),
//! whose contents QEMU keeps in a file.
//!
//! QEMU programs what it is told, set bits included; `NorFlash` refuses those. Its erase blocks are
//! 256 KiB; `NorFlash` makes sectors of 4 KiB by programming ones.

use tenure_hal::{FlashError, Medium, NorFlash};

/// Where the bank lies, and how much of it is ours.
const BASE: usize = 0x2200_0000;
const BYTES: usize = 4 << 20;

/// What one command programs at most: an aligned block of this.
const BLOCK_BYTES: usize = 256;
const WORD_BYTES: usize = 4;

/// A command to both chips side by side.
const fn both(command: u32) -> u32 {
    command | command << 16
}

const READ_ARRAY: u32 = both(0xFF);
const BUFFERED_PROGRAM: u32 = both(0xE8);
const CONFIRM: u32 = both(0xD0);
const CLEAR_STATUS: u32 = both(0x50);
const READY: u32 = both(0x80);
const FAILED: u32 = both(0x7E);

/// A handle of the bank. Several may exist: each part of the flash has one, parts don't overlap, and
/// nothing is read while a command is under way.
#[derive(Debug)]
pub struct Bank(());

/// A handle of the flash, for one of its parts.
pub fn open_flash() -> NorFlash<Bank> {
    NorFlash::new(Bank(()))
}

impl Bank {
    /// What stands at `offset`, as memory.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn contents(offset: usize, length: usize) -> &'static [u8] {
        assert!(offset + length <= BYTES);
        // SAFETY: the bank is memory for good, as long as no command is under way; whoever asks programs
        // nothing while it holds the slice.
        unsafe { core::slice::from_raw_parts((BASE + offset) as *const u8, length) }
    }

    fn command(&self, offset: usize, word: u32) {
        // SAFETY: the bank takes words at each of its places; the caller's offset is inside.
        unsafe { ((BASE + offset) as *mut u32).write_volatile(word) };
    }

    fn status(&self, offset: usize) -> u32 {
        // SAFETY: as above.
        unsafe { ((BASE + offset) as *const u32).read_volatile() }
    }

    /// Programs words within one block.
    fn program(&mut self, offset: usize, bytes: &[u8]) -> Result<(), FlashError> {
        let count = (bytes.len() / WORD_BYTES) as u32;
        self.command(offset, BUFFERED_PROGRAM);
        self.command(offset, both(count - 1));
        for (index, word) in bytes.chunks_exact(WORD_BYTES).enumerate() {
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            self.command(offset + index * WORD_BYTES, word);
        }
        self.command(offset, CONFIRM);
        while self.status(offset) & READY != READY {}
        let failed = self.status(offset) & FAILED != 0;
        self.command(offset, CLEAR_STATUS);
        self.command(offset, READ_ARRAY);
        if failed { Err(FlashError::Hardware) } else { Ok(()) }
    }
}

impl Medium for Bank {
    fn length(&self) -> usize {
        BYTES
    }

    fn read(&mut self, offset: usize, into: &mut [u8]) -> Result<(), FlashError> {
        into.copy_from_slice(Bank::contents(offset, into.len()));
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        // SAFETY: the bank is memory while no command is under way, for good; whoever programs a part
        // of it holds that part's handle mutably, so that nobody holds a slice of what changes.
        Some(unsafe { core::slice::from_raw_parts(BASE as *const u8, BYTES) })
    }

    fn write(&mut self, mut offset: usize, mut bytes: &[u8]) -> Result<(), FlashError> {
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - offset % BLOCK_BYTES;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.program(offset, now)?;
            offset += now.len();
            bytes = later;
        }
        Ok(())
    }
}
