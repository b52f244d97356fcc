//! The breadcrumb: who runs, in memory that outlasts a reset, so that a bite of the watchdog is put
//! down to the machine that was running, and a loss of power to nobody.

use crc::{CRC_32_ISCSI, Crc, Table};
use tenure_hal::Retained;
use tenure_wire::MachineId;

const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISCSI);
const MAGIC: [u8; 4] = *b"tbc\x01";
/// How long a breadcrumb is.
pub const BREADCRUMB_BYTES: usize = 20;

/// The machine that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breadcrumb(pub MachineId);

impl Breadcrumb {
    /// The breadcrumb as bytes, with its checksum.
    pub fn to_bytes(self) -> [u8; BREADCRUMB_BYTES] {
        let mut bytes = [0; BREADCRUMB_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..16].copy_from_slice(&self.0.0);
        let checksum = CRC.checksum(&bytes[..16]);
        bytes[16..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The breadcrumb that `bytes` begin with, if it is whole.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fixed, checksum) = bytes.get(..BREADCRUMB_BYTES)?.split_last_chunk::<4>()?;
        let (magic, id) = fixed.split_first_chunk::<4>()?;
        let whole = *magic == MAGIC && CRC.checksum(fixed) == u32::from_le_bytes(*checksum);
        whole.then_some(Self(MachineId(id.try_into().ok()?)))
    }
}

/// Says that nobody runs.
pub(crate) fn wipe(retained: &mut dyn Retained) {
    retained.write(&[0; BREADCRUMB_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_is_found_and_nothing_else() {
        let crumb = Breadcrumb(MachineId([7; 12]));
        let bytes = crumb.to_bytes();
        assert_eq!(Breadcrumb::from_bytes(&bytes), Some(crumb));
        for bit in 0..BREADCRUMB_BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Breadcrumb::from_bytes(&bytes), None, "bit {bit}");
        }
        assert_eq!(Breadcrumb::from_bytes(&bytes[..19]), None);
        assert_eq!(Breadcrumb::from_bytes(&[0; BREADCRUMB_BYTES]), None);
        assert_eq!(Breadcrumb::from_bytes(&[0xFF; 64]), None);
    }
}
