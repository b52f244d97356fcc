//! The way of a command to its hub where UDP is blocked: a WebSocket to the hub's pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::anyhow;
use tenure_reach::{Servers, TunnelUrl, TunnelWay};
use tenure_tls_client::{Date, Dates};
use tenure_wire::Address;
use tenure_wire::control::DateTeller;

use super::{Client, IDENTIFY_TIMEOUT};
use crate::reach::hub_link::OF_COMMANDS;
use crate::tls::files::Authorities;

/// How long a hub may take to say who it is if a WebSocket is to be opened first, through a proxy perhaps.
const IDENTIFY_BY_WEBSOCKET_TIMEOUT: Duration = Duration::from_secs(12);

impl Client {
    /// Takes these addresses for the hub's; if it is silent there, it is reached by the WebSocket at `url`, if one is known.
    pub fn hub_is_at(&mut self, addresses: &[SocketAddr], url: Option<TunnelUrl>) {
        if let Some(url) = url.filter(|url| self.link.detour() != Some(url)) {
            let servers = Servers::new(|| match Authorities::load(&[]) {
                Ok(authorities) => Ok(authorities.certificates()),
                Err(error) => Err(format!("{error:#}")),
            });
            let dates = Dates::new(|| {
                let since_1970 = UNIX_EPOCH.elapsed().ok()?;
                Some(Date { since_1970, teller: DateTeller::Clock })
            });
            let way = TunnelWay::from_environment(url, Arc::new(servers), dates);
            self.link.go_round_by(way, OF_COMMANDS);
        }
        self.link.hub_is_at(addresses.iter().copied());
    }

    /// Whether the hub is reached by WebSocket, as it is silent by UDP.
    pub fn is_by_websocket(&self) -> bool {
        self.link.is_by_websocket()
    }

    /// Why the hub couldn't be reached by WebSocket, if that was tried.
    pub fn failure_of_websocket(&self) -> Option<String> {
        self.link.failure().map(str::to_owned)
    }

    /// An address for people, with the way there.
    pub fn shown(&self, address: &Address) -> String {
        let is_by_hub = matches!(address, Address::Relayed(_));
        match is_by_hub && self.is_by_websocket() {
            true => format!("{address}, by WebSocket, as UDP is blocked"),
            false => address.to_string(),
        }
    }

    /// How long whoever is at a host may take to say who it is.
    pub(super) fn patience(&self) -> Duration {
        match self.link.detour() {
            Some(_) => IDENTIFY_BY_WEBSOCKET_TIMEOUT,
            None => IDENTIFY_TIMEOUT,
        }
    }

    /// Why the hub can't be reached by WebSocket either, if that was tried.
    pub(super) fn no_websocket(&self) -> Option<anyhow::Error> {
        let (url, why) = (self.link.detour()?, self.link.failure()?);
        Some(anyhow!("the hub gives no answer by UDP, and none by {url}: {why}"))
    }
}
