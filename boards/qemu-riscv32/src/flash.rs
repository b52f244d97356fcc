//! Flash: memory on the machine's PCI bus that QEMU keeps in a file; `NorFlash` gives it the rules of NOR.
//!
//! QEMU's banks of NOR won't do: it runs on what it translated from them, whatever was programmed since.

use tenure_hal::{FlashError, Medium, NorFlash};

use crate::pci::Device;

/// Which one on the bus it is (QEMU's `ivshmem-plain`, whose memory is its third region), and its identity.
const DEVICE: Device = Device(2);
const IDENTITY: u32 = 0x1110_1AF4;
const REGION: usize = 2;

/// Where the flash is put, and how much of it there is.
const BASE: usize = 0x4400_0000;
const BYTES: usize = 4 << 20;
const WORD_BYTES: usize = 4;

/// A handle of the flash. Several may exist: each part of it has one, and parts don't overlap.
#[derive(Debug)]
pub struct Bank(());

/// Puts the flash where it is read; `false` if the machine has none.
pub fn start() -> bool {
    DEVICE.put(IDENTITY, REGION, BASE)
}

/// A handle of the flash, for one of its parts.
pub fn open_flash() -> NorFlash<Bank> {
    NorFlash::new(Bank(()))
}

impl Bank {
    /// The flash from `offset` on, as memory.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn contents(offset: usize, length: usize) -> &'static [u8] {
        assert!(offset + length <= BYTES);
        // SAFETY: the flash is memory for good; whoever asks programs nothing while it holds the slice.
        unsafe { core::slice::from_raw_parts((BASE + offset) as *const u8, length) }
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
        // SAFETY: the flash is memory for good; whoever programs a part of it holds that part's handle
        // mutably, so that nobody holds a slice of what changes.
        Some(unsafe { core::slice::from_raw_parts(BASE as *const u8, BYTES) })
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), FlashError> {
        assert!(offset + bytes.len() <= BYTES);
        let words = bytes.chunks_exact(WORD_BYTES);
        debug_assert!(offset.is_multiple_of(WORD_BYTES) && words.remainder().is_empty());
        for (index, word) in words.enumerate() {
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            // SAFETY: the flash is memory for good, and nobody holds a slice of a part that is programmed. A
            // write that is volatile is done before the next: a cut leaves whole words in their order.
            unsafe { ((BASE + offset) as *mut u32).add(index).write_volatile(word) };
        }
        Ok(())
    }
}
