//! The OpenAPI 3.1 document: what all of it shares, and how it is shown. Each handler of the API describes itself, and the
//! router gathers that; a list is described by its columns (`lists`).

use axum::Extension;
use axum::response::Response;
use http::HeaderMap;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::web::fixed::Fixed;

/// The name of the token among the ways to be let in.
const TOKEN: &str = "token";

/// The document without a path.
pub(super) fn skeleton() -> OpenApi {
    let info = InfoBuilder::new().title("Tenure hub").version("1").description(Some(
        "What a hub knows of the devices, machines and receipts of the key that asks.",
    ));
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token that `tenure login --token NAME` prints."));
    let components =
        ComponentsBuilder::new().security_scheme(TOKEN, SecurityScheme::Http(token.build()));
    OpenApiBuilder::new()
        .info(info.build())
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new::<_, [&str; 0], &str>(TOKEN, [])]))
        .build()
}

/// The document as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Document(Fixed);

impl Document {
    pub(super) fn of(document: &OpenApi) -> Self {
        Self(Fixed::new("application/json", serde_json::to_string(document).unwrap_or_default()))
    }
}

/// This document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    operation_id = "describe",
    security(()),
    responses((status = 200, description = "The document.", content_type = "application/json", body = Object)),
)]
pub(super) async fn describe(
    Extension(Document(text)): Extension<Document>,
    headers: HeaderMap,
) -> Response {
    text.answer(&headers)
}

/// An error (RFC 9457).
#[derive(ToSchema)]
#[expect(dead_code, reason = "the form of what `problem` writes")]
pub(crate) struct Problem {
    /// The status of the answer.
    status: u16,
    /// The reason, in words.
    detail: String,
}

/// The answers that each part of the API may give in the place of what was asked for.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "the forms of what `gate` and `state` answer")]
pub(crate) enum Refused {
    /// A parameter can't be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Parameter(Problem),
    /// No token, or one that isn't good.
    #[response(status = 401)]
    Token,
    /// A token without the scope that this needs.
    #[response(status = 403)]
    Scope,
    /// The database can't be read or written now.
    #[response(status = 503)]
    Database,
}

/// The answer to a client that has what it asks for already.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "the form of what `conditional` answers")]
pub(crate) enum Conditional {
    /// Nothing changed since that ETag.
    #[response(status = 304)]
    Unchanged,
}
