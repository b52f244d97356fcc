//! Devices on the machine's PCI bus (PCI Local Bus Specification 3.0, chapter 6): where each one's
//! registers or memory are put.

/// Where the configuration of the devices on bus 0 lies, 32 KiB each.
const CONFIGURATION: usize = 0x3000_0000;
const COMMAND: usize = 0x04;
const MEMORY_SPACE: u32 = 1 << 1;
const FIRST_BASE_ADDRESS: usize = 0x10;

/// A device by its number on the bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device(pub(crate) usize);

impl Device {
    /// Puts what its base address register of this index means to `address`; `false` if another device than
    /// the one of this identity is there, or none.
    pub(crate) fn put(self, identity: u32, index: usize, address: usize) -> bool {
        // SAFETY: the configuration of a device that may not be there, which reads all ones then.
        if unsafe { (self.configuration(0) as *const u32).read_volatile() } != identity {
            return false;
        }
        self.write(FIRST_BASE_ADDRESS + 4 * index, address as u32);
        self.write(COMMAND, MEMORY_SPACE);
        true
    }

    /// Writes to its configuration.
    pub(crate) fn write<T>(self, at: usize, value: T) {
        // SAFETY: a place in a device's configuration, of the width that it has there.
        unsafe { (self.configuration(at) as *mut T).write_volatile(value) };
    }

    fn configuration(self, at: usize) -> usize {
        CONFIGURATION + (self.0 << 15) + at
    }
}
