//! UDP checksums that a virtual interface has left to hardware which isn't there: the kernel hands
//! out such frames unfinished, and drops them where they come in again.

const ETHERNET_BYTES: usize = 14;
const UDP: u8 = 17;
/// The lengths of IPv6's header, and of UDP's.
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;

/// Writes the UDP checksum into an Ethernet frame that carries UDP over IP; leaves others alone.
pub(super) fn complete(frame: &mut [u8]) {
    let Some((header, packet)) = frame.split_at_mut_checked(ETHERNET_BYTES) else { return };
    let (addresses, header_bytes) = match (&header[12..], packet.first()) {
        ([0x08, 0x00], Some(first)) if packet.get(9) == Some(&UDP) => {
            // A fragment's checksum isn't in it alone.
            let is_fragment = packet[6] & 0x3F != 0 || packet[7] != 0;
            let header_bytes = usize::from(first & 0x0F) * 4;
            if is_fragment {
                return;
            }
            (12..20, header_bytes)
        }
        ([0x86, 0xDD], Some(_)) if packet.get(6) == Some(&UDP) => (8..40, IPV6_BYTES),
        _ => return,
    };
    let Some((ip, rest)) = packet.split_at_mut_checked(header_bytes) else { return };
    let Some(addresses) = ip.get(addresses) else { return };
    let Some(length) = rest.get(4..6) else { return };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    let Some(datagram) = rest.get_mut(..length).filter(|it| it.len() >= UDP_BYTES) else { return };
    datagram[6..8].fill(0);
    // RFC 768 and RFC 8200 §8.1: addresses, length and protocol count as well.
    let mut sum = u64::from(UDP) + length as u64;
    for part in [addresses, datagram] {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    let checksum = match !(sum as u16) {
        0 => 0xFFFF,
        checksum => checksum,
    };
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram from 10.0.0.1:7 to 10.0.0.2:7 that says `hi!`, its checksum not there yet.
    fn frame() -> Vec<u8> {
        let mut frame = [[2; 12].as_slice(), &[0x08, 0x00]].concat();
        frame.extend([0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 7, 0, 7, 0, 11, 0xAA, 0xAA]);
        frame.extend(b"hi!");
        frame
    }

    #[test]
    fn a_checksum_is_right_whatever_stood_there() {
        let mut frame = frame();
        complete(&mut frame);
        // 0x1401 + 0x0003 + 17 + 11 + 7 + 7 + 11 + "hi" + "!\0" = 0x9DA1
        assert_eq!(frame[40..42], (!0x9DA1_u16).to_be_bytes());
    }

    #[test]
    fn what_is_cut_short_is_left_alone() {
        let whole = frame();
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            complete(&mut cut);
            assert_eq!(cut, whole[..length]);
        }
    }
}
