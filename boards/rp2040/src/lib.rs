//! Shared by the loader and the firmware of an RP2040: clocks, flash, reset causes, and memory that outlives a reset.
//!
//! Unsafe code is needed to touch the chip. Each use says what it relies on; in all of them the second core sleeps in
//! its boot ROM, and no interrupt is ever taken: `wfi` ends when one is pending, which is all that they are for.
#![no_std]

pub mod chip;
pub mod flash;
pub mod power;

/// The name of this board in images of its firmware.
pub const BOARD: &str = "rp2040";

/// Where flash is mapped into the address space (data sheet, 2.2).
pub use tenure_boot::uf2::RP2040_FLASH as FLASH_BASE;

/// The address that the image in each slot is linked for: code executes from the slot itself, since the chip
/// can't map flash elsewhere.
pub const LINKED_FOR: [u32; 2] = [
    FLASH_BASE + tenure_boot::map::SLOTS[0].offset(),
    FLASH_BASE + tenure_boot::map::SLOTS[1].offset(),
];

/// The bytes before an image's vectors: its header, and as many as the vector table's alignment asks for.
pub const VECTORS_AT: u32 = 0x400;
