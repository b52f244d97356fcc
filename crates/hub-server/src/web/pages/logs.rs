//! The log of a device as it grows: a stream of server-sent events, and the part of a page that shows it.
//!
//! Invariants:
//! - A stream ends with the pass that opened it, and when the device changes its owner.
//! - A client that takes nothing for [`PATIENCE`] is let go.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use maud::{Markup, html};
use serde_json::json;
use tenure_wire::Name;
use tenure_wire::control::LogLine;
use tenure_wire::hub::Scope;
use tokio::time::{Instant, timeout};

use crate::running::live_logs::{Message, WATCHERS_OF_KEY_MAX, Watch};
use crate::web::answers::problem;
use crate::web::extract::{Parameters, Pass, Segments, Watching};
use crate::web::gate::holder_of;
use crate::web::now;
use crate::web::openapi::Problem;
use crate::web::state::HubState;

/// How often the pass of a stream is looked at, and how often a stream says that it is alive.
const CHECK_EVERY: Duration = Duration::from_secs(3);
/// How long a client may take nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many events wait in a connection.
const EVENTS_WAITING: usize = 1;

/// The part of a device's page that shows its log, once somebody asks for it.
pub(crate) fn on_device(hub: &HubState, device: &str, machines: &[String]) -> Markup {
    let is_shared = hub.logs().is_shared(device, now(hub));
    html! {
        section #log data-keep[is_shared] aria-labelledby="log-heading" {
            h2 #log-heading { "Log" }
            @if is_shared {
                form.search data-stream={ "/v1/devices/" (device) "/log" } {
                    label for="log-machine" { "Machine" }
                    select #log-machine name="machine" {
                        option value="" { "all" }
                        @for machine in machines { option { (machine) } }
                    }
                    button { "Watch the log" }
                    span role="status" {}
                }
                pre #log-lines tabindex="0" role="log" aria-label="Lines of the log" hidden {}
                script src="/log.js" defer {}
            } @else {
                p { "This device shows its log to its owner's command alone: " code { "tenure log --device " (device) }
                    ". To watch it here, start the device with " code { "--log-to-hub" } "; of several processes of a hub, \
                    the one that the device speaks with shows it." }
            }
        }
    }
}

/// The lines that a stream sends.
struct Wanted {
    machine: Option<Name>,
    /// The last line that the client has.
    after: Option<After>,
}

/// A line by its boot, its number and the moment of its boot in which it was said.
#[derive(Clone, Copy)]
struct After {
    boot: u32,
    number: u64,
    at_ms: u64,
}

/// The log of a device as it grows, from its last lines on. The device must show it here.
#[utoipa::path(
    get,
    path = "/v1/devices/{device}/log",
    operation_id = "watch_log",
    params(
        ("device" = String, Path),
        ("machine" = Option<String>, Query, description = "Only lines of this machine."),
        ("Last-Event-ID" = Option<String>, Header, nullable = false, description = "The id of the last event that the client has."),
    ),
    responses(
        (status = 200, body = String, content_type = "text/event-stream", description = "Server-sent events. One without a \
            name is a line, as JSON; `lost` says how many lines are missing there; `end` comes when the pass is over."),
        (status = 400, description = "A parameter can't be read.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No token, or one that isn't good."),
        (status = 403, description = "A token without the scope `logs`."),
        (status = 404, description = "There is no such device.", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many logs are watched.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be read now."),
    ),
)]
pub(crate) async fn stream(
    State(hub): State<HubState>,
    Segments(device): Segments<String>,
    Pass { who, holder, .. }: Pass<Watching>,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let wanted = match wanted(&headers, &parameters) {
        Ok(wanted) => wanted,
        Err(error) => return problem(StatusCode::BAD_REQUEST, &error),
    };
    match is_owners(&hub, &device, &who).await {
        Ok(true) => {}
        Ok(false) => return problem(StatusCode::NOT_FOUND, "there is no such device"),
        Err(answer) => return answer,
    }
    let Some(watch) = hub.logs().watch(&who, holder.person_id(), &device) else {
        let text = format!(
            "too many logs are watched: {WATCHERS_OF_KEY_MAX} of a key at once, fewer of its people; close one first"
        );
        return problem(StatusCode::TOO_MANY_REQUESTS, &text);
    };
    let (sender, body) = Channel::new(EVENTS_WAITING);
    let stream = Stream { hub, device, who, headers, wanted, sender };
    tokio::spawn(stream.feed(watch));
    // A proxy would wait for more than a line (nginx, `proxy_buffering`).
    let headers =
        [(header::CONTENT_TYPE.as_str(), "text/event-stream"), ("x-accel-buffering", "no")];
    (headers, Body::new(body)).into_response()
}

/// A stream that is open.
struct Stream {
    hub: HubState,
    device: String,
    who: String,
    /// The request's, with its pass.
    headers: HeaderMap,
    wanted: Wanted,
    sender: Sender<Bytes>,
}

impl Stream {
    /// Sends what the device says, until the client or the pass is gone.
    async fn feed(mut self, mut watch: Watch) {
        let mut checked = Instant::now();
        if !self.send(": the device is asked for its log\n\n".into()).await {
            return;
        }
        loop {
            let message = timeout(CHECK_EVERY, watch.next()).await;
            let is_due = checked.elapsed() >= CHECK_EVERY;
            if is_due {
                if !self.is_allowed().await {
                    self.send("event: end\ndata: {}\n\n".into()).await;
                    return;
                }
                checked = Instant::now();
            }
            let text = match message {
                Ok(Some(message)) => self.wanted.events(&message),
                Ok(None) => return,
                Err(_) => String::new(),
            };
            // Lines of machines that the client doesn't want are no word to it, and it is gone once it takes none.
            let text = if text.is_empty() && is_due { ": alive\n\n".into() } else { text };
            if !text.is_empty() && !self.send(text).await {
                return;
            }
        }
    }

    async fn is_allowed(&self) -> bool {
        let holder = holder_of(&self.hub, &self.headers, Scope::Logs).await;
        holder.is_ok_and(|holder| holder.who == self.who)
            && is_owners(&self.hub, &self.device, &self.who).await.unwrap_or(false)
    }

    /// Sends events; `false` if the client is gone.
    async fn send(&mut self, events: String) -> bool {
        let sent = timeout(PATIENCE, self.sender.send_data(Bytes::from(events))).await;
        matches!(sent, Ok(Ok(())))
    }
}

impl Wanted {
    /// The events that a message comes to for this client.
    fn events(&self, message: &Message) -> String {
        match message {
            Message::Lines(lines) => {
                lines.iter().filter(|line| self.has(line)).map(|line| event(line)).collect()
            }
            Message::Lost(count) => {
                format!("event: lost\ndata: {}\n\n", json!({ "lines": count }))
            }
        }
    }

    fn has(&self, line: &Arc<LogLine>) -> bool {
        // A line that a device kept over a restart has another number, and is of its old moment.
        let is_before = |after: After| line.number <= after.number && line.at_ms <= after.at_ms;
        let is_known =
            |after: After| line.boot < after.boot || line.boot == after.boot && is_before(after);
        self.machine.as_ref().is_none_or(|machine| line.machine == *machine)
            && !self.after.is_some_and(is_known)
    }
}

/// A line as an event. JSON escapes line ends, so that no text of a tenant begins another event.
fn event(line: &LogLine) -> String {
    let data = json!({
        "number": line.number,
        "boot": line.boot,
        "at_ms": line.at_ms,
        "unix_s": line.unix_s,
        "machine": line.machine,
        "level": line.level,
        "message": line.message,
    });
    format!("id: {}-{}-{}\ndata: {data}\n\n", line.boot, line.number, line.at_ms)
}

/// Reads the parameters of a request, and the last line that its client has.
fn wanted(headers: &HeaderMap, Parameters(parameters): &Parameters) -> Result<Wanted, String> {
    let mut machine = None;
    for (name, value) in parameters {
        match name.as_str() {
            "machine" if value.is_empty() => {}
            "machine" => {
                machine = Some(value.parse().map_err(|_| format!("`{value}` names no machine"))?);
            }
            name => return Err(format!("no parameter `{name}`")),
        }
    }
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = last.and_then(|last| {
        let mut parts = last.split('-');
        let (boot, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let at_ms = parts.next().map_or(Some(u64::MAX), |at| at.parse().ok())?;
        Some(After { boot, number, at_ms })
    });
    Ok(Wanted { machine, after })
}

/// Whether the device is listed and belongs to `who`.
async fn is_owners(hub: &HubState, device: &str, who: &str) -> Result<bool, Response> {
    let names = [device.to_string(), who.to_string()];
    let listed = hub.run(move |_, database| {
        let query = "SELECT 1 FROM devices WHERE name = ?1 AND owner = ?2";
        Ok(database.connection.statement(query).exists(names)?)
    });
    listed.await
}
