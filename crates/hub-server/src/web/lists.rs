//! Lists over HTTP: the rows that a request asks for and its pass may see, and each list as JSON.

mod described;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use utoipa_axum::router::OpenApiRouter;

use crate::api::lists;
use crate::api::resource::{RESOURCES, Request, Resource, Rows};
use crate::api::sign_in::Holder;
use crate::web::answers::{conditional, problem};
use crate::web::extract::{Parameters, Pass, Reading};
use crate::web::state::HubState;

/// `GET /v1/RESOURCE` of each, described by its columns.
pub(super) fn routes() -> OpenApiRouter<HubState> {
    RESOURCES.iter().fold(OpenApiRouter::default(), |router, resource| {
        let show = get(move |hub, pass, headers, parameters| {
            show(resource, hub, pass, headers, parameters)
        });
        router.routes((Vec::new(), described::paths(resource), show))
    })
}

async fn show(
    resource: &'static Resource,
    State(hub): State<HubState>,
    Pass { holder, .. }: Pass<Reading>,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    match rows(&hub, resource, &holder, &parameters).await {
        Ok((_, rows)) => {
            let page = lists::page(resource, &rows).to_string();
            conditional(&headers, "application/json", page)
        }
        Err(answer) => answer,
    }
}

/// The rows that a request of `holder` asks for, and it may see.
///
/// # Errors
/// The answer to parameters that can't be read, or where the database fails.
pub(crate) async fn rows(
    hub: &HubState,
    resource: &'static Resource,
    holder: &Holder,
    Parameters(parameters): &Parameters,
) -> Result<(Request, Rows), Response> {
    let request = Request::parse(resource, parameters)
        .map_err(|error| problem(StatusCode::BAD_REQUEST, &error))?;
    let (holder, asked) = (holder.clone(), request.clone());
    let rows =
        hub.run(move |_, database| Ok(resource.rows(&database.connection, &holder, &asked)?));
    Ok((request, rows.await?))
}
