//! The bytes that cross the network tell nothing, and sending them again or altered does nothing.

use crate::harness::{Process, User, any_address, by, on};
use crate::nat::{Alter, Nat, Seen, unaltered};

/// Two devices and their hub; all that others send to `attic`, and its answers, cross the tap.
struct Tapped {
    user: User,
    hub: Process,
    attic: Process,
    cellar: Process,
    nat: Nat,
}

fn tapped(alter: Alter) -> Tapped {
    let user = User::new();
    let mut hub = user.hub();
    let nat = Nat::before(hub.socket_address(), alter);
    let attic = user.device_at("attic", any_address(), Some(&nat.hub_address()));
    let cellar = user.device("cellar", Some(&hub));
    user.install(&attic, &["counter", "probe"]);
    user.install(&cellar, &["probe"]);
    hub.wait_until_listed("attic", 2);
    Tapped { user, hub, attic, cellar, nat }
}

fn contains(datagram: &Seen, text: &str) -> bool {
    datagram.bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn captured_datagram_contains_no_plaintext() {
    let Tapped { user, hub, cellar, nat, attic: _attic } = tapped(unaltered);
    let secret = "SECRET-PARAMETER-AND-RESULT";
    let relay = ["probe", "call", &format!("probe@attic echo {secret}")];
    let calls_before = nat.seen().len();
    assert_eq!(user.call(on(&cellar), &relay), secret, "the first call opens a session");
    assert_eq!(user.call(on(&cellar), &relay), secret, "the second goes over it");
    assert_eq!(user.call(by(&hub), &["probe@attic", "echo", secret]), secret);
    let seen = nat.seen();
    let calls = &seen[calls_before..];
    let cellars = calls.iter().filter(|seen| seen.peer == cellar.socket_address());
    assert!(cellars.clone().any(|seen| seen.to_device), "calls cross the tap");
    assert!(cellars.clone().any(|seen| !seen.to_device), "results cross the tap");
    for datagram in &seen {
        for text in ["echo", "SECRET", "PARAMETER", "RESULT"] {
            assert!(!contains(datagram, text), "`{text}` crosses the network in clear");
        }
    }
}

#[test]
fn replayed_reflected_and_flipped_datagrams_execute_nothing() {
    let Tapped { user, hub, cellar, nat, attic: _attic } = tapped(unaltered);
    let add = ["probe", "call", "counter@attic add"];
    for count in 1..=4 {
        assert_eq!(user.call(on(&cellar), &add), count.to_string());
    }
    assert_eq!(user.call(by(&hub), &["counter@attic", "add"]), "5");
    for (number, datagram) in nat.seen().iter().enumerate() {
        let Seen { peer, bytes, .. } = datagram;
        // Those to the device are replayed; those from it are reflected.
        nat.inject(*peer, bytes);
        for bit in [number % 8, bytes.len() * 4, bytes.len() * 8 - 1] {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            nat.inject(*peer, &flipped);
        }
        if number % 16 == 0 {
            // An answer means that the device has taken all that was sent before.
            assert_eq!(user.call(on(&cellar), &["probe", "call", "counter@attic value"]), "5");
        }
    }
    assert_eq!(user.call(by(&hub), &["counter@attic", "value"]), "5");
    assert_eq!(user.call(on(&cellar), &add), "6", "honest calls still count");
}

/// Every datagram twice; of some, one copy with a flipped bit, or none at all.
fn rough(number: usize, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut flipped = datagram.to_vec();
    let place = number * 31 % flipped.len();
    flipped[place] ^= 1 << (number % 8);
    match number % 7 {
        3 => vec![],
        5 => vec![flipped, datagram.to_vec()],
        _ => vec![datagram.to_vec(), datagram.to_vec()],
    }
}

#[test]
fn calls_over_a_rough_network_execute_exactly_once() {
    let Tapped { user, cellar, nat: _nat, attic: _attic, hub: _hub } = tapped(rough);
    for count in 1..=12 {
        let add = ["probe", "call", "counter@attic add"];
        assert_eq!(user.call(on(&cellar), &add), count.to_string());
    }
}
