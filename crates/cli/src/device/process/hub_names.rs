//! The addresses of a device's hub, looked up again and again: a hub may move, and a device may start before its network.
//!
//! Invariant: a look-up, which may take as long as the system's resolver likes, never holds up the device's loop.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::json;
use tenure_hal::Instant;
use tenure_node::Input;
use tenure_reach::TunnelUrl;
use tenure_wire::{Address, PublicKey};

use crate::reach::hub_link::nowhere;
use crate::reach::network::{
    HUB_PORT, addresses_from, host_of_url, is_name, split_key, websocket_of,
};
use crate::terminal::output::Output;

/// The most addresses of a hub: each is tried for four seconds while all are silent.
const ADDRESSES_MAX: usize = 8;
/// How soon names are looked up again while the hub answers, as the resolver doesn't tell how long its answer holds.
const AGAIN: Duration = Duration::from_secs(300);
/// The same while the hub is silent, or a name had no address.
const AGAIN_SILENT: Duration = Duration::from_secs(10);
/// The stack of a look-up's thread, in bytes.
const STACK_BYTES: usize = 256 * 1024;

/// How long a start waits for the first look-up: a device runs without its hub rather than not at all.
const AT_START: Duration = Duration::from_secs(2);

/// Where the command line says that the hub is.
#[derive(Clone, Debug)]
pub(super) struct NamedHub {
    /// Names and addresses, with or without a port.
    texts: Vec<String>,
    /// The hub's key, if it is pinned.
    key: Option<PublicKey>,
    /// Where the device listens, which says what it can send to.
    listen: SocketAddr,
    /// The WebSocket to it, for where UDP is blocked.
    url: Option<TunnelUrl>,
}

/// What a look-up found: the addresses of all names that have some, and why others have none.
#[derive(Debug, Default)]
struct Found {
    addresses: Vec<Address>,
    missing: Vec<String>,
}

impl NamedHub {
    /// The hub of `--hub`, given once or more often, of a device that listens at `listen`.
    ///
    /// # Errors
    /// A key is none, or there are two; an address is none, or the device can't send to it; or two WebSockets are named.
    pub(super) fn of(texts: &[String], listen: SocketAddr) -> anyhow::Result<Self> {
        let mut hub = Self { texts: Vec::new(), key: None, listen, url: None };
        for text in texts {
            let (address, key) = split_key(text)?;
            if let (Some(pinned), Some(key)) = (hub.key, key)
                && pinned != key
            {
                bail!("--hub names two keys; a hub that runs in several places has one");
            }
            hub.key = hub.key.or(key);
            if TunnelUrl::is_meant(address) {
                if hub.url.replace(websocket_of(address)?).is_some() {
                    bail!("--hub names two WebSockets; a device goes by one");
                }
                continue;
            }
            if !is_name(address) {
                addresses_from(listen, address, HUB_PORT)?;
            }
            hub.texts.push(address.to_owned());
        }
        // Its host has UDP at the usual port, unless something else is said.
        if hub.texts.is_empty() {
            hub.texts.extend(hub.url.as_ref().map(host_of_url));
        }
        if hub.texts.len() > ADDRESSES_MAX {
            bail!("a device knows {ADDRESSES_MAX} addresses of its hub at most");
        }
        Ok(hub)
    }

    fn look_up(&self) -> Found {
        let mut found = Found::default();
        for text in &self.texts {
            match addresses_from(self.listen, text, HUB_PORT) {
                Ok(addresses) => found.addresses.extend(addresses.into_iter().map(Address::from)),
                Err(error) => found.missing.push(format!("{error:#}")),
            }
        }
        if self.url.is_some() && found.addresses.is_empty() {
            found.addresses.push(nowhere().into());
        }
        found.addresses.truncate(ADDRESSES_MAX);
        found
    }
}

/// The look-ups of a running device.
#[derive(Debug)]
pub(super) struct HubNames {
    hub: NamedHub,
    /// Whether one of them can be at another address later.
    has_names: bool,
    /// When to look up next.
    next_at: Instant,
    /// The look-up under way.
    asked: Option<Receiver<Found>>,
    /// Where the hub was found last.
    addresses: Vec<Address>,
    /// Names that have no address, as was said last.
    missing: Vec<String>,
    /// Readable at the first end when a look-up has ended.
    bell: (UnixStream, UnixStream),
}

impl HubNames {
    /// Looks the hub up for a device that starts, and waits for that no longer than a moment.
    ///
    /// # Errors
    /// The system has no pair of sockets.
    pub(super) fn start(hub: NamedHub, output: &Output) -> anyhow::Result<Self> {
        let bell = UnixStream::pair().context("can't make a pair of sockets")?;
        bell.0.set_nonblocking(true)?;
        bell.1.set_nonblocking(true)?;
        let has_names = hub.texts.iter().any(|text| is_name(text));
        let (next_at, asked) = (Instant::BOOT, None);
        let (addresses, missing) = (Vec::new(), Vec::new());
        let mut names = Self { hub, has_names, next_at, asked, addresses, missing, bell };
        if !has_names {
            names.addresses = names.hub.look_up().addresses;
            return Ok(names);
        }
        names.ask(Instant::BOOT);
        let first = names.asked.as_ref().and_then(|asked| asked.recv_timeout(AT_START).ok());
        if let Some(found) = first {
            names.asked = None;
            names.take(Instant::BOOT, found, output);
        }
        Ok(names)
    }

    /// The hub's first address with its key, and further ones; none while it isn't found.
    pub(super) fn found(&self) -> (Option<(Address, Option<PublicKey>)>, Vec<Address>) {
        let mut addresses = self.addresses.iter().cloned();
        (addresses.next().map(|first| (first, self.hub.key)), addresses.collect())
    }

    /// The WebSocket to the hub, if one is named.
    pub(super) fn url(&self) -> Option<&TunnelUrl> {
        self.hub.url.as_ref()
    }

    /// The hub's addresses, as its link takes them.
    pub(super) fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().filter_map(|address| match address {
            Address::Udp(socket) => Some(*socket),
            _ => None,
        })
    }

    /// Looks up when it is time to, which is sooner while the device isn't listed; returns what the device is to be told.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        is_listed: bool,
        output: &Output,
    ) -> Option<Input<'static>> {
        if !self.has_names {
            return None;
        }
        if !is_listed {
            self.next_at = self.next_at.min(now + AGAIN_SILENT);
        }
        while self.bell.0.read(&mut [0; 16]).is_ok_and(|length| length > 0) {}
        match self.asked.as_ref().map(Receiver::try_recv) {
            None if now >= self.next_at => self.ask(now),
            None | Some(Err(TryRecvError::Empty)) => {}
            Some(Err(TryRecvError::Disconnected)) => self.asked = None,
            Some(Ok(found)) => {
                self.asked = None;
                if self.take(now, found, output) {
                    return self.told();
                }
            }
        }
        None
    }

    /// What a device is to be told that knows nothing but the command line.
    pub(super) fn told(&self) -> Option<Input<'static>> {
        let (addresses, key) = (self.addresses.clone(), self.hub.key);
        (!addresses.is_empty()).then_some(Input::HubFound { addresses, key })
    }

    /// Looks up on a thread of its own.
    fn ask(&mut self, now: Instant) {
        let (sender, receiver) = channel();
        let (hub, bell) = (self.hub.clone(), self.bell.1.try_clone());
        let look_up = move || {
            // Nobody waits for it any more when the device ends.
            let _ = sender.send(hub.look_up());
            if let Ok(mut bell) = bell {
                let _ = bell.write(&[0]);
            }
        };
        let thread = std::thread::Builder::new().name("hub-names".into()).stack_size(STACK_BYTES);
        if thread.spawn(look_up).is_ok() {
            self.asked = Some(receiver);
        }
        self.next_at = now + AGAIN;
    }

    /// Takes what was found; whether that is somewhere else. A name that has no address now keeps those that it had.
    fn take(&mut self, now: Instant, found: Found, output: &Output) -> bool {
        self.tell_missing(&found, output);
        let Found { mut addresses, missing } = found;
        if !missing.is_empty() {
            self.next_at = now + AGAIN_SILENT;
            let kept: Vec<_> =
                self.addresses.iter().filter(|kept| !addresses.contains(kept)).cloned().collect();
            addresses.extend(kept);
            if addresses.len() > 1 {
                addresses.retain(|address| *address != Address::from(nowhere()));
            }
            addresses.truncate(ADDRESSES_MAX);
        }
        let is_new = !addresses.is_empty() && addresses != self.addresses;
        if is_new {
            self.addresses = addresses;
        }
        is_new
    }

    /// Says which names have no address, once until that changes.
    fn tell_missing(&mut self, found: &Found, output: &Output) {
        if found.missing == self.missing {
            return;
        }
        for reason in &found.missing {
            let object = json!({ "event": "hub-not-found", "reason": reason });
            output
                .line(&format!("{reason}; the device runs, and looks for its hub again"), &object);
        }
        self.missing.clone_from(&found.missing);
    }
}

impl AsFd for HubNames {
    /// Readable when a look-up has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address::from(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    fn hub(texts: &[&str]) -> anyhow::Result<NamedHub> {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        NamedHub::of(&texts, SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    fn names(text: &str) -> HubNames {
        HubNames::start(hub(&[text]).unwrap(), &Output::new(false)).unwrap()
    }

    fn found(ports: &[u16], missing: &[&str]) -> Found {
        let missing = missing.iter().map(|text| (*text).to_owned()).collect();
        Found { addresses: ports.iter().map(|port| at(*port)).collect(), missing }
    }

    #[test]
    fn hub_that_moved_is_told_and_one_that_stayed_or_cannot_be_found_is_not() {
        let (mut names, output) = (names("localhost:7"), Output::new(false));
        assert_eq!(names.found().0, Some((at(7), None)));
        assert!(!names.take(Instant::BOOT, found(&[7], &[]), &output));
        assert!(!names.take(Instant::BOOT, found(&[], &["no answer"]), &output));
        assert!(names.take(Instant::BOOT, found(&[8], &[]), &output));
        assert_eq!(names.addresses, [at(8)]);
        // One name of two has an address, and the other one keeps what it had.
        assert!(names.take(Instant::BOOT, found(&[9], &["no answer"]), &output));
        assert_eq!(names.addresses, [at(9), at(8)]);
    }

    #[test]
    fn hub_whose_name_a_proxy_alone_knows_is_nowhere_until_it_is_found() {
        let (mut names, output) = (names("wss://nohost.invalid"), Output::new(false));
        let only = |names: &HubNames| names.sockets().collect::<Vec<_>>();
        names.take(Instant::BOOT, names.hub.look_up(), &output);
        assert_eq!(only(&names), [nowhere()]);
        assert!(names.take(Instant::BOOT, found(&[7], &[]), &output));
        // One that isn't found any more keeps what it had.
        names.take(Instant::BOOT, names.hub.look_up(), &output);
        assert_eq!(names.addresses, [at(7)]);
    }

    #[test]
    fn websocket_is_named_once_and_says_where_udp_is_if_nothing_else_does() {
        let named = hub(&["wss://127.0.0.1"]).unwrap();
        assert_eq!(named.texts, ["127.0.0.1:7369"]);
        let named = hub(&["hub.example:7", "wss://pages.example:8443"]).unwrap();
        assert_eq!(named.texts, ["hub.example:7"]);
        assert_eq!(named.url.unwrap().to_string(), "wss://pages.example:8443");
        assert!(hub(&["wss://a.example", "wss://b.example"]).is_err() && hub(&["wss://"]).is_err());
    }

    #[test]
    fn name_is_looked_up_again_soon_while_the_device_is_not_listed_and_seldom_afterwards() {
        let (mut names, output) = (names("localhost:7"), Output::new(false));
        let later = Instant::BOOT + AGAIN_SILENT;
        names.turn(later, true, &output);
        assert!(names.asked.is_none(), "it was looked up at the start");
        names.turn(later, false, &output);
        names.turn(later + AGAIN_SILENT, false, &output);
        assert!(names.asked.is_some());
    }

    #[test]
    fn address_that_no_waiting_mends_is_refused_at_once() {
        for text in ["a b", "127.0.0.1:http", "::1", "127.0.0.1#key"] {
            assert!(hub(&[text]).is_err(), "{text}");
        }
        assert!(hub(&["nowhere.invalid"]).is_ok() && hub(&["127.0.0.1", "localhost"]).is_ok());
        assert!(
            names("127.0.0.1:7").turn(Instant::BOOT + AGAIN, false, &Output::new(false)).is_none()
        );
    }
}
