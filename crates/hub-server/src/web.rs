//! The hub over HTTP: pages for people, an API for programs.
//!
//! Invariants:
//! - Nothing of a device or an owner is shown without a pass, and a pass shows its key's rows alone.
//! - Pages load nothing from elsewhere and run no script but our own file (Content-Security-Policy).
//! - A change that a browser asks for is made only if the request comes from our own pages.
//! - A machine's page shares the hub's host, and nothing else with it (`machines`).
//! - Connections, the length of headers and bodies, and the time of a request are bounded.

mod answers;
mod assets;
mod bodies;
mod gate;
mod lists;
mod machines;
mod metrics;
mod openapi;
mod pages;
mod receipts;
mod routes;
mod state;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use tenure_http_listener::Bounds;
use tenure_package::Tariff;
use tenure_pages::Visits;

use crate::running::Running;
use machines::MachinePages;
pub use machines::Visitors;
use routes::answer;
use state::State;

/// The pages of a hub.
#[derive(Debug)]
pub struct Pages {
    /// The hub's database.
    pub database: PathBuf,
    /// The prices of bills.
    pub tariff: Option<Tariff>,
    /// Whether browsers reach the pages by a proxy with TLS, so that cookies never travel without it.
    pub by_tls: bool,
    /// The hub that runs.
    pub running: Running,
}

/// Serves the pages of a hub, and for `visitors` those of machines, by `listener`, on a thread of its own, until the process
/// ends. Returns the address.
///
/// # Errors
/// The system has no thread.
pub fn serve<V: Visits>(
    listener: TcpListener,
    pages: Pages,
    visitors: Visitors<V>,
) -> std::io::Result<SocketAddr> {
    // Behind a proxy all come from one host, and the proxy says how many.
    let bounds = Bounds { by_host: !pages.by_tls, ..Bounds::USUAL };
    let (state, machines) = (State::new(pages), MachinePages::new(visitors));
    tenure_http_listener::serve(listener, "pages", bounds, move |request| {
        let (state, machines) = (state.clone(), machines.clone());
        async move {
            match machines::is_page(request.uri().path()) {
                true => machines.answer(state, request).await,
                false => answer(state, request).await,
            }
        }
    })
}

/// The wall clock, in seconds since 1970 UTC.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
