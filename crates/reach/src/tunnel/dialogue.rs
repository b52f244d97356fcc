//! What a tunnel's thread does: a connection, by the proxy if there is one; TLS; the upgrade; and then datagrams both ways.

use std::convert::Infallible;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use tenure_board_linux::{LinuxEntropy, dial, wait_any};
use tenure_hal::Entropy as _;
use tenure_tls::{Client, ClientConfig, Now, Suite, Trust};
use tenure_tls_client::{Judges, ReadyTicket, Scope, Tickets, explain};
use tenure_wire::NoResult;
use tenure_wire::url::{Host, Origin, Scheme};

use super::{Ends, Proxy, Told, TunnelError, TunnelWay};
use crate::Failure;
use crate::stream::{GROUPS, Stream, TLS_BUFFER_BYTES, server_name};
use crate::websocket::{
    Incoming, Kind, Message, SUBPROTOCOL, Side, VERSION, accept_of, close, frame, key_of,
};

/// How long it may take until a tunnel is open.
const OPEN_WITHIN: Duration = Duration::from_secs(15);
/// How long the server may take none of what it is sent.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// After which silence the server is asked whether it is there: proxies forget a silent connection after a minute, as a rule.
const ASKED_AFTER: Duration = Duration::from_secs(25);
/// After which silence it isn't.
const GONE_AFTER: Duration = Duration::from_secs(40);
/// How long the rest of a TLS record is waited for whose beginning came.
const GLANCE: Duration = Duration::from_millis(50);
/// The most parts of what comes that are read before something is sent again.
const PARTS_PER_TURN: usize = 16;
/// The longest head of an answer, in bytes, and the most fields in it.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const FIELDS_MAX: usize = 64;

/// Opens the tunnel and lets datagrams through; why it ended.
pub(super) fn run(way: &TunnelWay, ends: &Ends) -> TunnelError {
    match open(way, ends) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn open(way: &TunnelWay, ends: &Ends) -> Result<Infallible, TunnelError> {
    let deadline = Instant::now() + OPEN_WITHIN;
    let origin = way.to.url().origin();
    let proxy = way.proxy.clone().map_err(TunnelError::Proxy)?;
    let tcp = match &proxy {
        None => connect(&origin.host, origin.port, false, deadline)?,
        Some(proxy) => through(proxy, way, deadline)?,
    };
    if origin.scheme == Scheme::Http {
        return upgrade(Stream::plain(tcp, &way.dates), way, ends, deadline);
    }
    let untrusted = |why: String| TunnelError::Tls { host: named(origin), why };
    let judges = way.servers.judges_of(origin);
    let judges = judges.map_err(|why| untrusted(format!("no authority is known: {why}")))?;
    let (anchors, keys) = match judges {
        Judges::Authorities(authorities) => (authorities.anchors(), Vec::new()),
        Judges::Keys(ders) => (Vec::new(), ders.iter().map(Vec::as_slice).collect()),
    };
    let scope = Scope::new(b"tunnel", &origin.to_string(), judges, &[]);
    let (ticket, keeper) = Tickets::default().begin(scope, &way.dates);
    let config = ClientConfig {
        server_name: server_name(&origin.host),
        trust: match keys.is_empty() {
            true => Trust::Anchors { anchors: &anchors, without_date: &[] },
            false => Trust::Keys(&keys),
        },
        suites: Suite::ALL,
        groups: GROUPS,
        application_protocols: &[b"http/1.1"],
        identity: None,
        pre_shared_key: ticket.as_ref().map(ReadyTicket::key),
        early_data: false,
        handshake_ms_max: u64::try_from(OPEN_WITHIN.as_millis()).unwrap_or(u64::MAX),
    };
    let (mut buffer, start) = (vec![0; TLS_BUFFER_BYTES], Instant::now());
    let client = Client::new(&mut buffer, &config, &Now { uptime_ms: 0, date: None })
        .map_err(|error| untrusted(explain(error, way.dates.date())))?;
    let stream = Stream::secure(tcp, (client, keeper), &way.dates, (start, deadline));
    let stream = stream.map_err(|failure| untrusted(failure.words.into_owned()))?;
    upgrade(stream, way, ends, deadline)
}

/// Host and port, in words.
fn named(origin: &Origin) -> String {
    format!("{}:{}", origin.host, origin.port)
}

/// A TCP connection to a host.
fn connect(
    host: &Host,
    port: u16,
    is_proxy: bool,
    deadline: Instant,
) -> Result<TcpStream, TunnelError> {
    let addresses: Vec<SocketAddr> = match host {
        Host::Address(address) => vec![SocketAddr::new(*address, port)],
        Host::Name(name) => {
            let found = (name.as_str(), port).to_socket_addrs().map_err(|error| {
                TunnelError::NoAddress { host: name.clone(), why: error.to_string() }
            })?;
            found.collect()
        }
    };
    dial(&addresses, deadline).map_err(|error| TunnelError::Unreachable {
        host: format!("{host}:{port}"),
        is_proxy,
        why: error.to_string(),
    })
}

/// A connection to the server that a proxy lets through (RFC 9110 §9.3.6).
fn through(proxy: &Proxy, way: &TunnelWay, deadline: Instant) -> Result<TcpStream, TunnelError> {
    let tcp = connect(&proxy.host, proxy.port, true, deadline)?;
    let broke_off = |why: String| TunnelError::BrokeOff { host: format!("the proxy {proxy}"), why };
    let copy = tcp.try_clone().map_err(|error| broke_off(error.to_string()))?;
    let mut stream = Stream::plain(copy, &way.dates);
    let host = named(way.to.url().origin());
    let mut request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
    if let Some(credentials) = &proxy.credentials {
        request += &format!("Proxy-Authorization: Basic {credentials}\r\n");
    }
    request += "\r\n";
    let sent = stream.send(request.as_bytes(), deadline);
    sent.map_err(|failure| broke_off(failure.words.into_owned()))?;
    let (answer, rest) = answer(&mut stream, &format!("the proxy {proxy}"), deadline)?;
    if !(200..300).contains(&answer.status) {
        let (proxy, status) = (proxy.to_string(), answer.status);
        return Err(TunnelError::ProxyRefuses { proxy, host, status });
    }
    if !rest.is_empty() {
        let why = "sends something before it was asked".to_owned();
        return Err(TunnelError::Unreadable { host: format!("the proxy {proxy}"), why });
    }
    Ok(tcp)
}

/// The head of an answer, as far as it counts.
struct Answer {
    status: u16,
    upgrade: Option<String>,
    accept: Option<String>,
}

/// Reads the head of an answer, and what came behind it.
fn answer(
    stream: &mut Stream<'_>,
    whose: &str,
    deadline: Instant,
) -> Result<(Answer, Vec<u8>), TunnelError> {
    let mut received = Vec::new();
    let unreadable = |why: &str| TunnelError::Unreadable { host: whose.into(), why: why.into() };
    loop {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = head.parse(&received).map_err(|_| unreadable("doesn't answer by HTTP/1.1"))?;
        if let httparse::Status::Complete(end) = parsed {
            let field = |name: &str| {
                let of_name = head.headers.iter().find(|one| one.name.eq_ignore_ascii_case(name));
                of_name.map(|one| String::from_utf8_lossy(one.value).trim().to_owned())
            };
            let answer = Answer {
                status: head.code.unwrap_or_default(),
                upgrade: field("upgrade"),
                accept: field("sec-websocket-accept"),
            };
            return Ok((answer, received.split_off(end)));
        }
        if received.len() > HEAD_BYTES_MAX {
            return Err(unreadable("answers with a head that has no end"));
        }
        let more = stream.receive(&mut received, deadline);
        let more = more.map_err(|Failure { words, .. }| TunnelError::BrokeOff {
            host: whose.into(),
            why: words.into_owned(),
        })?;
        if !more {
            return Err(unreadable("closes the connection without an answer"));
        }
    }
}

/// Asks the server for WebSocket (RFC 6455 §4.1), and lets datagrams through once it gives it.
fn upgrade(
    mut stream: Stream<'_>,
    way: &TunnelWay,
    ends: &Ends,
    deadline: Instant,
) -> Result<Infallible, TunnelError> {
    let origin = way.to.url().origin();
    let host = named(origin);
    let key = key_of(&random()?);
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: {VERSION}\r\n\
         Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n",
        way.to.url().path_and_query(),
        origin.authority(),
    );
    let broke_off = |failure: Failure| TunnelError::BrokeOff {
        host: host.clone(),
        why: failure.words.into_owned(),
    };
    stream.send(request.as_bytes(), deadline).map_err(broke_off)?;
    let (answer, rest) = answer(&mut stream, &host, deadline)?;
    if answer.status != 101 {
        return Err(TunnelError::Refused { host, status: answer.status });
    }
    let is_websocket = answer.upgrade.is_some_and(|it| it.eq_ignore_ascii_case("websocket"));
    if !is_websocket || answer.accept != Some(accept_of(&key)) {
        let why = "answers, and doesn't speak WebSocket".to_owned();
        return Err(TunnelError::Unreadable { host, why });
    }
    let mut incoming = Incoming::new(Side::Client);
    incoming.take(&rest);
    let mut talk = Talk { stream, incoming, host, heard_at: Instant::now(), asked: false };
    if !ends.tell(Told::Open) {
        return Err(TunnelError::Dropped);
    }
    talk.carry(ends)
}

fn random<const N: usize>() -> Result<[u8; N], TunnelError> {
    let mut bytes = [0; N];
    let filled = LinuxEntropy.fill(&mut bytes);
    filled.map_err(|_| TunnelError::System("the system has no randomness".into()))?;
    Ok(bytes)
}

/// An open WebSocket.
struct Talk<'a> {
    stream: Stream<'a>,
    incoming: Incoming,
    host: String,
    /// When something came last.
    heard_at: Instant,
    /// Whether the server was asked since then if it is there.
    asked: bool,
}

impl Talk<'_> {
    /// Lets datagrams through until the connection is over.
    fn carry(&mut self, ends: &Ends) -> Result<Infallible, TunnelError> {
        loop {
            self.send_all(ends)?;
            let has_more = self.receive_all(ends)?;
            let silent = self.heard_at.elapsed();
            if silent >= GONE_AFTER {
                return Err(self.broke_off("it is silent"));
            }
            if silent >= ASKED_AFTER && !self.asked {
                self.asked = true;
                self.send(Kind::Ping, &[])?;
            }
            let due = if self.asked { GONE_AFTER } else { ASKED_AFTER };
            let pause = if has_more { Duration::ZERO } else { due.saturating_sub(silent) };
            // Rounded up, so that what is due then is due.
            let pause = pause + Duration::from_millis(u64::from(!has_more));
            let sockets: [&dyn AsFd; 2] = [self.stream.socket(), &ends.wake];
            wait_any(&sockets, pause)
                .map_err(|_| TunnelError::System("the system refuses to wait".into()))?;
        }
    }

    /// Sends what waits.
    fn send_all(&mut self, ends: &Ends) -> Result<(), TunnelError> {
        while (&ends.wake).read(&mut [0; 64]).is_ok_and(|length| length == 64) {}
        loop {
            match ends.outgoing.try_recv() {
                Ok(datagram) => self.send(Kind::Binary, &datagram)?,
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => {
                    let goodbye = close(Side::Client, None, random()?);
                    // It may be gone.
                    let _ = self.stream.send(&goodbye, Instant::now() + GLANCE);
                    return Err(TunnelError::Dropped);
                }
            }
        }
    }

    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), TunnelError> {
        let bytes = frame(Side::Client, kind, payload, random()?);
        let sent = self.stream.send(&bytes, Instant::now() + TAKEN_WITHIN);
        sent.map_err(|failure| self.broke_off(&failure.words))
    }

    /// Takes what has come; whether there may be more.
    fn receive_all(&mut self, ends: &Ends) -> Result<bool, TunnelError> {
        self.tell_all(ends)?;
        for _ in 0..PARTS_PER_TURN {
            let patience = if self.stream.has_come() { GLANCE } else { Duration::ZERO };
            let mut part = Vec::new();
            match self.stream.receive(&mut part, Instant::now() + patience) {
                Ok(true) => {}
                Ok(false) => return Err(self.broke_off("the hub closed it")),
                // TLS holds no more, and nothing waits in the socket.
                Err(failure) if failure.reason == NoResult::Deadline && patience.is_zero() => {
                    return Ok(false);
                }
                Err(failure) if failure.reason == NoResult::Deadline => {}
                Err(failure) => return Err(self.broke_off(&failure.words)),
            }
            if !part.is_empty() {
                (self.heard_at, self.asked) = (Instant::now(), false);
                self.incoming.take(&part);
                self.tell_all(ends)?;
            }
        }
        Ok(true)
    }

    /// Tells of the messages that are there.
    fn tell_all(&mut self, ends: &Ends) -> Result<(), TunnelError> {
        loop {
            match self.incoming.message() {
                Ok(None) => return Ok(()),
                Ok(Some(Message::Datagram(datagram))) => {
                    if !ends.tell(Told::Datagram(datagram)) {
                        return Err(TunnelError::Dropped);
                    }
                }
                Ok(Some(Message::Ping(payload))) => self.send(Kind::Pong, &payload)?,
                Ok(Some(Message::Pong)) => {}
                Ok(Some(Message::Close)) => return Err(self.broke_off("the hub closed it")),
                Err(broken) => {
                    let goodbye = close(Side::Client, Some(broken), random()?);
                    let _ = self.stream.send(&goodbye, Instant::now() + GLANCE);
                    let (host, why) = (self.host.clone(), broken.to_string());
                    return Err(TunnelError::Unreadable { host, why });
                }
            }
        }
    }

    fn broke_off(&self, why: &str) -> TunnelError {
        TunnelError::BrokeOff { host: self.host.clone(), why: why.to_owned() }
    }
}
