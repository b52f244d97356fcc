//! The API for programs: every list as JSON, receipts handed in, metrics for Prometheus.

use axum_core::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tenure_crypto::sha256;
use tenure_hub::Fullness;
use tenure_wire::hub::Scope;

use crate::database::Database;
use crate::error::DatabaseError;
use crate::resource::{FILE_ROWS_MAX, Request, Resource, Rows, resource};
use crate::web::gate::who;
use crate::web::{State, now};
use crate::{lists, receipts};

/// Parameters of an address, in its order.
pub(crate) type Parameters = Vec<(String, String)>;

/// `GET /v1/RESOURCE`.
pub(crate) async fn list(
    state: State,
    name: String,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    match resource(&name) {
        Some(resource) => listed(&state, resource, &headers, &parameters).await,
        None => problem(StatusCode::NOT_FOUND, &format!("there is no list `{name}`")),
    }
}

async fn listed(
    state: &State,
    resource: &'static Resource,
    headers: &HeaderMap,
    parameters: &[(String, String)],
) -> Response {
    let rows = match rows(state, resource, headers, parameters).await {
        Ok((_, rows)) => rows,
        Err(answer) => return answer,
    };
    conditional(headers, "application/json", lists::page(resource, &rows).to_string())
}

/// The rows that a request asks for and its pass may see.
///
/// # Errors
/// The answer to a request without a pass, or with parameters that can't be read.
pub(crate) async fn rows(
    state: &State,
    resource: &'static Resource,
    headers: &HeaderMap,
    parameters: &[(String, String)],
) -> Result<(Request, Rows), Response> {
    read(state, resource, headers, parameters, |request| request).await
}

/// The same for a file, which has all rows unless the request says how many.
///
/// # Errors
/// As [`rows`].
pub(crate) async fn all_rows(
    state: &State,
    resource: &'static Resource,
    headers: &HeaderMap,
    parameters: &[(String, String)],
) -> Result<(Request, Rows), Response> {
    let limit = parameters.iter().all(|(name, _)| name != "limit").then_some(FILE_ROWS_MAX);
    let whole = |request: Request| Request { limit: limit.unwrap_or(request.limit), ..request };
    read(state, resource, headers, parameters, whole).await
}

async fn read(
    state: &State,
    resource: &'static Resource,
    headers: &HeaderMap,
    parameters: &[(String, String)],
    change: impl Fn(Request) -> Request,
) -> Result<(Request, Rows), Response> {
    let who = who(state, headers, Scope::Read).await?;
    let request = Request::parse(resource, parameters)
        .map_err(|error| problem(StatusCode::BAD_REQUEST, &error))?;
    let request = change(request);
    let asked = request.clone();
    let rows =
        state.run(move |_, database| Ok(resource.rows(&database.connection, &who, &asked)?));
    Ok((request, rows.await?))
}

/// An answer with its digest as an entity tag, or the word that it hasn't changed.
pub(crate) fn conditional(
    headers: &HeaderMap,
    content_type: &'static str,
    body: String,
) -> Response {
    let tag = format!("\"{}\"", sha256(&[body.as_bytes()]));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|known| {
        known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let mut answer = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, content_type)], body).into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

/// An answer in JSON.
pub(crate) fn json_answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// An error in the form of RFC 9457.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Response {
    let body = json!({ "status": status.as_u16(), "detail": detail }).to_string();
    (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
}

/// `POST /v1/receipts`: lines of hexadecimal digits, as `tenure receipts --save` writes them. The same
/// ones twice do no harm.
pub(crate) async fn take_receipts(state: State, headers: HeaderMap, body: Vec<u8>) -> Response {
    if let Err(answer) = who(&state, &headers, Scope::Receipts).await {
        return answer;
    }
    let text = std::str::from_utf8(&body).unwrap_or("?");
    let Some(receipts) = text.lines().map(unhex).collect::<Option<Vec<Vec<u8>>>>() else {
        return problem(
            StatusCode::BAD_REQUEST,
            "each line must be a receipt in hexadecimal digits",
        );
    };
    let taken = state.run(move |_, database| database.hand_in(&receipts, now()));
    match taken.await {
        Ok(Ok(taken)) => json_answer(&json!({ "new": taken.new, "known": taken.known })),
        Ok(Err(refusal)) => problem(StatusCode::UNPROCESSABLE_ENTITY, &refusal.to_string()),
        Err(answer) => answer,
    }
}

fn unhex(line: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        line.trim().chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// `GET /metrics`: the fleet of the pass's key, as Prometheus reads it.
pub(crate) async fn metrics(state: State, headers: HeaderMap) -> Response {
    let who = match who(&state, &headers, Scope::Read).await {
        Ok(who) => who,
        Err(answer) => return answer,
    };
    match state.run(move |_, database| measured(database, &who)).await {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(answer) => answer,
    }
}

fn measured(database: &mut Database, who: &str) -> Result<String, DatabaseError> {
    const METRICS: [(&str, &str, &str); 6] = [
        (
            "tenure_devices",
            "Devices that registered.",
            "SELECT count(*) FROM devices WHERE owner = ?1",
        ),
        (
            "tenure_devices_reachable",
            "Devices whose record is in force.",
            "SELECT count(*) FROM devices WHERE owner = ?1 AND expires_unix_s >= unixepoch()",
        ),
        (
            "tenure_machines",
            "Machines that devices list.",
            "SELECT coalesce(sum(machines), 0) FROM devices WHERE owner = ?1",
        ),
        (
            "tenure_receipts",
            "Receipts that are kept.",
            "SELECT count(*) FROM receipts WHERE owner = ?1 OR tenant = ?1",
        ),
        (
            "tenure_alarms",
            "Places where a chain of receipts isn't whole.",
            "SELECT count(*) FROM alarms WHERE owner = ?1 OR tenant = ?1",
        ),
        (
            "tenure_hub_database_bytes",
            "Size of the hub's database.",
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size WHERE ?1 = ?1",
        ),
    ];
    let mut text = String::new();
    for (name, help, query) in METRICS {
        let mut statement = database.connection.prepare_cached(query)?;
        let value: i64 = statement.query_row([who], |row| row.get(0))?;
        text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
    }
    Ok(text + &of_tables(&database.running().fullness()))
}

/// How full the hub's own tables are, which all of its devices share.
fn of_tables(tables: &[Fullness]) -> String {
    type Figure = fn(&Fullness) -> u64;
    const METRICS: [(&str, &str, &str, Figure); 3] = [
        (
            "tenure_hub_table_used",
            "gauge",
            "Places that are taken in a table of the hub.",
            |table| table.used as u64,
        ),
        ("tenure_hub_table_most", "gauge", "Places that a table of the hub has.", |table| {
            table.most as u64
        }),
        (
            "tenure_hub_table_full_total",
            "counter",
            "How often one made room for another, or got none, in a table of the hub since its start.",
            |table| table.times_full,
        ),
    ];
    let mut text = String::new();
    for (name, kind, help, figure) in METRICS {
        text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for table in tables {
            text += &format!("{name}{{table=\"{}\"}} {}\n", table.table, figure(table));
        }
    }
    text
}

/// Writes rows as CSV (RFC 4180). A cell that a spreadsheet would take for a formula begins with an
/// apostrophe.
pub(crate) fn csv(headings: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |text: &str| {
        let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let is_number = text.parse::<i128>().is_ok();
        let guard = if is_formula && !is_number { "'" } else { "" };
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    };
    let line = |cells: Vec<String>| cells.join(",") + "\r\n";
    let mut text = line(headings.iter().map(|heading| cell(heading)).collect());
    for row in rows {
        text += &line(row.iter().map(|text| cell(text)).collect());
    }
    text
}

/// A line of a bill in JSON.
pub(crate) fn bill_object(line: &receipts::BillLine, currency: &str) -> Value {
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
