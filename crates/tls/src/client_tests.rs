//! The client in the traces of RFC 8448.

extern crate std;

use std::vec::Vec;

use super::*;
use crate::Event;
use crate::rfc8448::{
    BUFFER_BYTES, DATA, EARLY_DATA, NOW, Scripted, TICKET_KEY, Trace, output, poll,
};

impl<'c> ClientHandshake<'c> {
    /// Sends `hello` in place of an own message. Its binder is the own one.
    pub(super) fn send_script(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        group: Group,
        retry: Option<Suite>,
        hello: &'c [u8],
    ) -> Result<(), Error> {
        let (key, _) = security.begin_agreement(group, &mut [])?;
        self.key = Some(key);
        self.script_session = Some(Reader::new(&hello[4 + 2 + 32..]).vector8()?.rest());
        let Core { channel, transcript, .. } = core;
        channel.emit(security, ContentType::Handshake, |_, _, writer| {
            writer.bytes(hello)?;
            self.write_binder(writer, transcript, retry)?;
            transcript.update(writer.written());
            Ok(())
        })
    }
}

/// Goes through the trace of a section: gives the client what the server sent, and compares every record
/// that it sends itself. Returns the key of the ticket that it got.
fn follow(section: u8) -> Option<HashValue> {
    let trace = Trace::section(section);
    let mut security = Scripted::new(trace.all("client key"));
    let hellos: Vec<&[u8]> = trace.all("client hello").iter().map(|record| &record[5..]).collect();
    let identities = trace.all("server identity");
    let identity = ticket_identity(&trace);
    let psk = PreSharedKey {
        identity,
        key: &TICKET_KEY,
        suite: Suite::Aes128GcmSha256,
        is_external: false,
        obfuscated_age: 0,
        early_data_bytes_max: 1024,
    };
    let config = ClientConfig {
        server_name: ServerName::Dns("server"),
        trust: Trust::Keys(&identities),
        suites: &[Suite::Aes128GcmSha256],
        groups: &[Group::X25519, Group::Secp256r1],
        application_protocols: &[],
        identity: None,
        pre_shared_key: (!identity.is_empty()).then_some(psk),
        early_data: true,
        handshake_ms_max: 1000,
    };
    let mut buffer = [0; BUFFER_BYTES];
    let mut client = Client::new(&mut buffer, &config, &NOW).expect("a client");
    client.handshake.script = &hellos;
    // Only the client of §7 is one that middleboxes understand.
    client.core.is_change_cipher_spec_sent = section != 7;
    let mut key = None;
    let mut is_first = true;
    for (label, record) in trace.records() {
        let place = std::format!("{} {label}", trace.name());
        match label {
            "client hello" => assert!(matches!(poll(&mut client, &mut security), Ok(Event::Idle))),
            "client early data" => {
                let sent = client.send(&mut security, EARLY_DATA).expect(&place);
                assert_eq!(sent, EARLY_DATA.len());
            }
            "client data" => assert_eq!(client.send(&mut security, &DATA), Ok(DATA.len())),
            "client close" => client.close(&mut security),
            "client flight" => {}
            _ => {
                assert_eq!(client.feed(record), record.len(), "{place}");
                let event = poll(&mut client, &mut security).expect(&place);
                match label {
                    "server flight" => assert_eq!(event, Event::Connected, "{place}"),
                    "server ticket" => key = client.ticket().map(|ticket| ticket.key),
                    "server data" => assert_eq!(client.data(), DATA),
                    "server close" => assert_eq!(event, Event::PeerClosed),
                    _ => assert_eq!(event, Event::Idle, "{place}"),
                }
                client.consume(usize::MAX);
                continue;
            }
        }
        let mut sent = output(&mut client);
        // The first record may be of TLS 1.0 for servers that know nothing else (RFC 8446 §5.1).
        if core::mem::take(&mut is_first) {
            sent[2] = record[2];
        }
        // The client of §6 shows a key that is too short for this one.
        if (section, label) != (6, "client flight") {
            assert_eq!(sent, record, "{place}");
        }
    }
    assert_eq!(security.rsa_signatures, usize::from([3, 5, 7].contains(&section)));
    key
}

/// The ticket of §3, if the first message of `trace` shows it.
fn ticket_identity(trace: &Trace) -> &[u8] {
    const IDENTITY_BYTES: usize = 178;
    const BINDERS_BYTES: usize = 2 + 1 + 32;
    if trace.all("client early data").is_empty() {
        return &[];
    }
    let hello = trace.one("client hello");
    let end = hello.len() - BINDERS_BYTES - 4;
    &hello[end - IDENTITY_BYTES..end]
}

#[test]
fn the_client_of_rfc_8448_section_3_sends_its_bytes_and_gets_its_ticket() {
    assert_eq!(follow(3).as_deref(), Some(&TICKET_KEY[..]));
}

#[test]
fn the_client_of_rfc_8448_section_4_sends_its_bytes_and_early_data() {
    assert!(follow(4).is_none());
}

#[test]
fn the_client_of_rfc_8448_section_5_sends_its_bytes_after_a_retry() {
    assert!(follow(5).is_none());
}

#[test]
fn the_client_of_rfc_8448_section_6_is_asked_for_a_certificate() {
    assert!(follow(6).is_none());
}

#[test]
fn the_client_of_rfc_8448_section_7_sends_its_bytes_through_middleboxes() {
    assert!(follow(7).is_none());
}
