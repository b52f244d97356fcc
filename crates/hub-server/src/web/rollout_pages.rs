//! A rollout as a page: its gates, its stages, its devices, and the buttons that steer it.

use axum_core::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode, header};
use maud::{Markup, html};
use tenure_wire::hub::Scope;

use crate::exchange::Exchange;
use crate::resource::resource;
use crate::rollouts::{self, Rollout};
use crate::web::gate::{holder, who};
use crate::web::pages::{missing, or_sign_in, page, table_of};
use crate::web::{State, api, now};

/// `GET /rollouts/ID`.
pub(crate) async fn show(state: State, id: i64, headers: HeaderMap) -> Response {
    let who = match who(&state, &headers, Scope::Read).await {
        Ok(who) => who,
        Err(answer) => return or_sign_in(answer),
    };
    let found = state.run(move |_, database| {
        let connection = &database.connection;
        let Some(rollout) = rollouts::find(connection, &who, id)? else { return Ok(None) };
        Ok(Some((rollouts::counts(connection, id)?, rollout)))
    });
    let (counts, rollout) = match found.await {
        Ok(Some(found)) => found,
        Ok(None) => return missing(),
        Err(answer) => return answer,
    };
    let Some(devices) = resource("rollout-devices") else { return missing() };
    let parameters = [("rollout".to_string(), id.to_string()), ("limit".into(), "1000".into())];
    let (request, rows) = match api::rows(&state, devices, &headers, &parameters).await {
        Ok(rows) => rows,
        Err(answer) => return or_sign_in(answer),
    };
    let body = html! {
        (described(&rollout))
        (buttons(&rollout))
        h2 { "Devices" }
        div.table tabindex="0" role="region" aria-label="Devices by state" { table {
            thead { tr { @for (state, _) in &counts { th scope="col" { (state) } } } }
            tbody { tr { @for (_, count) in &counts { td.number { (count) } } } }
        } }
        (table_of(devices, &request, &rows))
        @if rows.next.is_some() { p { a href={ "/rollout-devices?rollout=" (id) } { "All devices" } } }
    };
    page(&headers, &format!("Rollout {id}"), "rollouts", &body)
}

fn described(rollout: &Rollout) -> Markup {
    let (stage, stages) = (rollout.stage + 1, rollout.stages.len());
    let reach = rollout.stages.get(rollout.stage).copied().unwrap_or(0);
    let consequence = match rollout.on_failure.as_str() {
        "pause" => "it pauses",
        _ => "it is rolled back",
    };
    html! {
        p {
            (rollout.machine) " to " (rollout.version) ": " strong { (rollout.state) }
            @if !rollout.reason.is_empty() { " (" (rollout.reason) ")" }
        }
        ul {
            li { "Stage " (stage) " of " (stages) "; devices that it reaches: " (reach) "." }
            li { "A device does well if it soaks for " (rollout.soak_s) " s with " (rollout.faults_max)
                " faults at most, isn't banned, and misses no heartbeat." }
            @for gate in rollout.gates.words() { li { "Gate on reports: " (gate) "." } }
            li { "Devices that may fail: " (rollout.failures_max) ". If more do, " (consequence) "." }
        }
    }
}

/// The verbs that a rollout understands in its state.
fn buttons(rollout: &Rollout) -> Markup {
    let verbs: &[(&str, &str)] = match rollout.state.as_str() {
        "running" => &[("pause", "Pause"), ("abort", "Abort"), ("roll-back", "Roll back")],
        "paused" => &[("resume", "Resume"), ("abort", "Abort"), ("roll-back", "Roll back")],
        "rolling back" => &[("abort", "Abort")],
        "done" | "ended" | "aborted" => &[("roll-back", "Roll back")],
        _ => &[],
    };
    html! {
        div.verbs { @for (verb, title) in verbs {
            form method="post" action={ "/rollouts/" (rollout.id) "/" (verb) } { button { (title) } }
        } }
    }
}

/// `POST /rollouts/ID/VERB` by one of those buttons.
pub(crate) async fn steer(state: State, id: i64, verb: String, headers: HeaderMap) -> Response {
    if !matches!(verb.as_str(), "pause" | "resume" | "abort" | "roll-back") {
        return missing();
    }
    let holder = match holder(&state, &headers).await {
        Ok(holder) => holder,
        Err(answer) => return or_sign_in(answer),
    };
    let segments = ["v1", "rollouts", &id.to_string(), &verb].map(String::from);
    let asked = Exchange {
        method: Method::POST,
        segments: segments.to_vec(),
        parameters: Vec::new(),
        headers: HeaderMap::new(),
        body: Vec::new(),
        who: holder.who.clone(),
        unix_s: now(),
        hub_hears_since_unix_s: state.hears_since_unix_s(),
    };
    let done = state.run(move |_, database| {
        database.transact(|connection| crate::api::exchange(connection, &holder, &asked))
    });
    match done.await {
        Ok(reply) if reply.status.is_success() => {
            let to = format!("/rollouts/{id}");
            (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
        }
        Ok(reply) => (reply.status, reply.header_map(), reply.body).into_response(),
        Err(answer) => answer,
    }
}
