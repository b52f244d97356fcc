//! The emulator's end: the status with which the firmware leaves it says what is to come.

/// Ends the emulator with `status`, one of those in [`tenure_boot::always_on`].
pub fn exit(status: i32) -> ! {
    const TEST_DEVICE: *mut u32 = 0x0010_0000 as *mut u32;
    const FAIL: u32 = 0x3333;
    // SAFETY: the only register of the machine's test device.
    unsafe { TEST_DEVICE.write_volatile(FAIL | (status as u32) << 16) };
    loop {
        riscv::asm::wfi();
    }
}
