//! Receipts that are handed in over HTTP.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::devices::receipts;
use crate::web::answers::{json_answer, problem};
use crate::web::asked::transact_as;
use crate::web::extract::{HandingIn, Pass};
use crate::web::now;
use crate::web::openapi::{Problem, Refused};
use crate::web::state::HubState;

/// How many of the receipts are new here, and how many were known.
#[derive(Serialize, ToSchema)]
#[schema(as = TakenReceipts)]
struct Taken {
    new: u32,
    known: u32,
}

/// Hand in receipts. The same ones twice do no harm.
#[utoipa::path(
    post,
    path = "/v1/receipts",
    operation_id = "hand_in_receipts",
    request_body(
        content = String,
        content_type = "text/plain",
        description = "A receipt a line, in hexadecimal digits, as `tenure receipts --save` writes them.",
    ),
    responses(
        (status = 200, description = "The answer.", body = Taken),
        Refused,
        (status = 422, description = "A receipt isn't taken; the answer says why.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn take(
    State(hub): State<HubState>,
    Pass { holder, .. }: Pass<HandingIn>,
    body: Bytes,
) -> Response {
    let text = std::str::from_utf8(&body).unwrap_or("?");
    let Some(handed_in) = text.lines().map(unhex).collect::<Option<Vec<Vec<u8>>>>() else {
        return problem(
            StatusCode::BAD_REQUEST,
            "each line must be a receipt in hexadecimal digits",
        );
    };
    let unix_s = now(&hub);
    let taken = transact_as(&hub, holder, move |connection, _| {
        receipts::take(connection, &handed_in, unix_s)
    });
    match taken.await {
        Ok(Ok(taken)) => json_answer(&json!(Taken { new: taken.new, known: taken.known })),
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
