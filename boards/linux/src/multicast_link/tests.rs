use tenure_testbed::patience;

use super::*;
use crate::wait::{Woken, wait_any};

/// A group on the loopback interface, with a port that nothing else here uses at the moment.
fn members(count: usize) -> Vec<MulticastLink> {
    let port = UdpLink::bind("127.0.0.1:0".parse().unwrap()).unwrap().address().port();
    let group = SocketAddr::new([239, 73, 71, 1].into(), port);
    (0..count).map(|_| MulticastLink::join(group, [127, 0, 0, 1].into()).unwrap()).collect()
}

#[track_caller]
fn next(link: &mut MulticastLink) -> (Vec<u8>, SocketAddr) {
    let mut into = [0; 64];
    loop {
        if let Some((length, from)) = link.receive(&mut into).unwrap() {
            return (into[..length].to_vec(), from);
        }
        assert_eq!(wait_any(&link.sockets(), patience()), Ok(Woken::ByDatagram));
    }
}

#[test]
fn all_of_a_group_hear_what_is_sent_to_it_and_one_can_be_answered_alone() {
    let mut members = members(3);
    let group = members[0].group();
    members[0].send(&group, b"hello all").unwrap();
    for member in &mut members[1..] {
        let (datagram, from) = next(member);
        assert_eq!(datagram, b"hello all");
        member.send(&from, b"hello one").unwrap();
    }
    let mut heard: Vec<_> = (0..3).map(|_| next(&mut members[0]).0).collect();
    heard.sort();
    assert_eq!(heard, [&b"hello all"[..], b"hello one", b"hello one"], "its own word comes back");
    assert_eq!(members[1].receive(&mut [0; 64]), Ok(None), "what is for one is for nobody else");
}

#[test]
fn what_is_no_group_is_named() {
    let group: SocketAddr = "10.0.0.1:7371".parse().unwrap();
    let error = MulticastLink::join(group, any_interface(group)).unwrap_err().to_string();
    assert!(error.contains("10.0.0.1:7371") && error.contains("239.0.0.0/8"), "{error}");
}
