//! The pages: server-rendered, without a build step, readable with or without script.

pub(crate) mod alarms;
pub(crate) mod bills;
mod charts;
mod installing;
pub(crate) mod layout;
pub(crate) mod logs;
pub(crate) mod rollouts;
pub(crate) mod sign_in;
mod table;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use http::HeaderMap;
use maud::{Markup, html};

use crate::api::resource::{Kind, RESOURCES, Request, Resource, Rows, resource};
use crate::web::extract::{Parameters, Segments, SignedIn};
use crate::web::files::{self, Form};
use crate::web::lists;
use crate::web::state::HubState;
use layout::{missing, page};
use table::{facts, search, table, turn};

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
}

/// The list that is shown first.
const FLEET: &str = "devices";
/// The list that shows the alarms of rules before its own.
const ALARMS: &str = "alarms";

/// `GET /RESOURCE`.
async fn list(
    resource: &'static Resource,
    State(hub): State<HubState>,
    SignedIn { who }: SignedIn,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let by_rules = match resource.name {
        ALARMS => match alarms::by_rules(&hub, who.clone()).await {
            Ok(by_rules) => Some(by_rules),
            Err(answer) => return answer,
        },
        _ => None,
    };
    let (request, rows) = match lists::rows(&hub, resource, who, &parameters).await {
        Ok(rows) => rows,
        Err(answer) => return answer,
    };
    let body = html! {
        @if let Some(by_rules) = by_rules { (by_rules) }
        p { (resource.about) }
        (search(resource, &request))
        (table(resource, &request, &rows, true))
        (turn(resource, &request, &rows))
    };
    page(&headers, resource.title, resource.name, &body)
}

/// `GET /RESOURCE.csv` and `GET /RESOURCE.json`.
async fn list_as_file(
    resource: &'static Resource,
    form: Form,
    State(hub): State<HubState>,
    SignedIn { who }: SignedIn,
    parameters: Parameters,
) -> Response {
    files::file(&hub, resource, who, &parameters, form).await
}

/// `GET /devices/NAME`: one device with what belongs to it.
async fn device(
    State(hub): State<HubState>,
    Segments(device): Segments<String>,
    SignedIn { who }: SignedIn,
    headers: HeaderMap,
) -> Response {
    let mut parts = Vec::new();
    for resource in OF_DEVICE.iter().filter_map(|name| resource(name)) {
        let parameters = Parameters(vec![("device".to_string(), device.clone())]);
        match lists::rows(&hub, resource, who.clone(), &parameters).await {
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
    let log = logs::on_device(&hub, &device, &machines);
    let body = html! {
        @for (resource, request, rows) in &parts {
            @if !rows.rows.is_empty() {
                h2 { (resource.title) }
                @if resource.name == "device-reports" { (facts(resource, rows)) }
                @else { (table(resource, request, rows, false)) }
            }
            @if resource.name == "machines" {
                @if !machines.is_empty() { (own_pages(&device, &machines)) }
                (charts)
            }
        }
        (log)
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
