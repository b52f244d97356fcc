//! The findings about the hub's names, and about the WebSocket to it.

use std::net::SocketAddr;

use serde_json::json;
use tenure_reach::TunnelUrl;

use super::Finding;
use crate::reach::hub_link::nowhere;
use crate::reach::network::{host_of_url, hub_place, is_name, split_key};
use crate::terminal::output::tell;

/// What the names of a hub lead to.
pub(super) struct Named {
    pub(super) findings: Vec<Finding>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) url: Option<TunnelUrl>,
}

/// The addresses of the hubs in `text`, which has commas between them, and what was found of each name.
pub(super) fn names(text: &str) -> Named {
    let (mut findings, mut url) = (Vec::new(), None);
    // What a WebSocket's host says of UDP counts where nothing else does.
    let (mut named_ones, mut of_urls) = (Vec::new(), Vec::new());
    for text in text.split(',').map(str::trim) {
        let found =
            split_key(text).and_then(|(place, _)| hub_place(place).map(|found| (place, found)));
        let (place, found) = match found {
            Ok(found) => found,
            Err(error) => {
                let todo = "look at its spelling, and whether this computer finds other names";
                let facts = json!({ "hub": text });
                findings.push(Finding::wrong("name", tell(&error), todo).with(facts));
                continue;
            }
        };
        let found_here: Vec<SocketAddr> =
            found.addresses.into_iter().filter(|address| *address != nowhere()).collect();
        let texts: Vec<String> = found_here.iter().map(SocketAddr::to_string).collect();
        let of_url = found.url.as_ref().map(host_of_url);
        let host = of_url.as_deref().unwrap_or(place);
        let said = match is_name(host) {
            true if texts.is_empty() => {
                format!("{host} isn't found here; a proxy that is named may find it")
            }
            true => format!("{host} is found at {}", texts.join(", ")),
            false => format!("{host} is an address, and needs no look-up"),
        };
        let facts = json!({ "hub": place, "addresses": texts });
        findings.push(Finding::new("name", said).with(facts));
        let of_its_kind = if found.url.is_some() { &mut of_urls } else { &mut named_ones };
        of_its_kind.extend(found_here);
        url = url.or(found.url);
    }
    let addresses = if named_ones.is_empty() { of_urls } else { named_ones };
    Named { findings, addresses, url }
}

/// Whether the hub's pages are needed, and can be had, where UDP is blocked.
pub(super) fn websocket(
    url: &TunnelUrl,
    (has_udp, is_used): (bool, bool),
    failure: Option<&str>,
) -> Finding {
    let finding = match (is_used, has_udp) {
        (true, _) => Finding::new(
            "websocket",
            format!("the hub is spoken to by WebSocket, {url}, as UDP is blocked"),
        ),
        (false, true) => Finding::new("websocket", format!("{url} isn't needed: UDP gets through")),
        (false, false) => Finding::wrong(
            "websocket",
            failure.unwrap_or("the hub gives no answer by it in time"),
            "put that right, or let UDP through",
        ),
    };
    finding.with(json!({ "url": url.to_string(), "used": is_used }))
}
