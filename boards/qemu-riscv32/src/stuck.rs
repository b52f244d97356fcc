//! A deliberate mistake beside the vm's: the firmware never comes back from a machine that writes to a
//! certain quarter of the addresses, so that only the watchdog helps.

use tenure_vm::{Breach, Stay, Wall};

/// The quarter, by the highest two bits of its addresses: nothing of the chip lies there.
const QUARTER: usize = 0b11;

/// A wall with that mistake.
pub(crate) struct Stuck<W>(pub(crate) W);

impl<W: Wall> Wall for Stuck<W> {
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach> {
        let confined = self.0.confine(stay);
        if confined.is_err_and(|breach| breach.address >> (usize::BITS - 2) == QUARTER) {
            loop {
                core::hint::spin_loop();
            }
        }
        confined
    }

    fn take_overdraft(&mut self) -> u32 {
        self.0.take_overdraft()
    }
}
