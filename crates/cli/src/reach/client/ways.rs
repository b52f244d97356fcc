//! Ways to devices that nobody gets through to but their hub, which relays.

use std::net::SocketAddr;

use anyhow::anyhow;
use tenure_hal::Clock as _;
use tenure_wire::Name;
use tenure_wire::directory::NotRelayed;

use super::{Client, no_answer};
use crate::reach::place::Place;

impl Client {
    /// Reaches what is at the other end of `way` by the hub at that address from now on.
    pub fn relay_by(&mut self, way: [u8; 8], hub: SocketAddr) {
        self.ways.insert(way, hub);
        // The hub relays for who has shown that its answers arrive.
        self.endpoint.acknowledge_all(self.clock.now());
    }
}

/// Why nobody answers at the place of a device, as far as its hub knows.
pub(super) fn out_of_reach(place: &Place) -> anyhow::Error {
    let named = place.name.as_ref().map_or("the device", Name::as_str);
    let shut = format!(
        "{named} keeps in touch with its hub, but its router or firewall lets nobody else in"
    );
    let Some(by_hub) = place.by_hub else { return no_answer("device", &place.addresses) };
    match (by_hub.answers_others, by_hub.relayed) {
        (Some(true), _) | (None, Err(_)) => no_answer("device", &place.addresses),
        (_, Ok(_)) => anyhow!(
            "{named} answers neither directly nor by way of its hub: it is overloaded or just gone"
        ),
        (_, Err(NotRelayed::Never)) => {
            anyhow!("{shut}, and this hub was started with --relay none")
        }
        (_, Err(NotRelayed::Stranger)) => {
            anyhow!("{shut}, and a hub relays to a device for its owner alone")
        }
        (_, Err(NotRelayed::Signature)) => {
            anyhow!("{shut}, and the hub doesn't take these keys for its owner's")
        }
        (_, Err(NotRelayed::Away)) => anyhow!(
            "{named} was heard by its hub, but has no session with this one now; and its router or firewall lets nobody in"
        ),
        (_, Err(NotRelayed::Busy)) => {
            anyhow!("{shut}, and the hub relays for as many as it can now; try again")
        }
    }
}
