//! The firmware, linked for slot B: the same source, since the chip executes an image where it lies.
#![no_std]
#![no_main]

extern crate alloc;

mod firmware;
