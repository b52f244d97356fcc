//! A run of a flash device's sectors, as a flash device of its own.

use core::cell::RefCell;

use crate::{Flash, FlashError, FlashGeometry};

/// Sectors `first_sector .. first_sector + sector_count` of a device.
///
/// Where several partitions of one device live at the same time, give each a `&RefCell` of the
/// device, or a handle of its own where the device's driver hands out several.
#[derive(Debug)]
pub struct Partition<F> {
    device: F,
    first_sector: u32,
    sector_count: u32,
}

impl<F: Flash> Partition<F> {
    /// The partition of `device` that starts at `first_sector`.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`] if the device has fewer sectors.
    pub fn new(device: F, first_sector: u32, sector_count: u32) -> Result<Self, FlashError> {
        let end = first_sector.checked_add(sector_count).ok_or(FlashError::OutOfRange)?;
        if end > device.geometry().sector_count {
            return Err(FlashError::OutOfRange);
        }
        Ok(Self { device, first_sector, sector_count })
    }

    /// Where `length` bytes at `offset` of the partition are on the device.
    fn on_device(&self, offset: u32, length: usize) -> Result<u32, FlashError> {
        let geometry = self.geometry();
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(length));
        if end.is_none_or(|end| end > geometry.bytes() as usize) {
            return Err(FlashError::OutOfRange);
        }
        Ok(self.first_sector * geometry.sector_bytes + offset)
    }
}

impl<F: Flash> Flash for Partition<F> {
    fn geometry(&self) -> FlashGeometry {
        FlashGeometry { sector_count: self.sector_count, ..self.device.geometry() }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        let offset = self.on_device(offset, into.len())?;
        self.device.read(offset, into)
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let offset = self.on_device(offset, bytes.len())?;
        self.device.program(offset, bytes)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        if sector >= self.sector_count {
            return Err(FlashError::OutOfRange);
        }
        self.device.erase(self.first_sector + sector)
    }

    fn mapped(&self) -> Option<&[u8]> {
        let geometry = self.device.geometry();
        let start = (self.first_sector * geometry.sector_bytes) as usize;
        let length = self.geometry().bytes() as usize;
        self.device.mapped()?.get(start..start + length)
    }
}

/// A device that several partitions share. It is not mapped: a slice of it could not outlive the
/// borrow.
impl<F: Flash> Flash for &RefCell<F> {
    fn geometry(&self) -> FlashGeometry {
        self.borrow().geometry()
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        self.borrow_mut().read(offset, into)
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        self.borrow_mut().program(offset, bytes)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        self.borrow_mut().erase(sector)
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}
