//! Where no route leads.

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode, header};

use crate::web::answers::problem;
use crate::web::pages::layout;

/// The answer where no route leads, or none for that method.
pub(super) async fn answer(request: Request) -> Response {
    nothing_here(request.method(), request.uri().path())
}

/// The answer where there is nothing: a page, or the API's error.
pub(super) fn nothing_here(method: &Method, path: &str) -> Response {
    let name = path.strip_prefix("/v1/").filter(|name| !name.contains('/'));
    match (method, name) {
        (&Method::GET | &Method::HEAD, Some(name)) => {
            problem(StatusCode::NOT_FOUND, &format!("there is no list `{name}`"))
        }
        (&Method::GET | &Method::HEAD | &Method::POST, _) => layout::missing(),
        _ => {
            let allowed = [(header::ALLOW, "GET, HEAD, POST")];
            (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response()
        }
    }
}
