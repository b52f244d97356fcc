//! A Tenure device on a Raspberry Pi Pico, or another board with an RP2040: the firmware, linked for slot A.
#![no_std]
#![no_main]

extern crate alloc;

mod firmware;
