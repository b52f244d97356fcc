//! The tree on flash: format, mount, set, get, delete, list.
#![no_std]
#![no_main]

use tenure_hal::{Flash, FlashError, FlashGeometry};
use tenure_size::{keep, probe, unknown_bytes};
use tenure_store::{Store, TreeId, ValueKind};

/// A flash of which nothing is known.
struct Unknown;

impl Flash for Unknown {
    fn geometry(&self) -> FlashGeometry {
        FlashGeometry { sector_bytes: 4096, sector_count: 64, program_bytes: 4 }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        keep((offset, into));
        core::hint::black_box(Ok(()))
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        keep((offset, bytes));
        core::hint::black_box(Ok(()))
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        keep(sector);
        core::hint::black_box(Ok(()))
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

probe!({
    keep(Store::format(Unknown).is_ok());
    if let Ok((mut store, report)) = Store::mount(Unknown) {
        keep(report);
        let path = core::str::from_utf8(unknown_bytes()).unwrap_or_default();
        keep(store.set(TreeId(1), path, ValueKind::Bytes, unknown_bytes()));
        keep(store.get(TreeId(1), path));
        keep(store.children(TreeId(1), path));
        keep(store.delete(TreeId(1), path));
    }
});
