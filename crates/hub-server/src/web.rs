//! The hub over HTTP: pages for people, an API for programs.
//!
//! Invariants:
//! - Nothing of a device or an owner is shown without a pass, and a pass shows its key's rows alone.
//! - Pages load nothing from elsewhere and run no script but our own file (Content-Security-Policy).
//! - A change that a browser asks for is made only if the request comes from our own pages.
//! - A machine's page shares the hub's host, and nothing else with it (`machines`).
//! - Connections, the length of headers and bodies, and the time of a request are bounded.

mod alarms;
mod answers;
mod asked;
mod assets;
mod bodies;
mod datagrams;
mod extract;
mod figures;
mod files;
mod fixed;
mod gate;
mod health;
mod layers;
mod lists;
mod machines;
mod metrics;
mod nowhere;
mod observe;
mod openapi;
mod packages;
mod pages;
mod people;
mod receipts;
mod rollouts;
mod router;
mod state;
mod whence;

use std::net::SocketAddr;

use axum::extract::OriginalUri;
use http::request;
use tenure_http_listener::{Bounds, Entrance};
use tenure_package::Tariff;
use tenure_pages::Visits;
use tower::ServiceExt as _;

use crate::running::Running;
use crate::store::Location;
use machines::MachinePages;
pub use machines::Visitors;
use router::router;
use state::HubState;

/// The pages of a hub.
#[derive(Debug)]
pub struct Pages {
    /// The hub's database.
    pub database: Location,
    /// The prices of bills.
    pub tariff: Option<Tariff>,
    /// Whether browsers reach the pages by TLS, the hub's own or a proxy's, so that cookies never travel without it.
    pub is_by_tls: bool,
    /// Whether all requests come by a proxy, which then says how many connections a client has.
    pub is_by_proxy: bool,
    /// The hub that runs.
    pub running: Running,
}

/// Serves the pages of a hub, and for `visitors` those of machines, by `entrance`, on a thread of its own, until the process
/// ends. Returns the address.
///
/// # Errors
/// The system has no thread.
pub fn serve<V: Visits>(
    entrance: impl Into<Entrance>,
    pages: Pages,
    visitors: Visitors<V>,
) -> std::io::Result<SocketAddr> {
    let bounds = Bounds { by_host: !pages.is_by_proxy, ..Bounds::USUAL };
    let router = router(HubState::new(pages), MachinePages::new(visitors));
    tenure_http_listener::serve(entrance, "pages", bounds, move |request| {
        let answer = router.clone().oneshot(request);
        async move { answer.await.unwrap_or_else(|never| match never {}) }
    })
}

/// The path that was asked for; a router below another one sees the rest of it alone.
pub(crate) fn path_of(parts: &request::Parts) -> &str {
    match parts.extensions.get::<OriginalUri>() {
        Some(OriginalUri(uri)) => uri.path(),
        None => parts.uri.path(),
    }
}

/// The hub's wall clock, in seconds since 1970 UTC.
pub(crate) fn now(hub: &HubState) -> u64 {
    hub.running().unix_s()
}
