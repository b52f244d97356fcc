use tenure_testbed::patience;

use super::*;

fn bind(address: &str) -> UdpLink {
    UdpLink::bind(address.parse().unwrap()).unwrap()
}

/// Sends one datagram from one to the other and gives what arrived and from where.
fn pass(from: &mut UdpLink, to: &mut UdpLink, at: SocketAddr) -> (Vec<u8>, SocketAddr) {
    from.send(&at, b"hello").unwrap();
    assert_eq!(to.wait(patience()).unwrap(), Woken::ByDatagram);
    let mut into = [0; 64];
    let (length, sender) = to.receive(&mut into).unwrap().expect("wait said so");
    (into[..length].to_vec(), sender)
}

#[test]
fn datagrams_pass_and_can_be_answered() {
    let (mut one, mut two) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let there = two.address();
    let (datagram, sender) = pass(&mut one, &mut two, there);
    assert_eq!((datagram.as_slice(), sender), (b"hello".as_slice(), one.address()));
    let (_, answerer) = pass(&mut two, &mut one, sender);
    assert_eq!(answerer, there);
}

#[test]
fn a_link_of_ipv6_speaks_to_one_of_ipv4_by_its_plain_address() {
    let Ok(mut both) = UdpLink::bind("[::]:0".parse().unwrap()) else {
        return; // This computer has no IPv6.
    };
    let mut four = bind("127.0.0.1:0");
    let there = SocketAddr::new([127, 0, 0, 1].into(), both.address().port());
    let (_, sender) = pass(&mut four, &mut both, there);
    assert_eq!(sender, four.address());
    let (_, answerer) = pass(&mut both, &mut four, sender);
    assert_eq!(answerer, there);
}

#[test]
fn a_link_at_any_port_reaches_both_families() {
    let mut any = UdpLink::bind_any().unwrap();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(mut link) = UdpLink::bind(address.parse().unwrap()) else {
            continue; // This computer has no IPv6.
        };
        let there = link.address();
        let (_, sender) = pass(&mut any, &mut link, there);
        let (_, answerer) = pass(&mut link, &mut any, sender);
        assert_eq!(answerer, there);
    }
}

#[test]
fn nothing_to_receive_is_no_error_and_wait_ends() {
    let mut link = bind("127.0.0.1:0");
    assert_eq!(link.receive(&mut [0; 8]), Ok(None));
    assert_eq!(link.wait(Duration::from_millis(1)), Ok(Woken::ByTimeout));
    assert_eq!(link.wait(Duration::ZERO), Ok(Woken::ByTimeout));
}

#[test]
fn what_is_too_long_is_refused_or_dropped() {
    let (mut one, mut two) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let there = two.address();
    assert_eq!(one.send(&there, &[0; DATAGRAM_BYTES_MAX + 1]), Err(LinkError::TooLong));
    one.send(&there, &[0; DATAGRAM_BYTES_MAX]).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[0; 9000], there).unwrap();
    let (datagram, _) = pass(&mut one, &mut two, there);
    assert_eq!(datagram, b"hello", "the two long ones were dropped");
}

#[test]
fn sending_to_nobody_breaks_nothing() {
    let mut one = bind("127.0.0.1:0");
    let gone = bind("127.0.0.1:0").address();
    for _ in 0..3 {
        one.send(&gone, b"anyone?").unwrap();
        assert_eq!(one.receive(&mut [0; 8]), Ok(None));
    }
    let six = "[2001:db8::1]:9".parse().unwrap();
    assert_eq!(one.send(&six, b"other family"), Err(LinkError::Unreachable));
}

#[test]
fn a_busy_port_and_a_strange_address_are_named() {
    let taken = bind("127.0.0.1:0").address();
    let holder = UdpLink::bind(taken).unwrap();
    let error = UdpLink::bind(holder.address()).unwrap_err().to_string();
    assert!(error.contains(&holder.address().to_string()), "{error}");
    assert!(error.contains("another process listens there"), "{error}");
    let error = UdpLink::bind("192.0.2.1:5000".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("192.0.2.1:5000") && error.contains("0.0.0.0"), "{error}");
}

#[test]
fn address_that_no_interface_has_yet_can_be_awaited() {
    // TEST-NET-1 (RFC 5737): no interface has it.
    let address: SocketAddr = "192.0.2.1:0".parse().unwrap();
    let refused = UdpLink::bind(address).unwrap_err();
    assert_eq!(refused.error.kind(), io::ErrorKind::AddrNotAvailable);
    let (link, is_there) = UdpLink::bind_or_await(address).unwrap();
    assert!(!is_there && link.address().port() != 0, "{:?}", link.address());
    let (_, is_there) = UdpLink::bind_or_await("127.0.0.1:0".parse().unwrap()).unwrap();
    assert!(is_there);
}

#[test]
fn datagrams_that_a_socket_has_no_room_for_are_counted() {
    let (mut from, mut to) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    assert_eq!(to.dropped(), Some(0));
    // Few, whatever the system's default is.
    to.hold(1);
    let at = to.address();
    let sent = (0..200).filter(|_| from.send(&at, &[7; 1_000]).is_ok()).count();
    let mut datagram = [0; 2_000];
    let mut received = 0;
    while to.receive(&mut datagram).unwrap().is_some() {
        received += 1;
    }
    assert!(received > 0 && received < sent, "{received} of {sent}");
    assert_eq!(to.dropped(), Some((sent - received) as u32));
}
