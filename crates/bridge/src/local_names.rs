//! The addresses of names below `.local`, by Multicast DNS (RFC 6762): of a broker at home, which no name server knows.
//!
//! Whoever is on the network may answer for a name, as for any name there: TLS judges who is at the address.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};

use mdns_sd::{HostnameResolutionEvent, IfKind, ScopedIp, ServiceDaemon};

/// How long the network is asked for a name: three questions, a second and two apart (RFC 6762 §5.2).
const PATIENCE: Duration = Duration::from_secs(4);
/// How long further addresses may come after the first.
const MORE: Duration = Duration::from_millis(250);

/// Whether the network itself is to be asked for the addresses of `name`.
pub(crate) fn is_local(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.rsplit_once('.').is_some_and(|(_, last)| last.eq_ignore_ascii_case("local"))
}

/// The addresses that the network tells of `name`; this waits.
///
/// # Errors
/// Why there are none, in words.
pub(crate) fn addresses(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let failed = |error: mdns_sd::Error| format!("the network can't be asked for {name}: {error}");
    let daemon = ServiceDaemon::new().map_err(failed)?;
    // Loopback, too: a broker may be on this computer.
    let asked = daemon.enable_interface(IfKind::LoopbackV4).and_then(|()| {
        let host = format!("{}.", name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase());
        daemon.resolve_hostname(&host, Some(PATIENCE.as_millis() as u64))
    });
    let mut found = Vec::new();
    if let Ok(events) = &asked {
        let mut until = Instant::now() + PATIENCE;
        while let Ok(event) = events.recv_deadline(until) {
            let HostnameResolutionEvent::AddressesFound(_, told) = event else { continue };
            until = until.min(Instant::now() + MORE);
            found.extend(told.iter().map(|address| place(address, port)));
        }
    }
    let _ = daemon.shutdown();
    asked.map_err(failed)?;
    found.sort_unstable_by_key(|address| (address.is_ipv4(), *address));
    found.dedup();
    match found.is_empty() {
        true => Err(format!("nobody on the network answers for {name}")),
        false => Ok(found),
    }
}

fn place(address: &ScopedIp, port: u16) -> SocketAddr {
    match (address, address.to_ip_addr()) {
        // An address of one link alone is nothing without the interface to it.
        (ScopedIp::V6(scoped), IpAddr::V6(ip)) if ip.is_unicast_link_local() => {
            SocketAddrV6::new(ip, port, 0, scoped.scope_id().index).into()
        }
        (_, ip) => SocketAddr::new(ip, port),
    }
}

#[cfg(test)]
mod tests {
    use mdns_sd::ServiceInfo;

    use super::*;

    #[test]
    fn names_below_local_alone_are_asked_of_the_network() {
        for name in ["broker.local", "a.b.local", "broker.LOCAL", "broker.local."] {
            assert!(is_local(name), "{name}");
        }
        for name in ["local", "broker.example", "local.example", "broker.locals", ""] {
            assert!(!is_local(name), "{name}");
        }
    }

    #[test]
    fn name_on_the_network_is_found_by_whoever_has_it_and_one_of_nobody_is_not() {
        let name = format!("broker-{}.local", std::process::id());
        let other = ServiceDaemon::new().unwrap();
        other.disable_interface(IfKind::All).unwrap();
        other.enable_interface(IfKind::LoopbackV4).unwrap();
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        let (kind, host) = ("_mqtt._tcp.local.", format!("{name}."));
        let mut service = ServiceInfo::new(kind, "b", &host, &[address][..], 1883, None).unwrap();
        service.set_interfaces(vec![IfKind::LoopbackV4]);
        other.register(service).unwrap();
        let found = tenure_testbed::wait_until(|| addresses(&name, 1883));
        assert_eq!(found, ["127.0.0.1:1883".parse().unwrap()]);
        other.shutdown().unwrap().recv().unwrap();
        let error = addresses(&format!("nobody-{}.local", std::process::id()), 1883).unwrap_err();
        assert!(error.starts_with("nobody on the network answers for nobody-"), "{error}");
    }
}
