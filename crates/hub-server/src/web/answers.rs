//! The forms of answers: JSON, CSV, a problem, and one that a client may have already.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tenure_crypto::sha256;

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

/// Writes rows as CSV (RFC 4180).
pub(crate) fn csv(headings: &[&str], rows: &[Vec<String>]) -> String {
    let rows = rows.iter().map(|row| csv_line(row.iter().map(String::as_str)));
    csv_line(headings.iter().copied()) + &rows.collect::<String>()
}

/// A line of CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe.
pub(crate) fn csv_line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cell = |text: &str| {
        let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let is_number = text.parse::<i128>().is_ok();
        let guard = if is_formula && !is_number { "'" } else { "" };
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    };
    cells.map(cell).collect::<Vec<_>>().join(",") + "\r\n"
}
