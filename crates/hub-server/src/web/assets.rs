//! The files that pages load.

use axum_core::response::{IntoResponse as _, Response};
use http::header;

/// `GET /style.css`.
pub(crate) fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css")], include_str!("../../assets/style.css")).into_response()
}

/// `GET /icon.svg`.
pub(crate) fn icon() -> Response {
    let icon = include_str!("../../assets/icon.svg");
    ([(header::CONTENT_TYPE, "image/svg+xml")], icon).into_response()
}

/// `GET /live.js`.
pub(crate) fn live_script() -> Response {
    let script = include_str!("../../assets/live.js");
    ([(header::CONTENT_TYPE, "text/javascript")], script).into_response()
}

/// `GET /log.js`.
pub(crate) fn log_script() -> Response {
    let script = include_str!("../../assets/log.js");
    ([(header::CONTENT_TYPE, "text/javascript")], script).into_response()
}
