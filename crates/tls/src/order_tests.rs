//! Handshakes whose messages come in every other order, are left out or repeated: what follows is told
//! from the state table, and is the alert that the RFC names.

extern crate std;

use std::vec::Vec;

use rcgen::{CertificateParams, KeyPair, PublicKeyData};
use tenure_crypto::{Group, PrivateKey, Software};
use tenure_hal::{Entropy, EntropyError};

use super::*;
use crate::connection::Handshake;
use crate::record::{ContentType, HEADER_BYTES, PROTECTION_BYTES, Protection, header};
use crate::x509::ServerName;
use crate::{
    Client, ClientConfig, Connection, EarlyDataGuard, Error, Event, ExternalKey, Identity, Now,
    PreSharedKey, Server, ServerConfig, Suite, TicketKey, Trust,
};

const NOW: Now = Now { uptime_ms: 1, date: None };
const BUFFER_BYTES: usize = 4096;
const EXTERNAL: ExternalKey<'_> = ExternalKey { identity: b"device 7", key: &[7; 32] };

/// The same bytes for each connection, so that what was recorded of one is right for another.
struct Repeated(u8);

impl Entropy for Repeated {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(5).wrapping_add(1);
            *byte = self.0;
        }
        Ok(())
    }
}

type Keys = Software<Repeated>;

/// A key with its certificate, which both ends show and trust.
struct World {
    certificate: Vec<u8>,
    key: [u8; 32],
    key_info: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let pair = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(std::vec!["server.test".into()]).expect("a name");
        let certificate = params.self_signed(&pair).expect("a certificate").der().to_vec();
        // PKCS#8 of a P-256 key: the scalar stands at a fixed place.
        let key = pair.serialize_der()[36..68].try_into().expect("32 bytes");
        Self { certificate, key, key_info: pair.subject_public_key_info() }
    }
}

/// One way through a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Certificate,
    BothCertificates,
    /// The client has no certificate to show.
    RefusedCertificate,
    ExternalKey,
    EarlyData,
}

/// The parts that a connection is made of, in any way.
struct Parts<'w> {
    chain: [&'w [u8]; 1],
    keys: [&'w [u8]; 1],
    key: &'w [u8; 32],
    ticket_key: TicketKey,
    ticket: Option<(Vec<u8>, Vec<u8>, u32)>,
}

impl<'w> Parts<'w> {
    fn of(world: &'w World) -> Self {
        Self {
            chain: [&world.certificate],
            keys: [&world.key_info],
            key: &world.key,
            ticket_key: TicketKey::from_bytes(&[3; 32]),
            ticket: None,
        }
    }

    /// The same, to connect with once more.
    fn again(&self) -> Self {
        let ticket_key = TicketKey::from_bytes(&[3; 32]);
        Self { ticket_key, ticket: self.ticket.clone(), ..*self }
    }

    fn identity(&self) -> Identity<'_> {
        Identity { chain: &self.chain, key: PrivateKey::P256(self.key) }
    }

    fn client(&self, way: Way) -> ClientConfig<'_> {
        let external = PreSharedKey {
            identity: EXTERNAL.identity,
            key: EXTERNAL.key,
            suite: Suite::ChaCha20Poly1305Sha256,
            is_external: true,
            obfuscated_age: 0,
            early_data_bytes_max: 0,
        };
        let resumed = self.ticket.as_ref().map(|(identity, key, age_add)| PreSharedKey {
            identity,
            key,
            is_external: false,
            obfuscated_age: *age_add,
            early_data_bytes_max: 100,
            ..external
        });
        ClientConfig {
            server_name: ServerName::Dns("server.test"),
            trust: Trust::Keys(&self.keys),
            suites: &[Suite::ChaCha20Poly1305Sha256],
            groups: &[Group::X25519],
            application_protocols: &[],
            identity: (way == Way::BothCertificates).then(|| self.identity()),
            pre_shared_key: match way {
                Way::ExternalKey => Some(external),
                Way::EarlyData => resumed,
                _ => None,
            },
            early_data: true,
            handshake_ms_max: 1000,
        }
    }

    fn server<'a>(&'a self, way: Way, identities: &'a [Identity<'a>]) -> ServerConfig<'a> {
        let asks = matches!(way, Way::BothCertificates | Way::RefusedCertificate);
        ServerConfig {
            identities,
            suites: &[Suite::ChaCha20Poly1305Sha256],
            groups: &[Group::X25519],
            application_protocols: &[],
            client_trust: asks.then_some(Trust::Keys(&self.keys)),
            client_must_prove: false,
            pre_shared_keys: &[EXTERNAL],
            ticket_key: Some(&self.ticket_key),
            early_data_bytes_max: 100,
            handshake_ms_max: 1000,
        }
    }
}

/// A handshake message as it was sent.
struct Sent {
    kind: Message,
    bytes: Vec<u8>,
    /// The number of the keys that protect it: 0 is none.
    epoch: usize,
}

/// An end's expectation: its state, and the number of the keys that it reads with.
type Expects = (State, usize);

/// A handshake that came about, as one end received it.
#[derive(Default)]
struct Recording {
    messages: Vec<Sent>,
    /// The keys of each epoch but 0, at the beginning of their use.
    keys: Vec<Protection>,
    /// Each message with what the end expected when it came, and afterwards.
    steps: Vec<(Expects, Message, Expects)>,
    /// The part of a message that is here.
    partial: Vec<u8>,
}

/// Polls `end` until it waits.
fn settle<H: Handshake>(end: &mut Connection<'_, H>, security: &mut Keys) -> Option<Error> {
    loop {
        match end.poll(security, &NOW) {
            Ok(Event::Idle) => return None,
            Ok(_) => end.consume(usize::MAX),
            Err(error) => return Some(error),
        }
    }
}

/// The keys that `end` reads with, if it hasn't used them.
fn fresh_keys<'e, H>(end: &'e Connection<'_, H>) -> Option<&'e Protection> {
    end.core.channel.reading.as_ref().filter(|keys| keys.sequence() == 0)
}

impl Recording {
    /// Carries what `from` sends to `to`, and records it.
    fn carry<A: Handshake, B: Handshake>(
        &mut self,
        from: &mut Connection<'_, A>,
        to: &mut Connection<'_, B>,
        security: &mut Keys,
    ) {
        let flight = from.output().to_vec();
        from.sent(flight.len());
        let mut rest = &flight[..];
        while let Some(head) = rest.first_chunk::<HEADER_BYTES>() {
            let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
            let (record, after) = rest.split_at(HEADER_BYTES + length);
            rest = after;
            // It means nothing.
            if record[0] == ContentType::ChangeCipherSpec as u8 {
                continue;
            }
            self.keys.extend(fresh_keys(to).cloned());
            let before = (to.core.state, self.keys.len());
            self.partial.extend(content_of(record, to, security));
            assert_eq!(to.feed(record), record.len());
            assert_eq!(settle(to, security), None);
            let after = (to.core.state, self.keys.len() + usize::from(fresh_keys(to).is_some()));
            self.take_message(before, after);
        }
    }

    /// Takes the message that is complete, if it is: none shares a record with another.
    fn take_message(&mut self, before: Expects, after: Expects) {
        let [number, _, high, low, ..] = self.partial[..] else { return };
        if self.partial.len() < 4 + usize::from(u16::from_be_bytes([high, low])) {
            return;
        }
        let kind = Message::ALL.into_iter().find(|it| *it as u8 == number).expect("a message");
        let bytes = core::mem::take(&mut self.partial);
        self.messages.push(Sent { kind, bytes, epoch: before.1 });
        self.steps.push((before, kind, after));
    }

    /// Where the messages in `order` are refused, and why; nowhere, if they are the beginning of a
    /// handshake. `other` is a recording of the same end in another way.
    fn prediction(&self, other: &Self, order: &[usize]) -> Option<(usize, Misbehaviour)> {
        let (mut state, mut epoch) = self.steps[0].0;
        for (place, index) in order.iter().enumerate() {
            let Sent { kind, epoch: sent, .. } = self.messages[*index];
            if sent != epoch {
                let is_open = sent == 0 || epoch == 0;
                let why =
                    if is_open { Misbehaviour::Unexpected } else { Misbehaviour::Undecryptable };
                return Some((place, why));
            }
            if state.due(kind as u8).is_err() {
                return Some((place, Misbehaviour::Unexpected));
            }
            // They prove that both ends saw the same messages before.
            let is_proof = matches!(kind, Message::CertificateVerify | Message::Finished);
            let is_genuine = order[..place].iter().copied().eq(0..place) && *index == place;
            if is_proof && !is_genuine {
                return Some((place, Misbehaviour::BadProof));
            }
            let mut steps = self.steps.iter().chain(&other.steps);
            let step =
                steps.find(|(before, message, _)| (*before, *message) == ((state, epoch), kind));
            (state, epoch) = step.expect("a step of one of the ways").2;
        }
        None
    }

    /// Sends the messages in `order` to `end`, and returns where it refuses them, and why.
    fn replay<H: Handshake>(
        &self,
        end: &mut Connection<'_, H>,
        security: &mut Keys,
        order: &[usize],
    ) -> Option<(usize, Error)> {
        let mut keys = self.keys.clone();
        for (place, index) in order.iter().enumerate() {
            let Sent { bytes, epoch, .. } = &self.messages[*index];
            let mut record = header(ContentType::Handshake, bytes.len()).to_vec();
            record.extend(bytes);
            if let Some(epoch) = epoch.checked_sub(1) {
                record.extend([0; PROTECTION_BYTES]);
                let sealed = keys[epoch].seal(security, ContentType::Handshake, &mut record);
                sealed.expect("a record");
            }
            end.sent(usize::MAX);
            assert_eq!(end.feed(&record), record.len());
            if let Some(error) = settle(end, security) {
                return Some((place, error));
            }
        }
        None
    }

    /// Checks that `end` takes the messages in `order` up to the one that the table refuses, and says so.
    fn check<H: Handshake>(
        &self,
        other: &Self,
        end: &mut Connection<'_, H>,
        security: &mut Keys,
        order: &[usize],
    ) {
        let found = self.replay(end, security, order);
        let expected = self.prediction(other, order);
        assert_eq!(found, expected.map(|(place, why)| (place, Error::Peer(why))), "{order:?}");
        assert!(found.is_none() || !end.output().is_empty(), "{order:?} is refused in silence");
        let is_right = order.iter().copied().eq(0..self.messages.len());
        assert_eq!(end.is_connected(), is_right, "{order:?}");
    }
}

/// The content of `record`, which `to` is about to receive.
fn content_of<H>(record: &[u8], to: &Connection<'_, H>, security: &mut Keys) -> Vec<u8> {
    let mut record = record.to_vec();
    let Some(reading) = &to.core.channel.reading else {
        return record[HEADER_BYTES..].to_vec();
    };
    let opened = reading.clone().open(security, &mut record);
    let (content, length) = opened.expect("a record that can be opened");
    assert_eq!(content, Some(ContentType::Handshake));
    record[HEADER_BYTES..HEADER_BYTES + length].to_vec()
}

/// Every order of every selection of `count` messages, and the right one with one of them repeated at each
/// place. Orders with the same false beginning are one.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = (1..count).map(|first| std::vec![first]).collect();
    let mut open = std::vec![std::vec![0]];
    while let Some(order) = open.pop() {
        for next in (0..count).filter(|next| !order.contains(next)) {
            open.push([&order[..], &[next]].concat());
        }
        orders.push(order);
    }
    for repeated in 0..count {
        for place in 0..=count {
            let mut order: Vec<usize> = (0..count).collect();
            order.insert(place, repeated);
            orders.push(order);
        }
    }
    orders
}

const CLIENT_SEED: u8 = 1;
const SERVER_SEED: u8 = 2;

fn security(seed: u8) -> Keys {
    Software::new(Repeated(seed))
}

/// Connects in `way`, and returns what the client and what the server received. A ticket is left in `parts`.
fn record(parts: &mut Parts<'_>, way: Way) -> (Recording, Recording) {
    let (client_config, identities) = (parts.client(way), [parts.identity()]);
    let server_config = parts.server(way, &identities);
    let guard = EarlyDataGuard::new();
    let (mut here, mut there) = ([0; BUFFER_BYTES], [0; BUFFER_BYTES]);
    let (mut of_client, mut of_server) = (security(CLIENT_SEED), security(SERVER_SEED));
    let mut client = Client::new(&mut here, &client_config, &NOW).expect("a client");
    let mut server = Server::new(&mut there, &server_config, Some(&guard), &NOW).expect("a server");
    let (mut by_client, mut by_server) = (Recording::default(), Recording::default());
    assert_eq!(settle(&mut client, &mut of_client), None);
    by_server.carry(&mut client, &mut server, &mut of_server);
    by_client.carry(&mut server, &mut client, &mut of_client);
    by_server.carry(&mut client, &mut server, &mut of_server);
    assert!(client.is_connected() && server.is_connected(), "{way:?}");
    server.send_ticket(&mut of_server, &NOW).expect("room");
    client.feed(server.output());
    assert_eq!(client.poll(&mut of_client, &NOW), Ok(Event::Ticket));
    let ticket = client.ticket().expect("a ticket");
    let ticket = (ticket.identity.to_vec(), ticket.key.to_vec(), ticket.age_add);
    drop((client, server));
    parts.ticket = Some(ticket);
    (by_client, by_server)
}

const WAYS: [Way; 5] = [
    Way::Certificate,
    Way::BothCertificates,
    Way::RefusedCertificate,
    Way::ExternalKey,
    Way::EarlyData,
];

#[test]
fn a_clients_messages_in_any_other_order_end_in_the_alert_of_the_table() {
    let world = World::new();
    let mut parts = Parts::of(&world);
    let (plain, _) = record(&mut parts, Way::Certificate);
    let mut tried = 0;
    for way in WAYS {
        let recording = record(&mut parts.again(), way).0;
        let config = parts.client(way);
        for order in orders(recording.messages.len()) {
            let mut buffer = [0; BUFFER_BYTES];
            let mut client = Client::new(&mut buffer, &config, &NOW).expect("a client");
            let mut security = security(CLIENT_SEED);
            assert_eq!(settle(&mut client, &mut security), None);
            recording.check(&plain, &mut client, &mut security, &order);
            tried += 1;
        }
    }
    assert!(tried > 800, "only {tried} were tried");
}

#[test]
fn a_servers_messages_in_any_other_order_end_in_the_alert_of_the_table() {
    let world = World::new();
    let mut parts = Parts::of(&world);
    let (_, plain) = record(&mut parts, Way::Certificate);
    let mut tried = 0;
    for way in WAYS {
        let recording = record(&mut parts.again(), way).1;
        let identities = [parts.identity()];
        let config = parts.server(way, &identities);
        for order in orders(recording.messages.len()) {
            let guard = EarlyDataGuard::new();
            let mut buffer = [0; BUFFER_BYTES];
            let mut server =
                Server::new(&mut buffer, &config, Some(&guard), &NOW).expect("a server");
            recording.check(&plain, &mut server, &mut security(SERVER_SEED), &order);
            tried += 1;
        }
    }
    assert!(tried > 60, "only {tried} were tried");
}
