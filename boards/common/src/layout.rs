//! How a device's flash is divided.

use tenure_boot::map;
use tenure_hal::{Flash, FlashError, Partition};

/// Sectors of each part of the flash that is the node's, in the order in which they lie there, behind
/// what [`map`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// For what devices and machines keep.
    pub store: u32,
    /// For images of machines.
    pub code: u32,
    /// For a package while it arrives.
    pub staging: u32,
}

impl Layout {
    /// For a flash of 4 MiB: 800 KiB for the store, 1,008 KiB for images, 432 KiB for an arriving package.
    pub const FOUR_MIB: Self = Self { store: 200, code: 252, staging: 108 };

    /// For a flash of 2 MiB: 64 KiB for the store, 80 KiB for images, 48 KiB for an arriving package.
    pub const TWO_MIB: Self = Self { store: 16, code: 20, staging: 12 };

    /// Divides the flash; `handle` gives one handle of it a part.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`] if the flash is too small.
    pub fn divide<F: Flash>(&self, handle: impl Fn() -> F) -> Result<Parts<F>, FlashError> {
        let run = |run: map::Run| Partition::new(handle(), run.first, run.count);
        let mut next = map::REST;
        let mut part = |count: u32| {
            let first = next;
            next += count;
            run(map::Run { first, count })
        };
        Ok(Parts {
            settings: run(map::SETTINGS)?,
            boot_log: run(map::LOG)?,
            slots: [run(map::SLOTS[0])?, run(map::SLOTS[1])?],
            node: tenure_node::Parts {
                store: part(self.store)?,
                code: part(self.code)?,
                staging: part(self.staging)?,
            },
        })
    }
}

const _: () = {
    let Layout { store, code, staging } = Layout::FOUR_MIB;
    assert!((map::REST + store + code + staging) * map::SECTOR_BYTES == 4 << 20);
    let Layout { store, code, staging } = Layout::TWO_MIB;
    assert!((map::REST + store + code + staging) * map::SECTOR_BYTES == 2 << 20);
};

/// The parts of a device's flash.
pub struct Parts<F> {
    /// The settings' sector.
    pub settings: Partition<F>,
    /// The loader's log.
    pub boot_log: Partition<F>,
    /// The slots for firmware.
    pub slots: [Partition<F>; 2],
    /// The node's parts.
    pub node: tenure_node::Parts<Partition<F>>,
}
