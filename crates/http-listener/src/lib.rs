//! HTTP/1.1 connections of a server, on one thread, with TLS or without, bounded by host, number, bytes and time; and which
//! [`Site`] a browser's request comes from, and which [`range`] of an answer it asks for.
//!
//! Invariants:
//! - A connection has a place, which it gives back when it ends; without one it waits, or is closed.
//! - A connection that breaks, or takes too long, concerns its client alone.
//! - What a client doesn't take waits in a bounded buffer of the system's, and for a bounded time.
//! - A client that asks again before it was answered waits for the others' turns.
#![forbid(unsafe_code)]

mod certificates;
mod client;
mod hosts;
pub mod range;
mod site;

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Empty};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

pub use certificates::{CertificateError, Certificates};
use client::Client;
use hosts::{Admission, Hosts, Place};
pub use site::Site;

/// The host that a request comes from, among its extensions where hosts have shares of the connections. Of IPv6 one network
/// (/64) counts as one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host(pub IpAddr);

impl Host {
    /// The host as the proxy before a server tells it: the last one, as a client may send others before it.
    pub fn told_by_proxy(headers: &HeaderMap) -> Option<Self> {
        let told = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
        let address = told.rsplit(',').next()?.trim().parse().ok()?;
        Some(Self(hosts::host_of(address)))
    }
}

/// The bounds of a server's connections.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The most connections at once; more wait.
    pub connections: usize,
    /// Whether each host has a share of them. Behind a proxy all come from one host, and the proxy says how many.
    pub by_host: bool,
    /// The most header fields of a request, in number.
    pub headers: usize,
    /// The most bytes that they take, with the request's line.
    pub header_bytes: usize,
    /// How long a client may take to send them; and before that, for the handshake of TLS.
    pub header_timeout: Duration,
    /// How long a client may take none of what it is sent.
    pub progress_timeout: Duration,
    /// The longest life of a connection.
    pub connection_timeout: Duration,
}

impl Bounds {
    /// The bounds where nothing asks for others: 256 connections, 64 fields in 16 KiB within 10 s, 30 s without progress,
    /// 10 minutes.
    pub const USUAL: Self = Self {
        connections: 256,
        by_host: true,
        headers: 64,
        header_bytes: 16 * 1024,
        header_timeout: Duration::from_secs(10),
        progress_timeout: Duration::from_secs(30),
        connection_timeout: Duration::from_secs(10 * 60),
    };
}

/// The way in.
#[derive(Debug)]
pub struct Entrance {
    /// The connections that come.
    pub listener: TcpListener,
    /// The server's certificate, if it speaks TLS.
    pub certificates: Option<Certificates>,
}

impl From<TcpListener> for Entrance {
    /// One without TLS.
    fn from(listener: TcpListener) -> Self {
        Self { listener, certificates: None }
    }
}

/// Answers the requests that come by `entrance` with `answer`, on a thread of its own with this `name`, until the
/// process ends. Returns the address.
///
/// # Errors
/// The system has no thread.
pub fn serve<A, F, B>(
    entrance: impl Into<Entrance>,
    name: &str,
    bounds: Bounds,
    answer: A,
) -> std::io::Result<SocketAddr>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    let Entrance { listener, certificates } = entrance.into();
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let serve = move || runtime.block_on(accept(listener, certificates, bounds, answer));
    std::thread::Builder::new().name(name.into()).spawn(serve)?;
    Ok(address)
}

/// Takes connections, each served by a task of its own.
async fn accept<A, F, B>(
    listener: tokio::net::TcpListener,
    certificates: Option<Certificates>,
    bounds: Bounds,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    let tls = certificates.map(|certificates| {
        tokio::spawn(certificates.clone().watch());
        TlsAcceptor::from(certificates.config())
    });
    let hosts = Hosts::new(bounds.connections, bounds.by_host);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Too many open files, most likely: some close meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(place) = place(&hosts, from.ip()).await else { continue };
        let client = Client::new(stream, bounds.progress_timeout);
        let host = bounds.by_host.then(|| Host(hosts::host_of(from.ip())));
        let (tls, answer, bounds) = (tls.clone(), answer.clone(), bounds.clone());
        tokio::spawn(async move {
            let place = Arc::new(place);
            let connection = async {
                match tls {
                    None => converse(client, (host, &place), &bounds, answer).await,
                    // One that sends nothing ends here, as one without TLS does at its headers.
                    Some(tls) => match timeout(bounds.header_timeout, tls.accept(client)).await {
                        Ok(Ok(stream)) => converse(stream, (host, &place), &bounds, answer).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
                        Err(_) => {}
                    },
                }
            };
            let connection = timeout(bounds.connection_timeout, connection);
            let (mut connection, mut displaced) = (pin!(connection), pin!(place.displaced()));
            poll_fn(|context| match displaced.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => connection.as_mut().poll(context).map(drop),
            })
            .await;
        });
    }
}

/// A place for a connection that came, as soon as there is one; `None` if its host has its part.
async fn place(hosts: &Hosts, from: IpAddr) -> Option<Place> {
    loop {
        match hosts.take(from) {
            Admission::Place(place) => return Some(place),
            Admission::Refused => return None,
            Admission::Full => hosts.freed().await,
        }
    }
}

/// Answers the requests of one connection, until it ends or whoever answered one has it for another protocol. It has no place
/// then, and none of these bounds but that of what a client doesn't take.
async fn converse<S, A, F, B>(
    stream: S,
    (host, place): (Option<Host>, &Arc<Place>),
    bounds: &Bounds,
    answer: A,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data: Send, Error: std::error::Error + Send + Sync> + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        let asked = Asked::of(place);
        if let Some(host) = host {
            request.extensions_mut().insert(host);
        }
        let answer = match is_framed_well(request.headers()) {
            true => Some(answer(request)),
            false => None,
        };
        async move {
            // Its next request may be there already. Without this the others' connections aren't looked at until it has no
            // more of them.
            yield_now().await;
            let Some(answer) = answer else { return Ok(badly_framed()) };
            let answer = answer.await.map(|body| {
                let asked = asked;
                // The request is answered when its body is dropped, which has this with it.
                Either::Left(body.map_err(move |error| asked.keep(error)))
            });
            Ok::<_, Infallible>(answer)
        }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .max_headers(bounds.headers)
        .max_buf_size(bounds.header_bytes);
    // A connection that breaks concerns its client alone.
    let _ = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

/// A request that is answered; once it is dropped, its connection waits for the next one.
struct Asked(Arc<Place>);

impl Asked {
    fn of(place: &Arc<Place>) -> Self {
        place.is_asked();
        Self(Arc::clone(place))
    }

    /// Returns what it is given, so that whoever holds that has this, too.
    fn keep<T>(&self, kept: T) -> T {
        kept
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.waits();
    }
}

/// Whether the end of a request's body has one reading: of codings there is `chunked` alone, said once. Who stands before this
/// server may understand others, or ignore one that comes twice (RFC 9112 §6.1).
fn is_framed_well(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

/// The answer to a request whose body has a coding that isn't understood, the last one on its connection (RFC 9112 §6.1).
fn badly_framed<L, D: hyper::body::Buf>() -> Response<Either<L, Empty<D>>> {
    let mut answer = Response::new(Either::Right(Empty::new()));
    *answer.status_mut() = StatusCode::NOT_IMPLEMENTED;
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_behind_a_proxy_is_the_one_that_the_proxy_adds() {
        for (told, address) in [
            (&["198.51.100.1, 192.0.2.7"][..], Some("192.0.2.7")),
            (&["198.51.100.1", "192.0.2.7"], Some("192.0.2.7")),
            (&["2001:db8::1"], Some("2001:db8::")),
            (&["::1"], Some("::1")),
            (&["192.0.2.7, me"], None),
            (&[""], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for told in told {
                headers.append("x-forwarded-for", told.parse().unwrap());
            }
            let host = address.map(|address: &str| Host(address.parse().unwrap()));
            assert_eq!(Host::told_by_proxy(&headers), host);
        }
    }
}
