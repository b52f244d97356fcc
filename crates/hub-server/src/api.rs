//! The part of the API that changes things, the same over HTTP and in a session: which request it is,
//! and whether the pass goes so far.

pub(crate) mod lists;
pub(crate) mod people;
pub(crate) mod resource;
mod secrets;
pub(crate) mod sign_in;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tenure_wire::hub::{self, Scope};

use crate::devices::revoked;
use crate::exchange::once::once;
use crate::exchange::{Exchange, Reply, pairs, segments_of};
use crate::store::sql::{self, Connection};
use crate::{alarms, registry, rollouts};
use sign_in::{Holder, revoke};

/// The longest body of a request outside of the registry, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 256 * 1024;

/// Answers a request whose pass is `holder`'s, in the transaction that is under way.
///
/// # Errors
/// The database fails.
pub(crate) fn exchange(
    connection: &Connection,
    holder: &Holder,
    exchange: &Exchange,
) -> Result<Reply, sql::Error> {
    let is_read = exchange.is_read();
    let may = |scope| holder.may(scope) || (is_read && holder.may(Scope::Read));
    if !holder.is_good(connection)? {
        return Ok(Reply::problem(StatusCode::UNAUTHORIZED, "this pass is over: sign in anew"));
    }
    let segments: Vec<&str> = exchange.segments.iter().map(String::as_str).collect();
    match segments[..] {
        ["v1", "rollouts", ..] if may(Scope::Rollouts) && is_read => {
            rollouts::answer(connection, exchange)
        }
        ["v1", "rollouts", ..] if may(Scope::Rollouts) => {
            once(connection, exchange, || rollouts::answer(connection, exchange))
        }
        ["v1", "revocations"] if may(Scope::Rollouts) && !is_read => {
            revoked::take(connection, exchange)
        }
        ["v1", "rule-alarms", id, "acknowledge"] if may(Scope::Alarms) && !is_read => {
            alarms::answer(connection, exchange, id)
        }
        ["v1", "people", ..] if may(Scope::People) && !is_read => {
            people::answer(connection, exchange)
        }
        ["v1", "passes", id, "revoke"] if may(Scope::Passes) && !is_read => {
            let id = id.parse().ok();
            let ended = id.map(|id| revoke(connection, holder, id, exchange.unix_s)).transpose()?;
            Ok(match ended {
                Some(true) => Reply::empty(StatusCode::NO_CONTENT),
                _ => Reply::problem(StatusCode::NOT_FOUND, "there is no such pass"),
            })
        }
        ["v1", "packages", digest] if may(Scope::Packages) && is_read => {
            registry::package(connection, exchange, digest)
        }
        ["v1", name] if is_read && holder.may(Scope::Read) => {
            lists::answer(connection, holder, name, exchange)
        }
        ["v2", ..] if may(Scope::Packages) => registry::answer(connection, exchange),
        ["v2", ..] => Ok(registry::Code::Denied.reply("this token doesn't open packages")),
        _ => Ok(Reply::problem(StatusCode::FORBIDDEN, "this token doesn't open that")),
    }
}

/// Answers a request that came in a session.
///
/// # Errors
/// The database fails.
pub(crate) fn answer(
    connection: &Connection,
    holder: &Holder,
    request: &hub::Request,
    unix_s: u64,
    hub_hears_since_unix_s: u64,
) -> Result<hub::Response, sql::Error> {
    let reply = match read(holder, request, unix_s, hub_hears_since_unix_s) {
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
fn read(
    holder: &Holder,
    request: &hub::Request,
    unix_s: u64,
    hub_hears_since_unix_s: u64,
) -> Option<Exchange> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let segments = segments_of(path);
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let name = HeaderName::try_from(name.as_str()).ok()?;
        headers.insert(name, HeaderValue::try_from(value.as_str()).ok()?);
    }
    let method = Method::from_bytes(request.method.as_bytes()).ok()?;
    let is_list = method == Method::GET && matches!(&segments[..], [v1, _] if v1 == "v1");
    if !is_list && !is_answered_here(&method, path) {
        return None;
    }
    Some(Exchange {
        method,
        segments,
        parameters: pairs(query.as_bytes()),
        headers,
        body: request.body.clone(),
        who: holder.who.clone(),
        by: holder.by().to_string(),
        unix_s,
        hub_hears_since_unix_s,
    })
}

/// Whether a request is for one of the parts that change things: the registry, packages by their own digest, rollouts, the
/// devices that are in none any more, the acknowledgement of alarms, people, and what they are signed in with.
fn is_answered_here(method: &Method, path: &str) -> bool {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    path == "/v2"
        || [
            "/v2/",
            "/v1/packages/",
            "/v1/rollouts/",
            "/v1/rule-alarms/",
            "/v1/people/",
            "/v1/passes/",
        ]
        .iter()
        .any(|below| path.starts_with(below))
        || (matches!(path, "/v1/rollouts" | "/v1/revocations" | "/v1/people") && !is_read)
}
