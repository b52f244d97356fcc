//! How a device's flash is divided.

use tenure_hal::{Flash, FlashError, Partition};

/// Sectors of each part of the flash, in the order in which they lie there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// For the firmware, which lies first.
    pub firmware: u32,
    /// For [`Settings`](crate::Settings).
    pub settings: u32,
    /// For what devices and machines keep.
    pub store: u32,
    /// For images of machines.
    pub code: u32,
    /// For a package while it arrives.
    pub staging: u32,
}

impl Layout {
    /// For a flash of 4 MiB in sectors of 4 KiB: 1 MiB for the firmware, 1 MiB for the store, 1.5 MiB
    /// for images, half a MiB for an arriving package less the settings' sector.
    pub const FOUR_MIB: Self =
        Self { firmware: 256, settings: 1, store: 256, code: 384, staging: 127 };

    /// Divides the flash; `handle` gives one handle of it a part.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`] if the flash is too small.
    pub fn divide<F: Flash>(&self, handle: impl Fn() -> F) -> Result<Parts<F>, FlashError> {
        let mut next = self.firmware;
        let mut part = |sectors: u32| {
            let first = next;
            next += sectors;
            Partition::new(handle(), first, sectors)
        };
        Ok(Parts {
            settings: part(self.settings)?,
            node: tenure_node::Parts {
                store: part(self.store)?,
                code: part(self.code)?,
                staging: part(self.staging)?,
            },
        })
    }
}

/// The parts of a device's flash.
pub struct Parts<F> {
    /// The settings' sector.
    pub settings: Partition<F>,
    /// The node's parts.
    pub node: tenure_node::Parts<Partition<F>>,
}
