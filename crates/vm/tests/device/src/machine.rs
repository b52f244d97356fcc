//! The two machines: how they start, and semihosting, by which QEMU lends them files of its host.
//!
//! Arm's "Semihosting for AArch32 and AArch64" and RISC-V's "Semihosting" name the operations alike.

use core::arch::asm;

use alloc::{string::String, vec, vec::Vec};

#[cfg(target_arch = "riscv32")]
core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "la sp, stack_top",
    "call {start}",
    start = sym start,
);

/// The words behind the processor's first stack pointer.
#[cfg(target_arch = "arm")]
#[unsafe(link_section = ".vectors")]
#[used]
static VECTORS: [unsafe extern "C" fn() -> !; 3] = [reset, fault, fault];

#[cfg(target_arch = "arm")]
#[unsafe(no_mangle)]
extern "C" fn reset() -> ! {
    start()
}

#[cfg(target_arch = "arm")]
extern "C" fn fault() -> ! {
    print("processor fault\n");
    exit(false)
}

extern "C" fn start() -> ! {
    crate::run();
    exit(true)
}

unsafe extern "C" {
    static mut heap_start: u8;
    static mut heap_end: u8;
}

/// Where the heap begins, and its length.
pub(crate) fn heap() -> (*mut u8, usize) {
    let (start, end) = (&raw mut heap_start, &raw mut heap_end);
    (start, end.addr() - start.addr())
}

const OPEN: usize = 0x01;
const CLOSE: usize = 0x02;
const WRITE0: usize = 0x04;
const WRITE: usize = 0x05;
const READ: usize = 0x06;
const FLEN: usize = 0x0C;
const GET_CMDLINE: usize = 0x15;
const EXIT: usize = 0x18;

const READ_BINARY: usize = 1;
const WRITE_BINARY: usize = 5;

/// # Safety
/// `argument` must be what the operation takes: a number, or the address of a block of words.
unsafe fn call(operation: usize, argument: usize) -> usize {
    let result;
    // SAFETY: the emulator answers, by the caller's promise within what the block says.
    unsafe {
        #[cfg(target_arch = "riscv32")]
        asm!(
            // These three instructions, uncompressed and in one page, are the call.
            ".option push",
            ".option norvc",
            ".balign 16",
            "slli zero, zero, 0x1f",
            "ebreak",
            "srai zero, zero, 7",
            ".option pop",
            inout("a0") operation => result,
            in("a1") argument,
        );
        #[cfg(target_arch = "arm")]
        asm!("bkpt #0xAB", inout("r0") operation => result, in("r1") argument);
    }
    result
}

fn call_with(operation: usize, block: &[usize]) -> usize {
    // SAFETY: every block names buffers of this program with their lengths.
    unsafe { call(operation, block.as_ptr().addr()) }
}

/// The words behind `-append`, or of `-semihosting-config arg=`.
pub(crate) fn arguments() -> String {
    let mut text = vec![0u8; 512];
    let mut block = [text.as_mut_ptr().expose_provenance(), text.len()];
    // SAFETY: the buffer and its length; the length comes back in its place.
    unsafe { call(GET_CMDLINE, block.as_mut_ptr().expose_provenance()) };
    let length = text.iter().position(|&byte| byte == 0).unwrap_or(0);
    text.truncate(length);
    String::from_utf8(text).expect("the arguments are text")
}

fn open(path: &str, mode: usize) -> usize {
    let mut name: Vec<u8> = path.bytes().collect();
    name.push(0);
    let handle = call_with(OPEN, &[name.as_ptr().expose_provenance(), mode, path.len()]);
    assert!(handle != usize::MAX, "cannot open a file");
    handle
}

/// A file of the host's.
pub(crate) fn read(path: &str) -> Vec<u8> {
    let handle = open(path, READ_BINARY);
    let mut bytes = vec![0; call_with(FLEN, &[handle])];
    let missing = call_with(READ, &[handle, bytes.as_mut_ptr().expose_provenance(), bytes.len()]);
    assert_eq!(missing, 0, "file ends early");
    call_with(CLOSE, &[handle]);
    bytes
}

/// Writes a file of the host's.
pub(crate) fn write(path: &str, bytes: &[u8]) {
    let handle = open(path, WRITE_BINARY);
    let missing = call_with(WRITE, &[handle, bytes.as_ptr().expose_provenance(), bytes.len()]);
    assert_eq!(missing, 0, "file not written");
    call_with(CLOSE, &[handle]);
}

/// Instructions that `work` takes, if the emulator counts them; on Arm in steps of 40, SysTick's clock
/// being 25 MHz where an instruction takes a nanosecond (ARMv7-M manual, B3.3).
pub(crate) fn instructions(work: impl FnOnce()) -> u32 {
    let before = retired();
    work();
    let after = retired();
    if cfg!(target_arch = "arm") {
        (before.wrapping_sub(after) & 0xFF_FFFF) * 40
    } else {
        after.wrapping_sub(before)
    }
}

#[cfg(target_arch = "riscv32")]
fn retired() -> u32 {
    let count: usize;
    // SAFETY: reading a counter in machine mode; not `nomem`, so that no work moves across.
    unsafe { asm!("csrr {}, minstret", out(reg) count) };
    count as u32
}

#[cfg(target_arch = "arm")]
fn retired() -> u32 {
    // SAFETY: SysTick's registers on every Cortex-M: reload value, control, current value.
    unsafe {
        (0xE000_E014 as *mut u32).write_volatile(0xFF_FFFF);
        (0xE000_E010 as *mut u32).write_volatile(0b101);
        (0xE000_E018 as *const u32).read_volatile()
    }
}

/// To the host's console.
pub(crate) fn print(text: &str) {
    let mut bytes: Vec<u8> = text.bytes().collect();
    bytes.push(0);
    // SAFETY: a text that ends in a zero.
    unsafe { call(WRITE0, bytes.as_ptr().expose_provenance()) };
}

/// Ends the emulator.
pub(crate) fn exit(good: bool) -> ! {
    const APPLICATION_EXIT: usize = 0x2_0026;
    const RUN_TIME_ERROR: usize = 0x2_0023;
    // SAFETY: the reason is the argument itself.
    unsafe { call(EXIT, if good { APPLICATION_EXIT } else { RUN_TIME_ERROR }) };
    loop {
        core::hint::spin_loop();
    }
}
