//! Machines on other devices that this one has heard of, and where.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tenure_crypto::machine_id;
use tenure_hal::Instant;
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, MachineId, PublicKey};

/// What is known of a machine elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Where its device was last.
    pub(crate) address: Address,
    /// The epoch of its device, if a directory record told it.
    pub(crate) epoch: Option<Epoch>,
    /// When it was last heard of.
    heard: Instant,
}

/// The peers of one device; the one not heard of for longest makes room.
#[derive(Debug)]
pub(crate) struct Peers {
    peers_max: usize,
    by_key: BTreeMap<PublicKey, Peer>,
}

impl Peers {
    pub(crate) fn new(peers_max: usize) -> Self {
        Self { peers_max, by_key: BTreeMap::new() }
    }

    /// Remembers where `key` is.
    pub(crate) fn heard(
        &mut self,
        now: Instant,
        key: PublicKey,
        address: Address,
        epoch: Option<Epoch>,
    ) {
        if let Some(peer) = self.by_key.get_mut(&key) {
            peer.heard = now;
            peer.address = address;
            peer.epoch = epoch.or(peer.epoch);
            return;
        }
        if self.by_key.len() >= self.peers_max {
            let oldest = self.by_key.iter().min_by_key(|(_, peer)| peer.heard);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.by_key.remove(&oldest);
            }
        }
        self.by_key.insert(key, Peer { address, epoch, heard: now });
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

    /// All of them, with where they are.
    pub(crate) fn list(&self) -> Vec<(PublicKey, Address, Option<Epoch>)> {
        let each = |(key, peer): (&PublicKey, &Peer)| (*key, peer.address.clone(), peer.epoch);
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
        let place = Address::Simulated(1);
        peers.heard(Instant::from_millis(1), key(1), place.clone(), Some(Epoch([1; 8])));
        peers.heard(Instant::from_millis(2), key(2), place.clone(), None);
        peers.heard(Instant::from_millis(3), key(1), Address::Simulated(9), None);
        peers.heard(Instant::from_millis(4), key(3), place, None);
        assert_eq!(peers.keys(), [key(1), key(3)]);
        let first = peers.get(&key(1)).unwrap();
        assert_eq!(first.address, Address::Simulated(9));
        assert_eq!(first.epoch, Some(Epoch([1; 8])), "an epoch once told is kept");
        assert_eq!(peers.key_of(machine_id(&key(3))), Some(key(3)));
    }
}
