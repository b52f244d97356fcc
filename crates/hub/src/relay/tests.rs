use tenure_hal::simulated::{Sequence, socket_at};
use tenure_wire::datagram::RELAYED_OVERHEAD;

use super::*;

const CALLER: Caller = (PublicKey([1; 32]), None);

fn owner(number: u16) -> VerifyingKey {
    let mut bytes = [0; 32];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    VerifyingKey(bytes)
}

fn device(number: u16) -> PublicKey {
    PublicKey(owner(number).0)
}

/// Has the caller of `way` send so many datagrams to a device at the address of that number.
fn send(relay: &mut Relay, way: [u8; 8], count: usize, to: u32) {
    let (from, to) = (Address::Udp(socket_at(1)), Address::Udp(socket_at(to)));
    let relayed = Relayed { way, datagram: &[0; 91] };
    for _ in 0..count {
        let route_of =
            |end: &PublicKey, _: Option<u64>| Some(if *end == CALLER.0 { &from } else { &to });
        relay.take(Instant::BOOT, &from, &relayed, route_of);
    }
}

#[test]
fn owners_are_served_in_turn_and_the_one_of_whom_most_waits_makes_room() {
    let mut entropy = Sequence(1);
    let mut relay = Relay::new(Instant::BOOT, Some(1_000_000));
    let mut ways = Vec::new();
    for number in 0..20 {
        let ends = (CALLER, device(number));
        ways.push(relay.open(Instant::BOOT, &mut entropy, owner(number), ends).unwrap());
    }
    // Seventeen fill all room there is: the queue of one is bounded, and so are all together.
    for (number, way) in ways[..17].iter().enumerate() {
        send(&mut relay, *way, 1_000, 100 + number as u32);
    }
    assert_eq!(relay.waiting_count, WAITING_MAX);
    assert!(relay.waiting.values().all(|waiting| waiting.len() <= WAITING_OF_ONE_MAX));
    let crowded = relay.counts().crowded;
    for (number, way) in ways.iter().enumerate().skip(17) {
        send(&mut relay, *way, 3, 100 + number as u32);
    }
    assert_eq!(relay.waiting_count, WAITING_MAX);
    assert_eq!(relay.counts().crowded, crowded + 9, "those who had most lost as many");
    let first: Vec<Address> =
        core::iter::from_fn(|| relay.transmit()).take(20).map(|(to, _)| to).collect();
    let expected: Vec<Address> =
        (1..20).chain([0]).map(|number| Address::Udp(socket_at(100 + number))).collect();
    assert_eq!(first, expected, "one of each");
}

#[test]
fn no_more_goes_out_than_the_rate_allows() {
    // A second's and the burst; and ten seconds' of a rate that is below a datagram in the time of a burst.
    for (rate, ms, expected) in [(40_000, 1_000, 49_000..=50_000), (1_000, 10_000, 11_100..=11_232)]
    {
        let mut relay = Relay::new(Instant::BOOT, Some(rate));
        let ends = (CALLER, device(1));
        let way = relay.open(Instant::BOOT, &mut Sequence(1), owner(1), ends).unwrap();
        let mut now = Instant::BOOT;
        let mut bytes = 0;
        for _ in 0..ms {
            now = now + Duration::from_millis(1);
            send(&mut relay, way, 2, 9);
            relay.fill(now);
            while let Some((_, datagram)) = relay.transmit() {
                bytes += datagram.len();
            }
            assert!(relay.poll_at().is_none_or(|at| at > now));
        }
        assert!(expected.contains(&bytes), "{bytes} in {ms} ms at {rate} a second");
    }
}

#[test]
fn datagram_that_is_longer_than_any_may_be_is_not_relayed() {
    let mut relay = Relay::new(Instant::BOOT, Some(1_000_000));
    let ends = (CALLER, device(1));
    let way = relay.open(Instant::BOOT, &mut Sequence(1), owner(1), ends).unwrap();
    let place = Address::Udp(socket_at(1));
    let bytes = [0; DATAGRAM_BYTES_MAX];
    let mut take = |length: usize| {
        let relayed = Relayed { way, datagram: &bytes[..length] };
        relay.take(Instant::BOOT, &place, &relayed, |_, _| Some(&place));
        relay.counts().crowded
    };
    assert_eq!(take(DATAGRAM_BYTES_MAX - RELAYED_OVERHEAD), 0);
    assert_eq!(take(DATAGRAM_BYTES_MAX - RELAYED_OVERHEAD + 1), 1);
}

#[test]
fn owner_with_most_ways_makes_room_for_new_ones() {
    let mut entropy = Sequence(1);
    let mut relay = Relay::new(Instant::BOOT, Some(1_000_000));
    let mut open = |relay: &mut Relay, now, whose, number| {
        relay.open(now, &mut entropy, owner(whose), (CALLER, device(number))).unwrap()
    };
    let quiet = open(&mut relay, Instant::BOOT, 1, 1);
    let first = open(&mut relay, Instant::BOOT, 2, 2);
    for number in 3..=WAYS_MAX as u16 {
        open(&mut relay, Instant::BOOT + Duration::from_secs(1), 2, number);
    }
    assert_eq!(relay.counts().ways, WAYS_MAX as u64);
    let again = open(&mut relay, Instant::BOOT + Duration::from_secs(2), 1, 1);
    assert_eq!(again, quiet, "one that is open takes no room");
    let new = open(&mut relay, Instant::BOOT + Duration::from_secs(2), 3, 20_000);
    assert_eq!(relay.counts().ways, WAYS_MAX as u64);
    assert!(relay.ways.contains_key(&quiet) && relay.ways.contains_key(&new));
    assert!(!relay.ways.contains_key(&first), "the oldest of the owner who has most");
    // Later all but the last two are idle, and go.
    let later = Instant::BOOT + IDLE_MAX + Duration::from_millis(1_500);
    open(&mut relay, later, 4, 20_001);
    assert_eq!(relay.counts().ways, 3);
}
