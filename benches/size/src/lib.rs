//! The common part of all probes: an entry point, a heap, a panic handler, and data of unknown content.
//!
//! The programs are linked and counted; none is ever run.
#![no_std]

extern crate alloc;

#[cfg(any(feature = "vm", feature = "vm_without_floats"))]
pub mod engine;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "hal")]
use tenure_hal::{Entropy, EntropyError, Flash, FlashError, FlashGeometry};
#[cfg(feature = "package")]
use tenure_package::{Package, Placement};
#[cfg(feature = "package")]
use tenure_wire::VerifyingKey;

/// Names what a probe does: becomes the entry point of its program.
#[macro_export]
macro_rules! probe {
    ($body:block) => {
        /// Where the program begins.
        // SAFETY: no other symbol of this program has the name.
        #[unsafe(no_mangle)]
        extern "C" fn _start() -> ! {
            $body;
            loop {
                core::hint::spin_loop();
            }
        }
    };
}

/// Bytes that the compiler knows nothing of.
pub fn unknown_bytes() -> &'static [u8] {
    static BYTES: [u8; 64] = [0; 64];
    core::hint::black_box(&BYTES)
}

/// An array that the compiler knows nothing of.
pub fn unknown<const N: usize>() -> [u8; N] {
    core::hint::black_box([0; N])
}

/// Says that `value` matters, so that what made it stays.
pub fn keep<T>(value: T) {
    core::hint::black_box(value);
}

/// Parses and verifies bytes as a package and as a placement.
#[cfg(feature = "package")]
pub fn take_package(bytes: &[u8]) {
    if let Ok(package) = Package::parse(bytes) {
        keep(package.verify());
        keep(package.tree().entries().count());
        keep(package.manifest());
    }
    keep(Placement::verify(bytes, &VerifyingKey(unknown())));
}

/// A flash of which nothing is known.
#[cfg(feature = "hal")]
pub struct UnknownFlash;

#[cfg(feature = "hal")]
impl Flash for UnknownFlash {
    fn geometry(&self) -> FlashGeometry {
        FlashGeometry { sector_bytes: 4096, sector_count: 64, program_bytes: 4 }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        keep((offset, into));
        core::hint::black_box(Ok(()))
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        keep((offset, bytes));
        core::hint::black_box(Ok(()))
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        keep(sector);
        core::hint::black_box(Ok(()))
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(unknown_bytes())
    }
}

/// Random bytes of which nothing is known.
#[cfg(feature = "hal")]
pub struct UnknownEntropy;

#[cfg(feature = "hal")]
impl Entropy for UnknownEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        keep(bytes);
        core::hint::black_box(Ok(()))
    }
}

/// A heap that frees nothing: the smallest there is.
struct Bump;

const HEAP_BYTES: usize = 1024;
static NEXT: AtomicUsize = AtomicUsize::new(0x2000_0000);

// SAFETY: blocks never overlap, and are aligned; the program is never run, so that no address is
// ever used.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = NEXT.load(Ordering::Relaxed).next_multiple_of(layout.align());
        NEXT.store(start + layout.size().min(HEAP_BYTES), Ordering::Relaxed);
        core::ptr::with_exposed_provenance_mut(start)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: Bump = Bump;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
