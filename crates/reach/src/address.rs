//! The addresses that a name may lead to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// A port at which nobody is asked for anything (RFC 863): it is only looked from where this computer would send there.
const DISCARD: u16 = 9;

/// Whether a name may lead to `address`: it is one of the public network, and by IPv6 none of the network that this computer
/// is in. There each computer has an address of the public network, and the router alone keeps others out.
pub(crate) fn is_elsewhere(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_near = || match address {
        // One that has a public address of IPv4 is on the public network itself.
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => {
            own_toward(address).is_some_and(|own| is_of_one_network(own, address))
        }
    };
    is_public(address) && !is_near()
}

/// This computer's address on the way to that one, by the system's routes (RFC 6724 §5); nothing is sent.
fn own_toward(address: Ipv6Addr) -> Option<Ipv6Addr> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((address, DISCARD)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V6(own) => Some(own),
        IpAddr::V4(_) => None,
    }
}

/// Whether two addresses are of one network (/64).
fn is_of_one_network(one: Ipv6Addr, other: Ipv6Addr) -> bool {
    one.octets()[..8] == other.octets()[..8]
}

/// Whether `address` is one of the public network. A name that leads to another could reach this computer, its network or
/// a service of its cloud (IANA's registries of special-purpose addresses, RFC 6890).
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        // "This network", private, loopback, link-local (RFC 791, RFC 1918, RFC 1122, RFC 3927).
        (0 | 10 | 127, _, _) | (172, 16..=31, _) | (192, 168, _) | (169, 254, _) => true,
        // Shared by carriers (RFC 6598), protocols' assignments, relays (RFC 7526), benchmarks (RFC 2544).
        (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _) => true,
        // Documentation (RFC 5737).
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, reserved, broadcast (RFC 5771, RFC 1112, RFC 919).
        (224..=255, _, _) => true,
        _ => false,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // An IPv4 address in another form (RFC 4291 §2.5.5.2), or reached by a translator (RFC 6052 §2.1).
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        // By 6to4 (RFC 3056 §2).
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo and other protocols' assignments (RFC 2928), documentation (RFC 3849, RFC 9637).
        [0x2001, 0..=0x1FF, ..] | [0x2001, 0xDB8, ..] | [0x3FFF, 0..=0xFFF, ..] => false,
        // Global unicast (RFC 4291 §2.4, RFC 3587 §3): neither loopback nor local, site-local or multicast.
        [first, ..] => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbour_in_the_network_of_ipv6_is_near_though_its_address_is_public() {
        let ip = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let own = ip("2a01:db8:1:2::7");
        for (other, is_near) in [
            ("2a01:db8:1:2::7", true),
            ("2a01:db8:1:2:ffff::1", true),
            ("2a01:db8:1:3::7", false),
            ("2606:4700::1111", false),
        ] {
            assert!(is_public(ip(other).into()), "{other}");
            assert_eq!(is_of_one_network(own, ip(other)), is_near, "{other}");
        }
        // A computer without IPv6 sends from nowhere.
        let from = own_toward(Ipv6Addr::LOCALHOST);
        assert!(from.is_none_or(|from| from == Ipv6Addr::LOCALHOST), "{from:?}");
    }

    #[test]
    fn addresses_of_the_public_network_are_told_from_all_others() {
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "100.63.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for special in [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fdff::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "4000::1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }
}
