//! Layers around the hub's own answers: the length of a request's body, and the compression of an answer.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;

use crate::web::answers::problem;
use crate::web::state::HubState;

/// Refuses bodies of more than `bytes`: at once if their length is said, and otherwise where they are read.
pub(super) fn bounded(router: Router<HubState>, bytes: usize) -> Router<HubState> {
    router
        // The bound of the framework's own is another.
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(bytes))
        .layer(map_response(move |answer: Response| told_of_length(answer, bytes)))
}

/// The API's own error in the place of the layer's; the registry has errors of its own form.
async fn told_of_length(answer: Response, bytes: usize) -> Response {
    let is_json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/"));
    if answer.status() != StatusCode::PAYLOAD_TOO_LARGE || is_json {
        return answer;
    }
    let text = format!("the body is longer than the {bytes} bytes that are taken here");
    problem(StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// Compresses texts for clients that take it; not pictures, nor streams of events, nor what is short.
///
/// An answer that holds a secret beside a text of somebody else's would show the secret by its length (BREACH). None
/// does: what opens the pages is in headers, and what proves that a change comes from them is said by the browser. The code
/// of an invitation is another one in each answer, so that two of them tell nothing together.
pub(super) fn compressed(router: Router<HubState>) -> Router<HubState> {
    router.layer(CompressionLayer::new().gzip(true)).layer(map_response(weakened))
}

/// Makes the tag of a compressed answer a weak one: its bytes are others (RFC 9110 8.8.3.3).
async fn weakened(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    if !headers.contains_key(header::CONTENT_ENCODING) {
        return answer;
    }
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let weak = tag.filter(|tag| !tag.starts_with("W/")).map(|tag| format!("W/{tag}"));
    if let Some(weak) = weak.and_then(|weak| HeaderValue::from_str(&weak).ok()) {
        headers.insert(header::ETAG, weak);
    }
    answer
}
