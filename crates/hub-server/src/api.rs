//! The part of the API that changes things, the same over HTTP and in a session: which request it is,
//! and whether the pass goes so far.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rusqlite::Connection;
use tenure_wire::hub::{self, Scope};

use crate::exchange::{Exchange, Reply};
use crate::registry;
use crate::sign_in::Holder;

/// Whether this module answers requests for a path.
pub(crate) fn is_here(segments: &[&str]) -> bool {
    matches!(segments, ["v2", ..])
}

/// The most bytes of the body of a request for a path that this module answers.
pub(crate) fn body_bytes_max(path: &str) -> Option<usize> {
    path.starts_with("/v2/").then_some(registry::BLOB_BYTES_MAX)
}

/// Answers a request whose pass is `holder`'s, in the transaction that is under way.
///
/// # Errors
/// SQLite fails.
pub(crate) fn exchange(
    connection: &Connection,
    holder: &Holder,
    exchange: &Exchange,
) -> Result<Reply, rusqlite::Error> {
    let is_read = matches!(exchange.method, Method::GET | Method::HEAD);
    let may = holder.may(Scope::Packages) || (is_read && holder.may(Scope::Read));
    if !may {
        return Ok(registry::Code::Denied.reply("this token doesn't open packages"));
    }
    registry::answer(connection, exchange)
}

/// Answers a request that came in a session.
///
/// # Errors
/// SQLite fails.
pub(crate) fn answer(
    connection: &Connection,
    holder: &Holder,
    request: &hub::Request,
    unix_s: u64,
) -> Result<hub::Response, rusqlite::Error> {
    let reply = match read(holder, request, unix_s) {
        Some(asked) => exchange(connection, holder, &asked)?,
        None => Reply::problem(StatusCode::NOT_FOUND, "there is nothing here"),
    };
    let text = |(name, value): (HeaderName, String)| (name.to_string(), value);
    Ok(hub::Response {
        status: reply.status.as_u16(),
        headers: reply.headers.into_iter().map(text).collect(),
        body: if request.method == "HEAD" { Vec::new() } else { reply.body },
    })
}

/// A request of a session as it would be over HTTP; `None` if it is none for this module.
fn read(holder: &Holder, request: &hub::Request, unix_s: u64) -> Option<Exchange> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let segments = crate::web::segments_of(path);
    let names: Vec<&str> = segments.iter().map(String::as_str).collect();
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let name = HeaderName::try_from(name.as_str()).ok()?;
        headers.insert(name, HeaderValue::try_from(value.as_str()).ok()?);
    }
    is_here(&names).then_some(())?;
    Some(Exchange {
        method: Method::from_bytes(request.method.as_bytes()).ok()?,
        segments,
        parameters: crate::web::pairs(query.as_bytes()),
        headers,
        body: request.body.clone(),
        who: holder.who.clone(),
        unix_s,
    })
}
