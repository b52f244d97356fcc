//! Records, alerts and the end of a connection (RFC 8446 §5, §6), as a peer sends them that breaks a rule.

mod common;

use common::hello::records;
use common::pair::*;
use common::security;
use tenure_crypto::Group;
use tenure_tls::{
    Alert, Client, ClientConfig, Error, Event, Misbehaviour, Now, Server, ServerConfig,
};

const CHANGE_CIPHER_SPEC: [u8; 6] = [20, 3, 3, 0, 1, 1];
const UNEXPECTED: End = Err(Error::Peer(Misbehaviour::Unexpected));

/// Moves what `pair`'s client has sent to the server, and returns it.
fn to_server(pair: &mut Pair<'_>) -> Vec<u8> {
    let output = pair.client.output().to_vec();
    pair.client.sent(output.len());
    assert_eq!(pair.server.feed(&output), output.len());
    output
}

/// Runs `check` on a server that has taken a first message and sent its flight.
fn with_answering_server(check: impl FnOnce(&mut Pair<'_>)) {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            let _ = pair.client.poll(&mut pair.security, &NOW);
            to_server(pair);
            assert_eq!(pair.server.poll(&mut pair.security, &NOW), Ok(Event::Idle));
            check(pair);
        });
    });
}

fn with_connected(check: impl FnOnce(&mut Pair<'_>)) {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            pair.connect();
            check(pair);
        });
    });
}

/// Feeds `bytes` to the server, and returns what comes of it.
fn feed(pair: &mut Pair<'_>, bytes: &[u8]) -> End {
    assert_eq!(pair.server.feed(bytes), bytes.len());
    skip(|| pair.server.poll(&mut pair.security, &NOW))
}

/// The answer that the client reads after a refusal of the server.
fn told(pair: &mut Pair<'_>) -> End {
    pair.client.feed(pair.server.output());
    pair.server.sent(usize::MAX);
    skip(|| pair.client.poll(&mut pair.security, &NOW))
}

#[test]
fn change_cipher_spec_is_dropped_between_the_first_message_and_finished_alone() {
    with_answering_server(|pair| {
        assert_eq!(feed(pair, &CHANGE_CIPHER_SPEC), Ok(Event::Idle));
        pair.connect();
        assert_eq!(feed(pair, &CHANGE_CIPHER_SPEC), UNEXPECTED);
        assert_eq!(told(pair), Err(Error::Alerted(Alert::UNEXPECTED_MESSAGE)));
    });
    with_connected(|pair| {
        pair.client.feed(&CHANGE_CIPHER_SPEC);
        assert_eq!(pair.client.poll(&mut pair.security, &NOW), UNEXPECTED);
    });
    in_world(|_, server, _| {
        assert_eq!(
            serve(server, &CHANGE_CIPHER_SPEC),
            (UNEXPECTED, alert_record(Alert::UNEXPECTED_MESSAGE))
        );
    });
    for other in [&[20, 3, 3, 0, 1, 2][..], &[20, 3, 3, 0, 2, 1, 1], &[20, 3, 3, 0, 0]] {
        with_answering_server(|pair| assert_eq!(feed(pair, other), UNEXPECTED, "{other:?}"));
    }
}

/// A fatal alert in the open.
fn alert_record(alert: Alert) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, alert.0]
}

#[test]
fn record_of_an_unknown_type_or_of_ssl_is_an_unexpected_message() {
    const SSL_HELLO: [u8; 16] = [0x80, 14, 1, 3, 4, 0, 3, 0, 0, 0, 2, 0, 0, 5, 7, 7];
    in_world(|_, server, _| {
        for bytes in
            [&SSL_HELLO[..], &[24, 3, 3, 0, 1, 1], &[0, 3, 3, 0, 1, 1], &[255, 3, 3, 0, 1, 1]]
        {
            let refused = (UNEXPECTED, alert_record(Alert::UNEXPECTED_MESSAGE));
            assert_eq!(serve(server, bytes), refused, "{bytes:?}");
        }
    });
}

#[test]
fn no_data_leaves_an_end_before_its_handshake_is_over() {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            let _ = pair.client.poll(&mut pair.security, &NOW);
            assert_eq!(pair.client.send(&mut pair.security, b"too early"), Ok(0));
            to_server(pair);
            let _ = pair.server.poll(&mut pair.security, &NOW);
            assert_eq!(pair.server.send(&mut pair.security, b"too early"), Ok(0));
            pair.connect();
            assert_eq!(pair.server.send(&mut pair.security, b"now"), Ok(3));
        });
    });
}

#[test]
fn sent_record_holds_16_kilobytes_at_most() {
    in_world(|client, server, _| {
        with_pair(client, server, (60_000, 60_000), |pair| {
            pair.connect();
            assert_eq!(pair.client.send(&mut pair.security, &[7; 40_000]), Ok(1 << 14));
            let output = pair.client.output();
            // The content, its type and the tag.
            assert_eq!(output.len(), 5 + (1 << 14) + 1 + 16);
            assert_eq!(records(output).len(), 1);
        });
    });
}

#[test]
fn record_above_the_longest_is_an_overflow() {
    in_world(|_, server, _| {
        for kind in [20, 21, 22, 23] {
            let (end, output) = serve(server, &[kind, 3, 3, 0x40, 1]);
            assert_eq!(end, Err(Error::Peer(Misbehaviour::Oversized)), "{kind}");
            assert_eq!(output, alert_record(Alert::RECORD_OVERFLOW));
        }
    });
    in_world(|client, server, _| {
        // 2^14 + 256 bytes are a record that is waited for, and a byte more is none.
        for (low, is_taken) in [(0, true), (1, false)] {
            with_pair(client, server, LARGE, |pair| {
                pair.connect();
                let end = feed(pair, &[23, 3, 3, 0x41, low]);
                if is_taken {
                    assert_eq!(end, Ok(Event::Idle));
                } else {
                    assert_eq!(end, Err(Error::Peer(Misbehaviour::Oversized)));
                    assert_eq!(told(pair), Err(Error::Alerted(Alert::RECORD_OVERFLOW)));
                }
            });
        }
    });
}

#[test]
fn data_that_was_changed_or_is_under_other_keys_is_a_bad_record() {
    with_connected(|pair| {
        pair.client.send(&mut pair.security, b"data").expect("connected");
        let mut output = pair.client.output().to_vec();
        output[7] ^= 1;
        assert_eq!(feed(pair, &output), Err(Error::Peer(Misbehaviour::Undecryptable)));
        assert_eq!(told(pair), Err(Error::Alerted(Alert::BAD_RECORD_MAC)));
    });
    // New keys of which nothing is said.
    with_connected(|pair| {
        pair.client.update_keys(&mut pair.security, false).expect("connected");
        pair.client.sent(usize::MAX);
        pair.client.send(&mut pair.security, b"data").expect("connected");
        let output = pair.client.output().to_vec();
        assert_eq!(feed(pair, &output), Err(Error::Peer(Misbehaviour::Undecryptable)));
    });
    // A record twice.
    with_connected(|pair| {
        pair.client.send(&mut pair.security, b"data").expect("connected");
        let output = pair.client.output().to_vec();
        assert_eq!(feed(pair, &output), Ok(Event::Data));
        pair.server.consume(usize::MAX);
        assert_eq!(feed(pair, &output), Err(Error::Peer(Misbehaviour::Undecryptable)));
    });
}

/// RFC 8446 §5.1: a message that is split lets no other record between its parts.
#[test]
fn nothing_comes_between_the_parts_of_a_message() {
    in_world(|client, server, _| {
        let mut buffer = vec![0; 20_000];
        let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
        let hello = hello_of(&mut client);
        let (first, second) = hello[5..].split_at(40);
        let part = |part: &[u8]| {
            let mut record = vec![22, 3, 3, (part.len() >> 8) as u8, part.len() as u8];
            record.extend(part);
            record
        };
        let whole = [part(first), part(second)].concat();
        assert_eq!(serve(server, &whole).0, Ok(Event::Idle));
        for between in [&CHANGE_CIPHER_SPEC[..], &[21, 3, 3, 0, 2, 1, 90], &[23, 3, 3, 0, 1, 1]] {
            let bytes = [&part(first), between, &part(second)].concat();
            assert_eq!(serve(server, &bytes).0, UNEXPECTED, "{between:?}");
        }
    });
}

/// RFC 8446 §5.1: what changes the keys ends its record.
#[test]
fn message_behind_one_that_changes_the_keys_is_unexpected() {
    with_answering_server(|pair| {
        let mut flight = pair.server.output().to_vec();
        pair.server.sent(flight.len());
        let end = 5 + usize::from(u16::from_be_bytes([flight[3], flight[4]]));
        // The beginning of another message in the record of the first.
        flight.splice(end..end, [8, 0]);
        let length = (end - 5 + 2) as u16;
        flight[3..5].copy_from_slice(&length.to_be_bytes());
        pair.client.feed(&flight);
        let ended = pair.client.poll(&mut pair.security, &NOW);
        assert_eq!(ended, UNEXPECTED);
        // Its keys are made, so that it is told under them.
        assert_eq!(ended.err().and_then(Error::alert), Some(Alert::UNEXPECTED_MESSAGE));
    });
}

/// RFC 8446 §6: the level of an alert means nothing, and one that nobody knows is an error.
#[test]
fn alert_of_any_level_or_number_ends_all_but_those_that_close() {
    in_world(|client, server, _| {
        let mut buffer = vec![0; 20_000];
        let mut ours = Client::new(&mut buffer, client, &NOW).expect("a client");
        let hello = hello_of(&mut ours);
        for level in [1, 2] {
            for number in [Alert::HANDSHAKE_FAILURE.0, Alert::DECODE_ERROR.0, 41, 100, 200] {
                let mut buffer = vec![0; 20_000];
                let mut server = Server::new(&mut buffer, server, None, &NOW).expect("a server");
                let mut security = security();
                server.feed(&[21, 3, 3, 0, 2, level, number]);
                let alerted = Error::Alerted(Alert(number));
                assert_eq!(server.poll(&mut security, &NOW), Err(alerted));
                assert_eq!(server.output(), [0; 0], "it is not answered");
                // It is over, whatever comes.
                server.feed(&hello);
                assert_eq!(server.poll(&mut security, &NOW), Err(alerted));
                assert_eq!(server.send(&mut security, b"more"), Err(alerted));
                assert_eq!(server.output(), [0; 0]);
            }
        }
    });
}

#[test]
fn what_follows_a_close_is_ignored() {
    with_connected(|pair| {
        pair.client.close(&mut pair.security);
        to_server(pair);
        pair.server.feed(&[23, 3, 3, 0, 20, 1, 2, 3]);
        for _ in 0..2 {
            let end = skip(|| pair.server.poll(&mut pair.security, &NOW));
            assert_eq!(end, Ok(Event::PeerClosed));
        }
        pair.server.feed(&[99; 50]);
        assert_eq!(pair.server.poll(&mut pair.security, &NOW), Ok(Event::PeerClosed));
        assert_eq!(pair.server.send(&mut pair.security, b"rest"), Ok(4));
    });
}

/// RFC 8446 §6.1: an end that gives up says that it closes.
#[test]
fn deadline_is_told_and_then_the_close() {
    in_world(|_, server, _| {
        let mut buffer = vec![0; 20_000];
        let mut server = Server::new(&mut buffer, server, None, &NOW).expect("a server");
        let late = Now { uptime_ms: NOW.uptime_ms + 1_000, ..NOW };
        assert_eq!(server.poll(&mut security(), &late), Err(Error::Deadline));
        let canceled = [21, 3, 3, 0, 2, 1, Alert::USER_CANCELED.0];
        let closed = [21, 3, 3, 0, 2, 1, Alert::CLOSE_NOTIFY.0];
        assert_eq!(server.output(), [canceled, closed].concat());
    });
}

/// RFC 8446 §4.6.3: the first record under new keys has the number 0, and each end changes its own.
#[test]
fn keys_of_one_direction_change_for_that_direction_alone() {
    in_world(|client, server, _| {
        let client = ClientConfig { groups: &[Group::X25519], ..*client };
        let server = ServerConfig { ..*server };
        with_pair(&client, &server, LARGE, |pair| {
            pair.connect();
            for _ in 0..3 {
                pair.client.update_keys(&mut pair.security, false).expect("connected");
                pair.echo(b"both ways");
            }
        });
    });
}
