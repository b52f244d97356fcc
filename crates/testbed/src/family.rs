//! Addresses of this computer's loopback for tests that start processes, of the family that the environment names.

use std::env;
use std::net::{TcpListener, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The environment's name for the family, `4` or `6`.
pub const FAMILY: &str = "TENURE_FAMILY";
/// The ports of [`free_address`] on `::1`: below those that Linux gives to who asks for any (32768 and up).
const PORTS: std::ops::Range<u32> = 10_000..32_000;
/// The address whose ports say which ports of `::1` are taken by tests.
const REGISTER: &str = "127.255.73.71";

/// Loopback at any port, as `127.0.0.1:0`; or, with `TENURE_FAMILY=6`, `[::1]:0`.
///
/// # Panics
/// `TENURE_FAMILY` is neither 4 nor 6.
#[must_use]
pub fn any_address() -> &'static str {
    if is_6() { "[::1]:0" } else { "127.0.0.1:0" }
}

/// An address of loopback with a port that nobody else is given, of the same family as [`any_address`].
///
/// # Panics
/// `TENURE_FAMILY` is neither 4 nor 6, or 22,000 ports are taken.
#[must_use]
pub fn free_address() -> String {
    match is_6() {
        true => format!("[::1]:{}", claimed_port()),
        false => free_ipv4_address(),
    }
}

/// As [`free_address`], of IPv4 whatever the environment says: for emulators that speak nothing else.
///
/// Each has a loopback address of its own, and a port that no system gives to who asks for any.
#[must_use]
pub fn free_ipv4_address() -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(1);
    let number = GIVEN.fetch_add(1, Ordering::Relaxed);
    let [_, a, b, c] = (std::process::id() << 8 | number & 0xFF).to_be_bytes();
    format!("127.{a}.{b}.{c}:7370")
}

/// A port of `::1`, which has no neighbours as 127.0.0.1 has, so that ports alone tell tests apart.
///
/// The process listens at the same port of [`REGISTER`] until its end: thus no other test is given it.
fn claimed_port() -> u32 {
    static CLAIMS: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(61);
    for _ in PORTS {
        let offset = first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + offset % (PORTS.end - PORTS.start);
        let Ok(claim) = TcpListener::bind(format!("{REGISTER}:{port}")) else { continue };
        let own = format!("[::1]:{port}");
        if UdpSocket::bind(&own).is_ok() && TcpListener::bind(&own).is_ok() {
            CLAIMS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(claim);
            return port;
        }
    }
    panic!("no port of ::1 from {} to {} is free", PORTS.start, PORTS.end - 1)
}

fn is_6() -> bool {
    is_named_6(env::var(FAMILY).ok().as_deref()).unwrap_or_else(|error| panic!("{error}"))
}

fn is_named_6(named: Option<&str>) -> Result<bool, String> {
    match named {
        None | Some("4") => Ok(false),
        Some("6") => Ok(true),
        Some(text) => Err(format!("{FAMILY} is 4 or 6, the family of addresses, and not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_is_ipv4_unless_the_environment_says_6_and_nonsense_is_named() {
        assert_eq!(is_named_6(None), Ok(false));
        assert_eq!(is_named_6(Some("4")), Ok(false));
        assert_eq!(is_named_6(Some("6")), Ok(true));
        for nonsense in ["", "5", "IPv6"] {
            assert!(is_named_6(Some(nonsense)).unwrap_err().contains(FAMILY), "{nonsense}");
        }
    }

    #[test]
    fn port_that_was_given_is_not_given_again() {
        if UdpSocket::bind("[::1]:0").is_err() {
            return; // This computer has no IPv6.
        }
        let ports = [claimed_port(), claimed_port(), claimed_port()];
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2], "{ports:?}");
        for port in ports {
            assert!(PORTS.contains(&port), "{port}");
            assert!(TcpListener::bind(format!("{REGISTER}:{port}")).is_err(), "{port} is claimed");
        }
    }
}
