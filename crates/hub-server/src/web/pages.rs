//! The pages: server-rendered, without a build step, readable with or without script.

pub(crate) mod bills;
mod charts;
mod installing;
pub(crate) mod layout;
pub(crate) mod logs;
pub(crate) mod rollouts;
pub(crate) mod sign_in;
mod table;

use axum_core::response::Response;
use http::HeaderMap;
use maud::{Markup, html};

use crate::api::resource::{Cell, Column, Kind, Request, Resource, Rows, resource};
use crate::web::answers::{Parameters, conditional, csv};
use crate::web::lists;
use crate::web::state::State;
use layout::{missing, or_sign_in, page};
use table::{facts, plain, search, table, turn};

/// `GET /`: the fleet.
pub(crate) async fn home(state: State, headers: HeaderMap, parameters: Parameters) -> Response {
    list(state, "devices".into(), headers, parameters).await
}

/// `GET /RESOURCE`, or `/RESOURCE.csv`.
pub(crate) async fn list(
    state: State,
    name: String,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let (name, as_csv) =
        name.strip_suffix(".csv").map_or((name.as_str(), false), |name| (name, true));
    let Some(resource) = resource(name) else { return missing() };
    let rows = match as_csv {
        true => lists::all_rows(&state, resource, &headers, &parameters).await,
        false => lists::rows(&state, resource, &headers, &parameters).await,
    };
    let (request, rows) = match rows {
        Ok(rows) => rows,
        Err(answer) => return or_sign_in(answer),
    };
    if as_csv {
        let headings: Vec<&str> = resource.columns.iter().map(|column| column.name).collect();
        let text = |(cell, column): (&Cell, &Column)| plain(cell, column.kind);
        let rows: Vec<Vec<String>> = rows
            .rows
            .iter()
            .map(|row| row.iter().zip(resource.columns).map(text).collect())
            .collect();
        return conditional(&headers, "text/csv; charset=utf-8", csv(&headings, &rows));
    }
    let body = html! {
        p { (resource.about) }
        (search(resource, &request))
        (table(resource, &request, &rows, true))
        (turn(resource, &request, &rows))
    };
    page(&headers, resource.title, resource.name, &body)
}

/// `GET /devices/NAME`: one device with what belongs to it.
pub(crate) async fn device(state: State, device: String, headers: HeaderMap) -> Response {
    let mut parts = Vec::new();
    for name in OF_DEVICE {
        let Some(resource) = resource(name) else { continue };
        let parameters = [("device".to_string(), device.clone())];
        match lists::rows(&state, resource, &headers, &parameters).await {
            Ok((request, rows)) => parts.push((resource, request, rows)),
            Err(answer) => return or_sign_in(answer),
        }
    }
    if parts.iter().all(|(_, _, rows)| rows.rows.is_empty()) {
        return missing();
    }
    let charts = match charts::of_device(&state, &headers, &device).await {
        Ok(charts) => charts,
        Err(answer) => return or_sign_in(answer),
    };
    let commands = match installing::on_device(&state, &headers, &device).await {
        Ok(commands) => commands,
        Err(answer) => return or_sign_in(answer),
    };
    let machines = machines_of(&parts);
    let log = logs::on_device(&state, &device, &machines);
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
    rows.filter_map(|row| Some(plain(row.first()?, Kind::Text))).collect()
}

/// The lists on the page of a device, in that order.
const OF_DEVICE: [&str; 7] =
    ["devices", "alarms", "device-reports", "machines", "machine-metrics", "faults", "receipts"];
