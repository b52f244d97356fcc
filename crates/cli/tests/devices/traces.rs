//! Traces of a hub, as a collector of OpenTelemetry gets them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tenure_testbed::{patience, wait_until};

use crate::harness::{Process, User, any_address, free_ipv4_address};
use crate::hub::get;

/// A collector that hands on what it gets: the spans, and all bytes.
struct Collector {
    address: String,
    requests: Receiver<Vec<u8>>,
    spans: Vec<Span>,
    bytes: Vec<u8>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let body = body_of_post(&mut stream);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                if sender.send(body).is_err() {
                    return;
                }
            }
        });
        Self { address, requests, spans: Vec::new(), bytes: Vec::new() }
    }

    /// Waits for a span that `wanted` accepts.
    #[track_caller]
    fn span(&mut self, what: &str, wanted: impl Fn(&Span) -> bool) -> Span {
        loop {
            if let Some(span) = self.spans.iter().find(|span| wanted(span)) {
                return span.clone();
            }
            let Ok(body) = self.requests.recv_timeout(patience()) else {
                let names: Vec<_> = self.spans.iter().map(|span| &span.name).collect();
                panic!("waited in vain for {what}; there were {names:?}");
            };
            let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
            self.bytes.extend(&body);
            for resource in request.resource_spans {
                let attributes = &resource.resource.as_ref().unwrap().attributes;
                let service = attributes.iter().find(|pair| pair.key == "service.name").unwrap();
                let name = service.value.clone().unwrap().value.unwrap();
                assert_eq!(name, Value::StringValue("tenure-hub".into()));
                self.spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
    }
}

/// The body of a request for traces, whose length is said.
fn body_of_post(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    body
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A hub that sends its traces to the collector at this address, and its pages.
fn hub(user: &User, collector: &str, more: &[&str]) -> (Process, String) {
    let pages = free_ipv4_address();
    let mut command = user.own_hub(any_address());
    command.args(["--pages", &pages, "--otlp", &format!("http://{collector}")]).args(more);
    command.env("OTEL_BSP_SCHEDULE_DELAY", "50");
    (Process::start(command), format!("http://{pages}"))
}

#[test]
fn request_goes_on_with_the_trace_that_a_proxy_brings_down_to_the_database() {
    let mut collector = Collector::start();
    let user = User::new();
    let (hub, pages) = hub(&user, &collector.address, &["--pages-url", "https://hub.example"]);
    let signed_in = user.json(&["login", "--hub", &hub.address]);
    let called = collector.span("the command's call", |span| span.name == "sign_in");
    assert_eq!((called.kind, called.parent_span_id.len()), (2, 0), "a server's, below none");

    // W3C Trace Context §3.2.
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let code = signed_in["address"].as_str().unwrap();
    let code = code.strip_prefix("https://hub.example").unwrap();
    let answer = get(&pages, code, &format!("traceparent: 00-{trace}-{parent}-01"));
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    let request = collector.span("the request", |span| hex(&span.parent_span_id) == parent);
    assert_eq!((hex(&request.trace_id).as_str(), request.kind), (trace, 2));
    assert!(request.name.starts_with("GET /sign-in"), "{}", request.name);
    let status = request.attributes.iter().find(|it| it.key == "http.response.status_code");
    let status = status.unwrap().value.clone().unwrap().value.unwrap();
    assert_eq!(status, Value::IntValue(303));
    let asked = collector.span("the database", |span| span.parent_span_id == request.span_id);
    assert_eq!((asked.name.as_str(), &asked.trace_id), ("database", &request.trace_id));
    let (_, secret) = code.split_once("code=").unwrap();
    assert!(!collector.bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
    // What has ended is sent before the end, however long the pause is.
    get(&pages, "/health", "");
    assert!(hub.interrupt().success());
    collector.span("the last request", |span| span.name == "GET /health");
}

#[test]
fn trace_of_a_stranger_is_not_gone_on_with_and_a_hub_without_its_collector_serves() {
    let mut collector = Collector::start();
    let user = User::new();
    let (_hub, pages) = hub(&user, &collector.address, &[]);
    let strange = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    get(&pages, "/health", strange);
    let request = collector.span("the request", |span| span.name == "GET /health");
    assert!(request.parent_span_id.is_empty());
    assert_ne!(hex(&request.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
    drop(collector);
    let away = User::new();
    let (_hub, pages) = self::hub(&away, "127.0.0.1:1", &[]);
    // Pages may answer before the directory listens.
    wait_until(|| match get(&pages, "/ready", "") {
        answer if answer.ends_with("ready\n") => Ok(()),
        answer => Err(answer),
    });
    let error = away.error(&[
        "hub",
        "--data",
        "x",
        "--open",
        "--listen",
        any_address(),
        "--otlp",
        "collector",
    ]);
    assert!(error.contains("is no address of a collector"), "{error}");
}
