//! A place's flash: one device of memory whose power can be cut, in partitions that are mapped.

use std::cell::RefCell;
use std::rc::Rc;

use tenure_hal::simulated::RamFlash;
use tenure_hal::{Flash, FlashError, FlashGeometry};

/// A flash device that outlives the node that runs on it.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    flash: Rc<RefCell<RamFlash>>,
    /// The bytes that the last program overwrote, and their address, if programs are kept back.
    kept_back: Option<Rc<RefCell<KeptBack>>>,
}

/// A program that was acknowledged and isn't durable.
type KeptBack = Option<(usize, Vec<u8>)>;

impl Device {
    /// An erased device.
    pub(crate) fn new(geometry: FlashGeometry) -> Self {
        Self { flash: Rc::new(RefCell::new(RamFlash::new(geometry))), kept_back: None }
    }

    /// Acknowledges each program from now on before it is durable: it is once the next one comes. A
    /// deliberate mistake.
    pub(crate) fn acknowledge_early(&mut self) {
        self.kept_back = Some(Rc::default());
    }

    /// Lets `operations` more programs and erases succeed and tears the one after.
    pub(crate) fn cut_power_after(&self, operations: u64, seed: u64) {
        self.flash.borrow_mut().cut_power_after(operations, seed);
    }

    /// How many bytes were programmed since it was made.
    pub(crate) fn programmed_bytes(&self) -> u64 {
        self.flash.borrow().counters().program_bytes
    }

    /// Takes the power away at once.
    pub(crate) fn cut_power(&self) {
        self.flash.borrow_mut().cut_power();
        let kept_back = self.kept_back.as_ref().and_then(|it| it.borrow_mut().take());
        if let Some((start, before)) = kept_back {
            self.flash.borrow_mut().bytes_mut()[start..][..before.len()].copy_from_slice(&before);
        }
    }

    /// Gives the power back.
    pub(crate) fn restore_power(&self) {
        self.flash.borrow_mut().restore_power();
    }

    /// Whether the power is gone.
    pub(crate) fn is_off(&self) -> bool {
        self.flash.borrow().is_off()
    }

    /// The partition of `sector_count` sectors from `first_sector` on.
    pub(crate) fn partition(&self, first_sector: u32, sector_count: u32) -> Partition {
        let device = self.flash.borrow();
        let geometry = FlashGeometry { sector_count, ..device.geometry() };
        let start = first_sector * geometry.sector_bytes;
        let range = start as usize..(start + geometry.bytes()) as usize;
        let mirror = device.bytes()[range].to_vec();
        let (device, kept_back) = (self.flash.clone(), self.kept_back.clone());
        Partition { device, kept_back, first_sector, geometry, mirror }
    }

    /// Looks at all that it holds.
    pub(crate) fn with_bytes(&self, look: impl FnOnce(&[u8])) {
        look(self.flash.borrow().bytes());
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
    kept_back: Option<Rc<RefCell<KeptBack>>>,
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
        if let Some(kept_back) = &self.kept_back {
            let before = self.mirror[offset as usize..][..bytes.len()].to_vec();
            *kept_back.borrow_mut() = Some((on_device as usize, before));
        }
        let programmed = self.device.borrow_mut().program(on_device, bytes);
        self.follow(offset, bytes.len());
        programmed
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        if sector >= self.geometry.sector_count {
            return Err(FlashError::OutOfRange);
        }
        if let Some(kept_back) = &self.kept_back {
            kept_back.borrow_mut().take();
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
