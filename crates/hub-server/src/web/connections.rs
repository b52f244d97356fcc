//! Connections: how many there are, how long each lasts, and what a client may send before it is heard.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

use crate::web::hosts::Hosts;
use crate::web::routes::answer;
use crate::web::state::State;

/// The most connections at once; more wait.
const CONNECTIONS_MAX: usize = 256;
/// The most headers of a request, and bytes that they take.
const HEADERS_MAX: usize = 64;
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// How long a client may take to send the headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest life of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Takes connections, each served by a task of its own.
pub(super) async fn accept(listener: tokio::net::TcpListener, state: State) {
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
            if state.is_by_tls() { None } else { Some(hosts.take(from.ip(), CONNECTIONS_MAX)) };
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
