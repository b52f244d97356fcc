//! People and what they are signed in with, over HTTP: each part of the API with its description. Sessions ask for the same
//! ones (`api`), where they are carried out.

use axum::extract::State;
use axum::response::Response;
use utoipa::IntoResponses;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::people::{Invitation, NewPerson, NewRole};
use crate::web::asked::Asked;
use crate::web::openapi::Problem;
use crate::web::state::HubState;

pub(super) fn routes() -> OpenApiRouter<HubState> {
    OpenApiRouter::default()
        .routes(routes!(invite))
        .routes(routes!(change_role))
        .routes(routes!(dismiss))
        .routes(routes!(end_pass))
}

/// The answers to a request that isn't done.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "the forms of what `people` and `gate` answer")]
enum Undone {
    /// The body can't be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Body(Problem),
    /// No token, or one that isn't good.
    #[response(status = 401)]
    Token,
    /// The token doesn't have the scope `people`, or `passes` where it ends one.
    #[response(status = 403, content_type = "application/problem+json")]
    Scope(Problem),
    /// There is no such person of this key, or no such pass that this one sees.
    #[response(status = 404, content_type = "application/problem+json")]
    Unknown(Problem),
    /// The person is here already, or there are as many as there may be.
    #[response(status = 409, content_type = "application/problem+json")]
    State(Problem),
    /// The name is empty, too long, or misleads its reader.
    #[response(status = 422, content_type = "application/problem+json")]
    Name(Problem),
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

/// Invite a person, or invite once more who hasn't come yet: the former invitation opens nothing then.
#[utoipa::path(
    post,
    path = "/v1/people",
    operation_id = "invite_person",
    request_body = NewPerson,
    responses((status = 201, description = "The invitation, which opens once.", body = Invitation), Undone),
)]
async fn invite(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// Give a person another role, and end what the person is signed in with.
#[utoipa::path(
    post,
    path = "/v1/people/{name}/role",
    operation_id = "change_role_of_person",
    params(("name" = String, Path, description = "The person's name.")),
    request_body = NewRole,
    responses((status = 204, description = "Done."), Undone),
)]
async fn change_role(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// Dismiss a person, or take an invitation back, and end what the person is signed in with.
#[utoipa::path(
    post,
    path = "/v1/people/{name}/dismiss",
    operation_id = "dismiss_person",
    params(("name" = String, Path, description = "The person's name.")),
    responses((status = 204, description = "Done."), Undone),
)]
async fn dismiss(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}

/// End a pass: a person's own, or anybody's with the scope `people`.
#[utoipa::path(
    post,
    path = "/v1/passes/{id}/revoke",
    operation_id = "end_pass",
    params(("id" = i64, Path, description = "Its number.")),
    responses((status = 204, description = "Done."), Undone),
)]
async fn end_pass(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.transact(&hub).await
}
