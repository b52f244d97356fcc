//! One bit that flipped since it was written: the CRC over it tells which, and it is turned back.
//!
//! Codewords of CRC-32C differ in six bits at least up to 5,243 bits with the CRC, and in four beyond (Koopman, "32-bit
//! cyclic redundancy codes for Internet applications", DSN 2002). So where up to four bits flipped in what is no longer than
//! [`MENDED_BYTES_MAX`], turning one more never makes it look whole.

/// A longer value stays as it is found.
const MENDED_BYTES_MAX: usize = 640;

/// The polynomial of CRC-32C, its lowest bit standing for x^31.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// Turns back the one bit whose flip changed the CRC of `bytes` by `difference`; `false` if it wasn't one.
pub(crate) fn mend(bytes: &mut [u8], difference: u32) -> bool {
    if bytes.len() > MENDED_BYTES_MAX {
        return false;
    }
    let Some(bit) = flipped_bit(bytes.len(), difference) else { return false };
    flip(bytes, bit);
    true
}

/// The bit whose flip in `length` bytes changes their CRC by `difference`, counted from the lowest of the first byte.
pub(crate) fn flipped_bit(length: usize, difference: u32) -> Option<usize> {
    let mut shifted = 1;
    (0..8 * length).rev().find(|_| {
        let carry = if shifted & 1 == 1 { POLYNOMIAL } else { 0 };
        shifted = (shifted >> 1) ^ carry;
        shifted == difference
    })
}

/// Turns this bit of `bytes`.
pub(crate) fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{MENDED_BYTES_MAX, flip, flipped_bit};
    use crate::record::CRC;

    #[test]
    fn each_single_bit_is_found_and_two_to_four_are_never_taken_for_one() {
        let mut state = 7u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for length in [1, 4, 37, MENDED_BYTES_MAX] {
            let whole: Vec<u8> = (0..length).map(|_| below(256) as u8).collect();
            let crc = CRC.checksum(&whole);
            for bit in 0..8 * length {
                let mut found = whole.clone();
                flip(&mut found, bit);
                assert_eq!(flipped_bit(length, CRC.checksum(&found) ^ crc), Some(bit));
            }
            assert_eq!(flipped_bit(length, 0), None);
            for _ in 0..2_000 {
                let mut found = whole.clone();
                for _ in 0..2 + below(3) {
                    flip(&mut found, below(8 * length));
                }
                let changed: u32 =
                    found.iter().zip(&whole).map(|(one, two)| (one ^ two).count_ones()).sum();
                let bit = flipped_bit(length, CRC.checksum(&found) ^ crc);
                assert_eq!(bit.is_some(), changed == 1, "{changed} bits of {length} bytes");
            }
        }
    }
}
