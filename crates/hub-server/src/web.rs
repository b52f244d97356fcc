//! The hub over HTTP: pages for people, an API for programs.
//!
//! Invariants:
//! - Nothing of a device or an owner is shown without a pass, and a pass shows its key's rows alone.
//! - Pages load nothing from elsewhere and run no script but our own file (Content-Security-Policy).
//! - A change that a browser asks for is made only if the request comes from our own pages.
//! - Connections, the length of headers and bodies, and the time of a request are bounded.

mod api;
mod bill_pages;
mod bodies;
mod charts;
mod gate;
mod hosts;
mod installing;
mod log_pages;
mod openapi;
mod openapi_rollouts;
mod pages;
mod rollout_pages;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum_core::response::{IntoResponse as _, Response};
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rusqlite::Connection;
use tenure_package::Tariff;
use tokio::sync::Semaphore;

use crate::api::Part;
use crate::database::Database;
use crate::error::DatabaseError;
use crate::exchange::Exchange;
use crate::live_logs::LiveLogs;
use crate::running::Running;
use crate::web::bodies::Bodies;
use crate::web::hosts::Hosts;

/// The most connections at once; more wait.
const CONNECTIONS_MAX: usize = 256;
/// The longest body of a request, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 256 * 1024;
/// The most headers of a request, and bytes that they take.
const HEADERS_MAX: usize = 64;
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// How long a client may take to send the headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request may take, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest life of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The database connections that are kept for the next requests.
const IDLE_MAX: usize = 4;

/// The pages of a hub.
#[derive(Debug)]
pub struct Pages {
    /// The hub's database.
    pub database: PathBuf,
    /// The prices of bills.
    pub tariff: Option<Tariff>,
    /// Whether browsers reach the pages by a proxy with TLS, so that cookies never travel without it.
    pub by_tls: bool,
    /// The hub that runs.
    pub running: Running,
}

/// The state that the pages are served from.
#[derive(Clone)]
pub(crate) struct State(Arc<Shared>);

struct Shared {
    pages: Pages,
    idle: Mutex<Vec<Database>>,
    bodies: Bodies,
}

/// Serves the pages of a hub by `listener`, on a thread of its own, until the process ends. Returns the address.
///
/// # Errors
/// The system has no thread.
pub fn serve(listener: TcpListener, pages: Pages) -> std::io::Result<SocketAddr> {
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let state = State::new(pages);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let serve = move || runtime.block_on(accept(listener, state));
    std::thread::Builder::new().name("pages".into()).spawn(serve)?;
    Ok(address)
}

/// Answers a request, within its time and with the headers that every answer has.
async fn answer(state: State, request: Request<Incoming>) -> Response {
    let refusal = gate::refusal(request.method(), request.uri().path(), request.headers());
    let mut response = match refusal {
        Some(refusal) => refusal,
        None => tokio::time::timeout(REQUEST_TIMEOUT, route(state, request))
            .await
            .unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response()),
    };
    gate::protect(&mut response);
    response
}

/// Finds the page or the part of the API that a request means.
async fn route(state: State, request: Request<Incoming>) -> Response {
    if let Some(part) = crate::api::part(request.method(), request.uri().path()) {
        return exchange(state, part, request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let body = body.to_bytes().to_vec();
    let (headers, parameters) = (parts.headers, pairs(parts.uri.query().unwrap_or("").as_bytes()));
    let segments = segments_of(parts.uri.path());
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let code = |pairs: &[(String, String)]| {
        pairs
            .iter()
            .find(|(name, _)| name == "code")
            .map_or_else(String::new, |(_, code)| code.clone())
    };
    match parts.method {
        Method::GET | Method::HEAD => match segments[..] {
            [""] => pages::home(state, headers, parameters).await,
            ["sign-in"] => pages::sign_in(state, headers, code(&parameters)).await,
            ["style.css"] => pages::style(),
            ["live.js"] => pages::script(),
            ["log.js"] => log_pages::script(),
            ["icon.svg"] => pages::icon(),
            ["metrics"] => api::metrics(state, headers).await,
            ["bills"] => bill_pages::page_of(state, headers, parameters).await,
            ["bills.csv"] => bill_pages::csv(state, headers, parameters).await,
            ["devices", device] => pages::device(state, device.into(), headers).await,
            ["rollouts", id] => match id.parse() {
                Ok(id) => rollout_pages::show(state, id, headers).await,
                Err(_) => pages::missing(),
            },
            ["v1", "openapi.json"] => openapi::document(),
            ["v1", "devices", device, "log"] => {
                log_pages::stream(state, device.into(), headers, parameters).await
            }
            ["v1", "bills"] => bill_pages::json(state, headers, parameters).await,
            ["v1", name] => api::list(state, name.into(), headers, parameters).await,
            [name] => pages::list(state, name.into(), headers, parameters).await,
            _ => pages::missing(),
        },
        Method::POST => match segments[..] {
            ["sign-in"] => pages::sign_in_by_form(state, code(&pairs(&body))).await,
            ["sign-out"] => pages::sign_out(state, headers).await,
            ["passes", id, "revoke"] => match id.parse() {
                Ok(id) => pages::revoke(state, id, headers).await,
                Err(_) => pages::missing(),
            },
            ["rollouts", id, verb] => match id.parse() {
                Ok(id) => rollout_pages::steer(state, id, verb.into(), headers).await,
                Err(_) => pages::missing(),
            },
            ["v1", "receipts"] => api::take_receipts(state, headers, body).await,
            _ => pages::missing(),
        },
        _ => {
            let allowed = [(header::ALLOW, "GET, HEAD, POST")];
            (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response()
        }
    }
}

/// Answers a request that the API for sessions answers, too. Who has no pass is refused before the body
/// is read.
async fn exchange(state: State, part: Part, request: Request<Incoming>) -> Response {
    let (parts, body) = request.into_parts();
    let holder = match gate::holder(&state, &parts.headers).await {
        Ok(holder) => holder,
        Err(answer) => return gate::asking_for_a_password(answer),
    };
    let _place = match body.is_end_stream() {
        true => None,
        false => match state.0.bodies.take(&holder.who).await {
            Ok(place) => Some(place),
            Err(_) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        },
    };
    let Ok(body) = Limited::new(body, part.body_bytes_max()).collect().await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let asked = Exchange {
        method: parts.method,
        segments: segments_of(parts.uri.path()),
        parameters: pairs(parts.uri.query().unwrap_or("").as_bytes()),
        headers: parts.headers,
        body: body.to_bytes().to_vec(),
        who: holder.who.clone(),
        unix_s: now(),
        hub_hears_since_unix_s: state.hears_since_unix_s(),
    };
    let reply = state.run(move |_, database| {
        let answer = |connection: &Connection| crate::api::exchange(connection, &holder, &asked);
        match part {
            Part::Packages if asked.is_read() => database.look(answer),
            // A rollout takes the steps that are due before it is shown.
            Part::Packages | Part::Rollouts => database.transact(answer),
        }
    });
    match reply.await {
        Ok(reply) => (reply.status, reply.header_map(), reply.body).into_response(),
        Err(answer) => answer,
    }
}

/// The segments of a path, decoded.
pub(crate) fn segments_of(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(decoded).collect()
}

/// Names and values of an address or a form.
pub(crate) fn pairs(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text).into_owned().collect()
}

/// A segment of a path, decoded. A plus sign stands for itself there.
fn decoded(segment: &str) -> String {
    let escaped = segment.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(escaped.as_bytes()).map(|(name, _)| name.into_owned()).collect()
}

/// Takes connections, each served by a task of its own.
async fn accept(listener: tokio::net::TcpListener, state: State) {
    let (places, hosts) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Hosts::default());
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, from)) = listener.accept().await else {
            // Too many open files, most likely: some close meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Behind a proxy all come from one host, and the proxy says how many.
        let of_host =
            if state.0.pages.by_tls { None } else { Some(hosts.take(from.ip(), CONNECTIONS_MAX)) };
        if matches!(of_host, Some(None)) {
            continue;
        }
        let state = state.clone();
        let service = service_fn(move |request| {
            let state = state.clone();
            async move { Ok::<_, Infallible>(answer(state, request).await) }
        });
        tokio::spawn(async move {
            let mut server = hyper::server::conn::http1::Builder::new();
            server
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .max_headers(HEADERS_MAX)
                .max_buf_size(HEADER_BYTES_MAX);
            let connection = server.serve_connection(TokioIo::new(stream), service);
            // A connection that breaks or takes too long concerns its client alone.
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
            drop((place, of_host));
        });
    }
}

impl State {
    fn new(pages: Pages) -> Self {
        let (idle, bodies) = (Mutex::new(Vec::new()), Bodies::new());
        Self(Arc::new(Shared { pages, idle, bodies }))
    }

    /// The attributes after `name=value` in the cookie of a browser that is signed in (RFC 6265 4.1).
    pub(crate) fn cookie_attributes(&self) -> &'static str {
        if self.0.pages.by_tls {
            "Secure; HttpOnly; SameSite=Strict; Path=/"
        } else {
            "HttpOnly; SameSite=Strict; Path=/"
        }
    }

    /// The prices, if the hub has any.
    pub(crate) fn tariff(&self) -> Option<&Tariff> {
        self.0.pages.tariff.as_ref()
    }

    /// The logs that are watched.
    pub(crate) fn logs(&self) -> &LiveLogs {
        self.0.pages.running.logs()
    }

    /// Since when the hub has heard without a gap, in seconds since 1970 UTC.
    pub(crate) fn hears_since_unix_s(&self) -> u64 {
        self.0.pages.running.hears_since_unix_s()
    }

    /// Runs `action` on a connection to the database, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The answer that says that the database failed.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Self, &mut Database) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, Response> {
        let state = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut database = state.database()?;
            let done = action(&state, &mut database)?;
            // One that failed isn't used again.
            state.keep(database);
            Ok::<T, DatabaseError>(done)
        });
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(unavailable(&error.to_string())),
            Err(_) => Err(unavailable("the request failed inside")),
        }
    }

    fn database(&self) -> Result<Database, DatabaseError> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Pages { database, running, .. } = &self.0.pages;
        idle.map_or_else(|| Database::beside(database, running), Ok)
    }

    fn keep(&self, database: Database) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(database);
        }
    }
}

fn unavailable(reason: &str) -> Response {
    let text = format!("the hub can't answer now: {reason}\n");
    (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "5")], text).into_response()
}

/// The wall clock, in seconds since 1970 UTC.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
