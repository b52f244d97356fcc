//! The place of a device: where to look for it, and which one is meant.

use std::net::SocketAddr;

use tenure_wire::directory::NotRelayed;
use tenure_wire::{Name, PublicKey};

/// Where to look for a device, and which one is meant.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where it was last seen, or all addresses of the host that was named.
    pub addresses: Vec<SocketAddr>,
    /// The key of its own machine, if that is known; else whichever device of the owner is there.
    pub key: Option<PublicKey>,
    /// Its name, if it was named.
    pub name: Option<Name>,
    /// What its hub says of the way there, if a hub was asked.
    pub by_hub: Option<ByHub>,
}

/// The way to a device, as its hub says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByHub {
    /// Whether it answers others than the hub, if the hub has looked.
    pub answers_others: Option<bool>,
    /// The way by which the hub relays.
    pub relayed: Result<[u8; 8], NotRelayed>,
}

impl From<SocketAddr> for Place {
    /// Whichever device of the owner is there.
    fn from(address: SocketAddr) -> Self {
        Self { addresses: vec![address], key: None, name: None, by_hub: None }
    }
}
