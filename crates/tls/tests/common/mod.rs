//! The common part of the tests: randomness, the date, and a loop that moves bytes over TCP.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod hello;
pub(crate) mod openssl;
pub(crate) mod pair;
pub(crate) mod rustls_peer;

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use tenure_crypto::{Group, Software};
use tenure_hal::{Entropy, EntropyError};
use tenure_tls::x509::{Anchor, ServerName, UnixTime};
use tenure_tls::{Client, ClientConfig, Error, Event, Now, Suite, Trust};

/// The system's randomness.
pub(crate) struct System;

impl Entropy for System {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let source = File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes));
        source.map_err(|_| EntropyError)
    }
}

pub(crate) fn security() -> Software<System> {
    Software::new(System)
}

pub(crate) const GROUPS: [Group; 4] =
    [Group::X25519, Group::Secp256r1, Group::Secp384r1, Group::X25519MlKem768];

/// The date of the computer, at the beginning of a connection.
pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a date after 1970");
    Now { uptime_ms: 0, date: Some(UnixTime(since.as_secs() as i64)) }
}

pub(crate) fn client_config<'a>(anchors: &'a [Anchor<'a>]) -> ClientConfig<'a> {
    ClientConfig {
        server_name: ServerName::Dns("server.test"),
        trust: Trust::Anchors { anchors, without_date: &[] },
        suites: Suite::ALL,
        groups: &GROUPS,
        application_protocols: &[],
        identity: None,
        pre_shared_key: None,
        early_data: false,
        handshake_ms_max: 10_000,
    }
}

/// The ends of a transport, as far as these tests need it.
pub(crate) trait Transport: Read + Write {
    fn set_patience(&mut self);
}

impl Transport for TcpStream {
    fn set_patience(&mut self) {
        self.set_read_timeout(Some(tenure_testbed::patience())).expect("a timeout");
    }
}

/// A client's view of a connection.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) certificates: usize,
    pub(crate) received: Vec<u8>,
    pub(crate) tickets: Vec<StoredTicket>,
}

/// A ticket that outlives its connection.
#[derive(Debug, Clone)]
pub(crate) struct StoredTicket {
    pub(crate) identity: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) suite: Suite,
    pub(crate) age_add: u32,
    pub(crate) early_data_bytes_max: u32,
}

/// Speaks as `client` over `stream`: sends `request`, reads until `is_enough` of what came, closes.
pub(crate) fn converse(
    client: &mut Client<'_, '_>,
    mut stream: impl Transport,
    request: &[u8],
    is_enough: impl Fn(&Seen) -> bool,
) -> Result<Seen, Error> {
    stream.set_patience();
    let (mut security, now) = (security(), now());
    let mut seen = Seen::default();
    let mut rest = request;
    loop {
        let event = client.poll(&mut security, &now);
        flush(client, &mut stream);
        match event? {
            Event::Certificate => seen.certificates += 1,
            Event::Connected => {}
            Event::Data => {
                let data = client.data();
                seen.received.extend_from_slice(data);
                let length = data.len();
                client.consume(length);
            }
            Event::Ticket => {
                let ticket = client.ticket().expect("a ticket was announced");
                seen.tickets.push(StoredTicket {
                    identity: ticket.identity.to_vec(),
                    key: ticket.key.to_vec(),
                    suite: ticket.suite,
                    age_add: ticket.age_add,
                    early_data_bytes_max: ticket.early_data_bytes_max,
                });
            }
            Event::PeerClosed => return Ok(seen),
            Event::Idle => {
                if client.is_connected() && !rest.is_empty() {
                    let sent = client.send(&mut security, rest)?;
                    rest = &rest[sent..];
                    flush(client, &mut stream);
                    continue;
                }
                if client.is_connected() && is_enough(&seen) {
                    client.close(&mut security);
                    flush(client, &mut stream);
                    return Ok(seen);
                }
                let space = client.space();
                assert!(!space.is_empty(), "idle with a full buffer");
                match stream.read(space) {
                    Ok(0) => client.end_of_input(&mut security)?,
                    Ok(length) => client.received(length),
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                        client.end_of_input(&mut security)?;
                    }
                    Err(error) => panic!("cannot read: {error}"),
                }
            }
        }
    }
}

fn flush(client: &mut Client<'_, '_>, stream: &mut impl Write) {
    while !client.output().is_empty() {
        match stream.write(client.output()) {
            Ok(length) => client.sent(length),
            // A peer that refused us may be gone.
            Err(_) => return client.sent(client.output().len()),
        }
    }
}
