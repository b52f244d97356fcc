//! The part of the API that changes things, the same over HTTP and in a session: which request it is,
//! and whether the pass goes so far.

pub(crate) mod lists;
pub(crate) mod people;
pub(crate) mod resource;
mod secrets;
pub(crate) mod sign_in;
mod standing;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tenure_wire::hub::{self, Scope};

use crate::devices::revoked;
use crate::exchange::once::once;
use crate::exchange::{Exchange, Reply, no_room, pairs, segments_of};
use crate::running::Running;
use crate::running::acts::ACTS_MAX;
use crate::store::sql::{self, Connection};
use crate::{alarms, registry, rollouts};
use sign_in::{Holder, revoke};

/// The longest body of a request outside of the registry, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 256 * 1024;

/// What is said of a pass that was ended while the request was on its way.
pub(crate) const PASS_IS_OVER: &str = "this pass is over: sign in anew";
const NOT_OPEN: &str = "this token doesn't open that";

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
    if !holder.is_good(connection, exchange.unix_s)? {
        return Ok(Reply::problem(StatusCode::UNAUTHORIZED, PASS_IS_OVER));
    }
    if let Some(refusal) = refusal(holder, &exchange.method, &exchange.segments) {
        return Ok(refusal);
    }
    let segments: Vec<&str> = exchange.segments.iter().map(String::as_str).collect();
    match segments[..] {
        ["v1", name @ "rollouts"] if is_read => lists::answer(connection, holder, name, exchange),
        ["v1", "rollouts", ..] if is_read => rollouts::answer(connection, exchange),
        ["v1", "rollouts"] | ["v1", "rollouts", _, "resume"] => match no_room(connection)? {
            Some(refusal) => Ok(refusal),
            None => once(connection, exchange, || rollouts::answer(connection, exchange)),
        },
        ["v1", "rollouts", ..] => {
            once(connection, exchange, || rollouts::answer(connection, exchange))
        }
        ["v1", "revocations"] if !is_read => revoked::take(connection, exchange),
        ["v1", "rule-alarms", id, "acknowledge"] if !is_read => {
            alarms::answer(connection, exchange, id)
        }
        ["v1", "people", ..] if !is_read => people::answer(connection, holder, exchange),
        ["v1", "passes", id, "revoke"] if !is_read => {
            let id = id.parse().ok();
            let ended = id.map(|id| revoke(connection, holder, exchange, id)).transpose()?;
            Ok(match ended {
                Some(true) => Reply::empty(StatusCode::NO_CONTENT),
                _ => Reply::problem(StatusCode::NOT_FOUND, "there is no such pass"),
            })
        }
        ["v1", "packages", digest] if is_read => registry::package(connection, exchange, digest),
        ["v1", name] if is_read => lists::answer(connection, holder, name, exchange),
        ["v2", ..] => registry::answer(connection, exchange),
        _ => Ok(Reply::problem(StatusCode::FORBIDDEN, NOT_OPEN)),
    }
}

/// What a request leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// Nothing that grows for good; or what is bounded by what it belongs to, as parts of uploads and steps of rollouts are.
    Nothing,
    /// An entry of the audit log.
    Entry,
    /// An entry, too, and something is over by it that somebody had.
    End,
}

impl Leaves {
    fn of(exchange: &Exchange) -> Self {
        let segments: Vec<&str> = exchange.segments.iter().map(String::as_str).collect();
        match segments[..] {
            _ if exchange.is_read() => Self::Nothing,
            ["v1", "rollouts", _, "next"] | ["v1", "rollouts", _, "devices", ..] => Self::Nothing,
            ["v2", .., "manifests", _] => Self::Entry,
            ["v2", ..] => Self::Nothing,
            ["v1", "passes", ..] | ["v1", "people", _, "dismiss"] | ["v1", "revocations"] => {
                Self::End
            }
            ["v1", "rollouts", _, "pause" | "abort" | "roll-back"] => Self::End,
            _ => Self::Entry,
        }
    }
}

/// Counts a request among what its key, or the person, changes in this day. Returns the refusal of one too many; what ends
/// something is done all the same, and noted no more.
pub(crate) fn count(running: &Running, holder: &Holder, exchange: &mut Exchange) -> Option<Reply> {
    let leaves = Leaves::of(exchange);
    if leaves == Leaves::Nothing {
        return None;
    }
    let is_left = running.acts().take(&holder.who, holder.actor(), exchange.unix_s);
    exchange.is_noted = is_left;
    let text = format!("that is more than {ACTS_MAX} changes in a day; go on tomorrow (UTC)");
    (!is_left && leaves == Leaves::Entry)
        .then(|| Reply::problem(StatusCode::TOO_MANY_REQUESTS, &text))
}

/// Why a request isn't done that this pass doesn't open; `None` if it does. Its head says so, before there is a body.
pub(crate) fn refusal(holder: &Holder, method: &Method, segments: &[String]) -> Option<Reply> {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let may = |scope| holder.may(scope) || (is_read && holder.may(Scope::Read));
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let is_open = match segments[..] {
        ["v1", "rollouts", ..] => may(Scope::Rollouts),
        ["v1", "packages", _] => is_read && may(Scope::Packages),
        ["v2", ..] => may(Scope::Packages),
        ["v1", _] if is_read => holder.may(Scope::Read),
        ["v1", "revocations"] => holder.may(Scope::Rollouts),
        ["v1", "rule-alarms", _, "acknowledge"] => !is_read && holder.may(Scope::Alarms),
        ["v1", "people", ..] => !is_read && holder.may(Scope::People),
        ["v1", "passes", _, "revoke"] => !is_read && holder.may(Scope::Passes),
        _ => false,
    };
    (!is_open).then(|| match segments[..] {
        ["v2", ..] => registry::Code::Denied.reply("this token doesn't open packages"),
        _ => Reply::problem(StatusCode::FORBIDDEN, NOT_OPEN),
    })
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
    running: &Running,
) -> Result<hub::Response, sql::Error> {
    let reply = match read(holder, request, unix_s, running.hears_since_unix_s(unix_s)) {
        Some(mut asked) => match count(running, holder, &mut asked) {
            Some(refusal) => refusal,
            None => exchange(connection, holder, &asked)?,
        },
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
        by: holder.by(),
        person: holder.person().to_string(),
        unix_s,
        hub_hears_since_unix_s,
        is_noted: true,
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
