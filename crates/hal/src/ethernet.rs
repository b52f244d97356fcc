//! Raw Ethernet: frames of an EtherType of our own, without IP.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 6 | the receiver |
//! | 6 | 6 | the sender |
//! | 12 | 2 | [`ETHER_TYPE`] |
//! | 14 | 2 | how long the datagram is, big-endian, because Ethernet pads short frames |
//! | 16 | | the datagram |

use core::fmt;

/// IEEE Std 802, Local Experimental EtherType 1.
pub const ETHER_TYPE: u16 = 0x88B5;
/// The longest datagram: what an Ethernet frame carries, less our length.
pub const PACKET_BYTES_MAX: usize = 1500 - 2;
/// Bytes of a frame before the datagram.
pub const PACKET_HEADER_BYTES: usize = 16;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Everybody on the link.
    pub const BROADCAST: Self = Self([0xFF; 6]);
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The bytes before a datagram of `datagram_bytes` bytes, which are at most [`PACKET_BYTES_MAX`].
pub fn packet_header(
    to: MacAddress,
    from: MacAddress,
    datagram_bytes: usize,
) -> [u8; PACKET_HEADER_BYTES] {
    let mut header = [0; PACKET_HEADER_BYTES];
    header[..6].copy_from_slice(&to.0);
    header[6..12].copy_from_slice(&from.0);
    header[12..14].copy_from_slice(&ETHER_TYPE.to_be_bytes());
    header[14..].copy_from_slice(&(datagram_bytes as u16).to_be_bytes());
    header
}

/// Whether a frame is of our EtherType.
pub fn is_packet(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&ETHER_TYPE.to_be_bytes())
}

/// The datagram in a frame of our EtherType, and its sender; `None` if the frame is shorter than it
/// says.
pub fn parse_packet(frame: &[u8]) -> Option<(&[u8], MacAddress)> {
    let (header, rest) = frame.split_first_chunk::<PACKET_HEADER_BYTES>()?;
    let [_, _, _, _, _, _, sender @ .., _, _, high, low] = *header;
    let datagram = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    Some((datagram, MacAddress(sender)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_with_its_padding_and_not_beyond_its_end() {
        let (to, from) = (MacAddress::BROADCAST, MacAddress([2; 6]));
        let mut frame = [0; 24];
        frame[..16].copy_from_slice(&packet_header(to, from, 3));
        frame[16..19].copy_from_slice(&[7, 8, 9]);
        assert!(is_packet(&frame));
        assert_eq!(parse_packet(&frame), Some((&[7, 8, 9][..], from)));
        assert_eq!(parse_packet(&frame[..18]), None);
        assert_eq!(parse_packet(&frame[..15]), None);
        assert!(!is_packet(&frame[..13]));
    }
}
