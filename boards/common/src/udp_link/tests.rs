use core::net::Ipv4Addr;

use tenure_hal::{DATAGRAM_BYTES_MAX, Instant, Link, LinkError};

use super::UdpLink;
use crate::cable::{Card, Frames};

/// Two links on one cable, at 10.0.0.1 and 10.0.0.2.
fn pair() -> [UdpLink<Card>; 2] {
    let (one, other) = (Frames::default(), Frames::default());
    let link = |number: u8, arriving: &Frames, leaving: &Frames| {
        let card = Card { arriving: arriving.clone(), leaving: leaving.clone() };
        let address = Ipv4Addr::new(10, 0, 0, number);
        UdpLink::new(card, [2, 0, 0, 0, 0, number], (address, 24), None, 7370, 1)
    };
    [link(1, &one, &other), link(2, &other, &one)]
}

fn settle(links: &mut [UdpLink<Card>; 2]) {
    for millisecond in 0..10 {
        for link in links.iter_mut() {
            link.poll(Instant::from_millis(millisecond));
        }
    }
}

#[test]
fn datagrams_arrive_with_their_sender() {
    let mut links = pair();
    let longest = [7; DATAGRAM_BYTES_MAX];
    links[0].send(&"10.0.0.2:7370".parse().unwrap(), b"hello").unwrap();
    links[0].send(&"10.0.0.2:7370".parse().unwrap(), &longest).unwrap();
    settle(&mut links);
    let mut into = [0; DATAGRAM_BYTES_MAX];
    let (length, from) = links[1].receive(&mut into).unwrap().unwrap();
    assert_eq!((&into[..length], from), (&b"hello"[..], "10.0.0.1:7370".parse().unwrap()));
    assert_eq!(links[1].receive(&mut into).unwrap().unwrap().0, longest.len());
    assert_eq!(links[1].receive(&mut into).unwrap(), None);
}

#[test]
fn datagrams_that_no_link_carries_are_refused() {
    let [mut link, _] = pair();
    let to = "10.0.0.2:7370".parse().unwrap();
    assert_eq!(link.send(&to, &[0; DATAGRAM_BYTES_MAX + 1]), Err(LinkError::TooLong));
    assert_eq!(link.send(&"[::1]:7370".parse().unwrap(), b"x"), Err(LinkError::Unreachable));
    assert_eq!(link.send(&"10.0.0.2:0".parse().unwrap(), b"x"), Err(LinkError::Unreachable));
    let sent = (0..100).map(|_| link.send(&to, b"x")).take_while(Result::is_ok).count();
    assert_eq!(sent, super::WAITING_MAX, "then the link is busy");
    assert_eq!(link.send(&to, b"x"), Err(LinkError::Busy));
}

#[test]
fn datagram_longer_than_the_buffer_is_dropped_and_the_next_is_taken() {
    let mut links = pair();
    links[0].send(&"10.0.0.2:7370".parse().unwrap(), b"too long").unwrap();
    links[0].send(&"10.0.0.2:7370".parse().unwrap(), b"fits").unwrap();
    settle(&mut links);
    let mut into = [0; 4];
    assert_eq!(links[1].receive(&mut into).unwrap().unwrap().0, 4);
    assert_eq!(&into, b"fits");
}
