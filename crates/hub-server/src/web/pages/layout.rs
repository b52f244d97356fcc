//! The frame of each page, and the answers that lead elsewhere.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

use crate::api::resource::RESOURCES;
use crate::web::answers::conditional;

pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// The answer where there is nothing.
pub(crate) fn missing() -> Response {
    let body = html! { p { "There is nothing here. " a href="/" { "To the fleet" } } };
    let page = layout("Not found", None, &body).into_string();
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, HTML)], page).into_response()
}

/// Sends a browser elsewhere.
pub(crate) fn redirect(to: &'static str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

/// Sends a browser without a pass to where it gets one.
pub(crate) fn or_sign_in(answer: Response) -> Response {
    match answer.status() {
        StatusCode::UNAUTHORIZED => redirect("/sign-in"),
        _ => answer,
    }
}

/// A page for somebody who is signed in.
pub(crate) fn page(headers: &HeaderMap, title: &str, place: &str, body: &Markup) -> Response {
    conditional(headers, HTML, layout(title, Some(place), body).into_string())
}

/// A page with its head and the way to the others; without a `place`, it is one for somebody who isn't signed in.
pub(crate) fn layout(title: &str, place: Option<&str>, body: &Markup) -> Markup {
    // A list that belongs to another one's page has no place of its own.
    let listed = RESOURCES.iter().filter(|resource| !resource.name.contains('-'));
    let places = listed.map(|resource| (resource.name, resource.title));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – Tenure" }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="/icon.svg" type="image/svg+xml";
                @if place.is_some() { script src="/live.js" defer {} }
            }
            body {
                a.skip href="#main" { "To the content" }
                header {
                    strong { "Tenure" }
                    @if let Some(place) = place {
                        nav aria-label="Pages" {
                            @for (name, title) in places.chain([("bills", "Bills")]) {
                                a href={ "/" (name) } aria-current=[(name == place).then_some("page")] { (title) }
                            }
                        }
                        form method="post" action="/sign-out" { button { "Sign out" } }
                    }
                }
                main id="main" { h1 { (title) } (body) }
            }
        }
    }
}
