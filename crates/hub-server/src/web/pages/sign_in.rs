//! Signing in and out with a browser, and ending a pass.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode, header};
use maud::html;
use serde_json::Value;

use super::layout::{HTML, layout, missing, redirect};
use crate::api::sign_in::{self, Whence};
use crate::exchange::pairs;
use crate::store::sql::Connection;
use crate::web::asked::{act, response};
use crate::web::extract::{Parameters, Segments, value};
use crate::web::gate;
use crate::web::now;
use crate::web::state::HubState;

/// `GET /sign-in?code=…`, as `tenure login` prints it. A link from another site is asked about first, so
/// that nobody is signed in as somebody else without noticing. A look at the address (`HEAD`) opens nothing.
pub(crate) async fn show(
    State(hub): State<HubState>,
    method: Method,
    headers: HeaderMap,
    whence: Whence,
    parameters: Parameters,
) -> Response {
    let code = parameters.value("code");
    if code.is_empty() || method == Method::HEAD || may_be_led_here(&headers) {
        return form(code, StatusCode::OK, None);
    }
    open(&hub, code.into(), whence).await
}

/// Whether another site may have led a browser here. Over plain HTTP to another computer browsers don't say so (Fetch Metadata
/// §2), and neither do old ones.
fn may_be_led_here(headers: &HeaderMap) -> bool {
    let is_browser = headers.contains_key("upgrade-insecure-requests")
        || headers.get(header::USER_AGENT).is_some_and(|it| it.as_bytes().starts_with(b"Mozilla/"));
    headers.get("sec-fetch-site").map_or(is_browser, |site| site != "none")
}

/// `POST /sign-in` by the form of that page.
pub(crate) async fn by_form(State(hub): State<HubState>, whence: Whence, body: Bytes) -> Response {
    open(&hub, value(&pairs(&body), "code").into(), whence).await
}

async fn open(hub: &HubState, code: String, whence: Whence) -> Response {
    let opened = hub.run(move |hub, database| {
        let (code, owners, now) = (code.trim(), hub.running().owners(), now(hub));
        // However many codes somebody guesses, none that is wrong begins a write, which others would wait for.
        let holder =
            database.look(|connection| sign_in::holder(connection, "code", code, &owners, now))?;
        match holder {
            Some(_) => {
                let open =
                    |connection: &Connection| sign_in::open_page(connection, code, &whence, now);
                database.transact(open)
            }
            None => Ok(None),
        }
    });
    match opened.await {
        Ok(Some(secret)) => {
            let cookie = hub.cookie(&secret, sign_in::PAGE_S);
            ([(header::SET_COOKIE, cookie)], redirect("/")).into_response()
        }
        Ok(None) => {
            let error = "This code isn't good, or isn't any more: it opens the pages once, within two minutes.";
            form("", StatusCode::FORBIDDEN, Some(error))
        }
        Err(answer) => answer,
    }
}

fn form(code: &str, status: StatusCode, error: Option<&str>) -> Response {
    let body = html! {
        @if let Some(error) = error { p.error role="alert" { (error) } }
        p { "Type " code { "tenure login" } " on a computer that has your key. It prints an address that opens \
             these pages. With an invitation: " code { "tenure login --invitation CODE" } ", and from then on "
            code { "tenure login --person" } "." }
        form method="post" action="/sign-in" {
            label for="code" { "Code" }
            input id="code" name="code" value=(code) autocomplete="off" required;
            button { "Sign in" }
        }
    };
    let page = layout("Sign in", None, &body);
    (status, [(header::CONTENT_TYPE, HTML)], page.into_string()).into_response()
}

/// `POST /sign-out`.
pub(crate) async fn sign_out(State(hub): State<HubState>, headers: HeaderMap) -> Response {
    let Some(secret) = gate::session(&hub, &headers).map(String::from) else {
        return redirect("/sign-in");
    };
    let ended = hub.run(move |_, database| {
        database.transact(|connection| sign_in::sign_out(connection, &secret))
    });
    if let Err(answer) = ended.await {
        return answer;
    }
    let cookie = hub.cookie("", 0);
    ([(header::SET_COOKIE, cookie)], redirect("/sign-in")).into_response()
}

/// `POST /passes/ID/revoke`.
pub(crate) async fn revoke(
    State(hub): State<HubState>,
    Segments(id): Segments<i64>,
    headers: HeaderMap,
) -> Response {
    let id = id.to_string();
    match act(&hub, &headers, &["v1", "passes", &id, "revoke"], &Value::Null).await {
        Ok(reply) if reply.status.is_success() => redirect("/passes"),
        Ok(reply) if reply.status == StatusCode::NOT_FOUND => missing(),
        Ok(reply) => response(reply),
        Err(answer) => answer,
    }
}
