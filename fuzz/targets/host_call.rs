//! A machine's host calls: any number, any arguments, any pointers.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_wire::host_call::{GuestBytes, HostCall};

/// Bytes before the machine's memory: a call's number, a pointer, a length.
const HEADER_BYTES: usize = 2 + 4 + 4;

fuzz_target!(|bytes: &[u8]| {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return };
    let number = u16::from_le_bytes([header[0], header[1]]);
    let slots: Vec<u64> = rest.chunks_exact(8).map(word).collect();
    let _ = HostCall::decode(number, &slots);

    let pointer = u32::from_le_bytes([header[2], header[3], header[4], header[5]]);
    let length = u32::from_le_bytes([header[6], header[7], header[8], header[9]]);
    let fits = u64::from(pointer) + u64::from(length) <= rest.len() as u64;
    assert_eq!(GuestBytes::new(pointer, length).read(rest).is_ok(), fits);
});

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
