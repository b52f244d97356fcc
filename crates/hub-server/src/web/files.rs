//! Lists as files, of CSV and of JSON: all rows of one moment, sent as they are read.
//!
//! Invariants:
//! - A file takes the memory of a page of rows and of a few frames, however long its list is.
//! - A client that takes nothing for [`PATIENCE`], or leaves, ends the reading.
//! - A file that can't be read to its end breaks off, so that no client takes a part for the whole.
//! - The files that are sent at once are bounded, in all and for each key.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use http::{StatusCode, header};
use hyper::body::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;

use crate::api::lists::object;
use crate::api::resource::{Cell, Request, Resource};
use crate::api::sign_in::Holder;
use crate::store::sql::{self, Connection, Next};
use crate::web::answers::{CsvCell, csv_line, problem};
use crate::web::extract::Parameters;
use crate::web::state::{HubState, Reading, unavailable};

/// The rows that are read at once from a database on a server, which waits for no client.
const PAGE_ROWS: u64 = 4_000;
/// The longest frame, in bytes.
const FRAME_BYTES: usize = 64 * 1024;
/// The frames that wait in a connection.
const FRAMES_WAITING: usize = 2;
/// How long a client may take nothing. A database on a server ends a transaction that stands still sooner.
const PATIENCE: Duration = Duration::from_secs(30);

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// RFC 4180, with the names of the columns first.
    Csv,
    /// An array of objects, as `/v1/NAME` has them.
    Json,
}

impl Form {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }

    /// What stands before the rows.
    fn head(self, resource: &Resource) -> String {
        match self {
            Self::Csv => csv_line(resource.columns.iter().map(|it| CsvCell::Text(it.name.into()))),
            Self::Json => "[".into(),
        }
    }

    fn row(self, resource: &Resource, row: &[Cell], is_first: bool) -> String {
        match self {
            Self::Csv => csv_line(row.iter().zip(resource.columns).map(|(cell, column)| {
                let text = cell.text(column.kind);
                match cell {
                    Cell::Number(_) => CsvCell::Number(text),
                    Cell::Text(_) | Cell::None => CsvCell::Text(text),
                }
            })),
            Self::Json => {
                let comma = if is_first { "\n" } else { ",\n" };
                format!("{comma}{}", object(resource, row))
            }
        }
    }

    const fn tail(self) -> &'static str {
        match self {
            Self::Csv => "",
            Self::Json => "\n]\n",
        }
    }
}

/// The rows of a list that `holder` may see and the parameters ask for, as a file; all of them unless they say how many.
pub(crate) async fn file(
    hub: &HubState,
    resource: &'static Resource,
    holder: Holder,
    Parameters(parameters): &Parameters,
    form: Form,
) -> Response {
    let request = match Request::parse(resource, parameters) {
        Ok(request) => request,
        Err(error) => return problem(StatusCode::BAD_REQUEST, &error),
    };
    let is_said = parameters.iter().any(|(name, _)| name == "limit");
    let rows_max = if is_said { request.limit } else { u64::MAX };
    let Ok(place) = hub.files().take(&holder.who, holder.taker()).await else {
        return unavailable("the hub ends");
    };
    let (sender, mut frames) = mpsc::channel(FRAMES_WAITING);
    let begun = hub.figures().begin_file();
    let feed = Feed { resource, holder, request, rows_max, form, out: Out::new(sender, PATIENCE) };
    let state = hub.clone();
    tokio::spawn(async move {
        let _held = (place, begun);
        state.read_long(feed).await;
    });
    match frames.recv().await {
        Some(Frame::Part(first)) => {
            let content_type = [(header::CONTENT_TYPE, form.content_type())];
            (content_type, body(first, frames)).into_response()
        }
        Some(Frame::Failed(reason)) => unavailable(&reason),
        Some(Frame::End) | None => unavailable("the request failed inside"),
    }
}

/// What comes next of a file. Without an end it breaks off.
#[derive(Debug)]
enum Frame {
    Part(Bytes),
    Failed(String),
    End,
}

fn body(first: Bytes, frames: Receiver<Frame>) -> Body {
    let rest = stream::unfold(Some(frames), |frames| async move {
        let mut frames = frames?;
        let broken = |reason: String| Some((Err(io::Error::other(reason)), None));
        match frames.recv().await {
            Some(Frame::Part(bytes)) => Some((Ok(bytes), Some(frames))),
            Some(Frame::End) => None,
            Some(Frame::Failed(reason)) => broken(reason),
            None => broken("the list breaks off".into()),
        }
    });
    // A compressor asks once more behind the end.
    Body::from_stream(stream::iter([Ok(first)]).chain(rest).fuse())
}

/// The rows of a file on their way.
struct Feed {
    resource: &'static Resource,
    holder: Holder,
    request: Request,
    /// How many rows, at most.
    rows_max: u64,
    form: Form,
    out: Out,
}

impl Reading for Feed {
    /// Reads row after row, in one transaction, and sends them; ends early if nobody takes them. Once something was sent, it
    /// fails for good.
    fn run(&mut self, connection: &Connection) -> Result<(), sql::Error> {
        if self.out.has_sent {
            // A second try would send the first rows once more.
            return Err(sql::Error::Failed);
        }
        let (resource, form) = (self.resource, self.form);
        let Self { holder, request, rows_max, out, .. } = self;
        out.waiting = form.head(resource);
        let is_on_a_server = connection.is_shared();
        let page_rows = if is_on_a_server { PAGE_ROWS } else { u64::MAX };
        let (mut left, mut skip, mut is_first) = (*rows_max, request.skip, true);
        while left > 0 {
            let page = Request { limit: page_rows.min(left), skip, ..request.clone() };
            let (mut count, mut is_gone) = (0, false);
            resource.each(connection, holder, &page, |row| {
                out.waiting += &form.row(resource, &row, is_first);
                (count, is_first) = (count + 1, false);
                is_gone = !is_on_a_server && out.waiting.len() >= FRAME_BYTES && !out.send();
                if is_gone { Next::Enough } else { Next::Row }
            })?;
            if is_gone || (is_on_a_server && !out.send()) {
                return Ok(());
            }
            if count < page.limit {
                break;
            }
            (left, skip) = (left - count, skip.saturating_add(count));
        }
        out.waiting += form.tail();
        if out.send() {
            out.put(Frame::End);
        }
        Ok(())
    }

    /// Says why there is no more of it, to a client that has taken all so far; any other finds no end.
    fn fail(&self, reason: &str) {
        let _ = self.out.sender.try_send(Frame::Failed(reason.into()));
    }
}

/// The way to a client.
struct Out {
    sender: Sender<Frame>,
    patience: Duration,
    /// The runtime that the connection is served by.
    runtime: Handle,
    /// The text that is sent next.
    waiting: String,
    has_sent: bool,
}

impl Out {
    fn new(sender: Sender<Frame>, patience: Duration) -> Self {
        let runtime = Handle::current();
        Self { sender, patience, runtime, waiting: String::new(), has_sent: false }
    }

    /// Sends what waits; `false` if the client is gone, or takes nothing.
    fn send(&mut self) -> bool {
        let mut text = Bytes::from(std::mem::take(&mut self.waiting));
        while !text.is_empty() {
            self.has_sent = true;
            let part = text.split_to(text.len().min(FRAME_BYTES));
            if !self.put(Frame::Part(part)) {
                return false;
            }
        }
        true
    }

    fn put(&self, frame: Frame) -> bool {
        let sent = self.runtime.block_on(timeout(self.patience, self.sender.send(frame)));
        matches!(sent, Ok(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of `count` frames for a client that takes `taken` of them and then leaves, or listens on.
    fn sent(count: usize, taken: usize, leaves: bool) -> usize {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (sender, mut frames) = mpsc::channel(FRAMES_WAITING);
            let mut out = Out::new(sender, Duration::from_millis(10));
            let feed = tokio::task::spawn_blocking(move || {
                let mut sent = 0;
                while sent < count {
                    out.waiting = "x".repeat(FRAME_BYTES);
                    if !out.send() {
                        break;
                    }
                    sent += 1;
                }
                sent
            });
            for _ in 0..taken {
                frames.recv().await.unwrap();
            }
            if leaves {
                frames.close();
            }
            feed.await.unwrap()
        })
    }

    #[test]
    fn client_that_takes_nothing_more_or_leaves_ends_the_reading() {
        let full = sent(1_000, 0, false);
        assert_eq!(full, FRAMES_WAITING, "what waits is bounded");
        assert!(sent(1_000, 3, true) < 1_000);
    }
}
