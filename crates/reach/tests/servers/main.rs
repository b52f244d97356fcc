//! Visits to servers that behave, and to those that don't.

mod harness;
mod nginx;
mod resumption;
mod tls;

use std::io::{Read as _, Write as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_kernel::{Ask, Visited};
use tenure_wire::NoResult;

use harness::{Device, Server, ok, read_request};

#[test]
fn requests_of_a_machine_share_a_connection_and_arrive_whole() {
    let server = Server::answering(|request| ok(&request.replace("\r\n", "|")));
    let mut device = Device::new(&[&server.url("/*")]);
    let told = device.ask("POST", &server.url("/v1?a=b"), Some("x-a: 1\r\n\r\nhello\r\n"));
    let told = String::from_utf8(told.result.unwrap().unwrap()).unwrap();
    let (head, body) = told.split_once("\r\n\r\n").unwrap();
    assert_eq!(head, format!("HTTP/1.1 200 \r\ncontent-length: {}", body.len()));
    let host = server.address;
    assert!(body.starts_with(&format!("POST /v1?a=b HTTP/1.1|host: {host}|user-agent: tenure/")));
    assert!(body.ends_with("|content-length: 7|x-a: 1||hello|"), "{body}");
    for path in ["/a", "/b"] {
        assert!(device.told("GET", &server.url(path)).contains(&format!("GET {path} HTTP")));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    let visited = device.ask("GET", &server.url("/"), None);
    assert!(visited.traffic.0 > 50 && visited.traffic.1 > 50, "{:?}", visited.traffic);
}

#[test]
fn long_body_comes_in_parts_that_the_machine_asks_for() {
    let whole: String = (0..10_000).map(|n| format!("{n:05}")).collect();
    let body = whole.clone();
    let server = Server::answering(move |request| match request.contains("/chunked") {
        true => {
            let chunk =
                |part: &[u8]| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
            let chunks: Vec<u8> = body.as_bytes().chunks(777).flat_map(chunk).collect();
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            [head, &chunks[..], b"0\r\n\r\n"].concat()
        }
        false => ok(&body),
    });
    let mut device = Device::new(&[]);
    for path in ["/chunked", "/whole"] {
        let told = device.told("GET", &server.url(path));
        let (head, first) = told.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.contains("content-length: 50000"), path == "/whole", "{head}");
        let mut got = first.as_bytes().to_vec();
        while let Some(part) = device.more().unwrap() {
            assert!(part.len() <= 8192);
            got.extend(part);
        }
        assert_eq!(got, whole.as_bytes());
        assert_eq!(device.more(), Ok(None), "and again");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn live_values_are_told_as_they_come() {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let server = Server::start(move |mut stream| {
        read_request(&mut stream);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let gone = gone.lock().unwrap();
        for number in 0..3 {
            gone.recv().unwrap();
            stream.write_all(format!("data: {number}\n\n").as_bytes()).unwrap();
        }
    });
    let mut device = Device::new(&[]);
    assert!(device.told("GET", &server.url("/")).ends_with("event-stream\r\n\r\n"));
    for number in 0..3 {
        go.send(()).unwrap();
        assert_eq!(device.more(), Ok(Some(format!("data: {number}\n\n").into_bytes())));
    }
    assert_eq!(device.more(), Ok(None));
}

#[test]
fn redirects_lead_where_the_lease_does_and_nowhere_else() {
    let server = Server::answering(|request| {
        let to = |status: &str, place: &str| {
            format!("HTTP/1.1 {status}\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n")
                .into_bytes()
        };
        match request.split(' ').nth(1).unwrap() {
            "/v1/old" => to("302 Found", "/v1/new?x"),
            "/v1/out" => to("302 Found", "/admin"),
            "/v1/away" => to("307 Temporary Redirect", "http://127.0.0.1:1/v1/x"),
            "/v1/up" => to("302 Found", "../admin"),
            "/v1/trick" => to("302 Found", "..;/admin"),
            "/v1/twice" => to("307 Temporary Redirect", "/v1/..%255cadmin"),
            "/v1/round" => to("302 Found", "/v1/round"),
            "/v1/form" => to("303 See Other", "/v1/done"),
            path => ok(&format!("{} {path}", request.split(' ').next().unwrap())),
        }
    });
    let mut device = Device::new(&[&server.url("/v1/*")]);
    assert!(device.told("GET", &server.url("/v1/old")).ends_with("GET /v1/new?x"));
    assert!(device.told("POST", &server.url("/v1/form")).ends_with("GET /v1/done"));
    // Another method isn't repeated elsewhere: the machine is told, and may.
    let told = device.told("POST", &server.url("/v1/old"));
    assert!(told.starts_with("HTTP/1.1 302 ") && told.contains("location: /v1/new?x"), "{told}");
    // C3-3: also by a path that others read as one elsewhere.
    for path in ["/v1/out", "/v1/away", "/v1/up", "/v1/round", "/v1/trick", "/v1/twice"] {
        let (reason, words) = device.failed("GET", &server.url(path));
        assert_eq!(reason, NoResult::Denied, "{path}: {words}");
        assert!(words.contains("leads"), "{words}");
    }
}

/// A server that reads no bodies, as small ones do: what stands in one is its next request. Tells the lines of those that it saw.
fn server_without_bodies() -> (Server, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let server = Server::start(move |mut stream| {
        loop {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") {
                if stream.read_exact(&mut byte).is_err() {
                    return;
                }
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            noted.lock().unwrap().push(head.lines().next().unwrap().to_string());
            if stream.write_all(&ok("done")).is_err() || head.contains("connection: close") {
                return;
            }
        }
    });
    (server, seen)
}

// C3-1
#[test]
fn request_in_the_body_of_another_reaches_no_server_that_grants_less_than_all_of_itself() {
    let (server, seen) = server_without_bodies();
    let mut device = Device::new(&[&server.url("/v1/*")]);
    let hidden = "x: a\r\n\r\nDELETE /admin/users HTTP/1.1\r\nhost: a\r\n\r\n";
    let refused = device.ask("GET", &server.url("/v1/x"), Some(hidden));
    assert_eq!(refused.result, Err(NoResult::Invalid));
    for path in ["/v1/a", "/v1/b"] {
        assert!(device.ask("POST", &server.url(path), Some(hidden)).result.is_ok());
    }
    assert!(device.told("GET", &server.url("/v1/c")).ends_with("done"));
    let lines = ["POST /v1/a HTTP/1.1", "POST /v1/b HTTP/1.1", "GET /v1/c HTTP/1.1"];
    assert_eq!(*seen.lock().unwrap(), lines);
    // Over the first one nothing was sent.
    assert_eq!(server.connections.load(Ordering::SeqCst), 4);
}

// C3-4
#[test]
fn answer_that_nobody_asked_for_is_no_answer_to_the_next_request() {
    let (said, says) = std::sync::mpsc::channel::<()>();
    let said = Mutex::new(said);
    let server = Server::start(move |mut stream| {
        // What is unasked leaves at once, and not with the next request's acknowledgement (RFC 9293 §3.7.4).
        stream.set_nodelay(true).unwrap();
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap().to_string();
            let _ = stream.write_all(&ok(&path));
            if path == "/at-once" {
                let _ = stream.write_all(&[ok("evil"), ok("evil")].concat());
            }
            if path == "/later" {
                let _ = stream.write_all(&ok("evil"));
                let _ = said.lock().unwrap().send(());
            }
        }
    });
    let mut device = Device::new(&[&server.url("/*")]);
    assert!(device.told("GET", &server.url("/at-once")).ends_with("/at-once"));
    assert!(device.told("GET", &server.url("/a")).ends_with("/a"));
    assert!(device.told("GET", &server.url("/later")).ends_with("/later"));
    says.recv().unwrap();
    let told = device.told("GET", &server.url("/b"));
    assert!(told.ends_with("/b"), "{told}");
    assert!(device.told("GET", &server.url("/c")).ends_with("/c"));
    assert_eq!(server.connections.load(Ordering::SeqCst), 3, "the last two share one");
}

#[test]
fn name_that_leads_into_the_own_network_is_refused() {
    let server = Server::answering(|_| ok("secret"));
    let port = server.address.port();
    let mut device = Device::new(&[]);
    let (reason, words) = device.failed("GET", &format!("http://localhost:{port}/"));
    assert_eq!(reason, NoResult::Denied);
    assert!(words.contains("localhost leads to"), "{words}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn server_that_misbehaves_is_an_error_with_a_reason_to_that_machine() {
    let cases: [(&str, &[u8], &str); 8] = [
        ("no HTTP", b"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP"),
        (
            "two lengths",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            "two lengths",
        ),
        ("an encoding", b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "an encoding"),
        ("a break", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nab", "broke off"),
        (
            "a broken chunk",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "no HTTP",
        ),
        ("nothing", b"", "without an answer"),
        ("only interim", b"HTTP/1.1 103 Early Hints\r\n\r\n", "without an answer"),
        ("another protocol", b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\n\r\n", "another protocol"),
    ];
    let mut device = Device::new(&[]);
    for (what, bytes, expected) in cases {
        let bytes = bytes.to_vec();
        let server = Server::start(move |mut stream| {
            read_request(&mut stream);
            let _ = stream.write_all(&bytes);
        });
        let (reason, words) = device.failed("GET", &server.url("/"));
        assert_eq!(reason, NoResult::Unreachable, "{what}: {words}");
        assert!(words.contains(expected), "{what}: {words}");
    }
}

#[test]
fn server_without_end_or_without_a_word_takes_the_time_of_one_machine_alone() {
    let endless = Server::start(|mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ");
        while stream.write_all(&[b'a'; 4096]).is_ok() {}
    });
    let hints = Server::start(|mut stream| {
        read_request(&mut stream);
        while stream.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n").is_ok() {}
    });
    let silent = Server::start(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
    let well = Server::answering(|_| ok("well"));
    let mut device = Device::new(&[]);
    let (reason, words) = device.failed("GET", &endless.url("/"));
    assert_eq!(reason, NoResult::Unreachable);
    assert!(words.contains("16,384 bytes"), "{words}");
    assert_eq!(device.failed("GET", &hints.url("/")).0, NoResult::Unreachable);
    let get = |server: &Server| Ask::Request {
        method: "GET".parse().unwrap(),
        url: server.url("/").parse().unwrap(),
        message: None,
    };
    device.deadline = Duration::from_secs(2);
    let slow = device.begin(1, get(&silent));
    let quick = device.begin(2, get(&well));
    let first = device.end();
    assert_eq!(first.id, quick, "another machine isn't held up");
    let second = device.end();
    assert_eq!((second.id, second.result), (slow, Err(NoResult::Deadline)));
}

#[test]
fn machine_that_asks_without_end_is_refused_beyond_its_place() {
    let silent = Server::start(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
    let mut device = Device::new(&[]);
    device.deadline = Duration::from_secs(1);
    let ask = Ask::Request {
        method: "GET".parse().unwrap(),
        url: silent.url("/").parse().unwrap(),
        message: None,
    };
    for _ in 0..40 {
        device.begin(1, ask.clone());
    }
    let ends: Vec<Visited> = (0..40).map(|_| device.end()).collect();
    let busy = ends.iter().filter(|end| end.result == Err(NoResult::Busy)).count();
    let late = ends.iter().filter(|end| end.result == Err(NoResult::Deadline)).count();
    assert!(busy >= 40 - 18 && busy + late == 40, "{busy} and {late}");
}

#[test]
fn connection_that_the_server_closed_meanwhile_is_opened_anew_for_what_changes_nothing() {
    // One answer for each connection, without saying so.
    let server = Server::start(|mut stream| {
        if let Some(request) = read_request(&mut stream) {
            let _ = stream.write_all(&ok(request.split(' ').next().unwrap()));
            // It is closed behind the next one.
            let _ = read_request(&mut stream);
        }
    });
    let mut device = Device::new(&[&server.url("/*")]);
    for _ in 0..3 {
        assert!(device.told("GET", &server.url("/")).ends_with("GET"));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 3);
    let (reason, _) = device.failed("POST", &server.url("/"));
    assert_eq!(reason, NoResult::Unreachable, "it may have been done already");
}

#[test]
fn more_of_an_answer_that_is_gone_is_an_error() {
    let mut device = Device::new(&[]);
    assert_eq!(device.more(), Err(NoResult::NotFound));
}
