//! Receipts that are handed in over HTTP.

use axum_core::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tenure_wire::hub::Scope;

use crate::devices::receipts;
use crate::web::answers::{json_answer, problem};
use crate::web::gate::who;
use crate::web::now;
use crate::web::state::State;

/// `POST /v1/receipts`: lines of hexadecimal digits, as `tenure receipts --save` writes them. The same
/// ones twice do no harm.
pub(crate) async fn take(state: State, headers: HeaderMap, body: Vec<u8>) -> Response {
    if let Err(answer) = who(&state, &headers, Scope::Receipts).await {
        return answer;
    }
    let text = std::str::from_utf8(&body).unwrap_or("?");
    let Some(handed_in) = text.lines().map(unhex).collect::<Option<Vec<Vec<u8>>>>() else {
        return problem(
            StatusCode::BAD_REQUEST,
            "each line must be a receipt in hexadecimal digits",
        );
    };
    let taken = state.run(move |_, database| {
        database.transact(|connection| receipts::take(connection, &handed_in, now()))
    });
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
