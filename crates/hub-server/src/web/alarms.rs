//! The acknowledgement of alarms over HTTP, with its description. Sessions ask for the same (`api`).

use axum::extract::State;
use axum::response::Response;
use utoipa::IntoResponses;

use crate::alarms::Acknowledgement;
use crate::web::asked::Asked;
use crate::web::openapi::Problem;
use crate::web::state::HubState;

/// The answers to a request that isn't done.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "the forms of what `alarms` and `gate` answer")]
enum Undone {
    /// The body can't be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Body(Problem),
    /// No token, or one that isn't good.
    #[response(status = 401)]
    Token,
    /// The token doesn't have the scope `alarms`.
    #[response(status = 403, content_type = "application/problem+json")]
    Scope(Problem),
    /// There is no such alarm of this key.
    #[response(status = 404, content_type = "application/problem+json")]
    Unknown(Problem),
    /// It is acknowledged already, or over.
    #[response(status = 409, content_type = "application/problem+json")]
    State(Problem),
    /// The name or the word is empty or too long.
    #[response(status = 422, content_type = "application/problem+json")]
    Word(Problem),
    /// More changes in a day than one may make.
    #[response(status = 429, content_type = "application/problem+json")]
    Pace(Problem),
    /// The database can't be read or written now.
    #[response(status = 503)]
    Database,
    /// The disk has room for the ends of passes, dismissals and revocations alone.
    #[response(status = 507, content_type = "application/problem+json")]
    Room(Problem),
}

/// Acknowledge an alarm of a rule: a person with a name looks after it.
#[utoipa::path(
    post,
    path = "/v1/rule-alarms/{id}/acknowledge",
    operation_id = "acknowledge_alarm",
    params(("id" = i64, Path, description = "Its number.")),
    request_body = Acknowledgement,
    responses((status = 204, description = "Noted."), Undone),
)]
pub(super) async fn acknowledge(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}
