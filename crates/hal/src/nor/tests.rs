use alloc::vec;
use alloc::vec::Vec;

use crate::{Flash, FlashError};

use super::{Medium, NorFlash};

struct Ram(Vec<u8>);

impl Medium for Ram {
    fn length(&self) -> usize {
        self.0.len()
    }

    fn read(&mut self, offset: usize, into: &mut [u8]) -> Result<(), FlashError> {
        into.copy_from_slice(&self.0[offset..offset + into.len()]);
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.0)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), FlashError> {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn flash() -> NorFlash<Ram> {
    let mut flash = NorFlash::new(Ram(vec![0x5A; 2 * 4096 + 100]));
    flash.erase(0).unwrap();
    flash
}

#[test]
fn programs_clear_bits_and_never_set_one() {
    let mut flash = flash();
    flash.program(8, &[0xF0, 0xFF, 0, 0xFF]).unwrap();
    flash.program(8, &[0x30, 0xFF, 0, 0x0F]).unwrap();
    assert_eq!(flash.program(8, &[0x31, 0xFF, 0, 0x0F]), Err(FlashError::NotErased));
    let mut stored = [0; 6];
    flash.read(7, &mut stored).unwrap();
    assert_eq!(stored, [0xFF, 0x30, 0xFF, 0, 0x0F, 0xFF], "the refused program changed nothing");
}

#[test]
fn erase_sets_one_sector_and_no_other() {
    let flash = flash();
    let mapped = flash.mapped().unwrap();
    assert_eq!(mapped.len(), 2 * 4096, "the medium's odd end isn't used");
    assert!(mapped[..4096].iter().all(|byte| *byte == 0xFF));
    assert!(mapped[4096..].iter().all(|byte| *byte == 0x5A));
}

#[test]
fn what_leaves_the_flash_is_refused() {
    let mut flash = flash();
    assert_eq!(flash.erase(2), Err(FlashError::OutOfRange));
    assert_eq!(flash.erase(u32::MAX), Err(FlashError::OutOfRange));
    assert_eq!(flash.program(2 * 4096, &[0; 4]), Err(FlashError::OutOfRange));
    assert_eq!(flash.program(u32::MAX - 3, &[0; 8]), Err(FlashError::OutOfRange));
    assert_eq!(flash.read(2 * 4096 - 1, &mut [0; 2]), Err(FlashError::OutOfRange));
    assert_eq!(flash.program(2, &[0; 4]), Err(FlashError::Misaligned));
    assert_eq!(flash.program(4, &[0; 3]), Err(FlashError::Misaligned));
}
