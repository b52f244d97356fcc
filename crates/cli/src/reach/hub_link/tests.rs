//! A link whose hub the test plays: by UDP it is silent or answers, and by WebSocket it gives back what it gets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;

use tenure_reach::Servers;
use tenure_reach::websocket::{Incoming, Kind, Message, Side, accept_of, frame};
use tenure_tls_client::Dates;
use tenure_wire::datagram::Cookie;
use tenure_wire::{Epoch, PublicKey};

use super::*;

/// Gives the datagrams of one WebSocket back, as long as there is one.
fn echo(mut client: &TcpStream) {
    let lines = BufReader::new(client).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let key = head.iter().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let accept = accept_of(key);
    let answer = format!(
        "HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    client.write_all(answer.as_bytes()).unwrap();
    let (mut incoming, mut part) = (Incoming::new(Side::Server), [0; 2048]);
    loop {
        let length = client.read(&mut part).unwrap_or(0);
        if length == 0 {
            return;
        }
        incoming.take(&part[..length]);
        while let Ok(Some(message)) = incoming.message() {
            let Message::Datagram(datagram) = message else { return };
            let _ = client.write_all(&frame(Side::Server, Kind::Binary, &datagram, [0; 4]));
        }
    }
}

/// A link that goes round at once, and the hub's socket of UDP.
fn link() -> (HubLink, UdpSocket, SocketAddr) {
    let pages = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("ws://{}", pages.local_addr().unwrap()).parse().unwrap();
    std::thread::spawn(move || {
        pages.incoming().map_while(Result::ok).for_each(|client| echo(&client));
    });
    let hub = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = hub.local_addr().unwrap();
    let mut link = HubLink::over(UdpLink::bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let servers = Arc::new(Servers::new(|| Err("none".into())));
    let way = TunnelWay { to, proxy: Ok(None), servers, dates: Dates::new(|| None) };
    link.go_round_by(way, Duration::ZERO);
    (link, hub, address)
}

/// A hub's answer to a question.
fn challenge(echo: Echo) -> Vec<u8> {
    let (epoch, cookie, key) = (Epoch([0; 8]), Cookie([0; 16]), PublicKey([1; 32]));
    Challenge { echo, epoch, cookie, key }.to_bytes().to_vec()
}

/// The next datagram that comes, or the next news.
fn next(link: &mut HubLink) -> Result<(Vec<u8>, SocketAddr), News> {
    let mut datagram = [0; 2048];
    loop {
        if let Some((length, from)) = link.receive(&mut datagram).unwrap() {
            return Ok((datagram[..length].to_vec(), from));
        }
        if let Some(news) = link.news() {
            return Err(news);
        }
        link.wait(Duration::from_secs(60)).unwrap();
    }
}

#[test]
fn hub_that_is_silent_by_udp_is_reached_by_websocket_and_others_by_udp() {
    let (mut link, hub, address) = link();
    link.hub_is_at([address]);
    link.send(&address, b"lost").unwrap();
    assert!(matches!(next(&mut link), Err(News::ByWebSocket(_))));
    assert!(link.is_by_websocket());
    link.send(&address, b"by websocket").unwrap();
    assert_eq!(next(&mut link), Ok((b"by websocket".to_vec(), address)));
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    link.send(&other.local_addr().unwrap(), b"by udp").unwrap();
    let mut datagram = [0; 64];
    let (length, from) = other.recv_from(&mut datagram).unwrap();
    assert_eq!((&datagram[..length], from), (&b"by udp"[..], link.address()));
    other.send_to(b"answer", link.address()).unwrap();
    assert_eq!(next(&mut link), Ok((b"answer".to_vec(), other.local_addr().unwrap())));
    // By UDP the hub got what was sent before the WebSocket was open, and nothing else yet.
    let (length, _) = hub.recv_from(&mut datagram).unwrap();
    assert_eq!(&datagram[..length], b"lost");
}

#[test]
fn hub_with_nothing_to_say_is_asked_by_udp_before_a_websocket_is_opened() {
    let (mut link, hub, address) = link();
    let now = Instant::now();
    let choice = &mut link.detour.as_mut().unwrap().choice;
    *choice = Choice::new(now, Duration::from_secs(60));
    // Half of that time has passed since something was sent that wants no answer.
    choice.sent(now.checked_sub(Duration::from_secs(30)).unwrap());
    link.hub_is_at([address]);
    let asked = std::thread::spawn(move || {
        let mut datagram = [0; 256];
        let (length, from) = hub.recv_from(&mut datagram).unwrap();
        let Ok(Datagram::Probe(Probe { nonce })) = Datagram::parse(&datagram[..length]) else {
            panic!("a question")
        };
        hub.send_to(&challenge(nonce), from).unwrap();
    });
    while link.due_in().is_some() {
        link.wait(Duration::from_secs(60)).unwrap();
        assert_eq!(link.receive(&mut [0; 256]).unwrap(), None, "the answer is the link's own");
    }
    asked.join().unwrap();
    assert!(link.detour.as_ref().unwrap().tunnel.is_none() && !link.is_by_websocket());
    assert_eq!(link.news(), None);
}

#[test]
fn answer_to_the_links_own_question_leads_back_to_udp_and_nothing_else_does() {
    let (mut link, hub, address) = link();
    link.hub_is_at([address]);
    link.send(&address, b"lost").unwrap();
    assert!(matches!(next(&mut link), Err(News::ByWebSocket(_))));
    let mut datagram = [0; 256];
    hub.recv_from(&mut datagram).unwrap();
    // Somebody else's challenge is handed on, and changes nothing.
    hub.send_to(&challenge(Echo([9; 16])), link.address()).unwrap();
    assert!(next(&mut link).is_ok_and(|(_, from)| from == address) && link.is_by_websocket());
    // It asks by itself after a while.
    let asked = std::thread::spawn(move || {
        let (length, from) = hub.recv_from(&mut datagram).unwrap();
        let Ok(Datagram::Probe(Probe { nonce })) = Datagram::parse(&datagram[..length]) else {
            panic!("a question")
        };
        hub.send_to(&challenge(nonce), from).unwrap();
        hub
    });
    assert_eq!(next(&mut link), Err(News::ByUdp));
    let hub = asked.join().unwrap();
    link.send(&address, b"by udp").unwrap();
    let mut datagram = [0; 256];
    let (length, _) = hub.recv_from(&mut datagram).unwrap();
    assert_eq!(&datagram[..length], b"by udp");
}

#[test]
fn hub_without_an_address_is_reached_by_websocket_at_once() {
    let (mut link, _hub, _) = link();
    link.hub_is_at([nowhere()]);
    assert!(link.send(&nowhere(), b"lost").is_err());
    assert!(matches!(next(&mut link), Err(News::ByWebSocket(_))));
    link.send(&nowhere(), b"hello").unwrap();
    assert_eq!(next(&mut link), Ok((b"hello".to_vec(), nowhere())));
}

#[test]
fn pages_that_are_nowhere_are_told_once_and_udp_is_used_on() {
    let (mut link, hub, address) = link();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let to = format!("ws://{closed}").parse().unwrap();
    let servers = Arc::new(Servers::new(|| Err("none".into())));
    let way = TunnelWay { to, proxy: Ok(None), servers, dates: Dates::new(|| None) };
    link.go_round_by(way, Duration::ZERO);
    link.hub_is_at([address]);
    link.send(&address, b"one").unwrap();
    assert!(matches!(next(&mut link), Err(News::Neither(_))));
    assert!(link.failure().is_some_and(|why| why.contains("can't be reached")));
    link.send(&address, b"two").unwrap();
    let mut datagram = [0; 64];
    for sent in [b"one", b"two"] {
        let (length, from) = hub.recv_from(&mut datagram).unwrap();
        assert_eq!(&datagram[..length], sent);
        hub.send_to(b"here", from).unwrap();
    }
    assert_eq!(next(&mut link), Ok((b"here".to_vec(), address)));
    assert_eq!(link.news(), Some(News::ByUdp), "the hub is there after all");
}
