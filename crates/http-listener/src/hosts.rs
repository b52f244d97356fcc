//! The connections that are open, and whose they are, so that neither one host nor a few take all places.
//!
//! A host is admitted while it has fewer connections than are free for all (the dynamic threshold of Choudhury and
//! Hahne, 1998), and fewer than [`CONNECTIONS_OF_HOST_MAX`]: hosts that take what they can leave something to others. So is a
//! network, as one of IPv6 has hosts without number. Where all places are taken, whoever has fewer than the network with the most
//! gets the place of the connection there that has waited longest for a request.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most connections of one host at once; further ones are closed.
pub(crate) const CONNECTIONS_OF_HOST_MAX: usize = 64;

/// The connections that are open.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: usize,
    by_host: bool,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u64, Open>,
    of_hosts: BTreeMap<IpAddr, usize>,
    of_networks: BTreeMap<IpAddr, usize>,
    /// Counts connections and answers, in the order in which they come.
    clock: u64,
}

/// A connection.
#[derive(Debug)]
struct Open {
    host: IpAddr,
    /// Since when it waits for a request; `None` while one is answered.
    waits_since: Option<u64>,
    end: Arc<Notify>,
}

/// What a connection gets that comes.
#[derive(Debug)]
pub(crate) enum Admission {
    /// A place.
    Place(Place),
    /// None: its host has its part.
    Refused,
    /// None yet: all are taken by requests that are answered.
    Full,
}

/// A connection's place, free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    hosts: Hosts,
    number: u64,
    end: Arc<Notify>,
}

impl Hosts {
    /// Nobody yet, and `places` connections at most; of a host and of a network a part of them if `by_host`.
    pub(crate) fn new(places: usize, by_host: bool) -> Self {
        let freed = Notify::new();
        Self(Arc::new(Shared { places, by_host, table: Mutex::default(), freed }))
    }

    /// A place for one more connection from this address, if it has room.
    pub(crate) fn take(&self, address: IpAddr) -> Admission {
        let host = host_of(address);
        let mut table = self.lock();
        let free = self.0.places.saturating_sub(table.open.len());
        let of_host = table.of_hosts.get(&host).copied().unwrap_or(0);
        let of_network = table.of_networks.get(&network_of(host)).copied().unwrap_or(0);
        if self.0.by_host {
            let is_new = of_host == 0;
            if is_new && free <= of_network {
                return match table.displace(of_network) {
                    true => Admission::Place(self.open(&mut table, host)),
                    false if of_network == 0 => Admission::Full,
                    false => Admission::Refused,
                };
            }
            if of_host >= CONNECTIONS_OF_HOST_MAX.min(free) || of_network >= free {
                return Admission::Refused;
            }
        } else if free == 0 {
            return Admission::Full;
        }
        Admission::Place(self.open(&mut table, host))
    }

    /// Waits until a place is given back.
    pub(crate) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    fn open(&self, table: &mut Table, host: IpAddr) -> Place {
        table.clock += 1;
        let (number, end) = (table.clock, Arc::new(Notify::new()));
        let open = Open { host, waits_since: Some(number), end: end.clone() };
        table.open.insert(number, open);
        *table.of_hosts.entry(host).or_default() += 1;
        *table.of_networks.entry(network_of(host)).or_default() += 1;
        Place { hosts: self.clone(), number, end }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Ends the connection that has waited longest for a request, of the network that has the most of those, if that has more
    /// than `count`; `false` if there is none.
    fn displace(&mut self, count: usize) -> bool {
        let of_network = |open: &Open| self.of_networks.get(&network_of(open.host)).copied();
        let waiting = self.open.iter().filter_map(|(number, open)| {
            let since = open.waits_since?;
            Some((of_network(open).unwrap_or(0), std::cmp::Reverse(since), *number))
        });
        match waiting.max() {
            Some((most, _, number)) if most > count => {
                if let Some(open) = self.close(number) {
                    open.end.notify_one();
                }
                true
            }
            _ => false,
        }
    }

    fn close(&mut self, number: u64) -> Option<Open> {
        let open = self.open.remove(&number)?;
        count_down(&mut self.of_hosts, open.host);
        count_down(&mut self.of_networks, network_of(open.host));
        Some(open)
    }
}

fn count_down(counts: &mut BTreeMap<IpAddr, usize>, of: IpAddr) {
    if let Some(count) = counts.get_mut(&of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&of);
        }
    }
}

impl Place {
    /// Takes note that a request has come.
    pub(crate) fn is_asked(&self) {
        if let Some(open) = self.hosts.lock().open.get_mut(&self.number) {
            open.waits_since = None;
        }
    }

    /// Takes note that its answer is over.
    pub(crate) fn waits(&self) {
        let mut table = self.hosts.lock();
        table.clock += 1;
        let now = table.clock;
        if let Some(open) = table.open.get_mut(&self.number) {
            open.waits_since = Some(now);
        }
        drop(table);
        // Whoever waits for a place may have this one.
        self.hosts.0.freed.notify_one();
    }

    /// Waits until another connection gets this one's place.
    pub(crate) async fn displaced(&self) {
        self.end.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hosts.lock().close(self.number);
        self.hosts.0.freed.notify_one();
    }
}

/// The host that an address is of. Of IPv6 one network (/64) counts as one host, which has as many
/// addresses as it likes.
pub(crate) fn host_of(address: IpAddr) -> IpAddr {
    prefix(address, 64)
}

/// The network that a host is of: of IPv6 what one customer has at most (/48; RFC 6177), of IPv4 the host itself.
fn network_of(host: IpAddr) -> IpAddr {
    prefix(host, 48)
}

/// An address of IPv6 with zeros behind its first `bits`.
fn prefix(address: IpAddr, bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let rest = u128::BITS - bits;
            IpAddr::V6(Ipv6Addr::from(u128::from(address) >> rest << rest))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    /// Host `number` of the network `network` of IPv6.
    fn host_in(network: u128, number: u128) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from(0x2001 << 112 | network << 80 | number << 64 | 7))
    }

    fn place(admission: Admission) -> Option<Place> {
        match admission {
            Admission::Place(place) => Some(place),
            Admission::Refused | Admission::Full => None,
        }
    }

    fn is_displaced(place: &Place) -> bool {
        !place.hosts.lock().open.contains_key(&place.number)
    }

    #[test]
    fn host_that_takes_what_it_can_leaves_places_to_others_and_behind_a_proxy_has_all() {
        let hosts = Hosts::new(16, true);
        let greedy: Vec<_> = (0..40).filter_map(|_| place(hosts.take(host(1)))).collect();
        assert_eq!(greedy.len(), 8);
        let second: Vec<_> = (0..40).filter_map(|_| place(hosts.take(host(2)))).collect();
        assert_eq!(second.len(), 4);
        drop((greedy, second));
        assert!(hosts.lock().of_hosts.is_empty() && hosts.lock().of_networks.is_empty());
        let hosts = Hosts::new(16, false);
        let all: Vec<_> = (0..16).filter_map(|_| place(hosts.take(host(1)))).collect();
        assert_eq!(all.len(), 16);
        assert!(matches!(hosts.take(host(1)), Admission::Full));
    }

    // D-11: as many hosts as there are places, each with a connection that says nothing.
    #[test]
    fn new_host_gets_the_place_of_the_connection_that_has_waited_longest() {
        let hosts = Hosts::new(16, true);
        let slow: Vec<_> = (0..16).filter_map(|n| place(hosts.take(host(n)))).collect();
        assert_eq!(slow.len(), 16);
        slow[0].is_asked();
        slow[1].is_asked();
        slow[1].waits();
        let first = place(hosts.take(host(100))).unwrap();
        let second = place(hosts.take(host(101))).unwrap();
        assert!(is_displaced(&slow[2]) && is_displaced(&slow[3]));
        assert!(!is_displaced(&slow[0]) && !is_displaced(&slow[1]));
        // A host that is there has its part.
        assert!(matches!(hosts.take(host(100)), Admission::Refused));
        for one in slow.iter().chain([&first, &second]) {
            one.is_asked();
        }
        assert!(matches!(hosts.take(host(102)), Admission::Full), "all are being answered");
        drop(slow);
        assert!(place(hosts.take(host(102))).is_some());
        assert_eq!(
            hosts.lock().open.len(),
            2,
            "a place that was taken over isn't given back twice"
        );
    }

    // D-11: a network of IPv6 has 65,536 "hosts".
    #[test]
    fn network_of_as_many_hosts_as_it_likes_leaves_places_to_others() {
        let hosts = Hosts::new(16, true);
        let greedy: Vec<_> = (0..999).filter_map(|n| place(hosts.take(host_in(1, n)))).collect();
        let left = greedy.iter().filter(|place| !is_displaced(place)).count();
        assert!(left <= 8, "{left}");
        for place in &greedy {
            place.is_asked();
        }
        for n in 2..6 {
            assert!(place(hosts.take(host_in(n, 0))).is_some(), "{n}");
        }
        assert!(place(hosts.take(host(1))).is_some());
    }
}
