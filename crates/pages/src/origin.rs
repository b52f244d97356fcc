//! Which machine's page a host means.

use std::net::IpAddr;

use http::{header, request};
use tenure_wire::{Name, Target};

/// The origins of the pages that are served.
#[derive(Clone, Debug)]
pub struct Origins {
    /// The domain below which each machine has a host of its own, beside `localhost` (RFC 6761 §6.3).
    pub domain: Option<String>,
    /// The only machine that has a page, at the hosts that otherwise show the index.
    pub only: Option<Target>,
}

/// The page that a host means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    /// The list of machines with pages.
    Index,
    /// The page of a machine.
    Machine(Target),
}

impl Origins {
    /// Whether a request is for one of these hosts that isn't a machine's own.
    pub fn have(&self, parts: &request::Parts) -> bool {
        let meant = host_asked(parts).and_then(|host| self.meant(host));
        matches!(meant, Some(Meant::Index))
    }

    /// The host that a browser on this computer is led to, where the one that it came by is the computer's and not the page's: at
    /// another port of it there may be a hub, whose cookies the page would be shown and could set (RFC 6265 §8.5).
    pub(crate) fn host_of_its_own(&self, host: &str) -> Option<String> {
        let only = self.only.as_ref()?;
        let bare = without_port(host)?;
        let port = host.strip_prefix(bare)?;
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        if !bare.eq_ignore_ascii_case("localhost") && !address_of(bare).is_some_and(is_of_here) {
            return None;
        }
        let name = match only {
            Target::Local(machine) => machine.to_string(),
            Target::Remote { machine, device } => format!("{machine}.{device}"),
            _ => return None,
        };
        Some(format!("{name}.localhost{port}"))
    }

    /// Whether a host is below the domain, beside those of other machines.
    pub(crate) fn is_below_domain(&self, host: &str) -> bool {
        let host = without_port(host).unwrap_or_default().to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let is_below = |domain: &String| {
            host.strip_suffix(domain.as_str()).is_some_and(|labels| labels.ends_with('.'))
        };
        self.domain.as_ref().is_some_and(is_below)
    }

    /// The page that the host of a request means, as its `Host` field has it (RFC 9110 §7.2); `None` if no page has
    /// that host.
    pub(crate) fn meant(&self, host: &str) -> Option<Meant> {
        let host = without_port(host)?.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let root = || match &self.only {
            Some(machine) => Meant::Machine(machine.clone()),
            None => Meant::Index,
        };
        if is_address(host) {
            return Some(root());
        }
        let domains = self.domain.as_deref().into_iter().chain(["localhost"]);
        let below =
            domains.filter_map(|domain| host.strip_suffix(domain)).min_by_key(|rest| rest.len())?;
        if below.is_empty() {
            return Some(root());
        }
        let labels = below.strip_suffix('.')?;
        let machine = match labels.split_once('.') {
            None => Target::Local(name(labels)?),
            Some((machine, device)) => {
                Target::Remote { machine: name(machine)?, device: name(device)? }
            }
        };
        match &self.only {
            Some(only) if *only != machine => None,
            _ => Some(Meant::Machine(machine)),
        }
    }
}

/// The host that a request is for: in its target, or its one `Host` field (RFC 9112 §3.2).
pub(crate) fn host_asked(parts: &request::Parts) -> Option<&str> {
    if let Some(authority) = parts.uri.authority() {
        return Some(authority.as_str());
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    hosts.next().is_none().then_some(host)
}

/// The host of a machine's page, below the host that a visitor came by.
pub(crate) fn host_of(machine: &Name, device: &Name, root: &str) -> String {
    // An address has no hosts below it; a browser finds `localhost` on its own computer.
    let is_numbers = without_port(root).is_none_or(is_address);
    match (is_numbers, root.rsplit_once(':')) {
        (true, Some((_, port))) if !port.contains(']') => {
            format!("{machine}.{device}.localhost:{port}")
        }
        (true, _) => format!("{machine}.{device}.localhost"),
        (false, _) => format!("{machine}.{device}.{root}"),
    }
}

/// The host without its port (RFC 3986 §3.2).
fn without_port(host: &str) -> Option<&str> {
    match host.strip_prefix('[') {
        Some(_) => host.split_inclusive(']').next().filter(|host| host.ends_with(']')),
        None => host.split(':').next().filter(|host| !host.is_empty()),
    }
}

fn is_address(host: &str) -> bool {
    address_of(host).is_some()
}

fn address_of(host: &str) -> Option<IpAddr> {
    let v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match v6 {
        Some(host) => host.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

/// Whether an address leads a browser to its own computer.
fn is_of_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

fn name(label: &str) -> Option<Name> {
    label.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str) -> Option<Meant> {
        Some(Meant::Machine(text.parse().unwrap()))
    }

    #[test]
    fn host_below_a_domain_is_a_machine_s_and_the_domain_itself_shows_the_index() {
        let origins = Origins { domain: Some("pages.example".into()), only: None };
        for (host, meant) in [
            ("localhost", Some(Meant::Index)),
            ("localhost:8080", Some(Meant::Index)),
            ("127.0.0.1:8080", Some(Meant::Index)),
            ("[::1]:8080", Some(Meant::Index)),
            ("Pages.Example.", Some(Meant::Index)),
            ("thermostat.localhost:8080", machine("thermostat")),
            ("thermostat.attic.localhost", machine("thermostat@attic")),
            ("Thermostat.Attic.pages.example:443", machine("thermostat@attic")),
        ] {
            assert_eq!(origins.meant(host), meant, "{host}");
        }
    }

    #[test]
    fn host_that_no_page_has_is_nobody_s() {
        let origins = Origins { domain: None, only: None };
        for host in [
            "",
            ":80",
            "example.com",
            "127.0.0.1.evil.example",
            "xlocalhost",
            ".localhost",
            "..localhost",
            "a.b.c.localhost",
            "1a.localhost",
            "a..localhost",
            "[::1",
            "[localhost]",
            "localhost.evil.example",
            "thermostat.attic.pages.example",
        ] {
            assert_eq!(origins.meant(host), None, "{host}");
        }
    }

    #[test]
    fn only_machine_stands_at_the_root_and_no_other_anywhere() {
        let origins = Origins { domain: None, only: Some("lamp@attic".parse().unwrap()) };
        for host in ["localhost", "192.168.1.5:8080", "lamp.attic.localhost"] {
            assert_eq!(origins.meant(host), machine("lamp@attic"), "{host}");
        }
        assert_eq!(origins.meant("door.attic.localhost"), None);
    }

    // a browser keeps the hub's cookie for `127.0.0.1`, whatever the port.
    #[test]
    fn only_machine_has_a_host_of_its_own_on_the_computer_that_the_hub_may_be_on() {
        let origins = |only: &str| Origins { domain: None, only: Some(only.parse().unwrap()) };
        for (host, own) in [
            ("127.0.0.1:8080", "lamp.attic.localhost:8080"),
            ("127.9.9.9", "lamp.attic.localhost"),
            ("LOCALHOST:8080", "lamp.attic.localhost:8080"),
            ("localhost.:8080", "lamp.attic.localhost:8080"),
            ("[::1]:8080", "lamp.attic.localhost:8080"),
            ("[::ffff:127.0.0.1]", "lamp.attic.localhost"),
            ("0.0.0.0:8080", "lamp.attic.localhost:8080"),
        ] {
            let found = origins("lamp@attic").host_of_its_own(host);
            assert_eq!(found.as_deref(), Some(own), "{host}");
            assert_eq!(origins("lamp@attic").meant(&found.unwrap()), machine("lamp@attic"));
        }
        let local = origins("lamp").host_of_its_own("localhost:8080").unwrap();
        assert_eq!(
            (local.as_str(), origins("lamp").meant(&local)),
            ("lamp.localhost:8080", machine("lamp"))
        );
        for host in ["192.168.1.5:8080", "lamp.attic.localhost:8080", "[fe80::1]:80", ""] {
            assert_eq!(origins("lamp@attic").host_of_its_own(host), None, "{host}");
        }
        let all = Origins { domain: None, only: None };
        assert_eq!(all.host_of_its_own("127.0.0.1"), None);
    }

    #[test]
    fn page_s_host_means_its_machine() {
        let origins = Origins { domain: Some("pages.example".into()), only: None };
        let (lamp, attic) = ("lamp".parse().unwrap(), "attic".parse().unwrap());
        for root in [
            "localhost:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "10.0.0.1",
            "pages.example",
            "pages.example:81",
        ] {
            assert_eq!(
                origins.meant(&host_of(&lamp, &attic, root)),
                machine("lamp@attic"),
                "{root}"
            );
        }
        assert_eq!(host_of(&lamp, &attic, "[::1]:8080"), "lamp.attic.localhost:8080");
    }
}
