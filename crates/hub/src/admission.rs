//! How often devices may make a hub write, and which addresses count as one host.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::{Address, Name, carried};

/// Counts the records that are written, by device and in all.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    per_minute: u32,
    per_second_max: u32,
    all: Bucket,
    devices: BTreeMap<Name, Bucket>,
}

impl Pace {
    /// A pace of `per_minute` records of a device, and `per_second_max` of all.
    pub(crate) fn new(now: Instant, per_minute: u32, per_second_max: u32) -> Self {
        let all = Bucket::full(now, per_second_max);
        Self { per_minute, per_second_max, all, devices: BTreeMap::new() }
    }

    /// Admits so many records of all devices in a second from now on.
    pub(crate) fn widen(&mut self, per_second_max: u32) {
        self.per_second_max = per_second_max;
    }

    /// Whether one more record of `device` may be written now; it is counted if so.
    pub(crate) fn admit(&mut self, now: Instant, device: &Name) -> bool {
        let (capacity, minute) = (self.per_minute, Duration::from_secs(60));
        let bucket =
            self.devices.entry(device.clone()).or_insert_with(|| Bucket::full(now, capacity));
        bucket.fill(now, capacity, minute);
        self.all.fill(now, self.per_second_max, Duration::from_secs(1));
        if bucket.tokens < 1 || self.all.tokens < 1 {
            return false;
        }
        bucket.take(1);
        self.all.take(1);
        true
    }

    /// Counts a record of `device` no longer: it wasn't written, and will be tried again.
    pub(crate) fn give_back(&mut self, device: &Name) {
        if let Some(bucket) = self.devices.get_mut(device) {
            bucket.give_back(self.per_minute);
        }
        self.all.give_back(self.per_second_max);
    }

    /// Forgets the devices that are not `listed`: as many counts stay as there are devices.
    pub(crate) fn retain(&mut self, listed: impl Fn(&Name) -> bool) {
        self.devices.retain(|device, _| listed(device));
    }

    /// How many devices are counted.
    pub(crate) fn len(&self) -> usize {
        self.devices.len()
    }
}

/// A bucket that fills evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    tokens: u32,
    filled_at: Instant,
}

impl Bucket {
    /// A bucket that holds so many.
    pub(crate) fn full(now: Instant, tokens: u32) -> Self {
        Self { tokens, filled_at: now }
    }

    /// Adds the tokens since the last one that was added: `capacity` of them in a `period`.
    pub(crate) fn fill(&mut self, now: Instant, capacity: u32, period: Duration) {
        let step = period / capacity.max(1);
        let steps = now.since(self.filled_at).as_nanos() / step.as_nanos().max(1);
        let missing = u128::from(capacity.saturating_sub(self.tokens));
        if steps >= missing {
            *self = Self::full(now, capacity.max(self.tokens));
        } else {
            let steps = steps as u32;
            self.tokens += steps;
            self.filled_at = self.filled_at + step.saturating_mul(steps);
        }
    }

    /// The tokens that it holds.
    pub(crate) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Since when the next one fills.
    pub(crate) fn filled_at(&self) -> Instant {
        self.filled_at
    }

    /// Puts one back, if there is room.
    fn give_back(&mut self, capacity: u32) {
        if self.tokens < capacity {
            self.tokens += 1;
        }
    }

    /// Takes so many, or as many as there are.
    pub(crate) fn take(&mut self, tokens: u32) {
        self.tokens = self.tokens.saturating_sub(tokens);
    }
}

/// A host, whatever the port. Of IPv6 one network (/64) counts as one host, which has as many addresses as it likes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    V4(Ipv4Addr),
    V6([u8; 8]),
    Other(Address),
}

impl Host {
    /// The network that it is in: of IPv6 what one customer has at most (/48; RFC 6177), else the host itself.
    pub(crate) fn network(&self) -> Self {
        match self {
            Self::V6([network @ .., _, _]) => {
                let [a, b, c, d, e, f] = *network;
                Self::V6([a, b, c, d, e, f, 0, 0])
            }
            other => other.clone(),
        }
    }
}

/// The host of an address.
pub(crate) fn host_of(address: &Address) -> Host {
    let Address::Udp(socket) = address else { return Host::Other(address.clone()) };
    // A connection counts for the host that it comes from.
    match carried::host_of(socket).unwrap_or(socket.ip()) {
        IpAddr::V4(ip) => Host::V4(ip),
        IpAddr::V6(ip) => {
            let [network @ .., _, _, _, _, _, _, _, _] = ip.octets();
            Host::V6(network)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn device_has_its_pace_and_all_have_theirs_and_parts_of_a_step_are_not_lost() {
        let (a, b): (Name, Name) = ("a".parse().unwrap(), "b".parse().unwrap());
        let mut pace = Pace::new(at(0), 3, 2);
        for (ms, device, is_admitted) in [
            (0, &a, true),
            (0, &a, true),
            // All have had two.
            (0, &a, false),
            (499, &a, false),
            (750, &a, true),
            // The quarter of a second counts.
            (999, &b, false),
            (1_000, &b, true),
            (1_000, &b, false),
            // The device had three, and one more comes each twenty seconds.
            (19_999, &a, false),
            (20_000, &a, true),
            (20_001, &a, false),
        ] {
            assert_eq!(pace.admit(at(ms), device), is_admitted, "{device} at {ms} ms");
        }
        pace.give_back(&a);
        assert!(pace.admit(at(20_001), &a) && !pace.admit(at(20_001), &a));
        assert_eq!(pace.len(), 2);
        pace.retain(|device| *device == a);
        assert_eq!(pace.len(), 1);
    }

    #[test]
    fn bucket_holds_no_more_than_it_may_but_what_it_was_given() {
        let mut bucket = Bucket::full(at(0), 3);
        bucket.give_back(3);
        assert_eq!(bucket.tokens(), 3);
        bucket.take(1);
        bucket.give_back(3);
        assert_eq!(bucket.tokens(), 3);
        bucket.take(5);
        assert_eq!(bucket.tokens(), 0);
        let second = Duration::from_secs(1);
        bucket.fill(at(1_000), 4, second);
        assert_eq!((bucket.tokens(), bucket.filled_at()), (4, at(1_000)));
        let mut more = Bucket::full(at(0), 5);
        more.fill(at(100), 3, second);
        assert_eq!(more.tokens(), 5);
    }

    #[test]
    fn network_of_ipv6_is_one_host_a_customers_are_one_network_and_a_port_tells_none_apart() {
        let host = |text: &str| host_of(&Address::Udp(text.parse().unwrap()));
        assert_eq!(host("192.0.2.1:1"), host("192.0.2.1:2"));
        assert_ne!(host("192.0.2.1:1"), host("192.0.2.2:1"));
        assert_eq!(host("[2001:db8:0:1::1]:1"), host("[2001:db8:0:1:ffff::2]:2"));
        assert_ne!(host("[2001:db8:0:1::1]:1"), host("[2001:db8:0:2::1]:1"));
        let network = |text: &str| host(text).network();
        assert_eq!(network("[2001:db8:0:1::1]:1"), network("[2001:db8:0:ffff::1]:1"));
        assert_ne!(network("[2001:db8:0:1::1]:1"), network("[2001:db8:1:1::1]:1"));
        assert_eq!(network("192.0.2.1:1"), host("192.0.2.1:2"));
    }

    #[test]
    fn connection_counts_for_the_host_that_it_comes_from() {
        for host in ["192.0.2.1", "2001:db8:0:1::1"] {
            let host: IpAddr = host.parse().unwrap();
            let carried = host_of(&carried::address_of(host, 9).into());
            assert_eq!(carried, host_of(&Address::Udp((host, 1).into())));
        }
    }
}
