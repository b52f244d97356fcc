//! Lists over HTTP: the rows that a request asks for and its pass may see, and each list as JSON.

use axum_core::response::Response;
use http::{HeaderMap, StatusCode};
use tenure_wire::hub::Scope;

use crate::api::lists;
use crate::api::resource::{FILE_ROWS_MAX, Request, Resource, Rows, resource};
use crate::web::answers::{Parameters, conditional, problem};
use crate::web::gate::who;
use crate::web::state::State;

/// `GET /v1/RESOURCE`.
pub(crate) async fn show(
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
