//! The proxy before a server, as the variables of the environment name it: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, and for
//! which hosts there is none, `NO_PROXY`.
//!
//! Invariant: a user and a password stand in no message.

use std::fmt;
use std::net::IpAddr;

use data_encoding::BASE64;
use tenure_wire::url::{Host, Origin, Scheme};

/// The port of a proxy where there is none in its address.
const PORT: u16 = 80;

/// A proxy of HTTP, which lets connections through (RFC 9110 §9.3.6).
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its host.
    pub host: Host,
    /// Its port.
    pub port: u16,
    /// What it is shown, if its address has a user (RFC 7617).
    pub(crate) credentials: Option<String>,
}

/// Why the proxy that a variable names is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyError {
    /// It is spoken to in another way than HTTP.
    Scheme {
        /// The variable.
        variable: String,
        /// The scheme of its address.
        scheme: String,
    },
    /// Its address is none.
    Address {
        /// The variable.
        variable: String,
    },
}

impl Proxy {
    /// The proxy by which the server at `origin` is reached, if there is one; `variable` gives the values of variables.
    ///
    /// # Errors
    /// [`ProxyError`]: the server isn't tried without a proxy that is named.
    pub fn before(
        origin: &Origin,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ProxyError> {
        // Small letters come first, as others have it.
        let value = |name: &str| {
            let names = [name.to_lowercase(), name.to_owned()];
            names.into_iter().find_map(|name| {
                let value = variable(&name).filter(|value| !value.trim().is_empty())?;
                Some((name, value.trim().to_owned()))
            })
        };
        if value("NO_PROXY").is_some_and(|(_, hosts)| is_among(&origin.host, origin.port, &hosts)) {
            return Ok(None);
        }
        let own = match origin.scheme {
            Scheme::Https => "HTTPS_PROXY",
            Scheme::Http => "HTTP_PROXY",
        };
        let Some((variable, text)) = value(own).or_else(|| value("ALL_PROXY")) else {
            return Ok(None);
        };
        Self::read(&text, &variable).map(Some)
    }

    /// Reads `http://USER:PASSWORD@HOST:PORT`, of which the host alone must be there.
    fn read(text: &str, variable: &str) -> Result<Self, ProxyError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let variable = variable.to_owned();
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(ProxyError::Scheme { variable, scheme: scheme.to_ascii_lowercase() });
        }
        // A password may have any letter.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let read = || {
            let (host, port) = match authority.rsplit_once(':') {
                Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
                _ => (authority, PORT),
            };
            Some((host.parse::<Host>().ok()?, port))
        };
        let (host, port) = read().ok_or(ProxyError::Address { variable })?;
        let credentials = user.map(|user| {
            // Whoever has no password has an empty one (RFC 7617 §2).
            let colon = if user.contains(':') { "" } else { ":" };
            BASE64.encode(&decoded(&format!("{user}{colon}")))
        });
        Ok(Self { host, port, credentials })
    }
}

/// The octets of a user and a password, in which some are percent-encoded (RFC 3986 §2.1).
fn decoded(text: &str) -> Vec<u8> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let digit = |at: usize| others.get(at).and_then(|digit| (*digit as char).to_digit(16));
        let (octet, used) = match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, 2),
            _ => (*first, 0),
        };
        octets.push(octet);
        rest = others.get(used..).unwrap_or_default();
    }
    octets
}

/// Whether a host is among those of `NO_PROXY`: `*`, names with all below them, addresses, networks, each with or without a port.
fn is_among(host: &Host, port: u16, hosts: &str) -> bool {
    hosts.split(',').map(str::trim).any(|entry| {
        if entry == "*" {
            return true;
        }
        let (named, of_port) = match entry.rsplit_once(':') {
            Some((named, digits)) if !named.contains(':') || named.ends_with(']') => {
                (named, digits.parse().ok())
            }
            _ => (entry, None),
        };
        of_port.is_none_or(|one: u16| one == port)
            && match host {
                Host::Name(name) => is_below(name, named),
                Host::Address(address) => is_in(*address, named),
            }
    })
}

fn is_below(name: &str, named: &str) -> bool {
    let named = named.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
    let rest = name.strip_suffix(&*named);
    !named.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether an address is the one that is named, or of the network (RFC 4632 §3.1).
fn is_in(address: IpAddr, named: &str) -> bool {
    let (network, length) = match named.split_once('/') {
        Some((network, length)) => (network, length.parse::<u32>().ok()),
        None => (named, Some(128)),
    };
    let network = network.trim_start_matches('[').trim_end_matches(']');
    let (Ok(network), Some(length)) = (network.parse::<IpAddr>(), length) else { return false };
    let (alike, bits) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            ((u32::from(one) ^ u32::from(other)).leading_zeros(), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            ((u128::from(one) ^ u128::from(other)).leading_zeros(), 128)
        }
        _ => return false,
    };
    alike >= length.min(bits)
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme { variable, scheme } => write!(
                f,
                "{variable} names a proxy that is spoken to by `{scheme}`; name one of HTTP, as http://HOST:PORT, or leave \
                 the hub out of it by NO_PROXY"
            ),
            Self::Address { variable } => {
                write!(f, "{variable} names no proxy; write http://HOST:PORT, or nothing")
            }
        }
    }
}

impl std::error::Error for ProxyError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(
        origin: &str,
        variables: &'static [(&'static str, &'static str)],
    ) -> Result<Option<String>, String> {
        let value = |name: &str| {
            let of_name = variables.iter().find(|(one, _)| *one == name);
            of_name.map(|(_, value)| (*value).to_owned())
        };
        let proxy = Proxy::before(&origin.parse().unwrap(), value);
        proxy.map(|proxy| proxy.map(|it| it.to_string())).map_err(|error| error.to_string())
    }

    #[test]
    fn proxy_is_that_of_the_scheme_and_small_letters_come_first() {
        let at = |text: &str| Ok(Some(text.to_owned()));
        let (hub, plain) = ("https://hub.example", "http://hub.example");
        assert_eq!(before(hub, &[]), Ok(None));
        assert_eq!(before(hub, &[("HTTPS_PROXY", "")]), Ok(None));
        assert_eq!(before(hub, &[("HTTPS_PROXY", "a.example:3128")]), at("a.example:3128"));
        assert_eq!(
            before(hub, &[("https_proxy", "http://[::1]/"), ("HTTPS_PROXY", "b")]),
            at("[::1]:80")
        );
        assert_eq!(before(hub, &[("HTTP_PROXY", "a"), ("ALL_PROXY", "http://b:1")]), at("b:1"));
        assert_eq!(before(plain, &[("HTTP_PROXY", "a"), ("HTTPS_PROXY", "b")]), at("a:80"));
    }

    #[test]
    fn proxy_that_is_of_no_use_is_refused_without_its_password() {
        for (value, says) in [
            ("socks5://u:secret@a:1", "HTTPS_PROXY names a proxy that is spoken to by `socks5`; "),
            ("https://u:secret@a:1", "HTTPS_PROXY names a proxy that is spoken to by `https`; "),
            ("http://u:secret@a:http", "HTTPS_PROXY names no proxy; "),
            ("http://", "HTTPS_PROXY names no proxy; "),
            ("a b", "HTTPS_PROXY names no proxy; "),
        ] {
            let error = Proxy::read(value, "HTTPS_PROXY").unwrap_err().to_string();
            assert!(error.starts_with(says) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn user_and_password_are_decoded_and_stay_out_of_what_is_shown() {
        let proxy = Proxy::read("http://me:p%40s%s/@a:1", "HTTPS_PROXY").unwrap();
        let credentials = proxy.credentials.clone().unwrap();
        assert_eq!(BASE64.decode(credentials.as_bytes()).unwrap(), b"me:p@s%s/");
        assert_eq!((format!("{proxy:?}"), proxy.to_string()), ("Proxy(a:1)".into(), "a:1".into()));
        let alone = Proxy::read("me@a", "HTTPS_PROXY").unwrap().credentials.unwrap();
        assert_eq!(BASE64.decode(alone.as_bytes()).unwrap(), b"me:");
    }

    #[test]
    fn hosts_without_a_proxy_are_names_with_all_below_them_addresses_and_networks() {
        let is_without = |host: &str, hosts: &str| is_among(&host.parse().unwrap(), 443, hosts);
        for (host, hosts) in [
            ("hub.example", "*"),
            ("hub.example", "a, HUB.example"),
            ("hub.example", "example"),
            ("hub.example", ".example"),
            ("hub.example", "*.example"),
            ("hub.example", "hub.example:443"),
            ("10.1.2.3", "10.1.2.3"),
            ("10.1.2.3", "10.0.0.0/8"),
            ("10.1.2.3", "0.0.0.0/0"),
            ("[2001:db8::7]", "2001:db8::/32"),
            ("[2001:db8::7]", "[2001:db8::7]:443"),
        ] {
            assert!(is_without(host, hosts), "{host} in {hosts}");
        }
        for (host, hosts) in [
            ("hub.example", ""),
            ("hub.example", "b.example,ub.example"),
            ("hub.example", "hub.example:80"),
            ("hub.example", "10.0.0.0/8"),
            ("11.1.2.3", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.30,::/0,10.0.0.0/x"),
        ] {
            assert!(!is_without(host, hosts), "{host} in {hosts}");
        }
    }
}
