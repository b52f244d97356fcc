//! The link of a command: how it goes to a hub whose UDP is blocked, and how that is said.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::anyhow;
use tenure_reach::{Servers, TunnelUrl, TunnelWay};
use tenure_tls_client::{Date, Dates};
use tenure_wire::Address;
use tenure_wire::control::DateTeller;

use super::{HubLink, OF_COMMANDS};
use crate::tls::files::Authorities;

/// How long a hub may take to say who it is, and how long if a WebSocket is to be opened first, through a proxy perhaps.
const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(3);
const IDENTIFY_BY_WEBSOCKET_TIMEOUT: Duration = Duration::from_secs(12);

impl HubLink {
    /// Takes these addresses for the hub's; if it is silent there, it is reached by the WebSocket at `url`, if one is known.
    pub fn lead_to(&mut self, addresses: &[SocketAddr], url: Option<TunnelUrl>) {
        if let Some(url) = url.filter(|url| self.detour() != Some(url)) {
            let servers = Servers::new(|| match Authorities::load(&[]) {
                Ok(authorities) => Ok(authorities.certificates()),
                Err(error) => Err(format!("{error:#}")),
            });
            let dates = Dates::new(|| {
                let since_1970 = UNIX_EPOCH.elapsed().ok()?;
                Some(Date { since_1970, teller: DateTeller::Clock })
            });
            let way = TunnelWay::from_environment(url, Arc::new(servers), dates);
            self.go_round_by(way, OF_COMMANDS);
        }
        self.hub_is_at(addresses.iter().copied());
    }

    /// How long the hub may take to say who it is.
    pub fn patience_with_hub(&self) -> Duration {
        match self.detour() {
            Some(_) => IDENTIFY_BY_WEBSOCKET_TIMEOUT,
            None => IDENTIFY_TIMEOUT,
        }
    }

    /// An address for people, with the way there.
    pub fn shown(&self, address: &Address) -> String {
        let is_by_hub = matches!(address, Address::Relayed(_));
        match is_by_hub && self.is_by_websocket() {
            true => format!("{address}, by WebSocket, as UDP is blocked"),
            false => address.to_string(),
        }
    }

    /// Why the hub can't be reached by WebSocket either, if that was tried.
    pub fn no_websocket(&self) -> Option<anyhow::Error> {
        let (url, why) = (self.detour()?, self.failure()?);
        Some(anyhow!("the hub gives no answer by UDP, and none by {url}: {why}"))
    }
}
