//! The value of the options Block1 and Block2 (RFC 7959 §2.2).

/// A block of a longer payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its number, from 0; 20 bits.
    pub(crate) number: u32,
    /// Whether others follow.
    pub(crate) more: bool,
    /// Its length is 2 to the power of this and 4; 0 to 6.
    exponent: u8,
}

/// The exponent of the longest block, of 1,024 bytes. 7 is reserved, and stands for something else over TCP (RFC 8323).
pub(crate) const EXPONENT_MAX: u8 = 6;
/// The longest block, in bytes.
pub(crate) const BLOCK_BYTES_MAX: usize = size_of_exponent(EXPONENT_MAX);
/// The longest value, in bytes.
const VALUE_BYTES_MAX: usize = 3;

/// The length of a block, in bytes.
pub(crate) const fn size_of_exponent(exponent: u8) -> usize {
    16 << exponent
}

impl Block {
    /// The block that begins at `offset`, which is a multiple of its length.
    pub(crate) fn at(offset: usize, exponent: u8, more: bool) -> Self {
        Self { number: (offset / size_of_exponent(exponent)) as u32, more, exponent }
    }

    /// Reads the option's value; `None` if it is none.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        if value.len() > VALUE_BYTES_MAX {
            return None;
        }
        let bits = value.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        let exponent = (bits & 7) as u8;
        let block = Self { number: bits >> 4, more: bits & 8 != 0, exponent };
        (exponent <= EXPONENT_MAX).then_some(block)
    }

    /// The option's value.
    pub(crate) fn value(self) -> u32 {
        self.number << 4 | u32::from(self.more) << 3 | u32::from(self.exponent)
    }

    /// Its length, in bytes; the last one may be shorter.
    pub(crate) fn size(self) -> usize {
        size_of_exponent(self.exponent)
    }

    /// The place of its first byte in the whole.
    pub(crate) fn offset(self) -> usize {
        self.number as usize * self.size()
    }

    /// Whether it is the first.
    pub(crate) fn is_first(self) -> bool {
        self.number == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_of_the_standard_are_read() {
        // RFC 7959 §3: 2:0/1/128 and its like; an absent value is 0.
        for (value, number, more, size) in [
            (&[][..], 0, false, 16),
            (&[0x0B], 0, true, 128),
            (&[0x1B], 1, true, 128),
            (&[0x33], 3, false, 128),
            (&[0x0E], 0, true, 1024),
            (&[0x01, 0x06], 16, false, 1024),
            (&[0xFF, 0xFF, 0xFE], 0xFFFFF, true, 1024),
        ] {
            let block = Block::read(value).unwrap();
            assert_eq!((block.number, block.more, block.size()), (number, more, size), "{value:?}");
        }
        for value in [&[0x07][..], &[0x0F], &[0, 0, 0, 0]] {
            assert_eq!(Block::read(value), None, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn value_that_was_written_is_read_again(number in 0_u32..1 << 20, more: bool, exponent in 0..=EXPONENT_MAX) {
            let block = Block { number, more, exponent };
            prop_assert_eq!(Block::read(&block.value().to_be_bytes()[1..]), Some(block));
            prop_assert_eq!(Block::at(block.offset(), exponent, more), block);
        }
    }
}
