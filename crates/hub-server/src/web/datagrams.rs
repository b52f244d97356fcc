//! `GET /datagrams`: the datagrams of devices and commands whose network blocks UDP, by WebSocket (RFC 6455).
//!
//! Who is there shows in the sessions inside, as with UDP. A host at which the hub lists no device is a stranger's: its connections
//! get a place among few, and a slow pace (`running::carried`).
//!
//! Invariants:
//! - A connection holds one message of a client's, and what waits in its bounded queues.
//! - One that is silent for [`GONE_AFTER`] ends. Each message takes of its pace, and so do bytes that hold none.
//! - No browser opens one: a page would speak for its visitor's network.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper_util::rt::TokioIo;
use tenure_http_listener::{Host, Site};
use tenure_reach::websocket::{
    Broken, DATAGRAMS_PATH, Incoming, Kind, Message, SUBPROTOCOL, Side, VERSION, accept_of, close,
    frame, is_key,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::running::carried::{Connection, Work};
use crate::web::answers::problem;
use crate::web::gate;
use crate::web::state::HubState;

/// The bytes that are read at once.
const PART_BYTES: usize = 4 * 1024;
/// After how long without anything to send a client is asked whether it is there.
const ASKED_AFTER: Duration = Duration::from_secs(30);
/// After which silence it isn't.
const GONE_AFTER: Duration = Duration::from_secs(75);
/// How long its end may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// The time that a message takes of a client's pace: of a stranger's, and of another's.
const PACE_OF_STRANGERS: Duration = Duration::from_millis(10);
const PACE: Duration = Duration::from_millis(1);
/// How much of its pace a client may have in hand.
const PACE_IN_HAND: u32 = 64;

pub(super) fn routes() -> Router<HubState> {
    Router::new().route(DATAGRAMS_PATH, get(open))
}

async fn open(State(hub): State<HubState>, mut request: Request) -> Response {
    let key = match key_of(&request) {
        Ok(key) => key,
        Err((status, text)) => return refused(status, text),
    };
    let host = match hub.is_by_proxy() {
        true => Host::told_by_proxy(request.headers()),
        false => request.extensions().get::<Host>().copied(),
    };
    // All that a proxy says nothing of are one host.
    let host = host.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Host(address)| address);
    let Some(connection) = hub.running().carry(host) else {
        let text = "there is no place for another connection from this host now";
        let mut answer = refused(StatusCode::SERVICE_UNAVAILABLE, text);
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        return answer;
    };
    let has_protocol = has_token(request.headers(), header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        // A client that is gone by then gives its place back.
        if let Ok(upgraded) = upgrade.await {
            carry(TokioIo::new(upgraded), &connection).await;
        }
    });
    switched(&key, has_protocol)
}

/// The key of a request that asks for WebSocket (RFC 6455 §4.2.1).
///
/// # Errors
/// The answer to one that doesn't, or doesn't well.
fn key_of(request: &Request) -> Result<String, (StatusCode, &'static str)> {
    let headers = request.headers();
    if Site::of(headers) != Site::Unsaid {
        return Err((StatusCode::FORBIDDEN, "devices and commands come here, and no browser does"));
    }
    let asks = request.method() == Method::GET
        && has_token(headers, header::CONNECTION, "upgrade")
        && has_token(headers, header::UPGRADE, "websocket");
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    if !asks || version.is_none_or(|version| version != VERSION) {
        let text = "datagrams come here by WebSocket, version 13; a proxy before the hub must let Upgrade through";
        return Err((StatusCode::UPGRADE_REQUIRED, text));
    }
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    match (keys.next().and_then(|key| key.to_str().ok()), keys.next()) {
        (Some(key), None) if is_key(key) => Ok(key.to_owned()),
        _ => Err((StatusCode::BAD_REQUEST, "Sec-WebSocket-Key isn't one key of 16 bytes")),
    }
}

/// Whether a field's list has a word, whose letters have no case.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(token))
}

fn refused(status: StatusCode, text: &str) -> Response {
    let mut answer = problem(status, text);
    gate::protect(&mut answer);
    if status == StatusCode::UPGRADE_REQUIRED {
        let headers = answer.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
    }
    answer
}

/// The answer after which WebSocket is spoken.
fn switched(key: &str, has_protocol: bool) -> Response {
    let accept = accept_of(key);
    let fields = [
        (header::CONNECTION, "Upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_ACCEPT, accept.as_str()),
    ];
    let mut answer = (StatusCode::SWITCHING_PROTOCOLS, fields, Body::empty()).into_response();
    if has_protocol {
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        answer.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    answer
}

/// The other side's question, which is answered before anything else: the last one counts (RFC 6455 §5.5.3).
#[derive(Default)]
struct Asked {
    question: std::sync::Mutex<Option<Vec<u8>>>,
    came: Notify,
}

impl Asked {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Vec<u8>>> {
        self.question.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Lets datagrams through until either side ends the connection.
async fn carry(stream: impl AsyncRead + AsyncWrite, connection: &Connection) {
    let (from, mut to) = tokio::io::split(stream);
    let asked = Asked::default();
    let broken = {
        let (reads, writes) =
            (pin!(read(from, connection, &asked)), pin!(write(&mut to, connection, &asked)));
        match select(reads, writes).await {
            Either::Left((broken, _)) => broken,
            Either::Right(((), _)) => None,
        }
    };
    connection.end();
    let goodbye = async {
        to.write_all(&close(Side::Server, broken, [0; 4])).await?;
        to.shutdown().await
    };
    // A client that doesn't take it is gone.
    let _ = timeout(GOODBYE, goodbye).await;
}

/// Takes what comes, at the client's pace; what it did wrong, if that ends the connection.
async fn read(
    mut from: impl AsyncRead + Unpin,
    connection: &Connection,
    asked: &Asked,
) -> Option<Broken> {
    let (mut incoming, mut part) = (Incoming::new(Side::Server), vec![0; PART_BYTES]);
    let mut due = Instant::now();
    loop {
        let Ok(Ok(length @ 1..)) = timeout(GONE_AFTER, from.read(&mut part)).await else {
            return None;
        };
        incoming.take(part.get(..length).unwrap_or_default());
        let mut is_paced = false;
        loop {
            match incoming.message() {
                Ok(None) if is_paced => break,
                // Frames without a word, or the beginning of one.
                Ok(None) => {}
                Ok(Some(Message::Datagram(datagram))) => {
                    if !connection.arrive(datagram).await {
                        return None;
                    }
                }
                Ok(Some(Message::Ping(question))) => {
                    *asked.lock() = Some(question);
                    asked.came.notify_one();
                }
                Ok(Some(Message::Pong)) => {}
                Ok(Some(Message::Close)) => return None,
                Err(broken) => return Some(broken),
            }
            is_paced = true;
            due = due_after(due, connection);
            sleep_until(due).await;
        }
    }
}

/// When a client's next message is due if the one now was `due`.
fn due_after(due: Instant, connection: &Connection) -> Instant {
    let pace = if connection.is_strangers() { PACE_OF_STRANGERS } else { PACE };
    let now = Instant::now();
    let in_hand = now.checked_sub(pace * PACE_IN_HAND).unwrap_or(now);
    due.max(in_hand) + pace
}

/// Sends what waits, and asks a client to which nothing is to be sent whether it is there.
async fn write(to: &mut (impl AsyncWrite + Unpin), connection: &Connection, asked: &Asked) {
    loop {
        let question = asked.lock().take();
        let bytes = match question {
            Some(question) => frame(Side::Server, Kind::Pong, &question, [0; 4]),
            None => match connection.work() {
                Work::Send(datagram) => frame(Side::Server, Kind::Binary, &datagram, [0; 4]),
                Work::End => return,
                Work::Nothing => {
                    let waits = async {
                        select(pin!(connection.may_work()), pin!(asked.came.notified())).await;
                    };
                    if timeout(ASKED_AFTER, waits).await.is_ok() {
                        continue;
                    }
                    frame(Side::Server, Kind::Ping, &[], [0; 4])
                }
            },
        };
        if to.write_all(&bytes).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
