//! Packages over HTTP: by their own digest, and as a registry, whose repositories have as many segments as they like
//! (distribution spec 1.1). Sessions ask for the same ones (`api`).

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use crate::web::asked::Asked;
use crate::web::state::HubState;

pub(super) fn routes() -> OpenApiRouter<HubState> {
    // The registry says by itself what it doesn't know, and which methods it takes.
    let registry = ["/v2", "/v2/", "/v2/{*name}", "/v1/packages/{digest}/{*rest}"]
        .into_iter()
        .fold(Router::new(), |router, path| router.route(path, any(answer)));
    OpenApiRouter::from(registry).routes(routes!(fetch).map(|fetch| fetch.fallback(answer)))
}

/// A package by its own digest, or the part of it that `Range` asks for.
#[utoipa::path(
    get,
    path = "/v1/packages/{digest}",
    operation_id = "fetch_package",
    params(("digest" = String, Path)),
    responses(
        (status = 200, description = "The package.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, description = "The part."),
        (status = 401, description = "No token, or one that isn't good."),
        (status = 403, description = "A token that doesn't open packages."),
        (status = 404, description = "There is no such package."),
        (status = 416, description = "The package has no such part."),
        (status = 503, description = "The database can't be read now."),
    ),
)]
async fn fetch(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.look_or_transact(&hub).await
}

/// Any request that the registry answers.
async fn answer(State(hub): State<HubState>, asked: Asked) -> Response {
    asked.look_or_transact(&hub).await
}
