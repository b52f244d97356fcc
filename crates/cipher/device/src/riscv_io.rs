//! QEMU's `virt` machine: a UART and an exit register.

/// To the UART at 0x1000_0000, which is always ready under QEMU.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: the UART's transmit register on this machine.
        unsafe { (0x1000_0000 as *mut u8).write_volatile(*byte) };
    }
}

/// Powers the machine off.
pub fn exit(good: bool) -> ! {
    let code: u32 = if good { 0x5555 } else { 0x1_3333 };
    // SAFETY: the test device's only register on this machine.
    unsafe { (0x10_0000 as *mut u32).write_volatile(code) };
    loop {
        core::hint::spin_loop();
    }
}
