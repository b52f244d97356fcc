//! The watchdog: an i6300ESB on the machine's PCI bus, which counts whatever the hart does and ends the
//! emulator when it isn't fed (Intel 300641-004, chapter 5).

/// Where the configuration of device 1 on bus 0 lies, and where its registers are put.
const CONFIGURATION: usize = 0x3000_0000 | 1 << 15;
const REGISTERS: usize = 0x4000_0000;

/// The device's identity, in the first word of its configuration.
const IDENTITY: u32 = 0x25AB_8086;
const COMMAND: usize = 0x04;
const MEMORY_SPACE: u16 = 1 << 1;
const FIRST_BASE_ADDRESS: usize = 0x10;
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

fn write<T>(base: usize, at: usize, value: T) {
    // SAFETY: a place in the configuration or a register of the watchdog, of its own width.
    unsafe { ((base + at) as *mut T).write_volatile(value) };
}

/// What each write to the counters and to the reload register must be preceded by.
fn unlock() {
    write(REGISTERS, RELOAD, 0x80_u16);
    write(REGISTERS, RELOAD, 0x86_u16);
}

/// Starts it; `false` if the machine has none. From then on it must be fed.
pub fn start() -> bool {
    // SAFETY: the configuration of a device that may not be there, which reads all ones then.
    let identity = unsafe { (CONFIGURATION as *const u32).read_volatile() };
    if identity != IDENTITY {
        return false;
    }
    write(CONFIGURATION, FIRST_BASE_ADDRESS, REGISTERS as u32);
    write(CONFIGURATION, COMMAND, MEMORY_SPACE);
    for stage in [FIRST_STAGE, SECOND_STAGE] {
        unlock();
        write(REGISTERS, stage, STAGE_TICKS);
    }
    write(CONFIGURATION, LOCK, ENABLED);
    feed();
    true
}

/// Says that all is well.
pub fn feed() {
    unlock();
    write(REGISTERS, RELOAD, RELOADED);
}
