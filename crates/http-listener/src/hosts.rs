//! How many connections each host has, so that neither one nor a few take them all.
//!
//! A host is admitted while it has fewer connections than are free for all (the dynamic threshold of Choudhury and
//! Hahne, 1998), and fewer than [`CONNECTIONS_OF_HOST_MAX`]: hosts that take what they can leave something to others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The most connections of one host at once; further ones are closed.
pub(crate) const CONNECTIONS_OF_HOST_MAX: usize = 64;

/// The hosts that are connected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    of_hosts: BTreeMap<IpAddr, usize>,
    all: usize,
}

/// A connection's place, free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    hosts: Hosts,
    host: IpAddr,
}

impl Hosts {
    /// A place among `places` for one more connection of the host with this address, if it has room.
    pub(crate) fn take(&self, address: IpAddr, places: usize) -> Option<Place> {
        let host = host_of(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = places.saturating_sub(counts.all);
        let count = counts.of_hosts.get(&host).copied().unwrap_or(0);
        if count >= CONNECTIONS_OF_HOST_MAX.min(free) {
            return None;
        }
        counts.of_hosts.insert(host, count + 1);
        counts.all += 1;
        Some(Place { hosts: self.clone(), host })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.hosts.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all = counts.all.saturating_sub(1);
        if let Some(count) = counts.of_hosts.get_mut(&self.host) {
            *count -= 1;
            if *count == 0 {
                counts.of_hosts.remove(&self.host);
            }
        }
    }
}

/// The host that an address is of. Of IPv6 one network (/64) counts as one host, which has as many
/// addresses as it likes.
pub(crate) fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}
