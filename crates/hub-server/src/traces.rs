//! Spans of traces, which OpenTelemetry collects where the process has a collector; elsewhere they cost next to nothing.
//!
//! Invariants:
//! - A span says what was done, by which route or function, how long it took and how it ended; no address, parameter or
//!   secret stands in it.
//! - The trace of whoever asks goes on behind a proxy alone: others begin one.

mod exporter;

use std::borrow::Cow;

use http::HeaderMap;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue, global};

pub use exporter::{NoTraces, Traces};

/// The name of what makes the spans.
const SCOPE: &str = "tenure-hub";

/// A span that is under way, with all that is done below it.
#[derive(Clone)]
pub(crate) struct Traced(Context);

impl Traced {
    /// Begins a span below `parent`.
    pub(crate) fn begin(
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        attributes: impl IntoIterator<Item = KeyValue>,
        parent: &Context,
    ) -> Self {
        let tracer = global::tracer(SCOPE);
        let builder = tracer.span_builder(name).with_kind(kind).with_attributes(attributes);
        let span = builder.start_with_context(&tracer, parent);
        Self(parent.with_span(span))
    }

    /// The context in which what is done belongs to the span.
    pub(crate) fn context(&self) -> &Context {
        &self.0
    }

    /// Notes more of it.
    pub(crate) fn note(&self, key: &'static str, value: i64) {
        self.0.span().set_attribute(KeyValue::new(key, value));
    }

    /// Ends it, well or not.
    pub(crate) fn end(self, is_well: bool) {
        let span = self.0.span();
        if !is_well {
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// The trace that a request goes on with, by its headers (W3C Trace Context §3.2), or none.
pub(crate) fn asked(headers: &HeaderMap) -> Context {
    global::get_text_map_propagator(|propagator| {
        propagator.extract_with_context(&Context::new(), &Headers(headers))
    })
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
