//! Tunnels to servers and through proxies that the test plays.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};

use tenure_board_linux::wait_any;

use super::*;
use crate::websocket::{Incoming, Kind, Message, Side, accept_of, frame};

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The lines of a request's head.
fn head_of(client: &TcpStream) -> Vec<String> {
    // Nothing comes behind a head before it is answered.
    let lines = BufReader::new(client).lines().map(Result::unwrap);
    lines.take_while(|line| !line.is_empty()).collect()
}

fn answer(mut client: &TcpStream, head: &[String]) {
    let field = head.iter().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    let accept = accept_of(field.unwrap());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: WebSocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    client.write_all(answer.as_bytes()).unwrap();
}

/// Gives back whatever comes, until the client closes.
fn echo(mut client: &TcpStream) {
    let (mut incoming, mut part) = (Incoming::new(Side::Server), [0; 512]);
    loop {
        let length = client.read(&mut part).unwrap_or(0);
        if length == 0 {
            return;
        }
        incoming.take(&part[..length]);
        while let Some(message) = incoming.message().unwrap() {
            let Message::Datagram(datagram) = message else { return };
            client.write_all(&frame(Side::Server, Kind::Binary, &datagram, [0; 4])).unwrap();
        }
    }
}

/// A hub that gives datagrams back.
fn echoing() -> SocketAddr {
    let (listener, address) = listener();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let head = head_of(&client);
            answer(&client, &head);
            echo(&client);
        }
    });
    address
}

/// Somebody who answers every request by this text.
fn answering(text: &'static str) -> SocketAddr {
    let (listener, address) = listener();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            head_of(&client);
            client.write_all(text.as_bytes()).unwrap();
        }
    });
    address
}

fn way(to: SocketAddr, proxy: Option<&str>) -> TunnelWay {
    let to: TunnelUrl = format!("ws://{to}").parse().unwrap();
    let value = |name: &str| proxy.filter(|_| name == "HTTP_PROXY").map(str::to_owned);
    let proxy = Proxy::before(to.url().origin(), value);
    let servers = Arc::new(Servers::new(|| Err("none".into())));
    TunnelWay { to, proxy, servers, dates: Dates::new(|| None) }
}

/// The next news.
fn next(tunnel: &mut Tunnel) -> Told {
    loop {
        if let Some(told) = tunnel.told() {
            return told;
        }
        wait_any(&[&*tunnel], std::time::Duration::from_secs(60)).unwrap();
    }
}

fn error(way: TunnelWay) -> String {
    match next(&mut Tunnel::open(way).unwrap()) {
        Told::Over(error) => error.to_string(),
        told => panic!("{told:?}"),
    }
}

#[track_caller]
fn check_echo(tunnel: &mut Tunnel) {
    assert!(matches!(next(tunnel), Told::Open));
    for datagram in [&b"one"[..], b"", &[7; tenure_hal::DATAGRAM_BYTES_MAX]] {
        assert!(tunnel.send(datagram));
        let told = next(tunnel);
        assert!(matches!(&told, Told::Datagram(back) if back == datagram), "{told:?}");
    }
}

#[test]
fn datagrams_go_to_the_hub_and_come_back() {
    check_echo(&mut Tunnel::open(way(echoing(), None)).unwrap());
}

#[test]
fn tunnel_goes_through_the_proxy_with_what_it_is_to_be_shown() {
    let (hub, (listener, address)) = (echoing(), listener());
    let asked = std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let head = head_of(&client);
        (&client).write_all(b"HTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n").unwrap();
        let server = TcpStream::connect(hub).unwrap();
        let (mut back, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut to));
        let _ = std::io::copy(&mut &client, &mut &server);
        head
    });
    let mut tunnel = Tunnel::open(way(hub, Some(&format!("http://me:secret@{address}/")))).unwrap();
    check_echo(&mut tunnel);
    drop(tunnel);
    let head = asked.join().unwrap();
    assert_eq!(head[0], format!("CONNECT {hub} HTTP/1.1"));
    assert!(head.contains(&"Proxy-Authorization: Basic bWU6c2VjcmV0".into()), "{head:?}");
}

#[test]
fn what_stands_in_the_way_is_told() {
    let hub = echoing();
    let closed = listener().1;
    let at = |address: SocketAddr| Some(format!("http://{address}"));
    for (proxy, says) in [
        (at(answering("HTTP/1.1 403 Forbidden\r\n\r\n")), "refuses the way to "),
        (at(answering("HTTP/1.1 407 Proxy\r\n\r\n")), "(407): name it as http://USER:PASSWORD@"),
        (at(answering("SSH-2.0-x\r\n\r\n")), "doesn't answer by HTTP/1.1"),
        (at(answering("HTTP/1.1 200 OK\r\n\r\nmore")), "sends something before it was asked"),
        (at(closed), "the proxy 127.0.0.1:"),
        (Some("socks5://a:1".into()), "HTTP_PROXY names a proxy that is spoken to by `socks5`"),
    ] {
        let error = error(way(hub, proxy.as_deref()));
        assert!(error.contains(says), "{error}");
    }
    for (answer, says) in [
        ("HTTP/1.1 404 Not Found\r\n\r\n", "has no WebSocket at /datagrams (404)"),
        ("HTTP/1.1 503 Busy\r\n\r\n", "takes no more connections for now"),
        ("HTTP/1.1 200 OK\r\n\r\n", "must let Upgrade through"),
        ("HTTP/1.1 101 Yes\r\nupgrade: websocket\r\n\r\n", "doesn't speak WebSocket"),
        (
            "HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n",
            "doesn't speak WebSocket",
        ),
    ] {
        let error = error(way(answering(answer), None));
        assert!(error.contains(says), "{error}");
    }
    let error = error(way(closed, None));
    assert!(error.contains("can't be reached"), "{error}");
}

#[test]
fn datagrams_that_nobody_takes_are_dropped_and_the_sender_does_not_wait() {
    let (_silent, address) = listener();
    let tunnel = Tunnel::open(way(address, None)).unwrap();
    let sent = (0..2 * WAITING_MAX).filter(|_| tunnel.send(&[0; 1_000])).count();
    assert_eq!(sent, WAITING_MAX);
}

#[test]
fn url_names_a_host_and_where_its_pages_begin() {
    for (text, url, shown) in [
        ("wss://hub.example", "https://hub.example/datagrams", "wss://hub.example"),
        ("WSS://Hub.Example:443/", "https://hub.example/datagrams", "wss://hub.example"),
        ("ws://127.0.0.1:8080", "http://127.0.0.1:8080/datagrams", "ws://127.0.0.1:8080"),
        ("wss://a.example/hub/", "https://a.example/hub/datagrams", "wss://a.example/hub"),
    ] {
        let read: TunnelUrl = text.parse().unwrap();
        assert_eq!((read.url().to_string(), read.to_string()), (url.into(), shown.into()));
        assert!(TunnelUrl::is_meant(text));
    }
    for text in ["wss://", "wss:///x", "wss://a b", "wss://me@a", "wss://a?x", "wss://a#x"] {
        assert!(text.parse::<TunnelUrl>().is_err(), "{text}");
    }
    for text in ["hub.example", "https://hub.example", "127.0.0.1:7", "wss", "[::1]:7"] {
        assert!(!TunnelUrl::is_meant(text) && text.parse::<TunnelUrl>().is_err(), "{text}");
    }
}
