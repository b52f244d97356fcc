//! The forms by which people are invited, get another role, and are dismissed.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::layout::{HTML, layout, redirect};
use crate::api::people::{Invitation, Role};
use crate::api::resource::{Cell, Kind};
use crate::devices::receipts::time;
use crate::exchange::{Reply, encoded, pairs};
use crate::web::asked::{act, response};
use crate::web::extract::{Segments, value};
use crate::web::state::HubState;

/// The form that invites somebody.
pub(super) fn invite_form() -> Markup {
    html! {
        form.search method="post" action="/people" {
            label for="invite-name" { "Name" }
            input id="invite-name" name="name" maxlength="64" autocomplete="off" required;
            label for="invite-role" { "Role" }
            select id="invite-role" name="role" {
                @for role in Role::ALL { option { (role.word()) } }
            }
            button { "Invite" }
        }
    }
}

/// The forms behind a person.
pub(super) fn forms(row: &[Cell]) -> Markup {
    let text =
        |column: usize| row.get(column).map_or_else(String::new, |cell| cell.text(Kind::Text));
    let (name, role) = (text(0), text(1));
    let path = encoded(&name);
    html! {
        form method="post" action={ "/people/" (path) "/role" } {
            select name="role" aria-label={ "Role of " (name) } {
                @for one in Role::ALL { option selected[one.word() == role] { (one.word()) } }
            }
            button aria-label={ "Change the role of " (name) } { "Change" }
        }
        details {
            summary aria-label={ "Dismiss " (name) } { "Dismiss" }
            form method="post" action={ "/people/" (path) "/dismiss" } {
                button { "Yes, end what " (name) " is signed in with" }
            }
        }
    }
}

/// `POST /people` by the form that invites. The page with the code is shown once, and isn't looked at anew by a script.
pub(crate) async fn invite(
    State(hub): State<HubState>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let said = pairs(&body);
    let said = json!({ "name": value(&said, "name"), "role": value(&said, "role") });
    let reply = match act(&hub, &headers, &["v1", "people"], &said).await {
        Ok(reply) => reply,
        Err(answer) => return answer,
    };
    let invitation = serde_json::from_slice::<Invitation>(&reply.body);
    let (StatusCode::CREATED, Ok(invitation)) = (reply.status, invitation) else {
        return response(reply);
    };
    let Invitation { name, role, code, ends_unix_s } = invitation;
    let ends = time(ends_unix_s).replace('T', " ");
    let body = html! {
        p { "An invitation for " (name) " as " (role.word()) ". Hand it over by a way that nobody else reads: whoever opens it \
             first is " (name) " here. It opens once, until " (ends.trim_end_matches('Z')) " (UTC), and isn't shown again." }
        pre { code { "tenure login --hub HOST:PORT --invitation " (code) } }
        p { "HOST:PORT is the address that devices and commands know this hub by." }
        p { a href="/people" { "To the people" } }
    };
    let page = layout("Invitation", None, &body).into_string();
    (StatusCode::CREATED, [(header::CONTENT_TYPE, HTML)], page).into_response()
}

/// `POST /people/NAME/role` by the form behind a person.
pub(crate) async fn change_role(
    State(hub): State<HubState>,
    Segments(name): Segments<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let said = json!({ "role": value(&pairs(&body), "role") });
    let done = act(&hub, &headers, &["v1", "people", &name, "role"], &said).await;
    done.map_or_else(|answer| answer, shown)
}

/// `POST /people/NAME/dismiss` by the form behind a person.
pub(crate) async fn dismiss(
    State(hub): State<HubState>,
    Segments(name): Segments<String>,
    headers: HeaderMap,
) -> Response {
    let done = act(&hub, &headers, &["v1", "people", &name, "dismiss"], &Value::Null).await;
    done.map_or_else(|answer| answer, shown)
}

/// The list as it is then, or why nothing was done.
fn shown(reply: Reply) -> Response {
    match reply.status.is_success() {
        true => redirect("/people"),
        false => response(reply),
    }
}
