//! From the loader to `main`, and the ends: a panic, a fault. Either starts the device anew.

use core::arch::global_asm;
use core::fmt::Write as _;
use core::ops::Range;

use cortex_m_rt::entry;
use tenure_board_common::{Heap, HeapUse, MACHINE_FORMAT};
use tenure_board_qemu_cortex_m::console::Uart;
use tenure_board_qemu_cortex_m::{BOARD, WINDOW, exit};
use tenure_boot::always_on::STATUS_RESET;
use tenure_boot::{HEADER_BYTES, Header};

/// The header that the loader reads, and the sender of an update.
#[used]
#[unsafe(link_section = ".header")]
static HEADER: [u8; HEADER_BYTES] = Header::new(BOARD, WINDOW as u32, MACHINE_FORMAT).to_bytes();

/// The heap of the firmware and of those who run behind its walls.
#[global_allocator]
pub(crate) static HEAP: Heap = Heap::new();

unsafe extern "C" {
    static mut __sheap: u8;
    static heap_end: u8;
    /// Goes on in [`start`] on the firmware's own stack.
    fn leave_handlers_stack() -> !;
}

// Reset runs on the handlers' stack; thread mode gets the other one (ARMv7-M manual, B1.4.4).
global_asm!(
    ".section .text",
    ".global leave_handlers_stack",
    ".thumb_func",
    "leave_handlers_stack:",
    "ldr r0, =firmware_stack_top",
    "msr psp, r0",
    "movs r0, #2",
    "msr control, r0",
    "isb",
    "bl {start}",
    start = sym start,
);

#[entry]
fn reset() -> ! {
    // SAFETY: the stack that it begins is the linker's for this alone; nothing here is returned to.
    unsafe { leave_handlers_stack() }
}

/// How much of the heap is used.
pub(crate) fn heap_usage() -> HeapUse {
    HEAP.usage()
}

extern "C" fn start() -> ! {
    let (start, end) = ((&raw mut __sheap).addr(), (&raw const heap_end).addr());
    // SAFETY: the linker keeps this range for the heap alone; nothing has allocated yet.
    unsafe { HEAP.init(start, end) };
    crate::main()
}

/// Where a stacked frame may lie: the machine's RAM.
const RAM: Range<usize> = 0x2000_0000..0x2006_4000;
/// The place of the program counter in a stacked frame, in words (ARMv7-M manual, B1.5.6).
const STACKED_PC: usize = 6;

/// A fault of the firmware itself, which is a mistake of ours.
#[cfg_attr(memory_protection, unsafe(export_name = "firmware_faulted"))]
#[cfg_attr(not(memory_protection), unsafe(export_name = "HardFault"))]
extern "C" fn faulted() -> ! {
    let frame = cortex_m::register::psp::read() as usize;
    // A console that takes nothing has nobody who reads it.
    let _ = if RAM.contains(&frame) && RAM.contains(&(frame + 4 * STACKED_PC)) {
        // SAFETY: inside RAM, and aligned, as a stack pointer is.
        let at = unsafe { (frame as *const usize).add(STACKED_PC).read() };
        writeln!(Uart, "firmware faulted: at {at:#x}")
    } else {
        writeln!(Uart, "firmware faulted: its stack overflowed, down to {frame:#x}")
    };
    exit(STATUS_RESET)
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    // As above.
    let _ = writeln!(Uart, "firmware stopped: {panic}");
    exit(STATUS_RESET)
}
