//! The files that pages load.

use axum::Router;
use axum::routing::get;
use http::HeaderMap;

use crate::web::fixed::Fixed;
use crate::web::state::HubState;

/// Each with its address, its type, and its text.
const FILES: [(&str, &str, &str); 4] = [
    ("/style.css", "text/css", include_str!("../../assets/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
    ("/live.js", "text/javascript", include_str!("../../assets/live.js")),
    ("/log.js", "text/javascript", include_str!("../../assets/log.js")),
];

pub(super) fn routes() -> Router<HubState> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        let text = Fixed::new(kind, text);
        router.route(path, get(async move |headers: HeaderMap| text.answer(&headers)))
    })
}
