//! The server in the traces of RFC 8448.

extern crate std;

use std::vec::Vec;

use tenure_crypto::EphemeralKey;

use super::*;
use crate::channel::Incoming;
use crate::hello::Extensions;
use crate::record::{ContentType, HEADER_BYTES, Protection};
use crate::rfc8448::{
    BUFFER_BYTES, DATA, EARLY_DATA, NOW, Scripted, TICKET_KEY, Trace, output, poll,
};
use crate::schedule::finished;
use crate::suite::group_from_number;
use crate::wire::Reader;
use crate::{Event, ExternalKey};

const SUITE: Suite = Suite::Aes128GcmSha256;

/// The part of a handshake that the RFC's server decided on.
struct Script<'t> {
    section: u8,
    key: &'t [u8],
    early: Option<HashValue>,
}

/// Goes through the trace of a section: gives the server what the client sent, and compares every record
/// that it sends itself.
fn follow(section: u8) {
    let trace = Trace::section(section);
    let mut security = Scripted::new(Vec::new());
    let identities = trace.all("client identity");
    let config = ServerConfig {
        identities: &[],
        suites: &[SUITE],
        groups: &[if section == 5 { Group::Secp256r1 } else { Group::X25519 }],
        application_protocols: &[],
        client_trust: (section == 6).then_some(Trust::Keys(&identities)),
        client_must_prove: true,
        pre_shared_keys: &[ExternalKey { identity: b"none", key: b"none" }],
        ticket_key: None,
        early_data_bytes_max: 0,
        handshake_ms_max: 1000,
    };
    let mut buffer = [0; BUFFER_BYTES];
    let mut server = Server::new(&mut buffer, &config, None, &NOW).expect("a server");
    // The first message is taken by hand.
    server.core.channel.in_handshake = true;
    let mut script = Script { section, key: trace.one("server key"), early: None };
    for (label, record) in trace.records() {
        let place = std::format!("{} {label}", trace.name());
        if label.starts_with("client") {
            assert_eq!(server.feed(record), record.len(), "{place}");
        }
        let Server { core, handshake } = &mut server;
        match label {
            "client hello" => {
                let incoming = core.channel.next_record(&mut security);
                assert_eq!(incoming, Ok(Some(Incoming::Handshake)));
                let is_first = core.suite.is_none();
                if is_first {
                    understand(core, handshake, &mut security, section);
                }
            }
            // It waits in the buffer until the server can read it.
            "client early data" => {}
            "client flight" => {
                assert_eq!(poll(&mut server, &mut security), Ok(Event::Connected), "{place}");
            }
            "client data" => {
                assert_eq!(poll(&mut server, &mut security), Ok(Event::Data), "{place}");
                assert_eq!(server.data(), DATA, "{place}");
                server.consume(usize::MAX);
            }
            "client close" => {
                assert_eq!(poll(&mut server, &mut security), Ok(Event::PeerClosed), "{place}");
            }
            "server retry" => script.retry(core, &mut security, record),
            "server hello" => script.hello(core, handshake, &mut security, record),
            "server flight" => script.flight(core, handshake, &mut security, record),
            "server ticket" => send_ticket(core, &mut security, record),
            "server data" => assert_eq!(server.send(&mut security, &DATA), Ok(DATA.len())),
            "server close" => server.close(&mut security),
            _ => unreachable!("{place}"),
        }
        if label.starts_with("server") {
            assert_eq!(output(&mut server), record, "{place}");
        }
        if (section, label) == (4, "server flight") {
            assert_eq!(poll(&mut server, &mut security), Ok(Event::Data), "{place}");
            assert_eq!(server.data(), EARLY_DATA, "{place}");
            server.consume(usize::MAX);
        }
    }
    assert_eq!(security.rsa_signatures, usize::from(section == 6));
}

/// The server takes the first message, and finds the suite and the share in it.
fn understand(
    core: &Core<'_>,
    handshake: &mut ServerHandshake<'_>,
    security: &mut Scripted<'_>,
    section: u8,
) {
    let message = core.channel.opened();
    let mut hello = ClientHello::parse(message).expect("a hello");
    let choice = handshake.choose(core, security, &mut hello, message).expect("a choice");
    assert_eq!(choice.suite, SUITE);
    assert_eq!(choice.offers_early_data, section == 4);
    let groups = hello.numbers(extension::SUPPORTED_GROUPS).expect("groups");
    let shares = hello.numbers(extension::KEY_SHARE).expect("shares");
    let share = handshake.find_share(security, groups, shares).expect("shares");
    assert_eq!(share.is_some(), section != 5);
}

/// The first share in the `ClientHello` at the front.
fn share_of(message: &[u8]) -> (Group, Vec<u8>) {
    let mut body = Reader::new(&message[4 + 2 + 32..]);
    body.vector8().expect("a session id");
    body.vector16().expect("suites");
    body.vector8().expect("compressions");
    let mut extensions = Extensions::parse(&mut body).expect("extensions");
    let mut shares = extensions.take(extension::KEY_SHARE).expect("shares");
    let mut share = shares.vector16().expect("a list");
    let group = group_from_number(share.u16().expect("a group")).expect("a known group");
    (group, share.vector16().expect("a key").rest().to_vec())
}

/// The content of `record`, the first under `secret`.
fn plaintext(secret: &[u8], security: &mut Scripted<'_>, record: &[u8]) -> Vec<u8> {
    let mut keys: Protection = traffic_keys(SUITE, secret);
    let mut record = record.to_vec();
    let (content, length) = keys.open(security, &mut record).expect("a record under that key");
    assert_eq!(content, Some(ContentType::Handshake));
    record[HEADER_BYTES..HEADER_BYTES + length].to_vec()
}

fn emit(core: &mut Core<'_>, security: &mut Scripted<'_>, messages: &[&[u8]]) {
    let sent = core.channel.emit(security, ContentType::Handshake, |_, _, writer| {
        Ok(messages.iter().try_for_each(|message| writer.bytes(message))?)
    });
    sent.expect("room");
}

impl Script<'_> {
    fn retry(&self, core: &mut Core<'_>, security: &mut Scripted<'_>, record: &[u8]) {
        core.suite = Some(SUITE);
        core.transcript.choose(SUITE.hash());
        core.take_in(core.channel.opened().len());
        core.transcript.restart();
        core.transcript.update(&record[HEADER_BYTES..]);
        emit(core, security, &[&record[HEADER_BYTES..]]);
    }

    fn hello(
        &mut self,
        core: &mut Core<'_>,
        handshake: &mut ServerHandshake<'_>,
        security: &mut Scripted<'_>,
        record: &[u8],
    ) {
        let hash = SUITE.hash();
        let early = Schedule::early(hash, (self.section == 4).then_some(&TICKET_KEY[..]));
        let (group, share) = share_of(core.channel.opened());
        core.suite = Some(SUITE);
        core.transcript.choose(hash);
        core.take_in(core.channel.opened().len());
        self.early = Some(early.derive(b"c e traffic", &core.transcript.digest(hash)));
        core.transcript.update(&record[HEADER_BYTES..]);
        emit(core, security, &[&record[HEADER_BYTES..]]);
        let key = EphemeralKey::new(group, self.key);
        let agreed = security.finish_agreement(&key, &share).expect("a secret");
        let schedule = early.handshake(Some(&agreed));
        core.handshake_secrets(&schedule).expect("secrets");
        core.write_with_own_secret().expect("keys");
        handshake.schedule = Some(schedule.master());
    }

    /// The messages that the RFC's server chose, with an own `Finished` behind them.
    fn flight(
        &mut self,
        core: &mut Core<'_>,
        handshake: &mut ServerHandshake<'_>,
        security: &mut Scripted<'_>,
        record: &[u8],
    ) {
        const CHANGE_CIPHER_SPEC_BYTES: usize = HEADER_BYTES + 1;
        let mut record = record;
        if self.section == 7 {
            // It goes out before the keys count.
            let keys = core.channel.writing.take();
            core.send_change_cipher_spec(security).expect("room");
            core.channel.writing = keys;
            record = &record[CHANGE_CIPHER_SPEC_BYTES..];
        }
        let flight = plaintext(&core.own_secret, security, record);
        let (chosen, _) = flight.split_at(flight.len() - 36);
        core.transcript.update(chosen);
        let digest = core.transcript_digest().expect("a suite");
        let proof = finished(SUITE.hash(), &core.own_secret, &digest);
        let head = [Message::Finished as u8, 0, 0, 32];
        core.transcript.update(&head);
        core.transcript.update(&proof);
        emit(core, security, &[chosen, &head, &proof]);
        handshake.application = core.transcript_digest().expect("a suite");
        handshake.client_handshake = core.peer_secret.clone();
        core.state = match self.section {
            4 => State::EndOfEarlyData,
            6 => State::ClientCertificate,
            _ => State::ClientFinished,
        };
        let peer = if let (4, Some(early)) = (self.section, &self.early) {
            core.takes_early_data = true;
            core.early_data_left = EARLY_DATA.len();
            early
        } else {
            &core.peer_secret
        };
        let keys = traffic_keys(SUITE, peer);
        core.channel.read_with(keys).expect("no message under way");
        let schedule = handshake.schedule.as_ref().expect("a schedule");
        let own = schedule.derive(b"s ap traffic", &handshake.application);
        core.channel.writing = Some(traffic_keys(SUITE, &own));
    }
}

/// The ticket that the RFC's server made, whose key is the own one.
fn send_ticket(core: &mut Core<'_>, security: &mut Scripted<'_>, record: &[u8]) {
    let ticket = plaintext(&core.own_secret, security, record);
    let nonce = Reader::new(&ticket[12..]).vector8().expect("a nonce").rest();
    let key = expand_secret(SUITE.hash(), &core.resumption, b"resumption", nonce);
    assert_eq!(*key, TICKET_KEY);
    emit(core, security, &[&ticket]);
}

#[test]
fn the_server_of_rfc_8448_section_3_sends_its_bytes_and_its_tickets_key() {
    follow(3);
}

#[test]
fn the_server_of_rfc_8448_section_4_takes_early_data() {
    follow(4);
}

#[test]
fn the_server_of_rfc_8448_section_5_sends_its_bytes_after_a_retry() {
    follow(5);
}

#[test]
fn the_server_of_rfc_8448_section_6_takes_the_clients_proof() {
    follow(6);
}

#[test]
fn the_server_of_rfc_8448_section_7_sends_its_bytes_through_middleboxes() {
    follow(7);
}
