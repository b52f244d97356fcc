//! Bills by tenant and month: as a page, as CSV and as JSON.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use maud::html;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::layout::page;
use crate::devices::receipts::{self, BillLine};
use crate::web::answers::{self, CsvCell, conditional, problem};
use crate::web::extract::{Parameters, Pass, Reading, SignedIn};
use crate::web::openapi::{Conditional, Problem, Refused};
use crate::web::state::HubState;

/// Bills.
#[derive(Serialize, ToSchema)]
struct Bills {
    items: Vec<BillItem>,
    /// All of them are in one answer.
    #[schema(schema_with = nothing)]
    next: (),
}

/// A line of a bill.
#[derive(Serialize, ToSchema)]
struct BillItem {
    month: String,
    tenant: String,
    device: String,
    machine: String,
    receipts: u64,
    /// A whole number of millionths of the currency.
    price_millionths: String,
    currency: String,
}

fn nothing() -> utoipa::openapi::schema::Object {
    utoipa::openapi::schema::Object::with_type(utoipa::openapi::schema::Type::Null)
}

/// The lines that a request asks for and its pass may see, and the currency.
async fn lines(
    hub: &HubState,
    who: String,
    parameters: &Parameters,
) -> Result<(Vec<BillLine>, String), Response> {
    let Some(tariff) = hub.tariff().cloned() else {
        return Err(problem(
            StatusCode::NOT_FOUND,
            "the hub has no prices; start it with --tariff",
        ));
    };
    let currency = tariff.currency.clone();
    let wanted = parameters.0.iter().find(|(name, month)| name == "month" && !month.is_empty());
    let month = wanted.map(|(_, month)| month.clone());
    if let Some(month) = month.as_deref().filter(|month| !receipts::is_month(month)) {
        let detail = format!("month={month} is no month; write it as 2026-11");
        return Err(problem(StatusCode::BAD_REQUEST, &detail));
    }
    let lines = hub.run(move |_, database| {
        Ok(receipts::bills(&database.connection, &who, month.as_deref(), &tariff)?)
    });
    Ok((lines.await?, currency))
}

/// Bills by month, tenant, device and machine.
#[utoipa::path(
    get,
    path = "/v1/bills",
    operation_id = "list_bills",
    params(("month" = Option<String>, Query, description = "Only this month, as `2026-11`.")),
    responses(
        (status = 200, description = "The answer. Its ETag may be sent as If-None-Match.", body = Bills),
        Conditional,
        Refused,
        (status = 404, description = "The hub has no prices.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn json(
    State(hub): State<HubState>,
    Pass { who, .. }: Pass<Reading>,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let (lines, currency) = match lines(&hub, who, &parameters).await {
        Ok(lines) => lines,
        Err(answer) => return answer,
    };
    let items = lines.into_iter().map(|line| item(line, currency.clone())).collect();
    conditional(&headers, "application/json", json!(Bills { items, next: () }).to_string())
}

fn item(line: BillLine, currency: String) -> BillItem {
    let BillLine { month, tenant, device, machine, receipts, millionths } = line;
    let price_millionths = millionths.to_string();
    BillItem { month, tenant, device, machine, receipts, price_millionths, currency }
}

/// `GET /bills.csv`.
pub(crate) async fn csv(
    State(hub): State<HubState>,
    SignedIn { who, .. }: SignedIn,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let (lines, currency) = match lines(&hub, who, &parameters).await {
        Ok(lines) => lines,
        Err(answer) => return answer,
    };
    let headings = ["month", "tenant", "device", "machine", "receipts", "price", "currency"];
    let row = |line: BillLine| {
        let BillLine { month, tenant, device, machine, receipts, millionths } = line;
        let texts = [month, tenant, device, machine].map(CsvCell::Text);
        let numbers = [receipts.to_string(), money(millionths)].map(CsvCell::Number);
        let currency = CsvCell::Text(currency.clone());
        texts.into_iter().chain(numbers).chain([currency]).collect()
    };
    let rows: Vec<Vec<CsvCell>> = lines.into_iter().map(row).collect();
    conditional(&headers, "text/csv; charset=utf-8", answers::csv(&headings, &rows))
}

/// `GET /bills`.
pub(crate) async fn show(
    State(hub): State<HubState>,
    SignedIn { who, .. }: SignedIn,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let (lines, currency) = match lines(&hub, who, &parameters).await {
        Ok(lines) => lines,
        Err(answer) if answer.status() == StatusCode::NOT_FOUND => {
            let body = html! { p { "This hub has no prices. Start it with " code { "--tariff tariff.toml" } "." } };
            return page(&headers, "Bills", "bills", &body);
        }
        Err(answer) => return answer,
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
