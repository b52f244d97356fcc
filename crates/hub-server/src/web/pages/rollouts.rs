//! A rollout as a page: its gates, its stages, its devices, and the buttons that steer it.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use maud::{Markup, html};
use serde_json::Value;
use tenure_wire::hub::Scope;

use super::layout::{missing, page};
use super::table::table_of;
use crate::api::resource::resource;
use crate::rollouts::{self, Counts, Event, Rollout};
use crate::web::asked::{act, response};
use crate::web::extract::{Parameters, Segments, SignedIn};
use crate::web::lists;
use crate::web::state::HubState;

/// `GET /rollouts/ID`.
pub(crate) async fn show(
    State(hub): State<HubState>,
    Segments(id): Segments<i64>,
    SignedIn { who, holder }: SignedIn,
    headers: HeaderMap,
) -> Response {
    let asker = who;
    let found = hub.run(move |_, database| {
        let connection = &database.connection;
        let Some(rollout) = rollouts::find(connection, &asker, id)? else { return Ok(None) };
        let counts = Counts::of(connection, id)?;
        Ok(Some((counts, rollouts::waits(connection, &rollout, &counts)?, rollout)))
    });
    let (counts, waits, rollout) = match found.await {
        Ok(Some(found)) => found,
        Ok(None) => return missing(),
        Err(answer) => return answer,
    };
    let Some(devices) = resource("rollout-devices") else { return missing() };
    let parameters = vec![("rollout".to_string(), id.to_string()), ("limit".into(), "1000".into())];
    let (request, rows) = match lists::rows(&hub, devices, &holder, &Parameters(parameters)).await {
        Ok(rows) => rows,
        Err(answer) => return answer,
    };
    let body = html! {
        (described(&rollout, &waits))
        @if holder.may(Scope::Rollouts) { (buttons(&rollout)) }
        h2 { "Devices" }
        div.table tabindex="0" role="region" aria-label="Devices by state" { table {
            thead { tr { @for (state, _) in counts.all() { th scope="col" { (state.word()) } } } }
            tbody { tr { @for (_, count) in counts.all() { td.number { (count) } } } }
        } }
        (table_of(devices, &request, &rows))
        @if rows.next.is_some() { p { a href={ "/rollout-devices?rollout=" (id) } { "All devices" } } }
    };
    page(&headers, &format!("Rollout {id}"), "rollouts", &body)
}

fn described(rollout: &Rollout, waits: &[(i64, String)]) -> Markup {
    let (stage, stages) = (rollout.stage + 1, rollout.stages.len());
    let reach = match rollout.stages.get(rollout.stage).copied().unwrap_or(0) {
        reach if reach >= i64::from(u32::MAX) => "all, also those that come later".to_string(),
        reach => reach.to_string(),
    };
    let consequence = match rollout.on_failure.as_str() {
        "pause" => "it pauses",
        _ => "it is rolled back",
    };
    html! {
        p {
            (rollout.machine) " to " (rollout.version) ": " strong { (rollout.state.word()) }
            @if !rollout.reason.is_empty() { " (" (rollout.reason) ")" }
        }
        @for words in rollouts::words_of(waits) { p { (words) "." } }
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
    const ACTS: [(Event, &str, Option<&str>); 4] = [
        (Event::Pause, "Pause", None),
        (Event::Resume, "Resume", None),
        (Event::Abort, "Abort", Some("Yes, end it, and leave each device as it is")),
        (Event::RollBack, "Roll back", Some("Yes, give each device back what it had before")),
    ];
    let possible = ACTS.iter().filter(|(act, ..)| rollout.state.after(*act).is_some());
    html! {
        div.verbs { @for (act, title, question) in possible {
            @let form = html! {
                form method="post" action={ "/rollouts/" (rollout.id) "/" (act.verb().unwrap_or_default()) } {
                    button { (question.unwrap_or(title)) }
                }
            };
            @if question.is_some() { details { summary { (title) } (form) } } @else { (form) }
        } }
    }
}

/// `POST /rollouts/ID/VERB` by one of those buttons.
pub(crate) async fn steer(
    State(hub): State<HubState>,
    Segments((id, verb)): Segments<(i64, String)>,
    headers: HeaderMap,
) -> Response {
    if Event::of_verb(&verb).is_none() {
        return missing();
    }
    let id = id.to_string();
    match act(&hub, &headers, &["v1", "rollouts", &id, &verb], &Value::Null).await {
        Ok(reply) if reply.status.is_success() => {
            let to = format!("/rollouts/{id}");
            (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
        }
        Ok(reply) => response(reply),
        Err(answer) => answer,
    }
}
