//! From reset to `main`, the memory and what is taken of it, and the ends: a panic, a fault. Either starts the device anew.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::fmt::Write as _;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::slice;

use cortex_m_rt::{entry, exception};
use tenure_board_common::{Heap, MemoryUse, Papers};
use tenure_board_qemu_cortex_m::console::Uart;
use tenure_board_qemu_cortex_m::exit;
use tenure_boot::always_on::STATUS_RESET;

const HEAP_BYTES: usize = 17 * 1024;

/// Memory for the heap, whatever is in it.
#[repr(align(8))]
struct Room(UnsafeCell<MaybeUninit<[u8; HEAP_BYTES]>>);

// SAFETY: the heap's alone, which one core uses.
unsafe impl Sync for Room {}

#[unsafe(link_section = ".uninit.heap")]
static ROOM: Room = Room(UnsafeCell::new(MaybeUninit::uninit()));

#[global_allocator]
static HEAP: Heap = Heap::new();

unsafe extern "C" {
    static mut firmware_stack_bottom: u32;
    static firmware_stack_top: u32;
    static papers_start: u8;
    /// Goes on in [`start`] on the firmware's own stack.
    fn leave_handlers_stack() -> !;
}

// Reset runs on the handlers' stack; thread mode gets the other one (ARMv6-M manual, B1.4.4).
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
    paint_stack();
    // SAFETY: the stack that it begins is the linker's for this alone; nothing here is returned to.
    unsafe { leave_handlers_stack() }
}

extern "C" fn start() -> ! {
    let start = ROOM.0.get().addr();
    // SAFETY: the room is the heap's alone; nothing has allocated yet.
    unsafe { HEAP.init(start, start + HEAP_BYTES) };
    crate::main()
}

/// The value of stack that nothing has used.
const PAINT: u32 = 0xC5C5_C5C5;

/// The addresses of the firmware's stack.
fn stack() -> Range<usize> {
    (&raw const firmware_stack_bottom).addr()..(&raw const firmware_stack_top).addr()
}

/// Writes over the stack before it is used.
fn paint_stack() {
    for at in stack().step_by(4) {
        // SAFETY: a word of the firmware's stack, on which nothing is yet: this runs on the handlers'.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(at).write_volatile(PAINT) };
    }
}

/// What the firmware has taken of heap and stack.
pub(crate) fn memory_use() -> MemoryUse {
    let untouched = stack().step_by(4).take_while(|at| {
        // SAFETY: a word of the firmware's stack.
        unsafe { core::ptr::with_exposed_provenance::<u32>(*at).read_volatile() == PAINT }
    });
    let stack_bytes = stack().len();
    let stack_peak_bytes = stack_bytes - 4 * untouched.count();
    MemoryUse { heap: HEAP.usage(), stack_peak_bytes, stack_bytes }
}

/// What was written behind the firmware: settings, and certificates in DER.
pub(crate) fn papers() -> Papers {
    /// Settings, authorities, the own chain.
    const BYTES: [usize; 3] = [4096, 2048, 2048];
    let first = &raw const papers_start;
    let at = |offset: usize, bytes: usize| {
        // SAFETY: flash behind the firmware, which nothing writes while it runs.
        unsafe { slice::from_raw_parts(first.add(offset), bytes) }
    };
    Papers {
        settings: at(0, BYTES[0]),
        authorities: at(BYTES[0], BYTES[1]),
        chain: at(BYTES[0] + BYTES[1], BYTES[2]),
    }
}

/// Where a stacked frame may lie: the device's RAM.
const RAM: Range<usize> = 0x2000_0000..0x2000_8000;
/// The place of the program counter in a stacked frame, in words (ARMv6-M manual, B1.5.6).
const STACKED_PC: usize = 6;

/// A fault of the firmware itself, which is a mistake of ours.
#[exception(trampoline = false)]
unsafe fn HardFault() -> ! {
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
