//! From reset to `main`, the interrupts of the lines, and the ends: a panic, a fault. Either starts the
//! device anew.

use core::arch::global_asm;
use core::fmt::Write as _;
use core::ops::Range;

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::NVIC;
use cortex_m_rt::{entry, exception};
use tenure_board_common::{Heap, HeapUse};

use crate::uart::{self, Console};

/// The emulator's exit statuses, as `tenure_boot::always_on` has them.
const STATUS_FAULT: i32 = 1;
const STATUS_RESET: i32 = 16;

#[global_allocator]
static HEAP: Heap = Heap::new();

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

extern "C" fn start() -> ! {
    let (start, end) = ((&raw mut __sheap).addr(), (&raw const heap_end).addr());
    // SAFETY: the linker keeps this range for the heap alone; nothing has allocated yet.
    unsafe { HEAP.init(start, end) };
    crate::main()
}

/// How much of the heap is used.
pub(crate) fn heap_usage() -> HeapUse {
    HEAP.usage()
}

/// Whether the heap has so many bytes free in one piece.
pub(crate) fn heap_has_piece(bytes: usize) -> bool {
    HEAP.has_piece(bytes)
}

/// Ends the device: a new start wouldn't help.
pub(crate) fn fault() -> ! {
    semihosting::process::exit(STATUS_FAULT)
}

/// An interrupt of a UART (LM3S6965 data sheet, table 2-9).
#[derive(Clone, Copy)]
struct Interrupt(u16);

const FROM_MESH: Interrupt = Interrupt(6);
const FROM_SERVICE: Interrupt = Interrupt(33);

// SAFETY: numbers of the chip's interrupts.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self.0
    }
}

/// Lets the lines interrupt.
pub(crate) fn enable_interrupts() {
    // SAFETY: the handler touches atomics and the lines' UARTs alone, which are set up.
    unsafe {
        NVIC::unmask(FROM_MESH);
        NVIC::unmask(FROM_SERVICE);
    }
}

/// How many interrupts the chip has (LM3S6965 data sheet, table 2-9).
const INTERRUPTS: usize = 44;

/// Their vectors, behind those of the processor. Without a table of the chip's own there is room for all 240 that a
/// Cortex-M3 can have.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".vector_table.interrupts")]
static __INTERRUPTS: [unsafe extern "C" fn(); INTERRUPTS] = {
    unsafe extern "C" {
        fn DefaultHandler();
    }
    [DefaultHandler; INTERRUPTS]
};

#[exception]
unsafe fn DefaultHandler(number: i16) {
    match number {
        6 => uart::take_from_mesh(),
        33 => uart::take_from_service(),
        _ => {}
    }
}

/// Where a stacked frame may lie: the machine's RAM.
const RAM: Range<usize> = 0x2000_0000..0x2001_0000;

/// The place of the program counter in a stacked frame, in words (ARMv7-M manual, B1.5.6).
const STACKED_PC: usize = 6;

/// A fault of the firmware itself, which is a mistake of ours.
#[exception(trampoline = false)]
unsafe fn HardFault() -> ! {
    let frame = cortex_m::register::psp::read() as usize;
    // A console that takes nothing has nobody who reads it.
    let _ = if RAM.contains(&frame) && RAM.contains(&(frame + 4 * STACKED_PC)) {
        // SAFETY: inside RAM, and aligned, as a stack pointer is.
        let at = unsafe { (frame as *const usize).add(STACKED_PC).read() };
        writeln!(Console, "firmware faulted: at {at:#x}")
    } else {
        writeln!(Console, "firmware faulted: its stack overflowed, down to {frame:#x}")
    };
    semihosting::process::exit(STATUS_RESET)
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    // As above.
    let _ = writeln!(Console, "firmware stopped: {panic}");
    semihosting::process::exit(STATUS_RESET)
}
