//! HTTP/1.1 connections of a server, on one thread, bounded by host, number, bytes and time; and which [`Site`] a browser's
//! request comes from, and which [`range`] of an answer it asks for.
//!
//! Invariants:
//! - A connection has a place, which it gives back when it ends; without one it waits, or is closed.
//! - A connection that breaks, or takes too long, concerns its client alone.
#![forbid(unsafe_code)]

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
use tokio::sync::Semaphore;

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
    /// How long a client may take to send them.
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

/// Answers the requests that come by `listener` with `answer`, on a thread of its own with this `name`, until the
/// process ends. Returns the address.
///
/// # Errors
/// The system has no thread.
pub fn serve<A, F, B>(
    listener: TcpListener,
    name: &str,
    bounds: Bounds,
    answer: A,
) -> std::io::Result<SocketAddr>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let serve = move || runtime.block_on(accept(listener, bounds, answer));
    std::thread::Builder::new().name(name.into()).spawn(serve)?;
    Ok(address)
}

/// Takes connections, each served by a task of its own.
async fn accept<A, F, B>(listener: tokio::net::TcpListener, bounds: Bounds, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    let (places, hosts) = (Arc::new(Semaphore::new(bounds.connections)), Hosts::default());
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, from)) = listener.accept().await else {
            // Too many open files, most likely: some close meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let of_host = bounds.by_host.then(|| hosts.take(from.ip(), bounds.connections));
        if matches!(of_host, Some(None)) {
            continue;
        }
        let answer = answer.clone();
        let host = bounds.by_host.then(|| Host(hosts::host_of(from.ip())));
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
        let life = bounds.connection_timeout;
        tokio::spawn(async move {
            let connection = server.serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(life, connection).await;
            drop((place, of_host));
        });
    }
}
