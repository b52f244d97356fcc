//! Bills by tenant and month: as a page, as CSV and as JSON.

use axum_core::response::Response;
use http::{HeaderMap, StatusCode};
use maud::html;
use serde_json::{Value, json};
use tenure_wire::hub::Scope;

use super::layout::{or_sign_in, page};
use crate::devices::receipts::{self, BillLine};
use crate::web::answers::{self, Parameters, conditional, problem};
use crate::web::gate::who;
use crate::web::state::State;

/// The lines that a request asks for and its pass may see, and the currency.
async fn lines(
    state: &State,
    headers: &HeaderMap,
    parameters: &Parameters,
) -> Result<(Vec<BillLine>, String), Response> {
    let who = who(state, headers, Scope::Read).await?;
    let Some(tariff) = state.tariff().cloned() else {
        return Err(problem(
            StatusCode::NOT_FOUND,
            "the hub has no prices; start it with --tariff",
        ));
    };
    let currency = tariff.currency.clone();
    let wanted = parameters.iter().find(|(name, month)| name == "month" && !month.is_empty());
    let month = wanted.map(|(_, month)| month.clone());
    if let Some(month) = month.as_deref().filter(|month| !receipts::is_month(month)) {
        let detail = format!("month={month} is no month; write it as 2026-11");
        return Err(problem(StatusCode::BAD_REQUEST, &detail));
    }
    let lines = state.run(move |_, database| {
        Ok(receipts::bills(&database.connection, &who, month.as_deref(), &tariff)?)
    });
    Ok((lines.await?, currency))
}

/// `GET /v1/bills`.
pub(crate) async fn json(state: State, headers: HeaderMap, parameters: Parameters) -> Response {
    match lines(&state, &headers, &parameters).await {
        Ok((lines, currency)) => {
            let items: Vec<Value> = lines.iter().map(|line| object(line, &currency)).collect();
            let body = json!({ "items": items, "next": null }).to_string();
            conditional(&headers, "application/json", body)
        }
        Err(answer) => answer,
    }
}

/// A line of a bill in JSON.
fn object(line: &BillLine, currency: &str) -> Value {
    json!({
        "month": line.month,
        "tenant": line.tenant,
        "device": line.device,
        "machine": line.machine,
        "receipts": line.receipts,
        "price_millionths": line.millionths.to_string(),
        "currency": currency,
    })
}

/// `GET /bills.csv`.
pub(crate) async fn csv(state: State, headers: HeaderMap, parameters: Parameters) -> Response {
    let (lines, currency) = match lines(&state, &headers, &parameters).await {
        Ok(lines) => lines,
        Err(answer) => return or_sign_in(answer),
    };
    let headings = ["month", "tenant", "device", "machine", "receipts", "price", "currency"];
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let BillLine { month, tenant, device, machine, receipts, millionths } = line.clone();
            let (receipts, price) = (receipts.to_string(), money(millionths));
            vec![month, tenant, device, machine, receipts, price, currency.clone()]
        })
        .collect();
    conditional(&headers, "text/csv; charset=utf-8", answers::csv(&headings, &rows))
}

/// `GET /bills`.
pub(crate) async fn show(state: State, headers: HeaderMap, parameters: Parameters) -> Response {
    let (lines, currency) = match lines(&state, &headers, &parameters).await {
        Ok(lines) => lines,
        Err(answer) if answer.status() == StatusCode::NOT_FOUND => {
            let body = html! { p { "This hub has no prices. Start it with " code { "--tariff tariff.toml" } "." } };
            return page(&headers, "Bills", "bills", &body);
        }
        Err(answer) => return or_sign_in(answer),
    };
    let bills =
        lines.chunk_by(|one, other| (&one.month, &one.tenant) == (&other.month, &other.tenant));
    let body = html! {
        p { "By month (UTC) and tenant, from the signed receipts. " a href="/bills.csv" { "CSV" } }
        @if lines.is_empty() { p { "None." } }
        @for bill in bills {
            h2 { (bill[0].month) ", tenant " code { (bill[0].tenant) } }
            div.table tabindex="0" role="region" aria-label={ "Bill of " (bill[0].month) } { table {
                thead { tr {
                    th scope="col" { "Device" } th scope="col" { "Machine" }
                    th scope="col" { "Receipts" } th scope="col" { "Price (" (currency) ")" }
                } }
                tbody { @for line in bill { tr {
                    td { (line.device) } td { (line.machine) }
                    td.number { (line.receipts) } td.number { (money(line.millionths)) }
                } } }
                tfoot { tr {
                    th scope="row" colspan="3" { "Sum" }
                    td.number { (money(bill.iter().map(|line| line.millionths).sum())) }
                } }
            } }
        }
    };
    page(&headers, "Bills", "bills", &body)
}

/// Millionths as a number of whole units, without ever being a float.
fn money(millionths: u128) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}
