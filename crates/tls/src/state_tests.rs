//! Every message in every state, generated from the table: what isn't due ends the connection with the
//! alert that the RFC names, whatever it holds.

extern crate std;

use std::vec::Vec;

use tenure_crypto::{Group, Software};
use tenure_hal::{Entropy, EntropyError};

use super::*;
use crate::x509::ServerName;
use crate::{
    Alert, Client, ClientConfig, Error, ExternalKey, Now, Server, ServerConfig, Suite, Trust,
};

struct Zeros;

impl Entropy for Zeros {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(1);
        Ok(())
    }
}

const NOW: Now = Now { uptime_ms: 0, date: None };

/// Has a connection in `state` take a message of type `number` with `body`, and returns its error and
/// what it sent.
fn take(state: State, number: u8, body: &[u8]) -> (Option<Error>, Vec<u8>) {
    let length = [number, 0, 0, body.len() as u8];
    let message = [&length, body].concat();
    let mut security = Software::new(Zeros);
    let mut buffer = [0; 4096];
    let is_client = (TABLE.iter().position(|(it, _)| *it == state))
        < TABLE.iter().position(|(it, _)| *it == State::ClientHello);
    if is_client {
        let config = ClientConfig {
            server_name: ServerName::Dns("server.test"),
            trust: Trust::Keys(&[]),
            suites: Suite::ALL,
            groups: &[Group::X25519],
            application_protocols: &[],
            identity: None,
            pre_shared_key: None,
            early_data: false,
            handshake_ms_max: 1000,
        };
        let mut client = Client::new(&mut buffer, &config, &NOW).expect("a client");
        client.core.state = state;
        client.core.channel.inject(&message);
        let error = poll_to_end(|| client.poll(&mut security, &NOW));
        (error, client.output().to_vec())
    } else {
        let config = ServerConfig {
            identities: &[],
            suites: Suite::ALL,
            groups: &[Group::X25519],
            application_protocols: &[],
            client_trust: None,
            client_must_prove: false,
            pre_shared_keys: &[ExternalKey { identity: b"name", key: b"key" }],
            ticket_key: None,
            early_data_bytes_max: 0,
            handshake_ms_max: 1000,
        };
        let mut server = Server::new(&mut buffer, &config, None, &NOW).expect("a server");
        server.core.state = state;
        server.core.channel.inject(&message);
        let error = poll_to_end(|| server.poll(&mut security, &NOW));
        (error, server.output().to_vec())
    }
}

fn poll_to_end(mut poll: impl FnMut() -> Result<crate::Event, Error>) -> Option<Error> {
    for _ in 0..4 {
        match poll() {
            Ok(crate::Event::Idle) => return None,
            Ok(_) => {}
            Err(error) => return Some(error),
        }
    }
    None
}

#[test]
fn every_message_that_is_not_due_ends_in_unexpected_message() {
    let mut tried = 0;
    for (state, due) in TABLE.into_iter().filter(|(state, _)| *state != State::Start) {
        for number in 0..=255 {
            let is_due = due.iter().any(|message| *message as u8 == number);
            for body in [&[][..], &[0; 4], &[0xff; 40]] {
                let (error, output) = take(state, number, body);
                let unexpected = Some(Error::Peer(Misbehaviour::Unexpected));
                if !is_due {
                    assert_eq!(error, unexpected, "{state:?} {number}");
                    let alert = [21, 3, 3, 0, 2, 2, Alert::UNEXPECTED_MESSAGE.0];
                    assert_eq!(output, alert, "{state:?} {number}");
                    tried += 1;
                } else {
                    // A message that is due and makes no sense is refused for that.
                    assert!(error.is_some() || body.len() == 4, "{state:?} {number} {body:?}");
                }
            }
        }
    }
    assert!(tried > 9000, "only {tried} were tried");
}

#[test]
fn every_state_stands_once_in_the_table_and_takes_something() {
    for (index, (state, due)) in TABLE.iter().enumerate() {
        assert_eq!(TABLE.iter().position(|(it, _)| it == state), Some(index));
        assert_eq!(due.is_empty(), *state == State::Start);
    }
}
