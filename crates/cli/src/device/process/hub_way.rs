//! The way of a device to its hub, as it is told: UDP, or a WebSocket where that is blocked.

use std::sync::Arc;

use serde_json::json;
use tenure_reach::TunnelWay;
use tenure_tls_client::Dates;

use super::hub_names::HubNames;
use super::reaching::judged;
use super::settings::Settings;
use crate::reach::hub_link::News;
use crate::terminal::output::Output;

/// The WebSocket to the hub, if one is named. Its certificate is judged as those of servers are that machines reach.
///
/// # Errors
/// The file of single servers can't be used.
pub(super) fn detour(
    names: &HubNames,
    settings: &Settings,
    dates: Dates,
) -> anyhow::Result<Option<TunnelWay>> {
    let Some(url) = names.url() else { return Ok(None) };
    let Settings { reach_authorities, reach_servers, .. } = settings;
    let servers = judged(reach_authorities.clone(), reach_servers.as_deref())?;
    Ok(Some(TunnelWay::from_environment(url.clone(), Arc::new(servers), dates)))
}

/// Says by which way the device speaks to its hub now, or why by none.
pub(super) fn tell(news: &News, output: &Output) {
    match news {
        News::ByWebSocket(to) => output.line(
            &format!("the hub is silent by UDP, which is blocked on the way: it is spoken to by WebSocket, {to}"),
            &json!({ "event": "hub-way", "way": "websocket", "to": to }),
        ),
        News::ByUdp => output.line(
            "the hub answers by UDP again, and is spoken to by that",
            &json!({ "event": "hub-way", "way": "udp" }),
        ),
        News::Neither(reason) => output.line(
            &format!("the hub is silent by UDP, and by WebSocket: {reason}; both are tried again"),
            &json!({ "event": "hub-way", "way": null, "reason": reason }),
        ),
    }
}
