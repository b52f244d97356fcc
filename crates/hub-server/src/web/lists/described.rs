//! A list in the OpenAPI document, as its columns describe it.

use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, Paths, PathsBuilder,
};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, Required, ResponseBuilder, ResponsesBuilder};

use crate::api::resource::{Column, Kind, LIMIT_MAX, Resource};
use crate::web::openapi::{Conditional, Refused};

/// The path of a list, with what `GET` does there.
pub(super) fn paths(resource: &Resource) -> Paths {
    let operation = OperationBuilder::new()
        .operation_id(Some(format!("list_{}", resource.name.replace('-', "_"))))
        .summary(Some(resource.about))
        .parameters(Some(parameters(resource)))
        .responses(
            ResponsesBuilder::new()
                .response("200", page(resource))
                .responses_from_into_responses::<Conditional>()
                .responses_from_into_responses::<Refused>(),
        );
    let item = PathItem::new(HttpMethod::Get, operation);
    PathsBuilder::new().path(format!("/v1/{}", resource.name), item).build()
}

fn parameters(resource: &Resource) -> Vec<ParameterBuilder> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let number =
        |least: u64| ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least as f64));
    let mut parameters = vec![
        parameter("q", "Only rows in which some column contains this.", text()),
        parameter("limit", "How many rows, at most.", number(1).maximum(Some(LIMIT_MAX as f64))),
        parameter("skip", "How many rows to skip: `next.skip` of the answer before.", number(0)),
        parameter("sort", "A column's name; with `-` before it, the largest first.", text()),
    ];
    if resource.within_s.is_some() {
        let words = "For how many seconds back to look.";
        parameters.push(parameter("within_s", words, number(0)));
    }
    for column in resource.columns {
        let words = format!("Only rows with this value: {}.", column.title);
        parameters.push(parameter(column.name, &words, text()));
    }
    parameters
}

fn parameter(name: &str, description: &str, schema: ObjectBuilder) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
}

/// A page of rows, with the number of rows to skip for the next one.
fn page(resource: &Resource) -> ResponseBuilder {
    let row = resource
        .columns
        .iter()
        .fold(ObjectBuilder::new(), |row, column| row.property(column.name, value(column)));
    let next = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .property("skip", ObjectBuilder::new().schema_type(Type::Integer));
    let page = ObjectBuilder::new()
        .property("items", ArrayBuilder::new().items(row))
        .property("next", next)
        .required("items")
        .required("next");
    ResponseBuilder::new()
        .description("The answer. Its ETag may be sent as If-None-Match.")
        .content("application/json", ContentBuilder::new().schema(Some(page)).build())
}

fn value(column: &Column) -> ObjectBuilder {
    let (kind, words) = match column.kind {
        Kind::Text | Kind::Line | Kind::Key | Kind::Device => {
            (Type::String, column.title.to_string())
        }
        Kind::Number | Kind::Rollout => (Type::Integer, column.title.to_string()),
        Kind::Time => (Type::Integer, format!("{}, in seconds since 1970 UTC", column.title)),
    };
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([kind, Type::Null]))
        .description(Some(words))
}
