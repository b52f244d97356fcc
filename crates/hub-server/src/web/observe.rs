//! Observation of requests: an id that answer and log share, a line in the log, a span, and the time by route.
//!
//! Invariants:
//! - An id that a client brings counts behind a proxy alone, and only if it is a short word: others are the hub's own.
//! - The log has the route of a request and not its address, in which a ticket or a code may stand; so does its span.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::{HeaderMap, HeaderName, Method};
use opentelemetry::trace::{FutureExt as _, SpanKind};
use opentelemetry::{Context, KeyValue};
use tenure_http_listener::Host;
use tower::ServiceBuilder;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::TraceLayer;
use tracing::Span;
use tracing::field::Empty;

use crate::traces::{self, Traced};
use crate::web::state::HubState;

/// The header of the id.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that a proxy brings, in bytes.
const ID_BYTES_MAX: usize = 64;

/// Observes whatever `router` answers.
pub(super) fn observed(router: Router<HubState>, hub: &HubState) -> Router<HubState> {
    let is_by_proxy = hub.is_by_proxy();
    let trace = TraceLayer::new_for_http()
        .make_span_with(span)
        .on_request(())
        .on_response(answered)
        .on_failure(());
    let layers = ServiceBuilder::new()
        .map_request(move |request| with_id_of_proxy_alone(request, is_by_proxy))
        .layer(SetRequestIdLayer::new(REQUEST_ID, MakeRequestUuid))
        .layer(trace)
        .layer(from_fn_with_state(hub.clone(), traced))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(from_fn_with_state(hub.clone(), measure));
    router.layer(layers)
}

/// Takes away an id that doesn't count.
fn with_id_of_proxy_alone(mut request: Request, is_by_proxy: bool) -> Request {
    if !is_by_proxy || !is_short_word(request.headers()) {
        request.headers_mut().remove(REQUEST_ID);
    }
    request
}

fn is_short_word(headers: &HeaderMap) -> bool {
    let mut ids = headers.get_all(REQUEST_ID).iter();
    let (Some(id), None) = (ids.next(), ids.next()) else { return false };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

/// The span of a request. `who` is the key that asks, once its pass was found good.
fn span(request: &Request) -> Span {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let route = request.extensions().get::<MatchedPath>();
    let host = request.extensions().get::<Host>();
    tracing::info_span!(
        "request",
        id,
        method = %request.method(),
        route = route.map_or("none", MatchedPath::as_str),
        host = host.map(|Host(host)| tracing::field::display(host)),
        who = Empty,
    )
}

/// The line of a request that was answered.
fn answered(response: &Response, took: Duration, _: &Span) {
    let (status, ms) = (response.status().as_u16(), took.as_millis() as u64);
    match response.status().is_server_error() {
        true => tracing::warn!(status, ms, "answered"),
        false => tracing::info!(status, ms, "answered"),
    }
}

/// Has a request answered in a span of its own, below the one that a proxy names.
async fn traced(State(hub): State<HubState>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str).to_string();
    let method = known(request.method());
    let name = format!("{method} {route}");
    let attributes =
        [KeyValue::new("http.request.method", method), KeyValue::new("http.route", route)];
    let parent = match hub.is_by_proxy() {
        true => traces::asked(request.headers()),
        false => Context::new(),
    };
    let traced = Traced::begin(name, SpanKind::Server, attributes, &parent);
    let response = next.run(request).with_context(traced.context().clone()).await;
    traced.note("http.response.status_code", response.status().as_u16().into());
    traced.end(!response.status().is_server_error());
    response
}

/// A method that spans may name; those that nobody knows are one (OpenTelemetry's conventions for HTTP spans).
fn known(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| method == known).unwrap_or("_OTHER")
}

/// Measures a request until the head of its answer is there.
async fn measure(State(hub): State<HubState>, request: Request, next: Next) -> Response {
    let _under_way = hub.figures().begin();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let (method, began) = (request.method().clone(), Instant::now());
    let response = next.run(request).await;
    let route = route.as_ref().map(MatchedPath::as_str);
    hub.figures().request(route, &method, response.status(), began.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_counts_behind_a_proxy_if_it_is_one_short_word() {
        for (ids, is_by_proxy, counts) in [
            (&["a-1_B.2"][..], true, true),
            (&["a-1_B.2"], false, false),
            (&[], true, false),
            (&[""], true, false),
            (&["a b"], true, false),
            (&["a\u{1b}[1m"], true, false),
            (&["a", "b"], true, false),
            (&[&*"a".repeat(64)], true, true),
            (&[&*"a".repeat(65)], true, false),
        ] {
            let mut request = Request::default();
            for id in ids {
                let id = http::HeaderValue::from_bytes(id.as_bytes());
                request.headers_mut().extend(id.ok().map(|id| (REQUEST_ID, id)));
            }
            let request = with_id_of_proxy_alone(request, is_by_proxy);
            assert_eq!(request.headers().contains_key(REQUEST_ID), counts, "{ids:?}");
        }
    }
}
