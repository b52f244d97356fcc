//! The alarms of rules on their page, and the form by which a person acknowledges one.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};
use serde_json::json;
use tenure_wire::hub::Scope;

use super::layout::redirect;
use crate::alarms::{self, Alarm};
use crate::api::sign_in::Holder;
use crate::devices::receipts::time;
use crate::exchange::{encoded, pairs};
use crate::web::asked::{act, response};
use crate::web::extract::{Segments, value};
use crate::web::state::HubState;

/// The alarms of rules that aren't over, of which the page tells first; nothing if there are none.
///
/// # Errors
/// The answer where the database fails.
pub(super) async fn by_rules(hub: &HubState, holder: &Holder) -> Result<Markup, Response> {
    let who = holder.who.clone();
    let open = hub.run(move |_, database| Ok(alarms::open_of_owner(&database.connection, &who)?));
    let open = open.await?;
    Ok(html! {
        @if !open.is_empty() {
            h2 { "By rules" }
            div.table tabindex="0" role="region" aria-label="Alarms by rules" { table {
                thead { tr {
                    @for title in ["Rule", "Device", "What was seen", "Since (UTC)", "State"] {
                        th scope="col" { (title) }
                    }
                } }
                tbody { @for alarm in &open { (row(alarm, holder)) } }
            } }
            p { a href="/rule-alarms" { "All alarms by rules, also those that are over" } }
            h2 { "By reports and receipts" }
        }
    })
}

fn row(alarm: &Alarm, holder: &Holder) -> Markup {
    let Alarm { id, rule, condition, device, detail, raised_unix_s, acknowledged } = alarm;
    let since = time(*raised_unix_s).replace('T', " ");
    html! { tr {
        td { (rule) ": " (condition) }
        @match device.as_str() {
            "" => { td { (alarms::on(device)) } },
            device => { td { a href={ "/devices/" (encoded(device)) } { (device) } } },
        }
        td.line { (detail) }
        td { (since.trim_end_matches('Z')) }
        @match acknowledged {
            Some((by, word)) => { td.line { "acknowledged by " (by) ": " (word) } },
            None => { td {
                span.bad { "raised" }
                @if holder.may(Scope::Alarms) { (form(*id, rule, device, holder)) }
            } },
        }
    } }
}

/// A person's name is known; of a key alone it isn't.
fn form(id: i64, rule: &str, device: &str, holder: &Holder) -> Markup {
    let of = format!("{rule} on {}", alarms::on(device));
    html! {
        form method="post" action={ "/rule-alarms/" (id) "/acknowledge" } {
            @if holder.person().is_empty() {
                input name="by" maxlength="64" required placeholder="Your name"
                    autocomplete="name" aria-label={ "Your name, for " (of) };
            }
            input name="word" maxlength="256" required placeholder="What you do about it"
                aria-label={ "What you do about " (of) };
            button aria-label={ "Acknowledge " (of) } { "Acknowledge" }
        }
    }
}

/// `POST /rule-alarms/ID/acknowledge` by that form.
pub(crate) async fn acknowledge(
    State(hub): State<HubState>,
    Segments(id): Segments<i64>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let said = pairs(&body);
    let said = json!({ "by": value(&said, "by"), "word": value(&said, "word") });
    let id = id.to_string();
    match act(&hub, &headers, &["v1", "rule-alarms", &id, "acknowledge"], &said).await {
        Ok(reply) if reply.status.is_success() => redirect("/alarms"),
        Ok(reply) => response(reply),
        Err(answer) => answer,
    }
}
