//! Where virtio devices lie on this machine, and the memory that they share with us.

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::mmio::{MmioTransport, VirtIOHeader};
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

const FIRST: usize = 0x1000_1000;
const STEP: usize = 0x1000;
const COUNT: usize = 8;

/// The offset of the register that says what a device is.
const DEVICE_ID: usize = 8;

/// The first device of `wanted`'s type, with the number of its interrupt.
pub(crate) fn find(wanted: DeviceType) -> Option<(MmioTransport<'static>, u32)> {
    (0..COUNT).find_map(|index| {
        let place = FIRST + index * STEP;
        // A transport that is dropped resets its device: none is made for a device not wanted.
        // SAFETY: the machine has a virtio transport at each of these places, for good.
        let kind = unsafe { ((place + DEVICE_ID) as *const u32).read_volatile() };
        if kind != wanted as u32 {
            return None;
        }
        let header = NonNull::new(place as *mut VirtIOHeader)?;
        // SAFETY: as above. Each is used once: the driver that it is handed to keeps it.
        let transport = unsafe { MmioTransport::new(header, STEP) }.ok()?;
        Some((transport, index as u32 + 1))
    })
}

/// Two pages for each of the three queues: the card's two, and the one of the source of randomness.
const PAGES: usize = 6;

#[repr(C, align(4096))]
struct Pool(UnsafeCell<[u8; PAGES * PAGE_SIZE]>);

// SAFETY: each page is handed out once.
unsafe impl Sync for Pool {}

static POOL: Pool = Pool(UnsafeCell::new([0; PAGES * PAGE_SIZE]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Memory without translation: an address is an address.
pub(crate) struct Direct;

// SAFETY: pages are handed out once, zeroed, aligned and never moved; addresses are physical ones.
unsafe impl Hal for Direct {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let first = USED.fetch_add(pages, Ordering::Relaxed);
        if first + pages > PAGES {
            return (0, NonNull::dangling());
        }
        // SAFETY: inside the pool.
        let start = unsafe { POOL.0.get().cast::<u8>().add(first * PAGE_SIZE) };
        (start.addr() as PhysAddr, NonNull::new(start).unwrap_or(NonNull::dangling()))
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        // Drivers live as long as the device.
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, _: usize) -> NonNull<u8> {
        NonNull::new(address as usize as *mut u8).unwrap_or(NonNull::dangling())
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.addr().get() as PhysAddr
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}
