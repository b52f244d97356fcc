//! A place's flash: one device of memory whose power can be cut, in partitions that are mapped.

use std::cell::RefCell;
use std::rc::Rc;

use tenure_hal::simulated::RamFlash;
use tenure_hal::{Flash, FlashError, FlashGeometry};

/// A flash device that outlives the node that runs on it.
#[derive(Clone, Debug)]
pub(crate) struct Device(Rc<RefCell<RamFlash>>);

impl Device {
    /// An erased device.
    pub(crate) fn new(geometry: FlashGeometry) -> Self {
        Self(Rc::new(RefCell::new(RamFlash::new(geometry))))
    }

    /// Lets `operations` more programs and erases succeed and tears the one after.
    pub(crate) fn cut_power_after(&self, operations: u64, seed: u64) {
        self.0.borrow_mut().cut_power_after(operations, seed);
    }

    /// Takes the power away at once.
    pub(crate) fn cut_power(&self) {
        self.0.borrow_mut().cut_power();
    }

    /// Gives the power back.
    pub(crate) fn restore_power(&self) {
        self.0.borrow_mut().restore_power();
    }

    /// Whether the power is gone.
    pub(crate) fn is_off(&self) -> bool {
        self.0.borrow().is_off()
    }

    /// The partition of `sector_count` sectors from `first_sector` on.
    pub(crate) fn partition(&self, first_sector: u32, sector_count: u32) -> Partition {
        let device = self.0.borrow();
        let geometry = FlashGeometry { sector_count, ..device.geometry() };
        let start = first_sector * geometry.sector_bytes;
        let range = start as usize..(start + geometry.bytes()) as usize;
        let mirror = device.bytes()[range].to_vec();
        Partition { device: self.0.clone(), first_sector, geometry, mirror }
    }

    /// Looks at all that it holds.
    pub(crate) fn with_bytes(&self, look: impl FnOnce(&[u8])) {
        look(self.0.borrow().bytes());
    }

    /// A copy of a partition as it is now, for looking into it.
    pub(crate) fn copy(&self, first_sector: u32, sector_count: u32) -> RamFlash {
        let partition = self.partition(first_sector, sector_count);
        RamFlash::with_bytes(partition.geometry, partition.mirror)
    }
}

/// Part of a [`Device`]. It keeps what it holds a second time, because a slice of a shared device
/// can't be lent.
#[derive(Debug)]
pub(crate) struct Partition {
    device: Rc<RefCell<RamFlash>>,
    first_sector: u32,
    geometry: FlashGeometry,
    mirror: Vec<u8>,
}

impl Partition {
    fn on_device(&self, offset: u32, length: usize) -> Result<u32, FlashError> {
        let end = (offset as usize).checked_add(length);
        if end.is_none_or(|end| end > self.mirror.len()) {
            return Err(FlashError::OutOfRange);
        }
        Ok(self.first_sector * self.geometry.sector_bytes + offset)
    }

    /// Takes over what the device holds in a range, torn or not.
    fn follow(&mut self, offset: u32, length: usize) {
        let start = (self.first_sector * self.geometry.sector_bytes + offset) as usize;
        let device = self.device.borrow();
        self.mirror[offset as usize..][..length]
            .copy_from_slice(&device.bytes()[start..][..length]);
    }
}

impl Flash for Partition {
    fn geometry(&self) -> FlashGeometry {
        self.geometry
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        let on_device = self.on_device(offset, into.len())?;
        self.device.borrow_mut().read(on_device, into)
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let on_device = self.on_device(offset, bytes.len())?;
        let programmed = self.device.borrow_mut().program(on_device, bytes);
        self.follow(offset, bytes.len());
        programmed
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        if sector >= self.geometry.sector_count {
            return Err(FlashError::OutOfRange);
        }
        let erased = self.device.borrow_mut().erase(self.first_sector + sector);
        let sector_bytes = self.geometry.sector_bytes;
        self.follow(sector * sector_bytes, sector_bytes as usize);
        erased
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.mirror)
    }
}
