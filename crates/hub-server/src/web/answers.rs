//! The forms of answers: JSON, CSV, a problem, and one that a client may have already.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tenure_crypto::sha256;
use unicode_normalization::UnicodeNormalization as _;

/// An answer with its digest as an entity tag, or the word that it hasn't changed.
pub(crate) fn conditional(
    headers: &HeaderMap,
    content_type: &'static str,
    body: String,
) -> Response {
    let tag = format!("\"{}\"", sha256(&[body.as_bytes()]));
    let mut answer = if is_known(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, content_type)], body).into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

/// Whether a client has what has this tag already (RFC 9110 §13.1.2).
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    known
        .is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag))
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

/// A cell of a table as CSV has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CsvCell {
    /// A text that somebody else may have chosen.
    Text(String),
    /// A number of ours.
    Number(String),
}

/// Writes rows as CSV (RFC 4180).
pub(crate) fn csv(headings: &[&str], rows: &[Vec<CsvCell>]) -> String {
    let rows = rows.iter().map(|row| csv_line(row.iter().cloned()));
    csv_line(headings.iter().map(|heading| CsvCell::Text((*heading).into())))
        + &rows.collect::<String>()
}

/// A line of CSV. A text that a spreadsheet would take for a formula or a signed number begins with an apostrophe.
pub(crate) fn csv_line(cells: impl Iterator<Item = CsvCell>) -> String {
    let cell = |cell: CsvCell| {
        let (text, guard) = match cell {
            CsvCell::Text(text) if is_calculated(&text) => (text, "'"),
            CsvCell::Text(text) | CsvCell::Number(text) => (text, ""),
        };
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    };
    cells.map(cell).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Whether a spreadsheet calculates with a text: it begins with a sign, of whichever width (OWASP, "CSV Injection"), or with a
/// character that one may take away before it looks.
fn is_calculated(text: &str) -> bool {
    let is_sign = |sign: char| matches!(sign, '=' | '+' | '-' | '@' | '\u{2212}');
    let is_control = text.starts_with(|first: char| first.is_control());
    is_control || text.trim_start().nfkc().next().is_some_and(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_spreadsheet_would_calculate_is_guarded_and_numbers_of_ours_are_numbers() {
        for text in [
            // full and small width, superscript, and the minus of typesetters.
            "=1+1",
            "+1",
            "-1",
            "@SUM(1)",
            "\u{FF1D}1+1",
            "\u{FF0B}1",
            "\u{FF0D}1",
            "\u{FF20}SUM(1)",
            "\u{FE62}1",
            "\u{FE63}1",
            "\u{FE66}1",
            "\u{FE6B}A1",
            "\u{207A}1",
            "\u{2212}1",
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "\u{A0}=1",
            "\u{3000}\u{FF1D}1",
            "-0x1",
            "+1.5",
            "-2e3",
        ] {
            let line = csv_line([CsvCell::Text(text.into())].into_iter());
            assert_eq!(line, format!("\"'{text}\"\r\n"));
        }
        for text in ["", "Ada", "1", "1-1", "a=b", "\"", "世界", "10.0.0.1:5", "'+1"] {
            let line = csv_line([CsvCell::Text(text.into())].into_iter());
            assert_eq!(line, format!("\"{}\"\r\n", text.replace('"', "\"\"")));
        }
        let numbers = [CsvCell::Number("-5".into()), CsvCell::Number("0.000021".into())];
        assert_eq!(csv_line(numbers.into_iter()), "\"-5\",\"0.000021\"\r\n");
    }
}
