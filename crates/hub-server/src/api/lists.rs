//! Lists in JSON, the same over HTTP and in a session.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::api::resource::{Cell, Request, Resource, Rows, resource};
use crate::api::sign_in::Holder;
use crate::exchange::{Exchange, Reply};
use crate::store::sql::{self, Connection};

/// Answers `GET /v1/RESOURCE` of a pass that may read.
///
/// # Errors
/// The database fails.
pub(crate) fn answer(
    connection: &Connection,
    holder: &Holder,
    name: &str,
    exchange: &Exchange,
) -> Result<Reply, sql::Error> {
    let Some(resource) = resource(name) else {
        return Ok(Reply::problem(StatusCode::NOT_FOUND, "there is no such list"));
    };
    let request = match Request::parse(resource, &exchange.parameters) {
        Ok(request) => request,
        Err(error) => return Ok(Reply::problem(StatusCode::BAD_REQUEST, &error)),
    };
    let rows = resource.rows(connection, holder, &request)?;
    Ok(Reply::json(StatusCode::OK, &page(resource, &rows)))
}

/// A page of a list, with the number of rows to skip for the next one.
pub(crate) fn page(resource: &Resource, rows: &Rows) -> Value {
    let items: Vec<Value> = rows.rows.iter().map(|row| object(resource, row)).collect();
    let next = rows.next.map(|skip| json!({ "skip": skip }));
    json!({ "items": items, "next": next })
}

/// A row as an object.
pub(crate) fn object(resource: &Resource, row: &[Cell]) -> Value {
    let pairs = resource.columns.iter().zip(row).map(|(column, cell)| {
        let value = match cell {
            Cell::Text(text) => json!(text),
            Cell::Number(number) => json!(number),
            Cell::None => Value::Null,
        };
        (column.name.to_string(), value)
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}
