//! The pages: server-rendered, without a build step, readable with or without script.

pub(crate) mod alarms;
pub(crate) mod bills;
mod charts;
mod installing;
pub(crate) mod layout;
pub(crate) mod logs;
pub(crate) mod people;
pub(crate) mod rollouts;
pub(crate) mod sign_in;
mod table;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use http::HeaderMap;
use maud::{Markup, html};
use tenure_hub::Fullness;
use tenure_wire::hub::Scope;

use crate::api::resource::{Kind, RESOURCES, Request, Resource, Rows, resource};
use crate::api::sign_in::Holder;
use crate::web::extract::{Parameters, Segments, SignedIn};
use crate::web::files::{self, Form};
use crate::web::lists;
use crate::web::state::HubState;
use layout::{missing, page};
use table::{Forms, facts, prose, revoke_button, search, table, turn};

/// Each page with its address.
pub(super) fn routes() -> Router<HubState> {
    let lists = RESOURCES.iter().fold(Router::new(), |router, resource| {
        let name = resource.name;
        let show = move |hub, signed_in, headers, parameters| {
            list(resource, hub, signed_in, headers, parameters)
        };
        let file = |form| {
            move |hub, signed_in, parameters| {
                list_as_file(resource, form, hub, signed_in, parameters)
            }
        };
        let router = if name == FLEET { router.route("/", get(show)) } else { router };
        router
            .route(&format!("/{name}"), get(show))
            .route(&format!("/{name}.csv"), get(file(Form::Csv)))
            .route(&format!("/{name}.json"), get(file(Form::Json)))
    });
    lists
        .route("/devices/{device}", get(device))
        .route("/rollouts/{id}", get(rollouts::show))
        .route("/rollouts/{id}/{verb}", post(rollouts::steer))
        .route("/rule-alarms/{id}/acknowledge", post(alarms::acknowledge))
        .route("/bills", get(bills::show))
        .route("/bills.csv", get(bills::csv))
        .route("/sign-in", get(sign_in::show).post(sign_in::by_form))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/passes/{id}/revoke", post(sign_in::revoke))
        .route("/people", post(people::invite))
        .route("/people/{name}/role", post(people::change_role))
        .route("/people/{name}/dismiss", post(people::dismiss))
}

/// The list that is shown first.
const FLEET: &str = "devices";
/// The list that shows the alarms of rules before its own.
const ALARMS: &str = "alarms";
/// The list that shows a form for one more before its rows.
const PEOPLE: &str = "people";

/// `GET /RESOURCE`.
async fn list(
    resource: &'static Resource,
    State(hub): State<HubState>,
    SignedIn { holder, .. }: SignedIn,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let by_rules = match resource.name {
        ALARMS => match alarms::by_rules(&hub, &holder).await {
            Ok(by_rules) => Some(by_rules),
            Err(answer) => return answer,
        },
        _ => None,
    };
    let (request, rows) = match lists::rows(&hub, resource, &holder, &parameters).await {
        Ok(rows) => rows,
        Err(answer) => return answer,
    };
    let listed = hub.running().listed().filter(|_| resource.name == FLEET);
    let body = html! {
        @if let Some(by_rules) = by_rules { (by_rules) }
        p { (prose(resource.about)) }
        @if let Some(listed) = listed { (of_all_owners(&listed)) }
        @if resource.name == PEOPLE && holder.may(Scope::People) { (people::invite_form()) }
        (search(resource, &request))
        (table(resource, &request, &rows, true, forms_of(resource, &holder)))
        (turn(resource, &request, &rows))
    };
    page(&headers, resource.title, resource.name, &body)
}

/// How many devices the hub lists of those that it may list, whosever they are.
fn of_all_owners(Fullness { used, most, .. }: &Fullness) -> Markup {
    html! {
        p {
            "The hub lists " (used) " of " (most) " devices at most, of all owners."
            @if used >= most { " " span.bad { "It takes no new one." } }
        }
    }
}

/// The forms behind the rows of a list, as far as the pass goes.
fn forms_of(resource: &Resource, holder: &Holder) -> Option<Forms> {
    let forms: Forms = match resource.name {
        "passes" if holder.may(Scope::Passes) => ("End", revoke_button),
        PEOPLE if holder.may(Scope::People) => ("Change", people::forms),
        _ => return None,
    };
    Some(forms)
}

/// `GET /RESOURCE.csv` and `GET /RESOURCE.json`.
async fn list_as_file(
    resource: &'static Resource,
    form: Form,
    State(hub): State<HubState>,
    SignedIn { holder, .. }: SignedIn,
    parameters: Parameters,
) -> Response {
    files::file(&hub, resource, holder, &parameters, form).await
}

/// `GET /devices/NAME`: one device with what belongs to it.
async fn device(
    State(hub): State<HubState>,
    Segments(device): Segments<String>,
    SignedIn { who, holder }: SignedIn,
    headers: HeaderMap,
) -> Response {
    let mut parts = Vec::new();
    for resource in OF_DEVICE.iter().filter_map(|name| resource(name)) {
        let parameters = Parameters(vec![("device".to_string(), device.clone())]);
        match lists::rows(&hub, resource, &holder, &parameters).await {
            Ok((request, rows)) => parts.push((resource, request, rows)),
            Err(answer) => return answer,
        }
    }
    if parts.iter().all(|(_, _, rows)| rows.rows.is_empty()) {
        return missing();
    }
    let charts = match charts::of_device(&hub, who.clone(), &device).await {
        Ok(charts) => charts,
        Err(answer) => return answer,
    };
    let commands = match installing::on_device(&hub, who, &device).await {
        Ok(commands) => commands,
        Err(answer) => return answer,
    };
    let machines = machines_of(&parts);
    let sees_log = holder.may(Scope::Logs);
    let visits = holder.sees_alone().is_none();
    let body = html! {
        @for (resource, request, rows) in &parts {
            @if !rows.rows.is_empty() {
                h2 { (resource.title) }
                @if resource.name == "device-reports" { (facts(resource, rows)) }
                @else { (table(resource, request, rows, false, None)) }
            }
            @if resource.name == "machines" {
                @if !machines.is_empty() && visits { (own_pages(&device, &machines)) }
                (charts)
            }
        }
        @if sees_log { (logs::on_device(&hub, &device, &machines)) }
        (commands)
    };
    page(&headers, &device, "devices", &body)
}

/// Links to the pages of machines. Which of them have one, the device alone knows.
fn own_pages(device: &str, machines: &[String]) -> Markup {
    html! {
        p {
            "Their own pages, where they have one:"
            @for machine in machines { " " a href={ "/m/" (machine) "@" (device) "/" } { (machine) } }
        }
    }
}

/// The names in the list of machines.
fn machines_of(parts: &[(&'static Resource, Request, Rows)]) -> Vec<String> {
    let machines = parts.iter().filter(|(resource, ..)| resource.name == "machines");
    let rows = machines.flat_map(|(_, _, rows)| &rows.rows);
    rows.filter_map(|row| Some(row.first()?.text(Kind::Text))).collect()
}

/// The lists on the page of a device, in that order.
const OF_DEVICE: [&str; 8] = [
    "devices",
    "rule-alarms",
    "alarms",
    "device-reports",
    "machines",
    "machine-metrics",
    "faults",
    "receipts",
];
