use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use tokio::io::DuplexStream;

use super::*;
use crate::running::Running;

const WELL: [(&str, &str); 4] = [
    ("connection", "keep-alive, Upgrade"),
    ("upgrade", "WebSocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];
const MASK: [u8; 4] = [1, 2, 3, 4];

/// A request that asks well but for these fields; an empty one is left out.
fn asked(method: &str, others: &[(&'static str, &str)]) -> Request {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.parse().unwrap();
    for (name, value) in WELL.iter().chain(others) {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let is_empty = |name: &&str| others.iter().any(|(one, value)| one == name && value.is_empty());
    for (name, _) in WELL.iter().filter(|(name, _)| is_empty(name)) {
        request.headers_mut().remove(*name);
    }
    request
}

fn status(method: &str, others: &[(&'static str, &str)]) -> u16 {
    key_of(&asked(method, others)).map_or_else(|(status, _)| status.as_u16(), |_| 101)
}

#[test]
fn request_is_one_for_websocket_and_no_browsers() {
    assert_eq!(status("GET", &[]), 101);
    for (method, fields, refused) in [
        ("HEAD", &[][..], 426),
        ("GET", &[("connection", "")], 426),
        ("GET", &[("upgrade", "h2c")], 426),
        ("GET", &[("sec-websocket-version", "8")], 426),
        ("GET", &[("sec-websocket-key", "")], 400),
        ("GET", &[("sec-websocket-key", "short")], 400),
        ("GET", &[("origin", "https://hub")], 403),
        ("GET", &[("sec-fetch-site", "cross-site")], 403),
        ("GET", &[("sec-fetch-site", "same-origin")], 403),
    ] {
        assert_eq!(status(method, fields), refused, "{method} {fields:?}");
    }
    let mut twice = asked("GET", &[]);
    twice.headers_mut().append("sec-websocket-key", HeaderValue::from_static("x"));
    assert!(key_of(&twice).is_err());
}

#[test]
fn answer_is_the_standards() {
    let answer = switched("dGhlIHNhbXBsZSBub25jZQ==", true);
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let fields = ["connection", "upgrade", "sec-websocket-accept", "sec-websocket-protocol"];
    let values = fields.map(|name| answer.headers()[name].to_str().unwrap().to_owned());
    assert_eq!(values[..2], ["Upgrade", "websocket"]);
    assert_eq!(values[2..], ["s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", SUBPROTOCOL]);
    assert!(!switched("x", false).headers().contains_key("sec-websocket-protocol"));
}

/// A hub that listens, and the client's side of a connection with it.
struct Scene {
    running: Running,
    rung: UnixStream,
    client: DuplexStream,
    incoming: Incoming,
}

impl Scene {
    fn new() -> Self {
        let running = Running::default();
        let rung = running.carried().listen().unwrap();
        let (client, server) = tokio::io::duplex(64 * 1024);
        let connection = running.carry([192, 0, 2, 1].into()).unwrap();
        tokio::spawn(async move { carry(server, &connection).await });
        Self { running, rung, client, incoming: Incoming::new(Side::Client) }
    }

    async fn send(&mut self, kind: Kind, payload: &[u8]) {
        self.client.write_all(&frame(Side::Client, kind, payload, MASK)).await.unwrap();
    }

    /// The next message that the hub sends, or `None` once it has closed.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.incoming.message().unwrap() {
                return Some(message);
            }
            let mut part = [0; 512];
            let length = self.client.read(&mut part).await.unwrap_or(0);
            if length == 0 {
                return None;
            }
            self.incoming.take(&part[..length]);
        }
    }

    /// The next datagram that the hub's thread gets.
    async fn taken(&self) -> (SocketAddr, Vec<u8>) {
        loop {
            if let Some(taken) = self.running.carried().take(&self.rung) {
                return taken;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the hub has closed the connection, and its place is free.
    async fn check_end(&mut self) {
        while self.next().await.is_some() {}
        while self.running.carried().counts().open > 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

#[test]
fn datagrams_reach_the_hub_and_its_answers_come_back() {
    run(async {
        let mut scene = Scene::new();
        for datagram in [&b"one"[..], &[7; tenure_hal::DATAGRAM_BYTES_MAX]] {
            scene.send(Kind::Binary, datagram).await;
            let (from, taken) = scene.taken().await;
            assert_eq!(taken, datagram);
            assert!(scene.running.carried().send(&from, b"answer"));
            assert_eq!(scene.next().await, Some(Message::Datagram(b"answer".to_vec())));
        }
        scene.send(Kind::Ping, b"there?").await;
        // A pong has the number of no message that is read here.
        assert_eq!(scene.next().await, Some(Message::Pong));
        scene.send(Kind::Close, &[]).await;
        assert_eq!(scene.next().await, Some(Message::Close));
        scene.check_end().await;
    });
}

#[test]
fn client_that_breaks_the_protocol_is_told_and_loses_its_place() {
    for (bytes, code) in
        [(&[0x81, 0x80, 0, 0, 0, 0][..], 1003), (&[0x82, 0], 1002), (&[0x82, 0xFF], 1009)]
    {
        run(async {
            let mut scene = Scene::new();
            scene.client.write_all(bytes).await.unwrap();
            let mut answer = [0; 4];
            scene.client.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer[..2], [0x88, 2]);
            assert_eq!(u16::from_be_bytes([answer[2], answer[3]]), code);
            scene.check_end().await;
        });
    }
}

#[test]
fn client_that_goes_without_a_word_gives_its_place_back() {
    run(async {
        let Scene { running, rung, client, .. } = Scene::new();
        drop(client);
        while running.carried().counts().open > 0 {
            tokio::task::yield_now().await;
        }
        drop(rung);
    });
}
