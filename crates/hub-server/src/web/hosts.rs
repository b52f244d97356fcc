//! How many connections each host has, so that none takes them all.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The most connections of one host at once; further ones are closed.
pub(crate) const CONNECTIONS_OF_HOST_MAX: usize = 64;

/// The hosts that are connected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// A connection's place, free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    hosts: Hosts,
    host: IpAddr,
}

impl Hosts {
    /// A place for one more connection of the host with this address, if it has room.
    pub(crate) fn take(&self, address: IpAddr) -> Option<Place> {
        let host = host_of(address);
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = hosts.entry(host).or_default();
        if *count >= CONNECTIONS_OF_HOST_MAX {
            return None;
        }
        *count += 1;
        Some(Place { hosts: self.clone(), host })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hosts = self.hosts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = hosts.get_mut(&self.host) {
            *count -= 1;
            if *count == 0 {
                hosts.remove(&self.host);
            }
        }
    }
}

/// The host that an address is of. Of IPv6 one network (/64) counts as one host, which has as many
/// addresses as it likes.
fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}
