//! The hosts that addresses are of, for bounds by host.

use std::net::{IpAddr, Ipv6Addr};

/// The host that an address is of. Of IPv6 one network (/64) counts as one host, which has as many addresses as it likes.
pub(crate) fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_of_ipv6_and_an_address_of_ipv4_in_either_form_are_one_host() {
        let host = |text: &str| host_of(text.parse().unwrap());
        assert_eq!(host("2001:db8::1"), host("2001:db8::2:3"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
        assert_eq!(host("::ffff:192.0.2.1"), host("192.0.2.1"));
        assert_ne!(host("192.0.2.1"), host("192.0.2.2"));
    }
}
