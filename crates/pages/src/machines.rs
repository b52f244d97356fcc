//! Visitors' requests to machines, each answered by a call, or by as many as its page has parts; whoever serves the pages.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, Response, StatusCode, header, request};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use tenure_wire::Target;
use tenure_wire::limits::PARAMETER_BYTES_MAX;

use crate::answer::{Answer, Malformed};
use crate::events::{Stream, are_events};
use crate::parts::{self, Step};
use crate::turns::{OF_MACHINES, OF_STREAMS, OF_VISITORS, Turn, Turns};
use crate::visits::{NoPage, Visits};
use crate::{conditional, cookies, fence, index, request as visitor};

/// How long a page may take, all its parts included.
const PAGE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a page that changes while its parts are fetched is begun again.
const BEGUN_MAX: usize = 2;

/// The reason why a body can't be read.
type Failure = Box<dyn std::error::Error + Send + Sync>;
/// The body of an answer.
pub type PageBody = UnsyncBoxBody<Bytes, Infallible>;

/// Machines with pages, and the requests to them that are under way. Copies count the same requests.
#[derive(Clone)]
pub struct Machines {
    turns: Turns,
    /// What each visitor has of all machines, where that is bounded.
    visitors: Option<Turns>,
    streams: Turns,
}

/// A visitor's request to a machine.
#[derive(Debug)]
pub struct Visit {
    /// The machine.
    pub machine: Target,
    /// The request, its path as the machine is to see it.
    pub parts: request::Parts,
    /// Who asks, if that is known: each has a part of the machine's turns.
    pub visitor: Option<String>,
    /// Which cookies of the request the machine is told.
    pub cookies: Cookies,
    /// The path below which the page stands, without the `/` at its end, if it shares its origin with others: then it is
    /// confined to that path, and the machine is told nothing that the browser keeps for the origin.
    pub below: Option<String>,
}

/// Which cookies a machine is told; never those of a hub's session, nor any where its page shares its origin with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cookies {
    /// All.
    #[default]
    OfItsHost,
    /// Those with the prefix `__Host-`: others may be those of another page below the same domain.
    OfItsHostAlone,
}

impl Default for Machines {
    fn default() -> Self {
        Self { turns: Turns::new(OF_MACHINES), visitors: None, streams: Turns::new(OF_STREAMS) }
    }
}

impl Machines {
    /// Machines of whose turns a visitor has a few in all. Where visitors are told by their hosts alone it would be the wrong
    /// bound: whom a machine that is slow keeps waiting may be many people behind one address.
    pub fn bounded_by_visitor() -> Self {
        Self { visitors: Some(Turns::new(OF_VISITORS)), ..Self::default() }
    }

    /// The answer to a visitor, who calls by `visits`; its `body` is read here.
    pub async fn answer<V: Visits>(
        &self,
        visits: &V,
        mut visit: Visit,
        body: impl Body<Data = Bytes, Error: Into<Failure>>,
    ) -> Response<PageBody> {
        if visitor::is_for_no_page(&visit.parts.method) {
            return no_method();
        }
        match visit.below {
            Some(_) => fence::withhold(&mut visit.parts.headers),
            None => {
                let others_set = visit.cookies == Cookies::OfItsHostAlone;
                cookies::withhold(&mut visit.parts.headers, others_set);
            }
        }
        let mut answer = match read(body).await {
            Ok(body) => self.page(visits, &visit, &body).await,
            Err(status) => {
                index::line(status, "the body is too long, broke off, or came too slowly")
            }
        };
        let is_stream = visit.parts.method == Method::GET && are_events(&answer);
        if !is_stream {
            conditional::condense(&visit.parts.method, &visit.parts.headers, &mut answer);
        }
        match &visit.below {
            Some(below) => fence::confine(&mut answer, below),
            None => fence::protect(&mut answer),
        }
        let turn = match is_stream {
            true => self.stream_turn(&visit).await,
            false => None,
        };
        let Some(turn) = turn else { return answer.into_response() };
        // A proxy would wait for more than an event (nginx, `proxy_buffering`).
        answer.headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        let first = std::mem::take(&mut answer.body);
        let stream = Stream::begin(visits.clone(), self.clone(), visit, &first, turn);
        answer.into_response().map(|_| stream)
    }

    /// A place for one more stream of a machine's events, if there is one.
    pub(crate) async fn stream_turn(&self, visit: &Visit) -> Option<Turn> {
        let Visit { machine, visitor, .. } = visit;
        self.streams.take(machine.to_string(), visitor.clone(), Duration::ZERO).await
    }

    /// The answer of a machine, fetched in parts if it comes in parts.
    pub(crate) async fn page<V: Visits>(&self, visits: &V, visit: &Visit, body: &[u8]) -> Answer {
        let Visit { machine, parts, visitor, .. } = visit;
        let of_visitor = match (&self.visitors, visitor) {
            (Some(visitors), Some(visitor)) => {
                visitors.take(visitor.clone(), None, PAGE_TIMEOUT).await.map(Some)
            }
            _ => Some(None),
        };
        let Some(_of_visitor) = of_visitor else {
            // RFC 6585 §4.
            let text = "you ask for too much at once";
            return again_later(index::line(StatusCode::TOO_MANY_REQUESTS, text));
        };
        let Some(_turn) = self.turns.take(machine.to_string(), visitor.clone(), PAGE_TIMEOUT).await
        else {
            let text = "too many visitors at once";
            return again_later(index::line(StatusCode::SERVICE_UNAVAILABLE, text));
        };
        let end = Instant::now() + PAGE_TIMEOUT;
        let asking = Asking { visits, machine, parts, body, end };
        let answer = match asking.is_in_parts() {
            true => asking.whole().await,
            false => asking.ask(None).await,
        };
        answer.unwrap_or_else(|answer| answer)
    }
}

/// A visitor's request as the machine is asked for it.
struct Asking<'a, V> {
    visits: &'a V,
    machine: &'a Target,
    parts: &'a request::Parts,
    body: &'a [u8],
    end: Instant,
}

impl<V: Visits> Asking<'_, V> {
    /// Whether these pages, and not the visitor, say which part they want.
    fn is_in_parts(&self) -> bool {
        self.parts.method == Method::GET && !conditional::is_for_the_machine(&self.parts.headers)
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

/// The body of a request.
///
/// # Errors
/// The status of the answer if it is too long, breaks off, or takes too long.
async fn read(body: impl Body<Data = Bytes, Error: Into<Failure>>) -> Result<Bytes, StatusCode> {
    let read = Limited::new(body, PARAMETER_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIMEOUT, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// The answer to a visitor who gets no page.
pub(crate) fn no_page(reason: NoPage) -> Answer {
    let (status, text, again) = reason.told();
    let mut answer = index::line(status, text);
    if let Some(again) = again {
        let seconds = again.as_millis().div_ceil(1000).max(1);
        answer.headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds as u64));
    }
    answer
}

/// The answer to a method that is for no page.
fn no_method() -> Response<PageBody> {
    let text = "a page takes no CONNECT and no TRACE";
    let mut answer = index::line(StatusCode::METHOD_NOT_ALLOWED, text);
    // RFC 9110 §15.5.6: it must be said.
    let methods = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    answer.headers.insert(header::ALLOW, methods);
    answer.into_response()
}

fn again_later(mut answer: Answer) -> Answer {
    answer.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    answer
}

impl Answer {
    /// The answer as it is sent.
    pub(crate) fn into_response(self) -> Response<PageBody> {
        let mut response = Response::new(Full::new(Bytes::from(self.body)).boxed_unsync());
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}
