//! Machines on other devices that this one has heard of, and where.

use alloc::vec::Vec;
use litemap::LiteMap;

use tenure_crypto::machine_id;
use tenure_hal::Instant;
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, MachineId, PublicKey};

/// A device's knowledge of a machine elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Where its device was last.
    pub(crate) address: Address,
    /// The epoch of its device, if a directory record told it.
    pub(crate) epoch: Option<Epoch>,
    /// When it was last heard of.
    heard: Instant,
    /// Whether its device's record was known then: it isn't a stranger.
    is_known: bool,
}

/// The peers of one device; the one not heard of for longest makes room, of strangers first. A stranger
/// takes no known peer's place.
#[derive(Debug)]
pub(crate) struct Peers {
    peers_max: usize,
    by_key: LiteMap<PublicKey, Peer>,
}

impl Peers {
    pub(crate) fn new(peers_max: usize) -> Self {
        Self { peers_max, by_key: LiteMap::new() }
    }

    /// Remembers where `key` is.
    pub(crate) fn heard(
        &mut self,
        now: Instant,
        key: PublicKey,
        address: Address,
        epoch: Option<Epoch>,
        is_known: bool,
    ) {
        if let Some(peer) = self.by_key.get_mut(&key) {
            peer.heard = now;
            peer.address = address;
            peer.epoch = epoch.or(peer.epoch);
            peer.is_known = is_known;
            return;
        }
        if self.by_key.len() >= self.peers_max {
            let may_go = self.by_key.iter().filter(|(_, peer)| is_known || !peer.is_known);
            let oldest = may_go.min_by_key(|(_, peer)| (peer.is_known, peer.heard));
            // Known peers fill the table: a stranger isn't remembered, and loses a shorter way alone.
            let Some(oldest) = oldest.map(|(key, _)| *key) else { return };
            self.by_key.remove(&oldest);
        }
        self.by_key.insert(key, Peer { address, epoch, heard: now, is_known });
    }

    /// Forgets a machine that could not be reached.
    pub(crate) fn forget(&mut self, key: &PublicKey) {
        self.by_key.remove(key);
    }

    pub(crate) fn get(&self, key: &PublicKey) -> Option<&Peer> {
        self.by_key.get(key)
    }

    /// The key behind an id.
    pub(crate) fn key_of(&self, id: MachineId) -> Option<PublicKey> {
        self.by_key.keys().find(|key| machine_id(key) == id).copied()
    }

    /// All of them, with where they are, and whether they are known.
    pub(crate) fn list(&self) -> Vec<(PublicKey, Address, Option<Epoch>, bool)> {
        let each = |(key, peer): (&PublicKey, &Peer)| {
            (*key, peer.address.clone(), peer.epoch, peer.is_known)
        };
        self.by_key.iter().map(each).collect()
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> Vec<PublicKey> {
        self.by_key.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> PublicKey {
        PublicKey([number; 32])
    }

    #[test]
    fn the_one_not_heard_of_for_longest_makes_room() {
        let mut peers = Peers::new(2);
        let place = Address::Line(1);
        let at = Instant::from_millis;
        peers.heard(at(1), key(1), place.clone(), Some(Epoch([1; 8])), false);
        peers.heard(at(2), key(2), place.clone(), None, false);
        peers.heard(at(3), key(1), Address::Line(9), None, false);
        peers.heard(at(4), key(3), place, None, false);
        assert_eq!(peers.keys(), [key(1), key(3)]);
        let first = peers.get(&key(1)).unwrap();
        assert_eq!(first.address, Address::Line(9));
        assert_eq!(first.epoch, Some(Epoch([1; 8])), "an epoch once told is kept");
        assert_eq!(peers.key_of(machine_id(&key(3))), Some(key(3)));
    }

    #[test]
    fn strangers_take_the_place_of_strangers_alone() {
        let mut peers = Peers::new(2);
        let at = |number: u8| Instant::from_millis(number.into());
        peers.heard(at(1), key(1), Address::Line(1), None, true);
        for number in 2..9 {
            peers.heard(at(number), key(number), Address::Line(2), None, false);
        }
        assert_eq!(peers.keys(), [key(1), key(8)]);
        peers.heard(at(9), key(9), Address::Line(3), None, true);
        peers.heard(at(10), key(10), Address::Line(4), None, false);
        assert_eq!(
            peers.keys(),
            [key(1), key(9)],
            "there is no stranger left to take the place of"
        );
    }
}
