use alloc::vec;

use super::*;
use crate::cable::{Card, Frames};

const ONE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const NOW: Instant = Instant::ZERO;

/// A divided card, with what arrives at it and what leaves by it.
fn divided() -> (TappedCard<Card>, FrameLink, Frames, Frames) {
    let (arriving, leaving) = (Frames::default(), Frames::default());
    let card = Card { arriving: arriving.clone(), leaving: leaving.clone() };
    let (card, link) = tap(card, ONE);
    (card, link, arriving, leaving)
}

fn packet(datagram: &[u8]) -> Vec<u8> {
    [&packet_header(ONE, OTHER, datagram.len()), datagram].concat()
}

fn of_ip(byte: u8) -> Vec<u8> {
    let mut frame = vec![byte; 60];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame
}

#[test]
fn each_gets_its_own_frames() {
    let (mut card, mut link, arriving, _) = divided();
    arriving.borrow_mut().extend([packet(b"hello"), of_ip(1), packet(b"again"), of_ip(2)]);
    for byte in [1, 2] {
        let (token, _) = card.receive(NOW).expect("a frame of IP");
        assert_eq!(token.consume(|frame| frame.to_vec()), of_ip(byte));
    }
    assert!(card.receive(NOW).is_none());
    let mut into = [0; PACKET_BYTES_MAX];
    for datagram in [&b"hello"[..], b"again"] {
        let (length, from) = link.receive(&mut into).unwrap().expect("a frame of the mesh");
        assert_eq!((&into[..length], from), (datagram, OTHER));
    }
    assert_eq!(link.receive(&mut into), Ok(None));
}

#[test]
fn what_is_damaged_or_too_much_is_lost() {
    let (mut card, mut link, arriving, _) = divided();
    let mut short = packet(b"cut");
    short.truncate(17);
    arriving.borrow_mut().extend([short, vec![0; 5]]);
    // The second is no frame of the mesh: it is for IP to refuse.
    assert!(card.receive(NOW).is_some());
    for number in 0..30 {
        arriving.borrow_mut().push_back(packet(&[number]));
    }
    while !arriving.borrow().is_empty() {
        assert!(card.receive(NOW).is_none());
    }
    let mut into = [0; PACKET_BYTES_MAX];
    let taken = core::iter::from_fn(|| link.receive(&mut into).unwrap()).count();
    assert_eq!(taken, ARRIVED_MAX - 1, "the damaged one had a place");
}

#[test]
fn frames_leave_when_the_card_is_polled() {
    let (mut card, mut link, _, leaving) = divided();
    for _ in 0..LEAVING_MAX {
        link.send(&OTHER, b"out").unwrap();
    }
    assert_eq!(link.send(&OTHER, b"out"), Err(LinkError::Busy));
    assert_eq!(link.send(&OTHER, &[0; PACKET_BYTES_MAX + 1]), Err(LinkError::TooLong));
    assert!(leaving.borrow().is_empty());
    card.flush(NOW);
    assert_eq!(leaving.borrow().len(), LEAVING_MAX);
    let frame = leaving.borrow_mut().pop_front().unwrap();
    assert_eq!(parse_packet(&frame), Some((&b"out"[..], ONE)));
}
