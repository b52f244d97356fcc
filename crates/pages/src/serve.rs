//! Visitors' requests, each answered by a call, or by as many as its page has parts.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, Request, Response, StatusCode, header, request};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use tenure_http_listener::Bounds;
use tenure_wire::Target;
use tenure_wire::limits::PARAMETER_BYTES_MAX;

use crate::answer::{Answer, Malformed};
use crate::origin::{Meant, Origins};
use crate::parts::{self, Step};
use crate::turns::Turns;
use crate::visits::{NoPage, Visits};
use crate::{fence, index, request as visitor};

/// How long a page may take, all its parts included.
const PAGE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a page that changes while its parts are fetched is begun again.
const BEGUN_MAX: usize = 2;

/// Pages of machines, and what they are served from.
#[derive(Clone, Debug)]
pub struct Pages<V> {
    /// The hosts that they have.
    pub origins: Origins,
    /// The calls of visitors.
    pub visits: V,
    /// Whether visitors come by a proxy, which then sees to it that no host takes all connections.
    pub by_proxy: bool,
}

/// Serves pages by `listener`, on a thread of its own, until the process ends. Returns the address.
///
/// # Errors
/// The system has no thread.
pub fn serve<V: Visits>(listener: TcpListener, pages: Pages<V>) -> std::io::Result<SocketAddr> {
    let bounds = Bounds { by_host: !pages.by_proxy, ..Bounds::USUAL };
    let server =
        Server { origins: Arc::new(pages.origins), visits: pages.visits, turns: Turns::default() };
    tenure_http_listener::serve(listener, "pages", bounds, move |request| {
        let server = server.clone();
        async move { finished(server.answer(request).await) }
    })
}

#[derive(Clone)]
struct Server<V> {
    origins: Arc<Origins>,
    visits: V,
    turns: Turns,
}

impl<V: Visits> Server<V> {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let Some(host) = host_of(&parts) else {
            return index::line(StatusCode::BAD_REQUEST, "the request names no host, or several");
        };
        let Some(meant) = self.origins.meant(host) else {
            // RFC 9110 §15.5.20: a host that these pages don't have.
            return index::line(StatusCode::MISDIRECTED_REQUEST, "no page has this host");
        };
        if fence::is_foreign_change(&parts.method, &parts.headers) {
            let text = "this request doesn't come from the page itself";
            return index::line(StatusCode::FORBIDDEN, text);
        }
        match meant {
            Meant::Index => self.index(&parts, host).await,
            Meant::Machine(machine) => match read(body).await {
                Ok(body) => self.page(machine, &parts, &body).await,
                Err(status) => {
                    index::line(status, "the body is too long, broke off, or came too slowly")
                }
            },
        }
    }

    async fn index(&self, parts: &request::Parts, host: &str) -> Answer {
        if parts.uri.path() != "/" {
            let text = "each machine's page has a host of its own; / lists them";
            return index::line(StatusCode::NOT_FOUND, text);
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut answer =
                index::line(StatusCode::METHOD_NOT_ALLOWED, "the list is only to be read");
            answer.headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match self.visits.entries().await {
            Ok(entries) => index::page(&entries, host),
            Err(reason) => no_page(reason),
        }
    }

    /// The answer of a machine, fetched in parts if it comes in parts.
    async fn page(&self, machine: Target, parts: &request::Parts, body: &[u8]) -> Answer {
        let Some(_turn) = self.turns.take(&machine, PAGE_TIMEOUT).await else {
            let mut answer =
                index::line(StatusCode::SERVICE_UNAVAILABLE, "too many visitors at once");
            answer.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
            return answer;
        };
        let end = Instant::now() + PAGE_TIMEOUT;
        let visit = Visit { visits: &self.visits, machine, parts, body, end };
        let mut answer = match visit.is_in_parts() {
            true => visit.whole().await,
            false => visit.ask(None).await,
        }
        .unwrap_or_else(|answer| answer);
        fence::protect(&mut answer);
        answer
    }
}

/// A visitor's request to a machine.
struct Visit<'a, V> {
    visits: &'a V,
    machine: Target,
    parts: &'a request::Parts,
    body: &'a [u8],
    end: Instant,
}

impl<V: Visits> Visit<'_, V> {
    /// Whether these pages, and not the visitor, say which part they want.
    fn is_in_parts(&self) -> bool {
        self.parts.method == Method::GET && !self.parts.headers.contains_key(header::RANGE)
    }

    /// The machine's page, once all of its parts are there.
    ///
    /// # Errors
    /// The answer to a visitor who gets none.
    async fn whole(&self) -> Result<Answer, Answer> {
        for _ in 0..BEGUN_MAX {
            let mut step = parts::begin(self.ask(Some(parts::FIRST)).await?);
            while let Ok(Step::Ask(page, range)) = step {
                step = page.take(self.ask(Some(&range)).await?);
            }
            if let Ok(Step::Done(answer)) = step {
                return Ok(answer);
            }
        }
        let text = "the parts of the machine's page don't fit together";
        Err(index::line(StatusCode::BAD_GATEWAY, text))
    }

    /// The machine's answer, to the bytes of `range` if there is one.
    ///
    /// # Errors
    /// The answer to a visitor who gets none.
    async fn ask(&self, range: Option<&str>) -> Result<Answer, Answer> {
        let message =
            visitor::message(self.parts, range, self.body).map_err(|visitor::TooLong| {
                index::line(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "the request is longer than a machine takes",
                )
            })?;
        let result = self.visits.call(self.machine.clone(), message, self.end).await;
        Answer::read(result.map_err(no_page)?).map_err(|Malformed| {
            index::line(StatusCode::BAD_GATEWAY, "the machine's answer is malformed")
        })
    }
}

/// The host that a request is for: in its target, or its one `Host` field (RFC 9112 §3.2).
fn host_of(parts: &request::Parts) -> Option<&str> {
    if let Some(authority) = parts.uri.authority() {
        return Some(authority.as_str());
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    hosts.next().is_none().then_some(host)
}

/// The body of a request.
///
/// # Errors
/// The status of the answer if it is too long, breaks off, or takes too long.
async fn read(body: Incoming) -> Result<Bytes, StatusCode> {
    let read = Limited::new(body, PARAMETER_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIMEOUT, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

fn no_page(reason: NoPage) -> Answer {
    let (status, text, again) = reason.told();
    let mut answer = index::line(status, text);
    if let Some(again) = again {
        let seconds = again.as_millis().div_ceil(1000).max(1);
        answer.headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds as u64));
    }
    answer
}

fn finished(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}
