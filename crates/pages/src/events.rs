//! Live values: streams of server-sent events (HTML §9.2), kept open here and not in a machine.
//!
//! A machine serves one visitor at a time, so none waits in it. It answers with the events after the last one that the
//! visitor has (`Last-Event-ID`), or with the value as it is, and that answer ends; here the stream stays open, and the
//! machine is asked again after the time that it said (`retry`). That is what a browser does by itself with an answer that
//! ends, so a machine needs to know of nothing else, and whoever finds no place for a stream is served in that way.

use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::body::Bytes;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::Answer;
use crate::machines::{Machines, Visit};
use crate::turns::Turn;
use crate::visits::Visits;

/// The name of the field that says which event a visitor has last.
const LAST_EVENT_ID: &str = "last-event-id";
/// How soon a machine is asked again that says nothing of it.
const AGAIN: Duration = Duration::from_secs(1);
/// How soon a machine is asked again at the earliest, and at the latest.
const AGAIN_MIN: Duration = Duration::from_millis(200);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// How often a stream says that it is there, though nothing happens: proxies end connections that are silent.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may take nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often in a row a machine may be busy, or away, until its stream ends.
const FAILURES_MAX: usize = 30;
/// The longest identifier of an event that is passed on, in bytes.
const ID_BYTES_MAX: usize = 128;

/// Whether an answer is of events.
pub(crate) fn are_events(answer: &Answer) -> bool {
    let kind = answer.headers.get(header::CONTENT_TYPE);
    answer.status == StatusCode::OK
        && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// The events of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Events {
    /// As they are sent on, the last one ended.
    text: String,
    /// The last identifier in them.
    last_id: Option<HeaderValue>,
    again: Duration,
}

impl Events {
    /// The events in a body (HTML §9.2.6).
    fn read(body: &[u8]) -> Self {
        let mut text = String::from_utf8_lossy(body).replace("\r\n", "\n").replace('\r', "\n");
        let (mut last_id, mut again) = (None, AGAIN);
        for line in text.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" if value.len() <= ID_BYTES_MAX => {
                    last_id = HeaderValue::from_str(value).ok().or(last_id);
                }
                "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                    again = value.parse().map_or(again, Duration::from_millis);
                }
                _ => {}
            }
        }
        // An event without an empty line after it counts for nothing.
        if !text.is_empty() {
            text.truncate(text.trim_end_matches('\n').len());
            text += "\n\n";
        }
        Self { text, last_id, again: again.clamp(AGAIN_MIN, AGAIN_MAX) }
    }
}

/// A stream that is open.
pub(crate) struct Stream<V> {
    visits: V,
    machines: Machines,
    visit: Visit,
    sender: Sender<Bytes>,
    /// When something was sent last.
    spoke_at: Instant,
    _turn: Turn,
}

impl<V: Visits> Stream<V> {
    /// Goes on with the stream that `first` begins, as long as `turn` is held. Returns its body.
    pub(crate) fn begin(
        visits: V,
        machines: Machines,
        visit: Visit,
        first: &[u8],
        turn: Turn,
    ) -> UnsyncBoxBody<Bytes, Infallible> {
        let (sender, body) = Channel::new(1);
        let spoke_at = Instant::now();
        let stream = Self { visits, machines, visit, sender, spoke_at, _turn: turn };
        tokio::spawn(stream.feed(Events::read(first)));
        body.boxed_unsync()
    }

    /// Sends what the machine says, until the client is gone or the machine ends it.
    async fn feed(mut self, first: Events) {
        let (mut events, mut sent, mut failures) = (first, String::new(), 0);
        loop {
            // A machine that numbers nothing says the value again and again.
            if events.text != sent && !events.text.is_empty() {
                if !self.send(events.text.clone()).await {
                    return;
                }
                sent.clone_from(&events.text);
            }
            if let Some(id) = events.last_id.take() {
                self.visit.parts.headers.insert(LAST_EVENT_ID, id);
            }
            if !self.wait(events.again).await {
                return;
            }
            let answer = self.machines.page(&self.visits, &self.visit, &[]).await;
            if are_events(&answer) {
                (events, failures) = (Events::read(&answer.body), 0);
            } else if is_passing(answer.status) && failures < FAILURES_MAX {
                failures += 1;
                events = Events { text: String::new(), ..events };
            } else {
                return;
            }
        }
    }

    /// Waits so long, and shows that the stream is there, however often a machine is asked that has nothing new; `false` if
    /// the client is gone, which is noticed by that alone.
    async fn wait(&mut self, span: Duration) -> bool {
        let end = Instant::now() + span;
        loop {
            let due = self.spoke_at + HEARTBEAT;
            if due > end {
                sleep_until(end).await;
                return true;
            }
            sleep_until(due).await;
            if !self.send(": alive\n\n".into()).await {
                return false;
            }
        }
    }

    /// Sends a text; `false` if the client is gone.
    async fn send(&mut self, text: String) -> bool {
        let sent = timeout(PATIENCE, self.sender.send_data(Bytes::from(text))).await;
        self.spoke_at = Instant::now();
        matches!(sent, Ok(Ok(())))
    }
}

/// Whether a failure may be over soon.
fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;
    use tenure_wire::Target;
    use tokio::time::sleep;

    use super::*;
    use crate::machines::Cookies;
    use crate::visits::{Entry, NoPage};

    #[test]
    fn events_are_read_with_their_last_identifier_and_the_time_until_the_next() {
        let id = |text: &str| Some(HeaderValue::from_str(text).unwrap());
        for (body, text, last_id, again_ms) in [
            ("data: 1\n\n", "data: 1\n\n", None, 1000),
            (
                "id: 7\r\ndata: 1\r\rid:8\ndata: 2",
                "id: 7\ndata: 1\n\nid:8\ndata: 2\n\n",
                id("8"),
                1000,
            ),
            ("retry: 500\ndata: 1\n\n\n\n", "retry: 500\ndata: 1\n\n", None, 500),
            ("retry: 0\nid: a b\n\n", "retry: 0\nid: a b\n\n", id("a b"), 200),
            (
                "retry: 99999999999999999999\nid\n\n",
                "retry: 99999999999999999999\nid\n\n",
                id(""),
                1000,
            ),
            ("retry: 3600000\n\n", "retry: 3600000\n\n", None, 60_000),
            ("retry: -1\nids: 3\n: id: 4\n\n", "retry: -1\nids: 3\n: id: 4\n\n", None, 1000),
            ("", "", None, 1000),
        ] {
            let again = Duration::from_millis(again_ms);
            assert_eq!(Events::read(body.as_bytes()), Events { text: text.into(), last_id, again });
        }
        let long = format!("id: {}\n\n", "x".repeat(ID_BYTES_MAX + 1));
        assert_eq!(Events::read(long.as_bytes()).last_id, None);
    }

    /// A machine that says the same again and again.
    #[derive(Clone)]
    struct Quiet(&'static str);

    impl Visits for Quiet {
        async fn call(&self, _: Target, _: Vec<u8>, _: Instant) -> Result<Option<Vec<u8>>, NoPage> {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            Ok(Some(format!("{head}{}", self.0).into()))
        }

        async fn entries(&self) -> Result<Vec<Entry>, NoPage> {
            Ok(Vec::new())
        }
    }

    /// The body of a stream of that machine, if there is a place.
    async fn open(machines: &Machines, quiet: Quiet) -> Option<UnsyncBoxBody<Bytes, Infallible>> {
        let (parts, ()) = http::Request::get("/live").body(()).unwrap().into_parts();
        let machine: Target = "meter@attic".parse().unwrap();
        let cookies = Cookies::default();
        let visit = Visit { machine, parts, visitor: None, cookies, below: None };
        let turn = machines.stream_turn(&visit).await?;
        let first = quiet.0.as_bytes();
        Some(Stream::begin(quiet, machines.clone(), visit, first, turn))
    }

    #[test]
    fn client_that_is_gone_gives_its_place_back_though_its_machine_has_nothing_new() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(async {
            // Its value stays as it is, or it numbers its events and there is none after the last.
            for quiet in [Quiet("data: 1\n\n"), Quiet("")] {
                let machines = Machines::default();
                let mut held = vec![];
                while let Some(body) = open(&machines, quiet.clone()).await {
                    held.push(body);
                }
                assert_eq!(held.len(), 8);
                drop(held);
                sleep(2 * HEARTBEAT).await;
                assert!(open(&machines, quiet).await.is_some());
            }
        });
    }

    #[test]
    fn client_that_takes_nothing_is_let_go_and_one_that_waits_is_told_that_the_stream_is_there() {
        // The time goes on as soon as nobody has anything else to do.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(async {
            let machines = Machines::default();
            let open = || open(&machines, Quiet("retry: 40000\ndata: 1\n\n"));
            let mut body = open().await.unwrap();
            let mut texts = Vec::new();
            for _ in 0..4 {
                let frame = body.frame().await.unwrap().unwrap();
                texts.push(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap());
            }
            let alive = ": alive\n\n";
            assert_eq!(texts, ["retry: 40000\ndata: 1\n\n", alive, alive, alive]);
            // Eight clients that take nothing have all places, until they are let go.
            drop(body);
            let mut held = vec![];
            while held.len() < 8 {
                match open().await {
                    Some(body) => held.push(body),
                    // The one that was dropped is noticed at its next word.
                    None => sleep(HEARTBEAT).await,
                }
            }
            assert!(open().await.is_none());
            sleep(4 * PATIENCE).await;
            assert!(open().await.is_some());
        });
    }

    proptest! {
        #[test]
        fn whatever_a_machine_says_is_whole_events_with_an_identifier_of_one_line(
            body in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), any::<u8>()], 0..200)
        ) {
            let events = Events::read(&[b"id:".as_slice(), &body].concat());
            prop_assert!(events.text.ends_with("\n\n"));
            prop_assert!(events.last_id.is_none_or(|id| !id.as_bytes().contains(&b'\n')));
            prop_assert!((AGAIN_MIN..=AGAIN_MAX).contains(&events.again));
        }
    }
}
