//! The link of a device or of a command: UDP; and to its hub a WebSocket, while the network between blocks UDP.
//!
//! Nobody above notices: what comes by the WebSocket comes from the hub's address, to which a datagram was sent last. Sessions are
//! between keys, so they go on whichever way they take.
//!
//! Invariants:
//! - What is for others than the hub goes by UDP alone.
//! - Before a WebSocket is opened the hub is asked by UDP, and while it is used now and then: the link goes back once the hub has
//!   answered that.
//! - What the hub is to relay goes by the way by which the hub speaks: it relays for nobody who is elsewhere than it knows.

mod choice;
mod command;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use tenure_board_linux::{LinuxEntropy, UdpLink, wait_any};
use tenure_hal::{Entropy as _, Link as _, LinkError};
use tenure_reach::{Told, Tunnel, TunnelUrl, TunnelWay};
use tenure_wire::carried;
use tenure_wire::datagram::{Challenge, Datagram, Echo, Probe, Relayed};

use choice::{Choice, Due};
pub use choice::{OF_COMMANDS, OF_DEVICES};

/// The address of a hub of which no other is known, as where a proxy alone finds names. Nothing is sent there by UDP.
pub fn nowhere() -> SocketAddr {
    carried::address_of(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 1)
}

/// News of the way to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// UDP gets no answer, and the WebSocket to there is used.
    ByWebSocket(String),
    /// The hub answers by UDP, which is used again.
    ByUdp,
    /// UDP gets no answer, and the WebSocket can't be had, for this reason. It is tried again.
    Neither(String),
}

/// UDP, and a WebSocket to the hub if one is known.
pub struct HubLink {
    udp: UdpLink,
    detour: Option<Detour>,
}

/// The way to the hub beside UDP.
struct Detour {
    way: TunnelWay,
    /// The hub's addresses.
    hub: Vec<SocketAddr>,
    /// The one that was sent to last.
    last_to: Option<SocketAddr>,
    choice: Choice,
    tunnel: Option<Tunnel>,
    /// Whether that is open.
    is_open: bool,
    /// Whether what the hub said last came by the WebSocket.
    hears_by_websocket: bool,
    /// The nonce of the questions by UDP.
    nonce: Option<Echo>,
    /// What wasn't taken yet. A command takes none, and does not live long.
    news: VecDeque<News>,
    /// Why the WebSocket couldn't be had, as was said last.
    failure: Option<String>,
}

impl HubLink {
    /// UDP alone.
    pub fn over(udp: UdpLink) -> Self {
        Self { udp, detour: None }
    }

    /// Goes to the hub by `way` if it is silent by UDP for `patience`.
    pub fn go_round_by(&mut self, way: TunnelWay, patience: Duration) {
        self.detour = Some(Detour {
            way,
            hub: Vec::new(),
            last_to: None,
            choice: Choice::new(Instant::now(), patience),
            tunnel: None,
            is_open: false,
            hears_by_websocket: false,
            nonce: None,
            news: VecDeque::new(),
            failure: None,
        });
    }

    /// The WebSocket's address, if one is known.
    pub fn detour(&self) -> Option<&TunnelUrl> {
        self.detour.as_ref().map(|detour| &detour.way.to)
    }

    /// Takes these addresses for the hub's from now on.
    pub fn hub_is_at(&mut self, addresses: impl IntoIterator<Item = SocketAddr>) {
        if let Some(detour) = &mut self.detour {
            detour.hub = addresses.into_iter().collect();
            let is_nowhere = detour.hub.iter().all(|address| *address == nowhere());
            detour.choice.is_blocked(is_nowhere && !detour.hub.is_empty());
        }
    }

    /// Whether what is for the hub goes by WebSocket now.
    pub fn is_by_websocket(&self) -> bool {
        self.detour.as_ref().is_some_and(|detour| detour.choice.is_by_websocket())
    }

    /// Why the WebSocket couldn't be had when it was tried last.
    pub fn failure(&self) -> Option<&str> {
        self.detour.as_ref()?.failure.as_deref()
    }

    /// The next news.
    pub fn news(&mut self) -> Option<News> {
        self.detour.as_mut()?.news.pop_front()
    }

    /// Where UDP listens.
    pub fn address(&self) -> SocketAddr {
        self.udp.address()
    }

    /// What to wait for.
    pub fn sockets(&self) -> Vec<&dyn AsFd> {
        let tunnel = self.detour.as_ref().and_then(|detour| detour.tunnel.as_ref());
        let mut sockets: Vec<&dyn AsFd> = vec![&self.udp];
        sockets.extend(tunnel.map(|tunnel| tunnel as &dyn AsFd));
        sockets
    }

    /// How long to wait for that at most, until there is something to decide.
    pub fn due_in(&self) -> Option<Duration> {
        let at = self.detour.as_ref()?.choice.due_at()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Waits until a datagram can be received, or for `timeout`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, timeout: Duration) -> Result<(), LinkError> {
        let timeout = self.due_in().map_or(timeout, |due_in| due_in.min(timeout));
        wait_any(&self.sockets(), timeout).map(drop)
    }

    /// Sends a datagram. One that isn't sent is one that is lost.
    ///
    /// # Errors
    /// As [`LinkError`] says.
    pub fn send(&mut self, to: &SocketAddr, datagram: &[u8]) -> Result<(), LinkError> {
        let detour = self.detour.as_mut().filter(|detour| detour.hub.contains(to));
        let Some(detour) = detour else { return self.udp.send(to, datagram) };
        detour.last_to = Some(*to);
        if let Some(tunnel) = &detour.tunnel
            && (detour.choice.is_by_websocket() || detour.is_still_relayed(datagram))
        {
            return if tunnel.send(datagram) { Ok(()) } else { Err(LinkError::Busy) };
        }
        detour.choice.sent(Instant::now());
        if *to == nowhere() { Err(LinkError::Unreachable) } else { self.udp.send(to, datagram) }
    }

    /// Receives a datagram, if one is there.
    ///
    /// # Errors
    /// The link is broken.
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, SocketAddr)>, LinkError> {
        let Self { udp, detour } = self;
        let Some(detour) = detour else { return udp.receive(into) };
        detour.act(udp);
        // Whoever floods this computer by UDP takes nothing of what the hub says.
        if detour.choice.is_by_websocket()
            && let Some(received) = detour.receive(into)
        {
            return Ok(Some(received));
        }
        while let Some((length, from)) = udp.receive(into)? {
            let is_own = detour.hub.contains(&from)
                && detour.heard_by_udp(into.get(..length).unwrap_or_default());
            if !is_own {
                return Ok(Some((length, from)));
            }
        }
        Ok(detour.receive(into))
    }
}

impl Detour {
    /// Whether the hub, which answers by UDP again, relays this by the WebSocket alone: it knows no other way yet.
    fn is_still_relayed(&self, datagram: &[u8]) -> bool {
        self.hears_by_websocket && Relayed::parse(datagram).is_some()
    }

    /// Does what is due.
    fn act(&mut self, udp: &mut UdpLink) {
        match self.choice.due(Instant::now()) {
            Due::Nothing => {}
            Due::Open if self.is_open => self.opened(),
            // It is under way since the last time.
            Due::Open if self.tunnel.is_some() => {}
            Due::Open => match Tunnel::open(self.way.clone()) {
                Ok(tunnel) => self.tunnel = Some(tunnel),
                Err(error) => self.failed(format!("the system has no thread: {error}")),
            },
            Due::Ask => self.ask(udp),
            Due::Close => self.close(),
        }
    }

    /// Asks the hub by UDP whether it is there.
    fn ask(&mut self, udp: &mut UdpLink) {
        let mut fresh = [0; 16];
        if LinuxEntropy.fill(&mut fresh).is_err() {
            return;
        }
        // An answer to a question before may be on its way.
        let nonce = *self.nonce.get_or_insert(Echo(fresh));
        let question = Probe { nonce }.to_bytes();
        for to in self.hub.iter().filter(|to| **to != nowhere()) {
            // One that isn't sent is asked again.
            let _ = udp.send(to, &question);
        }
    }

    /// Takes note that a datagram came from the hub by UDP; whether it answers this link's own question.
    fn heard_by_udp(&mut self, datagram: &[u8]) -> bool {
        let echo = match Datagram::parse(datagram) {
            Ok(Datagram::Challenge(Challenge { echo, .. })) => Some(echo),
            _ => None,
        };
        let is_own = echo.is_some() && echo == self.nonce;
        if is_own {
            self.nonce = None;
        } else if !self.choice.is_by_websocket() {
            self.hears_by_websocket = false;
        }
        let is_back = self.choice.heard_by_udp(Instant::now(), is_own);
        // Also after it was said that there is no way at all.
        if self.failure.take().is_some() || is_back {
            self.news.push_back(News::ByUdp);
        }
        is_own
    }

    /// The next datagram that came by the WebSocket.
    fn receive(&mut self, into: &mut [u8]) -> Option<(usize, SocketAddr)> {
        loop {
            match self.tunnel.as_mut()?.told()? {
                Told::Open => self.opened(),
                Told::Datagram(datagram) => {
                    self.hears_by_websocket = true;
                    let place = into.get_mut(..datagram.len()).zip(self.last_to);
                    if let Some((into, from)) = place {
                        into.copy_from_slice(&datagram);
                        return Some((datagram.len(), from));
                    }
                }
                Told::Over(why) => {
                    self.close();
                    self.failed(why.to_string());
                }
            }
        }
    }

    fn close(&mut self) {
        (self.tunnel, self.is_open, self.hears_by_websocket) = (None, false, false);
    }

    /// Takes note that the WebSocket is open.
    fn opened(&mut self) {
        (self.is_open, self.failure) = (true, None);
        if self.choice.opened(Instant::now()) {
            self.news.push_back(News::ByWebSocket(self.way.to_string()));
        }
    }

    /// Takes note that there is no WebSocket, and why.
    fn failed(&mut self, why: String) {
        if !self.choice.over(Instant::now()) {
            return;
        }
        if self.failure.as_ref() != Some(&why) {
            self.news.push_back(News::Neither(why.clone()));
        }
        self.failure = Some(why);
    }
}

#[cfg(test)]
mod tests;
