//! HTTP/1.1 connections of a server, on one thread, with TLS or without, bounded by host, number, bytes and time; and which
//! [`Site`] a browser's request comes from, and which [`range`] of an answer it asks for.
//!
//! Invariants:
//! - A connection has a place, which it gives back when it ends; without one it waits, or is closed.
//! - A connection that breaks, or takes too long, concerns its client alone.
#![forbid(unsafe_code)]

mod certificates;
mod hosts;
pub mod range;
mod site;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

pub use certificates::{CertificateError, Certificates};
use hosts::Hosts;
pub use site::Site;

/// The host that a request comes from, among its extensions where hosts have shares of the connections. Of IPv6 one network
/// (/64) counts as one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host(pub IpAddr);

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
    /// The longest life of a connection.
    pub connection_timeout: Duration,
}

impl Bounds {
    /// The bounds where nothing asks for others: 256 connections, 64 fields in 16 KiB within 10 s, 10 minutes.
    pub const USUAL: Self = Self {
        connections: 256,
        by_host: true,
        headers: 64,
        header_bytes: 16 * 1024,
        header_timeout: Duration::from_secs(10),
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
    let (places, hosts) = (Arc::new(Semaphore::new(bounds.connections)), Hosts::default());
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, from)) = listener.accept().await else {
            // Too many open files, most likely: some close meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Without it an event that follows another waits for the acknowledgment of that.
        let _ = stream.set_nodelay(true);
        let of_host = bounds.by_host.then(|| hosts.take(from.ip(), bounds.connections));
        if matches!(of_host, Some(None)) {
            continue;
        }
        let host = bounds.by_host.then(|| Host(hosts::host_of(from.ip())));
        let (tls, answer, bounds) = (tls.clone(), answer.clone(), bounds.clone());
        tokio::spawn(async move {
            let life = bounds.connection_timeout;
            let connection = async {
                match tls {
                    None => converse(stream, host, &bounds, answer).await,
                    // One that sends nothing ends here, as one without TLS does at its headers.
                    Some(tls) => match timeout(bounds.header_timeout, tls.accept(stream)).await {
                        Ok(Ok(stream)) => converse(stream, host, &bounds, answer).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
                        Err(_) => {}
                    },
                }
            };
            let _ = timeout(life, connection).await;
            drop((place, of_host));
        });
    }
}

/// Answers the requests of one connection.
async fn converse<S, A, F, B>(stream: S, host: Option<Host>, bounds: &Bounds, answer: A)
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data: Send, Error: std::error::Error + Send + Sync> + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(host) = host {
            request.extensions_mut().insert(host);
        }
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .max_headers(bounds.headers)
        .max_buf_size(bounds.header_bytes);
    // A connection that breaks concerns its client alone.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
