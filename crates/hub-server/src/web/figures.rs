//! Figures of what was answered: how long requests took by route, how many are under way, and how long the database took.
//!
//! Invariant: labels are of the hub's own words (routes, methods that are known, classes of status), so that nobody makes
//! series without end.

use std::time::Duration;

use http::{Method, StatusCode};
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntGauge, Registry};

/// The bounds of the histograms, in seconds: about three a decade, from what a page of an asset takes to the longest
/// that a request may take.
const BOUNDS_S: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

/// The figures. Clones are the same.
#[derive(Clone)]
pub(super) struct Figures {
    registry: Registry,
    requests: HistogramVec,
    under_way: IntGauge,
    files: IntGauge,
    database: HistogramVec,
}

/// A request or a file that is under way, until this is dropped.
pub(super) struct UnderWay(IntGauge);

impl Figures {
    pub(super) fn new() -> Self {
        let histogram = |name: &str, help: &str, labels: &[&str]| {
            let options = HistogramOpts::new(name, help).buckets(BOUNDS_S.to_vec());
            HistogramVec::new(options, labels).expect("a name and labels as Prometheus has them")
        };
        let requests = histogram(
            "tenure_http_request_seconds",
            "Time until a request had the head of its answer, by route.",
            &["route", "method", "status"],
        );
        let database = histogram(
            "tenure_hub_database_seconds",
            "Time that a request waited for the database and its threads.",
            &["outcome"],
        );
        let under_way = IntGauge::new("tenure_http_requests", "Requests that are under way.")
            .expect("a name as Prometheus has them");
        let files = IntGauge::new("tenure_hub_files", "Lists that are sent as files now.")
            .expect("a name as Prometheus has them");
        let registry = Registry::new();
        for one in [
            Box::new(requests.clone()) as Box<dyn prometheus::core::Collector>,
            Box::new(database.clone()),
            Box::new(under_way.clone()),
            Box::new(files.clone()),
        ] {
            registry.register(one).expect("each has a name of its own");
        }
        Self { registry, requests, under_way, files, database }
    }

    /// Counts a request as under way.
    pub(super) fn begin(&self) -> UnderWay {
        self.under_way.inc();
        UnderWay(self.under_way.clone())
    }

    /// Counts a list as being sent as a file.
    pub(super) fn begin_file(&self) -> UnderWay {
        self.files.inc();
        UnderWay(self.files.clone())
    }

    /// Counts a request that was answered. Without a `route`, it was to nothing that is there.
    pub(super) fn request(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        let labels = [route.unwrap_or("none"), known(method), class(status)];
        self.requests.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// Counts a turn at the database.
    pub(super) fn database(&self, took: Duration, is_well: bool) {
        let outcome = if is_well { "done" } else { "failed" };
        self.database.with_label_values(&[outcome]).observe(took.as_secs_f64());
    }

    /// All of them as they are now.
    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A method that is known, or the word for all others.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The class of a status (RFC 9110 15).
fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
