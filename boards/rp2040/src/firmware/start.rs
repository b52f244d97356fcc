//! From the loader to `main`, and the ends: a panic, a fault. Either starts the device anew.

use core::fmt::Write as _;

use cortex_m_rt::{ExceptionFrame, entry, exception};
use tenure_board_common::{Heap, HeapUse, MACHINE_FORMAT};
use tenure_board_rp2040::{BOARD, power};
use tenure_boot::Header;

use super::lines::Console;

unsafe extern "C" {
    static image_start: u8;
    static mut __sheap: u8;
    static heap_end: u8;
}

/// [`Header::to_bytes`], with the address filled in by the linker: one source makes the images of both slots.
#[repr(C)]
struct LinkedHeader {
    before: [u8; 8],
    load_at: &'static u8,
    behind: [u8; 52],
}

#[used]
#[unsafe(link_section = ".header")]
static HEADER: LinkedHeader = {
    let bytes = Header::new(BOARD, 0, MACHINE_FORMAT).to_bytes();
    let (mut before, mut behind) = ([0; 8], [0; 52]);
    let mut index = 0;
    while index < 64 {
        match index {
            0..8 => before[index] = bytes[index],
            8..12 => {}
            _ => behind[index - 12] = bytes[index],
        }
        index += 1;
    }
    // SAFETY: the linker sets it to the image's first byte, which is there for good.
    LinkedHeader { before, load_at: unsafe { &image_start }, behind }
};

/// The heap of the firmware and its machines.
#[global_allocator]
static HEAP: Heap = Heap::new();

/// How much of the heap is used.
pub(super) fn heap_usage() -> HeapUse {
    HEAP.usage()
}

#[entry]
fn start() -> ! {
    // Nothing is ever handled in an interrupt: code stands in flash, which is away while it is written.
    cortex_m::interrupt::disable();
    let (start, end) = ((&raw mut __sheap).addr(), (&raw const heap_end).addr());
    // SAFETY: the linker keeps this range for the heap alone; nothing has allocated yet.
    unsafe { HEAP.init(start, end) };
    super::main()
}

/// A fault of the firmware itself.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Console, "firmware faulted: at {:#x}", frame.pc());
    power::reset()
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    // As above.
    let _ = writeln!(Console, "firmware stopped: {panic}");
    power::reset()
}
