//! Signing in and out with a browser, and ending a pass.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use maud::html;

use super::layout::{HTML, layout, missing, redirect};
use crate::api::sign_in::{self, Whence};
use crate::exchange::pairs;
use crate::store::sql::Connection;
use crate::web::extract::{Ending, Parameters, Pass, Segments, value};
use crate::web::gate::{self, COOKIE};
use crate::web::now;
use crate::web::state::HubState;

/// `GET /sign-in?code=…`, as `tenure login` prints it. A link from another site is asked about first, so
/// that nobody is signed in as somebody else without noticing.
pub(crate) async fn show(
    State(hub): State<HubState>,
    headers: HeaderMap,
    whence: Whence,
    parameters: Parameters,
) -> Response {
    let code = parameters.value("code");
    let is_own = headers.get("sec-fetch-site").is_none_or(|site| site == "none");
    if code.is_empty() || !is_own {
        return form(code, StatusCode::OK, None);
    }
    open(&hub, code.into(), whence).await
}

/// `POST /sign-in` by the form of that page.
pub(crate) async fn by_form(State(hub): State<HubState>, whence: Whence, body: Bytes) -> Response {
    open(&hub, value(&pairs(&body), "code").into(), whence).await
}

async fn open(hub: &HubState, code: String, whence: Whence) -> Response {
    let opened = hub.run(move |hub, database| {
        let (code, now) = (code.trim(), now(hub));
        // However many codes somebody guesses, none that is wrong begins a write, which others would wait for.
        let holder = database.look(|connection| sign_in::holder(connection, "code", code, now))?;
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
            let cookie = format!(
                "{COOKIE}={secret}; {}; Max-Age={}",
                hub.cookie_attributes(),
                sign_in::PAGE_S
            );
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
    let Some(secret) = gate::session(&headers).map(String::from) else {
        return redirect("/sign-in");
    };
    let ended = hub.run(move |_, database| {
        database.transact(|connection| sign_in::sign_out(connection, &secret))
    });
    if let Err(answer) = ended.await {
        return answer;
    }
    let cookie = format!("{COOKIE}=; {}; Max-Age=0", hub.cookie_attributes());
    ([(header::SET_COOKIE, cookie)], redirect("/sign-in")).into_response()
}

/// `POST /passes/ID/revoke`.
pub(crate) async fn revoke(
    State(hub): State<HubState>,
    Segments(id): Segments<i64>,
    Pass { holder, .. }: Pass<Ending>,
) -> Response {
    let revoked = hub.run(move |hub, database| {
        database.transact(|connection| sign_in::revoke(connection, &holder, id, now(hub)))
    });
    match revoked.await {
        Ok(true) => redirect("/passes"),
        Ok(false) => missing(),
        Err(answer) => answer,
    }
}
