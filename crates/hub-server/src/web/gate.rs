//! Before and after each request: whose pass it carries, whether a change comes from our own pages, and
//! the headers that keep pages to themselves.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tenure_http_listener::Site;
use tenure_pages::HUB_SESSION;
use tenure_wire::hub::Scope;

use crate::api::sign_in::{self, Holder};
use crate::web::now;
use crate::web::state::HubState;

/// The cookie that holds the secret of a browser's session, where there is no TLS.
pub(crate) const COOKIE: &str = HUB_SESSION;
/// The same where there is: no page of another host or port, and no plain one, can set it (RFC 6265bis §4.1.3.2).
pub(crate) const COOKIE_OF_TLS: &str = "__Host-tenure_session";

/// A browser that has seen the hub over TLS goes there in no other way, for a year (RFC 6797 §6.1).
const STAYS_WITH_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

const HEADERS: [(header::HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Lets a request through unless it is a change that another site asks a browser for, and keeps the answer to itself.
pub(crate) async fn guard(State(hub): State<HubState>, request: Request, next: Next) -> Response {
    let mut answer = match is_foreign_change(&hub, &request) {
        true => {
            let text = "this request doesn't come from the hub's own pages\n";
            (StatusCode::FORBIDDEN, text).into_response()
        }
        false => next.run(request).await,
    };
    protect(&mut answer);
    if hub.is_by_tls() {
        answer.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, STAYS_WITH_TLS);
    }
    answer
}

fn is_foreign_change(hub: &HubState, request: &Request) -> bool {
    let (path, headers) = (request.uri().path(), request.headers());
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    is_change && !is_from_here(headers) && !is_bare(hub, path, headers)
}

/// Sets the headers of every answer.
pub(crate) fn protect(response: &mut Response) {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}

/// Whether a change may be made: a program shows a token, which no browser adds by itself; a browser says
/// which site the request comes from. A browser remembers a password (RFC 7617), so what shows one is
/// a program only if it says nothing of a site.
fn is_from_here(headers: &HeaderMap) -> bool {
    let credentials = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let site = Site::of(headers);
    let is_of_program = |text: &str| bearer(text).is_some() || site == Site::Unsaid;
    site == Site::Own || credentials.is_some_and(is_of_program)
}

/// Whether a program asks the API for something without a pass. The answer is the challenge (RFC 9110 15.5.2), by
/// which clients of registries learn to sign in.
fn is_bare(hub: &HubState, path: &str, headers: &HeaderMap) -> bool {
    let is_of_api = path.starts_with("/v1/") || path == "/v2" || path.starts_with("/v2/");
    let has_pass = headers.contains_key(header::AUTHORIZATION) || session(hub, headers).is_some();
    is_of_api && !has_pass && Site::of(headers) == Site::Unsaid
}

/// The secret of the browser's session in a request. It counts for pages of the hub's own and for the user, and not where
/// another site asks, or a page of a machine, whose origin is nobody's: `SameSite=Strict` says so already, to browsers that
/// know it.
///
/// Of two that differ none counts: one may be set by another page at this host, whose tenant would have the user act in his
/// name (RFC 6265 §8.6).
pub(crate) fn session<'h>(hub: &HubState, headers: &'h HeaderMap) -> Option<&'h str> {
    if Site::of(headers) == Site::Other {
        return None;
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';'));
    let name = hub.cookie_name();
    let mut found = pairs.filter_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// The holder of the pass that a request carries, if the pass goes as far as `scope`.
///
/// # Errors
/// The answer to a request without a pass that is good, or whose pass doesn't go so far.
pub(crate) async fn holder_of(
    hub: &HubState,
    headers: &HeaderMap,
    scope: Scope,
) -> Result<Holder, Response> {
    let holder = holder(hub, headers).await?;
    if holder.may(scope) {
        return Ok(holder);
    }
    let text = format!("this token doesn't have the scope `{}`\n", scope.as_str());
    Err((StatusCode::FORBIDDEN, text).into_response())
}

/// The holder of the pass that a request carries: a token, or a browser's session.
///
/// # Errors
/// The answer to a request without a pass that is good.
pub(crate) async fn holder(hub: &HubState, headers: &HeaderMap) -> Result<Holder, Response> {
    let token = headers.get(header::AUTHORIZATION).map(|value| {
        let secret = value.to_str().ok().and_then(token);
        ("token", secret.unwrap_or_default())
    });
    let pass = token.or_else(|| Some(("page", session(hub, headers)?.to_string())));
    let Some((kind, secret)) = pass else { return Err(unauthorized()) };
    let holder = hub.run(move |hub, database| {
        let owners = hub.running().owners();
        Ok(sign_in::holder(&database.connection, kind, &secret, &owners, now(hub))?)
    });
    let holder = holder.await?.ok_or_else(unauthorized)?;
    tracing::Span::current().record("who", &*holder.who);
    note_use(hub, &holder);
    Ok(holder)
}

/// Has it written down, beside the request, that a pass is used in this hour, once. Where nothing can be written, or another one
/// is being written down, one of the next requests does.
fn note_use(hub: &HubState, holder: &Holder) {
    if !holder.was_used_earlier(now(hub)) {
        return;
    }
    let Some(turn) = hub.turn_to_note() else { return };
    let (hub, holder) = (hub.clone(), holder.clone());
    tokio::spawn(async move {
        let _turn = turn;
        let noted = hub.run(move |hub, database| {
            let unix_s = now(hub);
            database.transact(|connection| sign_in::note_use(connection, &holder, unix_s))
        });
        let _ = noted.await;
    });
}

/// The credentials behind the scheme `scheme`, whose letters have no case (RFC 9110 11.1).
fn of_scheme<'a>(credentials: &'a str, scheme: &str) -> Option<&'a str> {
    let (found, rest) = credentials.split_once(' ')?;
    found.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

fn bearer(credentials: &str) -> Option<&str> {
    of_scheme(credentials, "Bearer")
}

/// The token in an `Authorization` header: as a bearer's, or as the password of any user, which is how
/// clients of registries send it.
fn token(credentials: &str) -> Option<String> {
    if let Some(token) = bearer(credentials) {
        return Some(token.to_string());
    }
    let pair = of_scheme(credentials, "Basic")?.as_bytes();
    let pair = data_encoding::BASE64.decode(pair).ok()?;
    let pair = String::from_utf8(pair).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_string())
}

fn unauthorized() -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let text = "sign in with: tenure login\n";
    (StatusCode::UNAUTHORIZED, challenge, text).into_response()
}

/// The same answer to a client of registries, which sends a token as a password.
pub(crate) fn asking_for_a_password(mut answer: Response) -> Response {
    if answer.status() == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Basic realm=\"tenure\"");
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    answer
}
