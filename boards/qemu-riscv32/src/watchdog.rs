//! The watchdog: an i6300ESB on the machine's PCI bus, which counts whatever the hart does and ends the
//! emulator when it isn't fed (Intel 300641-004, chapter 5).

use crate::pci::Device;

/// Which one on the bus it is, and where its registers are put.
const DEVICE: Device = Device(1);
const REGISTERS: usize = 0x4000_0000;

/// The device's identity, in the first word of its configuration.
const IDENTITY: u32 = 0x25AB_8086;
const LOCK: usize = 0x68;
const ENABLED: u8 = 1 << 1;

const FIRST_STAGE: usize = 0x0;
const SECOND_STAGE: usize = 0x4;
const RELOAD: usize = 0xC;
const RELOADED: u16 = 1 << 8;

/// How long the device may stand still, or a firmware on trial take until it is confirmed.
pub const PERIOD_MS: u32 = 16_000;
/// The counters' ticks: 2 to the 15th of 30 ns; two stages make the period.
const STAGE_TICKS: u32 = PERIOD_MS / 2 * 1000 / 983;

fn write<T>(register: usize, value: T) {
    // SAFETY: a register of the watchdog, of its own width.
    unsafe { ((REGISTERS + register) as *mut T).write_volatile(value) };
}

/// The key that must precede each write to the counters and to the reload register.
fn unlock() {
    write(RELOAD, 0x80_u16);
    write(RELOAD, 0x86_u16);
}

/// Starts it; `false` if the machine has none. From then on it must be fed.
pub fn start() -> bool {
    if !DEVICE.put(IDENTITY, 0, REGISTERS) {
        return false;
    }
    for stage in [FIRST_STAGE, SECOND_STAGE] {
        unlock();
        write(stage, STAGE_TICKS);
    }
    DEVICE.write(LOCK, ENABLED);
    feed();
    true
}

/// Says that all is well.
pub fn feed() {
    unlock();
    write(RELOAD, RELOADED);
}
