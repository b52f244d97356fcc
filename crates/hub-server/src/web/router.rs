//! Routes: each page and each part of the API with its handler, and the layers around them.
//!
//! The layers of the hub's own answers, the outermost first: what is observed of a request (`observe`), which requests go
//! no further (`gate`), its time, the length of its body, the compression of its answer. Pages of machines and connections for
//! datagrams have the first alone, and bounds of their own (`machines`, `datagrams`).

use std::time::Duration;

use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};
use http::StatusCode;
use tenure_pages::Visits;
use tower_http::timeout::TimeoutLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::BODY_BYTES_MAX;
use crate::registry;
use crate::web::machines::{self, MachinePages};
use crate::web::openapi::Document;
use crate::web::pages::{self, bills, logs};
use crate::web::state::HubState;
use crate::web::{
    alarms, assets, datagrams, gate, health, layers, lists, metrics, nowhere, observe, openapi,
    packages, people, receipts, rollouts,
};

/// How long a request may take, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything that is answered.
pub(super) fn router<V: Visits>(hub: HubState, machines: MachinePages<V>) -> Router {
    let (api, mut document) = api().split_for_parts();
    let (packages, of_packages) = packages::routes().split_for_parts();
    document.merge(of_packages);
    let texts = pages::routes().merge(assets::routes()).merge(health::routes()).merge(api);
    let texts =
        texts.route("/metrics", get(metrics::show)).layer(Extension(Document::of(&document)));
    let own = layers::bounded(layers::compressed(texts), BODY_BYTES_MAX)
        // A digest is over the bytes of a package as they are.
        .merge(layers::bounded(packages, registry::BODY_BYTES_MAX))
        .fallback(nowhere::answer)
        .method_not_allowed_fallback(nowhere::answer)
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, REQUEST_TIMEOUT))
        .layer(from_fn_with_state(hub.clone(), gate::guard));
    let others = machines::routes(machines).merge(datagrams::routes());
    observe::observed(own.merge(others), &hub).with_state(hub)
}

/// The API, with the document that describes it.
fn api() -> OpenApiRouter<HubState> {
    OpenApiRouter::with_openapi(openapi::skeleton())
        .merge(lists::routes())
        .merge(rollouts::routes())
        .merge(people::routes())
        .routes(routes!(alarms::acknowledge))
        .routes(routes!(bills::json))
        .routes(routes!(logs::stream))
        .routes(routes!(receipts::take))
        .routes(routes!(openapi::describe))
}

#[cfg(test)]
mod tests;
