//! Datagrams to and from a hub by WebSocket, on a thread of their own: for where UDP is blocked.
//!
//! Invariants:
//! - Whoever sends never waits: what there is no room for is dropped, and that is told.
//! - What comes and isn't taken waits in a bounded queue, and then at the server.
//! - A proxy that the environment names is used or the reason told; the server isn't tried without it.

mod dialogue;
mod proxy;

use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tenure_tls_client::Dates;
use tenure_wire::url::{Scheme, Url, UrlError};

use crate::Servers;
use crate::websocket::DATAGRAMS_PATH;
pub use proxy::{Proxy, ProxyError};

/// The most datagrams that wait to be sent, and the most that wait to be taken.
const WAITING_MAX: usize = 128;
/// The stack of a tunnel's thread, in bytes.
const STACK_BYTES: usize = 512 * 1024;

/// The address of a hub's pages, as where WebSocket begins: `wss://hub.example`, or `ws://` without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelUrl(Url);

impl TunnelUrl {
    /// Whether a text is to be read as one.
    pub fn is_meant(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| scheme_of(scheme).is_some())
    }

    /// The URL of HTTP that is asked.
    pub fn url(&self) -> &Url {
        &self.0
    }
}

fn scheme_of(text: &str) -> Option<Scheme> {
    match () {
        () if text.eq_ignore_ascii_case("wss") => Some(Scheme::Https),
        () if text.eq_ignore_ascii_case("ws") => Some(Scheme::Http),
        () => None,
    }
}

impl FromStr for TunnelUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = scheme_of(scheme).ok_or(UrlError::Scheme)?;
        let base = format!("{}://{}", scheme.as_str(), rest.trim_end_matches('/'));
        if base.contains(['?', '#']) {
            return Err(UrlError::Path);
        }
        format!("{base}{DATAGRAMS_PATH}").parse().map(Self)
    }
}

impl fmt::Display for TunnelUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.0.origin();
        let scheme = match origin.scheme {
            Scheme::Https => "wss",
            Scheme::Http => "ws",
        };
        let path = self.0.path().strip_suffix(DATAGRAMS_PATH).unwrap_or_default();
        write!(f, "{scheme}://{}{path}", origin.authority())
    }
}

/// The way of a tunnel.
#[derive(Clone)]
pub struct TunnelWay {
    /// The hub's pages.
    pub to: TunnelUrl,
    /// The proxy before them, or why it is of no use.
    pub proxy: Result<Option<Proxy>, ProxyError>,
    /// Whom their certificate is judged by.
    pub servers: Arc<Servers>,
    /// The date by which that happens.
    pub dates: Dates,
}

impl TunnelWay {
    /// The way to `to` by the proxy that the environment names.
    pub fn from_environment(to: TunnelUrl, servers: Arc<Servers>, dates: Dates) -> Self {
        let proxy = Proxy::before(to.url().origin(), |name| std::env::var(name).ok());
        Self { to, proxy, servers, dates }
    }
}

impl fmt::Display for TunnelWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.proxy {
            Ok(Some(proxy)) => write!(f, "{} through the proxy {proxy}", self.to),
            _ => self.to.fmt(f),
        }
    }
}

/// News of a tunnel.
#[derive(Debug)]
pub enum Told {
    /// It is open.
    Open,
    /// A datagram came.
    Datagram(Vec<u8>),
    /// It is over, and never begins again.
    Over(TunnelError),
}

/// Why there is no tunnel.
#[derive(Debug)]
pub enum TunnelError {
    /// The proxy that is named is of no use.
    Proxy(ProxyError),
    /// A name has no address.
    NoAddress {
        /// The host.
        host: String,
        /// The resolver's words.
        why: String,
    },
    /// Nobody takes connections at the host.
    Unreachable {
        /// The host and port.
        host: String,
        /// Whether it is the proxy.
        is_proxy: bool,
        /// Why.
        why: String,
    },
    /// The proxy lets nobody through to there.
    ProxyRefuses {
        /// The proxy.
        proxy: String,
        /// The host and port that it was asked for.
        host: String,
        /// Its status.
        status: u16,
    },
    /// The server isn't believed, or TLS broke.
    Tls {
        /// The server.
        host: String,
        /// Why.
        why: String,
    },
    /// The server gives no WebSocket.
    Refused {
        /// The server.
        host: String,
        /// Its status.
        status: u16,
    },
    /// What answers doesn't speak the protocol.
    Unreadable {
        /// The host and port.
        host: String,
        /// What it does.
        why: String,
    },
    /// The connection broke off, or was silent for too long.
    BrokeOff {
        /// The server.
        host: String,
        /// The system's words.
        why: String,
    },
    /// The system has no randomness or no socket.
    System(String),
    /// Nobody needs it any more.
    Dropped,
}

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proxy(error) => error.fmt(f),
            Self::NoAddress { host, why } => write!(f, "no address is known for {host}: {why}"),
            Self::Unreachable { host, is_proxy, why } => {
                let whom = if *is_proxy { "the proxy " } else { "" };
                write!(f, "{whom}{host} can't be reached: {why}")
            }
            Self::ProxyRefuses { proxy, host, status: 407 } => write!(
                f,
                "the proxy {proxy} wants to know who asks for {host} (407): name it as http://USER:PASSWORD@{proxy}"
            ),
            Self::ProxyRefuses { proxy, host, status } => write!(
                f,
                "the proxy {proxy} refuses the way to {host} ({status}): whoever runs it must let CONNECT through to there"
            ),
            Self::Tls { host, why } => write!(f, "{host} isn't believed: {why}"),
            Self::Refused { host, status: 404 } => write!(
                f,
                "{host} has no WebSocket at {DATAGRAMS_PATH} (404): it is no hub, an earlier version, or its pages are elsewhere"
            ),
            Self::Refused { host, status: 503 } => {
                write!(f, "{host} takes no more connections for now (503)")
            }
            Self::Refused { host, status } => write!(
                f,
                "{host} gives no WebSocket ({status}): a proxy before the hub must let Upgrade through"
            ),
            Self::Unreadable { host, why } => write!(f, "{host} {why}"),
            Self::BrokeOff { host, why } => {
                write!(f, "the connection with {host} broke off: {why}")
            }
            Self::System(why) => f.write_str(why),
            Self::Dropped => f.write_str("it isn't needed any more"),
        }
    }
}

impl std::error::Error for TunnelError {}

/// A WebSocket with a hub's pages, which begins to be one when it is made, and ends when this is dropped.
pub struct Tunnel {
    outgoing: SyncSender<Vec<u8>>,
    /// Its other end is readable when something is to be sent, or this is dropped.
    wake: UnixStream,
    told: Receiver<Told>,
    /// Readable when there is news.
    bell: UnixStream,
}

/// The thread's ends of the queues.
pub(crate) struct Ends {
    pub(crate) outgoing: Receiver<Vec<u8>>,
    pub(crate) wake: UnixStream,
    told: SyncSender<Told>,
    bell: UnixStream,
}

impl Ends {
    /// Tells what is new, once there is room for it; whether anybody is there to take it.
    pub(crate) fn tell(&self, told: Told) -> bool {
        let is_taken = self.told.send(told).is_ok();
        // A full pipe wakes it anyhow.
        let _ = (&self.bell).write(&[0]);
        is_taken
    }
}

impl Tunnel {
    /// Begins to open one.
    ///
    /// # Errors
    /// The system has no thread, or no pair of sockets.
    pub fn open(way: TunnelWay) -> std::io::Result<Self> {
        let (outgoing, waiting) = sync_channel(WAITING_MAX);
        let (news, told) = sync_channel(WAITING_MAX);
        let (wake, woken) = UnixStream::pair()?;
        let (bell, rung) = UnixStream::pair()?;
        for socket in [&wake, &woken, &bell, &rung] {
            socket.set_nonblocking(true)?;
        }
        let ends = Ends { outgoing: waiting, wake: woken, told: news, bell };
        let run = move || {
            let over = dialogue::run(&way, &ends);
            // Nobody may be there any more.
            let _ = ends.tell(Told::Over(over));
        };
        let thread = std::thread::Builder::new().name("tunnel".into()).stack_size(STACK_BYTES);
        thread.spawn(run)?;
        Ok(Self { outgoing, wake, told, bell: rung })
    }

    /// Sends a datagram, or drops it if too many wait; whether there was room.
    pub fn send(&self, datagram: &[u8]) -> bool {
        let has_room = self.outgoing.try_send(datagram.to_vec()).is_ok();
        // A full pipe wakes it anyhow.
        let _ = (&self.wake).write(&[0]);
        has_room
    }

    /// What is new, if anything is.
    pub fn told(&mut self) -> Option<Told> {
        if let Ok(told) = self.told.try_recv() {
            return Some(told);
        }
        // The bell rings on while there is news.
        let mut rings = [0; 64];
        while self.bell.read(&mut rings).is_ok_and(|length| length == rings.len()) {}
        self.told.try_recv().ok()
    }
}

impl AsFd for Tunnel {
    /// Readable when there is news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests;
