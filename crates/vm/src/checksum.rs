//! CRC-32 (IEEE 802.3), by nibbles: 64 bytes of table.

const TABLE: [u32; 16] = table();

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut nibble = 0;
    while nibble < 16 {
        let mut crc = nibble as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[nibble] = crc;
        nibble += 1;
    }
    table
}

/// A checksum under way.
#[derive(Clone, Copy)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    pub(crate) fn new() -> Crc32 {
        Crc32(!0)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 ^= byte as u32;
            self.0 = self.0 >> 4 ^ TABLE[(self.0 & 15) as usize];
            self.0 = self.0 >> 4 ^ TABLE[(self.0 & 15) as usize];
        }
    }

    pub(crate) fn value(self) -> u32 {
        !self.0
    }
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc32::new();
    crc.update(bytes);
    crc.value()
}

#[cfg(test)]
mod tests {
    /// Check value of the catalogue of parametrised CRC algorithms.
    #[test]
    fn check_value() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
    }
}
