//! Rollouts and revocations over HTTP: each part of the API with its description. Sessions ask for the same ones
//! (`api`), where they are carried out.

use axum::extract::State;
use axum::response::Response;
use utoipa::{IntoParams, IntoResponses};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::rollouts::{Next, Saw, SignedPlan, Told};
use crate::web::asked::Asked;
use crate::web::openapi::Problem;
use crate::web::state::HubState;

pub(super) fn routes() -> OpenApiRouter<HubState> {
    let (one, document) = OpenApiRouter::default()
        .routes(routes!(show))
        .routes(routes!(plan))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(abort))
        .routes(routes!(roll_back))
        .routes(routes!(next))
        .routes(routes!(report))
        .split_for_parts();
    // Below a rollout it is the API, and not a page, that says that nothing is there.
    let mut below = OpenApiRouter::from(one.fallback(other).method_not_allowed_fallback(other));
    *below.get_openapi_mut() = document;
    OpenApiRouter::default()
        .routes(routes!(start))
        .routes(routes!(revoke))
        .nest("/v1/rollouts", below)
}

/// The rollout that is meant.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "the form of what `rollouts` reads")]
struct Rollout {
    /// Its number.
    id: i64,
}

/// The word by which a request may be sent again.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "the form of what `once` reads")]
struct Again {
    /// The same request with the same key does nothing again for a day, and has the same answer.
    #[param(rename = "Idempotency-Key", max_length = 255, nullable = false)]
    key: Option<String>,
}

/// The answers to a request that isn't done.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "the forms of what `rollouts` and `gate` answer")]
enum Undone {
    /// The body can't be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Body(Problem),
    /// No token, or one that isn't good.
    #[response(status = 401)]
    Token,
    /// The token doesn't have the scope `rollouts`.
    #[response(status = 403, content_type = "application/problem+json")]
    Scope(Problem),
    /// There is no such rollout of this key.
    #[response(status = 404, content_type = "application/problem+json")]
    Unknown(Problem),
    /// The rollout or the device isn't in a state for that.
    #[response(status = 409, content_type = "application/problem+json")]
    State(Problem),
    /// The plan isn't taken; the answer says why.
    #[response(status = 422, content_type = "application/problem+json")]
    Plan(Problem),
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

/// Start a rollout by the owner's signed plan.
#[utoipa::path(
    post,
    path = "/v1/rollouts",
    operation_id = "start_rollout",
    params(Again),
    request_body = SignedPlan,
    responses((status = 201, description = "The answer.", body = Told), Undone),
)]
async fn start(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// A rollout as it is now.
#[utoipa::path(
    get,
    path = "/{id}",
    operation_id = "show_rollout",
    params(Rollout),
    responses((status = 200, description = "The answer.", body = Told), Undone),
)]
async fn show(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// The plan as the owner signed it.
#[utoipa::path(
    get,
    path = "/{id}/plan",
    operation_id = "show_rollout_plan",
    params(Rollout),
    responses((status = 200, description = "The answer.", body = SignedPlan), Undone),
)]
async fn plan(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// Update no further device; those that were updated are watched.
#[utoipa::path(
    post,
    path = "/{id}/pause",
    operation_id = "pause_rollout",
    params(Rollout),
    responses((status = 200, description = "The answer.", body = Told), Undone),
)]
async fn pause(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// Go on; devices that failed count as done.
#[utoipa::path(
    post,
    path = "/{id}/resume",
    operation_id = "resume_rollout",
    params(Rollout),
    responses((status = 200, description = "The answer.", body = Told), Undone),
)]
async fn resume(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// End it, and leave every device as it is.
#[utoipa::path(
    post,
    path = "/{id}/abort",
    operation_id = "abort_rollout",
    params(Rollout),
    responses((status = 200, description = "The answer.", body = Told), Undone),
)]
async fn abort(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// Put every device back to the package that it had.
#[utoipa::path(
    post,
    path = "/{id}/roll-back",
    operation_id = "roll_back_rollout",
    params(Rollout),
    responses((status = 200, description = "The answer.", body = Told), Undone),
)]
async fn roll_back(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// The steps that are due, for whoever carries the rollout out. A step that isn't reported is named again.
#[utoipa::path(
    post,
    path = "/{id}/next",
    operation_id = "next_of_rollout",
    params(Rollout),
    responses((status = 200, description = "The answer.", body = Next), Undone),
)]
async fn next(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// Report on a device: what was seen there. The same report twice does no harm.
#[utoipa::path(
    post,
    path = "/{id}/devices/{device}",
    operation_id = "report_of_device",
    params(Rollout, ("device" = String, Path, description = "Its name."), Again),
    request_body = Saw,
    responses((status = 204, description = "Noted."), Undone),
)]
async fn report(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// The owner's signed list of revoked keys: its devices are listed and answered no more, and are in no rollout.
#[utoipa::path(
    post,
    path = "/v1/revocations",
    operation_id = "take_revocations",
    request_body(content_type = "application/octet-stream", content = Vec<u8>),
    responses((status = 204, description = "Noted."), Undone),
)]
async fn revoke(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// Another request below a rollout.
async fn other(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}
