//! Devices on the local network find each other: by DNS-Based Service Discovery (RFC 6763) over Multicast DNS
//! (RFC 6762).
//!
//! Invariants:
//! - An announcement holds a fingerprint of the device's key, its addresses and its port, and no name.
//! - An announced address is a hint: whoever uses it asks there for a key, and for a record that its owner signed.
//! - A liar on the network gets no more than `ANNOUNCED_MAX` announcements noticed; then the device stops
//!   listening to them for `REST`.
//! - No address is taken that lies outside of a local network.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mdns_sd::{IfKind, Receiver, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};
use serde_json::json;
use tenure_wire::PublicKey;

use crate::reach::network::can_send;
use crate::terminal::output::Output;

/// The service type of devices (RFC 6763 §7).
const SERVICE: &str = "_tenure._udp.local.";
/// The most announcements at a time that are noticed.
const ANNOUNCED_MAX: usize = 64;
/// The most addresses of one announcement that are taken.
const ADDRESSES_MAX: usize = 2;
/// How long a device doesn't listen after more announcements than it notices.
const REST: Duration = Duration::from_secs(600);
/// How long a command looks around.
const LOOK: Duration = Duration::from_millis(1500);
/// How long a command goes on asking at addresses that are silent.
const ASKING: Duration = Duration::from_secs(15);
/// How long a device that ends waits for its goodbye to be sent.
const GOODBYE: Duration = Duration::from_secs(1);
/// The digits of a fingerprint.
const FINGERPRINT_DIGITS: usize = 16;

/// A device's presence on its network: its announcement, and the addresses that others announce.
pub struct Discovery {
    state: State,
    others: Announcements,
}

enum State {
    Listening(ServiceDaemon, Receiver<ServiceEvent>),
    RestingUntil(Instant),
}

impl Discovery {
    /// Announces the device with the key `key`, which listens at `listen`, and begins to listen for others.
    ///
    /// # Errors
    /// The system lets nobody send to a group.
    pub fn start(key: &PublicKey, listen: SocketAddr) -> anyhow::Result<Self> {
        let others = Announcements::heard_at(listen, fingerprint(key));
        Ok(Self { state: announce(&others.own, listen)?, others })
    }

    /// The next address that was announced and wasn't returned before.
    pub fn heard(&mut self, output: &Output) -> Option<SocketAddr> {
        self.listen(output);
        self.others.fresh.pop_front()
    }

    /// Returns all addresses once more: the node has forgotten them in a deep sleep.
    pub fn repeat(&mut self) {
        self.others.fresh = self.others.by_name.values().flatten().copied().collect();
    }

    /// Ends the announcement, and tells the network so (RFC 6762 §10.1).
    pub fn end(self) {
        if let State::Listening(daemon, _) = self.state
            && let Ok(ended) = daemon.shutdown()
        {
            let _ = ended.recv_timeout(GOODBYE);
        }
    }

    fn listen(&mut self, output: &Output) {
        let Self { state, others } = self;
        match state {
            State::RestingUntil(until) if *until > Instant::now() => {}
            State::RestingUntil(_) => {
                *state = announce(&others.own, others.listen)
                    .unwrap_or_else(|_| State::RestingUntil(Instant::now() + REST));
            }
            State::Listening(daemon, events) => {
                while !others.are_a_flood()
                    && let Ok(event) = events.try_recv()
                {
                    others.note(event);
                }
                // The daemon gives up on a listener that falls behind.
                if others.are_a_flood() || events.is_disconnected() {
                    let _ = daemon.shutdown();
                    *state = State::RestingUntil(Instant::now() + REST);
                    others.forget();
                    output.line(
                        "more announcements on this network than a house has devices: none is \
                         noticed for ten minutes",
                        &json!({ "event": "discovery-rests" }),
                    );
                }
            }
        }
    }
}

/// The announcements of other devices.
struct Announcements {
    /// The fingerprint of this device.
    own: String,
    listen: SocketAddr,
    /// Addresses that can be reached, by the announcement's name.
    by_name: BTreeMap<String, Vec<SocketAddr>>,
    /// Addresses that are new.
    fresh: VecDeque<SocketAddr>,
}

impl Announcements {
    fn heard_at(listen: SocketAddr, own: String) -> Self {
        Self { own, listen, by_name: BTreeMap::new(), fresh: VecDeque::new() }
    }

    /// Whether there are more than any house has devices.
    fn are_a_flood(&self) -> bool {
        self.by_name.len() > ANNOUNCED_MAX || self.fresh.len() > ANNOUNCED_MAX * ADDRESSES_MAX
    }

    fn note(&mut self, event: ServiceEvent) {
        match event {
            ServiceEvent::ServiceFound(_, name) => drop(self.by_name.entry(name).or_default()),
            ServiceEvent::ServiceResolved(service) => {
                let addresses = addresses_in(&service, &self.own, self.listen);
                let known = self.by_name.entry(service.fullname).or_default();
                if *known != addresses {
                    self.fresh.extend(addresses.iter().copied());
                    *known = addresses;
                }
            }
            ServiceEvent::ServiceRemoved(_, name) => drop(self.by_name.remove(&name)),
            _ => {}
        }
    }

    fn forget(&mut self) {
        self.by_name.clear();
        self.fresh.clear();
    }
}

/// The addresses that devices announce on the networks of this computer now, one after the other, until the time
/// to ask there is over; none on a network that knows no groups.
pub fn announced() -> impl Iterator<Item = SocketAddr> {
    let found = look_around().unwrap_or_default();
    let until = Instant::now() + ASKING;
    found.into_iter().take_while(move |_| Instant::now() < until)
}

fn look_around() -> anyhow::Result<Vec<SocketAddr>> {
    let daemon = ServiceDaemon::new().context("can't look around on this network")?;
    let events = daemon.browse(SERVICE).context("can't look around on this network")?;
    let until = Instant::now() + LOOK;
    let mut found = Vec::new();
    while let Ok(event) = events.recv_deadline(until) {
        let ServiceEvent::ServiceResolved(service) = event else { continue };
        let addresses = local_addresses(&service).take(ADDRESSES_MAX);
        found.extend(addresses);
        if found.len() >= ANNOUNCED_MAX {
            break;
        }
    }
    let _ = daemon.shutdown();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Whether a device that listens at `listen` announces itself unless told otherwise: not if this computer
/// alone reaches it.
pub fn is_usual_at(listen: SocketAddr) -> bool {
    !listen.ip().is_loopback()
}

fn announce(own: &str, listen: SocketAddr) -> anyhow::Result<State> {
    let failed = "can't announce the device on its network";
    let daemon = ServiceDaemon::new().context(failed)?;
    let (service, interfaces) = service(own, listen)?;
    daemon.disable_interface(IfKind::All).context(failed)?;
    daemon.enable_interface(interfaces).context(failed)?;
    if listen.ip().is_unspecified() {
        daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6]).context(failed)?;
    }
    daemon.register(service).context(failed)?;
    let events = daemon.browse(SERVICE).context(failed)?;
    Ok(State::Listening(daemon, events))
}

/// The announcement of a device that listens at `listen`, and the interfaces that it goes to.
fn service(own: &str, listen: SocketAddr) -> anyhow::Result<(ServiceInfo, Vec<IfKind>)> {
    let ip = listen.ip();
    let interfaces = match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => vec![IfKind::IPv4],
        // A socket there takes datagrams of both kinds.
        IpAddr::V6(ip) if ip.is_unspecified() => vec![IfKind::All],
        IpAddr::V4(ip) if ip.is_loopback() => vec![IfKind::LoopbackV4],
        IpAddr::V6(ip) if ip.is_loopback() => vec![IfKind::LoopbackV6],
        ip => vec![IfKind::Addr(ip)],
    };
    let host = format!("{own}.local.");
    let addresses: &[IpAddr] = if ip.is_unspecified() { &[] } else { &[ip] };
    let service = ServiceInfo::new(SERVICE, own, &host, addresses, listen.port(), None)
        .context("can't announce the device on its network")?;
    let mut service = if ip.is_unspecified() { service.enable_addr_auto() } else { service };
    service.set_interfaces(interfaces.clone());
    Ok((service, interfaces))
}

/// The addresses of another device that one which listens at `listen` can reach.
fn addresses_in(service: &ResolvedService, own: &str, listen: SocketAddr) -> Vec<SocketAddr> {
    if service.fullname.strip_suffix(SERVICE) == Some(&format!("{own}.")) {
        return Vec::new();
    }
    let reachable = |address: &SocketAddr| {
        can_send(listen, *address) && address.ip().is_loopback() == listen.ip().is_loopback()
    };
    local_addresses(service).filter(reachable).take(ADDRESSES_MAX).collect()
}

/// The addresses in an announcement that lie in a local network, in order.
fn local_addresses(service: &ResolvedService) -> impl Iterator<Item = SocketAddr> {
    let mut addresses: Vec<IpAddr> =
        service.get_addresses().iter().map(mdns_sd::ScopedIp::to_ip_addr).collect();
    addresses.sort_unstable();
    let port = service.get_port();
    addresses.into_iter().filter(is_local).map(move |ip| SocketAddr::new(ip, port))
}

/// Whether an address is one of a local network, so that an announcement sends nobody's questions elsewhere:
/// RFC 1918, RFC 3927 and RFC 4193.
fn is_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local() || ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback(),
    }
}

/// The name of an announcement: the first digits of the id of the device's own machine.
fn fingerprint(key: &PublicKey) -> String {
    let id = tenure_crypto::machine_id(key);
    crate::terminal::output::hex(&id.0)[..FINGERPRINT_DIGITS].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(addresses: &[&str], own: &str) -> ResolvedService {
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let host = format!("{own}.local.");
        ServiceInfo::new(SERVICE, own, &host, &addresses[..], 7370, None)
            .unwrap()
            .as_resolved_service()
    }

    #[test]
    fn announcement_of_an_address_elsewhere_is_not_taken() {
        let listen = "192.168.1.2:7370".parse().unwrap();
        for elsewhere in
            ["8.8.8.8", "224.0.0.1", "255.255.255.255", "0.0.0.0", "127.0.0.1", "2001:db8::1"]
        {
            let taken = addresses_in(&announced(&[elsewhere], "liar"), "own", listen);
            assert!(taken.is_empty(), "{elsewhere}: {taken:?}");
        }
        let many = ["192.168.1.9", "192.168.1.8", "192.168.1.7", "10.0.0.1"];
        let taken = addresses_in(&announced(&many, "liar"), "own", listen);
        assert_eq!(taken.len(), ADDRESSES_MAX);
        let taken = addresses_in(&announced(&["192.168.1.9"], "other"), "own", listen);
        assert_eq!(taken, ["192.168.1.9:7370".parse().unwrap()]);
    }

    #[test]
    fn flood_of_announcements_is_noticed_before_it_takes_memory() {
        let mut others = Announcements::heard_at("192.168.1.2:7370".parse().unwrap(), "own".into());
        let mut noted = 0;
        for number in 0..10_000 {
            if others.are_a_flood() {
                break;
            }
            others.note(ServiceEvent::ServiceFound(SERVICE.into(), format!("{number}.{SERVICE}")));
            noted += 1;
        }
        assert_eq!(noted, ANNOUNCED_MAX + 1);
        others.forget();
        // One name that moves all the time.
        for number in 0..10_000_u32 {
            if others.are_a_flood() {
                return;
            }
            let address = format!("192.168.{}.{}", number / 200, number % 200);
            let service = announced(&[&address], "liar");
            others.note(ServiceEvent::ServiceResolved(Box::new(service)));
        }
        panic!("nobody noticed");
    }

    #[test]
    fn device_takes_no_notice_of_its_own_announcement() {
        let listen = "192.168.1.2:7370".parse().unwrap();
        assert!(addresses_in(&announced(&["192.168.1.2"], "own"), "own", listen).is_empty());
    }

    #[test]
    fn announcement_holds_a_fingerprint_and_no_name() {
        let own = fingerprint(&PublicKey([7; 32]));
        assert_eq!(own.len(), FINGERPRINT_DIGITS);
        let (service, _) = service(&own, "192.168.1.2:7370".parse().unwrap()).unwrap();
        assert_eq!(service.get_fullname(), format!("{own}.{SERVICE}"));
        assert_eq!(service.get_hostname(), format!("{own}.local."));
        assert!(service.as_resolved_service().get_properties().is_empty());
    }

    #[test]
    fn device_that_this_computer_alone_reaches_is_not_announced_unless_told_to() {
        assert!(!is_usual_at("127.0.0.1:7370".parse().unwrap()));
        assert!(is_usual_at("0.0.0.0:7370".parse().unwrap()));
    }
}
