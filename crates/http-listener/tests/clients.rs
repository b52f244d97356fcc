//! Clients that take nothing, ask for everything at once, or say two things of a body's end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use tenure_http_listener::{Bounds, serve};
use tenure_testbed::{any_address, patience};

fn open<F>(bounds: Bounds, answer: F) -> SocketAddr
where
    F: Fn(&str) -> String + Clone + Send + Sync + 'static,
{
    let answer = move |request: Request<Incoming>| {
        let text = answer(request.uri().path());
        async move { Response::new(text) }
    };
    serve(TcpListener::bind(any_address()).unwrap(), "trial", bounds, answer).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    stream
}

/// Sends `request`, and returns all that comes back.
fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const LAST: &str = "GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

// C4-7: each connection lived for ten minutes, with all that waited for it.
#[test]
fn client_that_takes_nothing_of_its_answer_is_let_go_and_another_gets_the_place() {
    let bounds = Bounds {
        connections: 1,
        by_host: false,
        progress_timeout: Duration::from_millis(50),
        ..Bounds::USUAL
    };
    let address = open(bounds, |path| match path {
        "/last" => "there".into(),
        _ => "x".repeat(16 << 20),
    });
    let mut silent = connect(address);
    silent.write_all(b"GET /long HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    // It waits for the only place.
    assert!(send(address, LAST).ends_with("there"));
    drop(silent);
}

// D-3: 2,000 requests of one connection, in one go.
#[test]
fn requests_that_a_client_sends_at_once_are_answered_between_those_of_others() {
    const AT_ONCE: usize = 1500;
    let answered = Arc::new(Mutex::new(Vec::new()));
    let all_is_sent = Arc::new(Barrier::new(2));
    let (noted, sent) = (Arc::clone(&answered), Arc::clone(&all_is_sent));
    let address = open(Bounds::USUAL, move |path| {
        if path == "/first" {
            sent.wait();
        }
        noted.lock().unwrap().push(path.to_string());
        path.to_string()
    });
    let (mut greedy, mut other) = (connect(address), connect(address));
    greedy.write_all(b"GET /first HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let many = "GET /many HTTP/1.1\r\nhost: a\r\n\r\n".repeat(AT_ONCE) + LAST;
    greedy.write_all(many.as_bytes()).unwrap();
    other.write_all(b"GET /other HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    all_is_sent.wait();
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    let before = answered.lock().unwrap().iter().position(|path| path == "/other").unwrap();
    assert!(answer.ends_with("/other") && before < 50, "{before} came before");
    let mut answers = String::new();
    greedy.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200").count(), AT_ONCE + 2);
}

// C4-3: readers differ in where such a body ends.
#[test]
fn request_whose_body_has_two_codings_is_not_understood_and_ends_its_connection() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let address = open(Bounds::USUAL, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        "there".into()
    });
    let post = |fields: &str, body: &str| {
        send(address, &format!("POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n{body}{LAST}"))
    };
    for fields in [
        "transfer-encoding: identity\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\nTransfer-Encoding: chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: identity, chunked",
    ] {
        let answer = post(fields, "0\r\n\r\n");
        let status = answer.split(' ').nth(1).unwrap();
        assert!(matches!(status, "400" | "501"), "{fields}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{fields}: {answer}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert!(post("transfer-encoding: Chunked", "0\r\n\r\n").ends_with("there"));
}
