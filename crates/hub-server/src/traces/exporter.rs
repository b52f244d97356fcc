//! Traces sent to a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! A thread of the SDK's sends what has ended, every few seconds. A collector that is away costs the hub nothing but the spans
//! that there is no room for, and a line of the log.

use std::env;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use opentelemetry::{KeyValue, global};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::trust;

/// The path of traces below a collector's address (OTLP/HTTP, "Endpoint URLs for OTLP/HTTP").
const PATH: &str = "/v1/traces";
/// The service's name, unless `OTEL_SERVICE_NAME` is another.
const SERVICE: &str = "tenure-hub";
/// How long a collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The traces of this process, on their way to a collector. What has ended is sent before this is gone.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

/// Why no traces are sent.
#[derive(Debug, thiserror::Error)]
pub enum NoTraces {
    /// The collector's address can't be read.
    #[error("`{0}` is no address of a collector; write http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// TLS can't be set up.
    #[error("no TLS to the collector: {0}")]
    Tls(String),
    /// The SDK refuses.
    #[error("no traces can be sent: {0}")]
    Refused(String),
}

impl Traces {
    /// Sends the traces of this process to the collector at `address`, to which the path of traces is added, from now on.
    ///
    /// # Errors
    /// The address can't be read, or needs TLS that can't be set up. Whether somebody listens there isn't tried.
    pub fn begin(address: &str) -> Result<Self, NoTraces> {
        let unread = || NoTraces::Address(address.to_string());
        let endpoint = format!("{}{PATH}", address.trim_end_matches('/'));
        let uri: Uri = endpoint.parse().map_err(|_| unread())?;
        uri.host().filter(|host| !host.is_empty()).ok_or_else(unread)?;
        let tls = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => {
                let config = trust::client(trust::authorities(None));
                Some(Arc::new(config.map_err(|error| NoTraces::Tls(error.to_string()))?))
            }
            _ => return Err(unread()),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(TIMEOUT)
            .with_http_client(Client { tls })
            .build()
            .map_err(|error| NoTraces::Refused(error.to_string()))?;
        let mut resource = Resource::builder();
        if env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(SERVICE);
        }
        let resource = resource.with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ]);
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        global::set_text_map_propagator(TraceContextPropagator::new());
        global::set_tracer_provider(provider.clone());
        Ok(Self(provider))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // A collector that is away gets none of them.
        let _ = self.0.shutdown();
    }
}

/// A client that has one connection for each request, on the thread that asks.
#[derive(Debug)]
struct Client {
    tls: Option<Arc<ClientConfig>>,
}

impl HttpClient for Client {
    fn send_bytes<'client, 'sent>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>
    where
        'client: 'sent,
        Self: 'sent,
    {
        // The thread is the SDK's own, and has nothing else to do.
        Box::pin(std::future::ready(self.send(request)))
    }
}

impl Client {
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { timeout(TIMEOUT, self.exchange(request)).await? })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let uri = request.uri();
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_string();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        match &self.tls {
            None => exchange(TokioIo::new(stream), request).await,
            Some(config) => {
                let connector = TlsConnector::from(config.clone());
                let stream = connector.connect(ServerName::try_from(host)?, stream).await?;
                exchange(TokioIo::new(stream), request).await
            }
        }
    }
}

/// Sends a request on a connection, and reads the answer.
async fn exchange<S: Read + Write + Unpin + Send + 'static>(
    stream: S,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let (mut sender, connection) = http1::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    let (mut parts, body) = request.into_parts();
    // RFC 9112 §3.2: the host is a field, and the path alone is in the line.
    if let Some(authority) = parts.uri.authority() {
        parts.headers.insert(header::HOST, HeaderValue::from_str(authority.as_str())?);
    }
    parts.uri = parts.uri.path().parse()?;
    let answer = sender.send_request(Request::from_parts(parts, Full::new(body))).await?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
    connection.abort();
    Ok(Response::from_parts(parts, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_is_none_is_refused() {
        for address in
            ["", "collector", "collector:4318", "ftp://collector", "http://", "http://a b"]
        {
            assert!(matches!(Traces::begin(address), Err(NoTraces::Address(_))), "{address}");
        }
    }
}
