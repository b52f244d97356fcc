//! Our client and our server, over nothing but memory.

mod common;

use common::pair::*;
use common::{GROUPS, security};
use tenure_crypto::{Group, PrivateKey};
use tenure_tls::x509::{Anchor, ServerName};
use tenure_tls::{
    Alert, Client, ClientConfig, EarlyDataGuard, Error, Event, Identity, Misbehaviour, Now,
    PreSharedKey, Server, ServerConfig, Suite, TicketKey, Trust,
};

#[test]
fn every_suite_and_group_carries_data_both_ways() {
    in_world(|client, server, _| {
        for suite in Suite::ALL {
            for group in GROUPS {
                let (suites, groups) = ([*suite], [group]);
                let client = ClientConfig { suites: &suites, groups: &groups, ..*client };
                with_pair(&client, server, LARGE, |pair| {
                    pair.connect();
                    assert_eq!(pair.server.suite(), Some(*suite));
                    assert_eq!(pair.server.group(), Some(group));
                    pair.echo(&[5; 40_000]);
                });
            }
        }
    });
}

#[test]
fn bytes_that_come_one_by_one_make_the_same_connection() {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            pair.step = 1;
            pair.connect();
            pair.echo(&[5; 300]);
        });
    });
}

#[test]
fn small_buffers_do_with_short_records() {
    in_world(|client, server, _| {
        let client = ClientConfig { groups: &[Group::X25519], ..*client };
        with_pair(&client, server, (1_300, 1_300), |pair| {
            pair.connect();
            pair.echo(&[5; 5_000]);
        });
    });
}

#[test]
fn a_buffer_too_small_for_the_chain_is_a_clear_error() {
    in_world(|client, server, _| {
        let client = ClientConfig { groups: &[Group::X25519], ..*client };
        with_pair(&client, server, (400, 4_000), |pair| {
            let (client, server) = pair.run();
            assert_eq!(client, Err(Error::BufferTooSmall));
            assert_eq!(server, Err(Error::Alerted(Alert::INTERNAL_ERROR)));
        });
    });
}

#[test]
fn a_server_that_likes_another_group_asks_for_it() {
    in_world(|client, server, _| {
        let server = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        with_pair(client, &server, LARGE, |pair| {
            pair.connect();
            assert_eq!(pair.client.group(), Some(Group::Secp384r1));
            pair.echo(b"hello");
        });
    });
}

#[test]
fn ends_with_nothing_in_common_part_with_handshake_failure() {
    in_world(|client, server, _| {
        let groups = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        let suites = ServerConfig { suites: &[Suite::Aes128GcmSha256], ..*server };
        let only_x25519 = ClientConfig { groups: &[Group::X25519], ..*client };
        let only_chacha = ClientConfig { suites: &[Suite::ChaCha20Poly1305Sha256], ..*client };
        for (client, server) in [(only_x25519, groups), (only_chacha, suites)] {
            with_pair(&client, &server, LARGE, |pair| {
                let (client, server) = pair.run();
                assert_eq!(server, Err(Error::Peer(Misbehaviour::NothingInCommon)));
                assert_eq!(client, Err(Error::Alerted(Alert::HANDSHAKE_FAILURE)));
            });
        }
    });
}

#[test]
fn the_servers_favourite_protocol_of_those_offered_is_agreed_on() {
    in_world(|client, server, _| {
        let client = ClientConfig { application_protocols: &[b"h2", b"mqtt"], ..*client };
        for (own, agreed) in [(&[&b"mqtt"[..], b"h2"][..], Some(&b"mqtt"[..])), (&[], None)] {
            let server = ServerConfig { application_protocols: own, ..*server };
            with_pair(&client, &server, LARGE, |pair| {
                pair.connect();
                assert_eq!(pair.client.application_protocol(), agreed);
                assert_eq!(pair.server.application_protocol(), agreed);
            });
        }
        let server = ServerConfig { application_protocols: &[b"smtp"], ..*server };
        with_pair(&client, &server, LARGE, |pair| {
            let (client, _) = pair.run();
            assert_eq!(client, Err(Error::Alerted(Alert::NO_APPLICATION_PROTOCOL)));
        });
    });
}

#[test]
fn a_client_proves_who_it_is_where_it_is_asked() {
    in_world(|client, server, world| {
        let anchors = [Anchor::from_certificate(&world.root).expect("an anchor")];
        let trust = Trust::Anchors { anchors: &anchors, without_date: &[] };
        let optional = ServerConfig { client_trust: Some(trust), ..*server };
        let required = ServerConfig { client_must_prove: true, ..optional };
        let known = ClientConfig { identity: Some(server.identities[0]), ..*client };
        for server in [&optional, &required] {
            with_pair(&known, server, LARGE, |pair| {
                pair.connect();
                pair.echo(b"hello");
            });
        }
        with_pair(client, &optional, LARGE, |pair| pair.connect());
        with_pair(client, &required, LARGE, |pair| {
            let (client, server) = pair.run();
            assert_eq!(server, Err(Error::Peer(Misbehaviour::NoCertificate)));
            assert_eq!(client, Err(Error::Alerted(Alert::CERTIFICATE_REQUIRED)));
        });
        let nobody = ServerConfig {
            client_trust: Some(Trust::Anchors { anchors: &[], without_date: &[] }),
            ..*server
        };
        with_pair(&known, &nobody, LARGE, |pair| {
            let (client, _) = pair.run();
            assert_eq!(client, Err(Error::Alerted(Alert::UNKNOWN_CA)));
        });
    });
}

#[test]
fn a_raw_key_is_trusted_if_it_is_pinned() {
    in_world(|client, server, world| {
        let chain = [&world.key_info[..]];
        let identities = [Identity { chain: &chain, key: PrivateKey::P256(&world.key) }];
        let server = ServerConfig { identities: &identities, ..*server };
        let keys = [&world.key_info[..]];
        let pinned = ClientConfig { trust: Trust::Keys(&keys), ..*client };
        with_pair(&pinned, &server, LARGE, |pair| pair.connect());
        let other = ClientConfig { trust: Trust::Keys(&[]), ..*client };
        with_pair(&other, &server, LARGE, |pair| {
            let (client, server) = pair.run();
            assert!(matches!(client, Err(Error::Certificate(_))), "{client:?}");
            assert_eq!(server, Err(Error::Alerted(Alert::CERTIFICATE_UNKNOWN)));
        });
    });
}

#[test]
fn without_the_date_pinned_keys_are_trusted_if_the_owner_chose_so() {
    in_world(|client, server, world| {
        let dateless = Now { date: None, ..NOW };
        let keys = [&world.key_info[..]];
        let Trust::Anchors { anchors, .. } = client.trust else { unreachable!() };
        for (without_date, outcome) in [(&keys[..], true), (&[], false)] {
            let trust = Trust::Anchors { anchors, without_date };
            let client = ClientConfig { trust, ..*client };
            with_pair(&client, server, LARGE, |pair| {
                for _ in 0..8 {
                    let _ = pair.client.poll(&mut pair.security, &dateless);
                    let output = pair.client.output().to_vec();
                    pair.client.sent(output.len());
                    pair.server.feed(&output);
                    let _ = pair.server.poll(&mut pair.security, &NOW);
                    let output = pair.server.output().to_vec();
                    pair.server.sent(output.len());
                    pair.client.feed(&output);
                }
                assert_eq!(pair.client.is_connected(), outcome);
            });
        }
    });
}

#[test]
fn an_external_key_connects_without_certificates_and_a_wrong_one_does_not() {
    let server = ServerConfig { pre_shared_keys: &[EXTERNAL], ..server_config(&[]) };
    let psk = PreSharedKey {
        identity: EXTERNAL.identity,
        key: EXTERNAL.key,
        suite: Suite::ChaCha20Poly1305Sha256,
        is_external: true,
        obfuscated_age: 0,
        early_data_bytes_max: 0,
    };
    let client = ClientConfig { pre_shared_key: Some(psk), ..client_config(&[]) };
    with_pair(&client, &server, LARGE, |pair| {
        pair.connect();
        assert!(pair.client.is_resumed() && pair.server.is_resumed());
        pair.echo(b"hello");
    });
    let wrong = PreSharedKey { key: &[8; 32], ..psk };
    let client = ClientConfig { pre_shared_key: Some(wrong), ..client };
    with_pair(&client, &server, LARGE, |pair| {
        let (client, server) = pair.run();
        assert_eq!(server, Err(Error::Peer(Misbehaviour::BadProof)));
        assert_eq!(client, Err(Error::Alerted(Alert::DECRYPT_ERROR)));
    });
}

#[test]
fn a_ticket_resumes_and_early_data_is_taken_once_and_only_if_allowed() {
    in_world(|client, server, _| {
        let key = TicketKey::generate(&mut security()).expect("a key");
        let refusing = ServerConfig { ticket_key: Some(&key), ..*server };
        let taking = ServerConfig { early_data_bytes_max: 1_000, ..refusing };
        // A ticket is only for clients that say that they can use one, which takes a key to offer.
        let guard = EarlyDataGuard::new();
        let none = PreSharedKey {
            identity: b"nothing",
            key: &[1; 32],
            suite: Suite::ChaCha20Poly1305Sha256,
            is_external: false,
            obfuscated_age: 0,
            early_data_bytes_max: 0,
        };
        let asking = ClientConfig { pre_shared_key: Some(none), ..*client };
        let mut stored = None;
        with_guard(&asking, &taking, LARGE, Some(&guard), |pair| {
            pair.connect();
            assert!(!pair.server.is_resumed());
            pair.server.send_ticket(&mut pair.security, &NOW).expect("connected");
            let (client, _) = pair.run();
            assert_eq!(client, Ok(Event::Ticket));
            let ticket = pair.client.ticket().expect("a ticket");
            assert_eq!(ticket.early_data_bytes_max, 1_000);
            stored =
                Some((ticket.identity.to_vec(), ticket.key.clone(), ticket.age_add, ticket.suite));
            pair.echo(b"the connection goes on");
        });
        let (identity, psk_key, age_add, suite) = stored.expect("a ticket");
        let psk = PreSharedKey {
            identity: &identity,
            key: &psk_key,
            suite,
            is_external: false,
            obfuscated_age: age_add,
            early_data_bytes_max: 1_000,
        };
        let early = ClientConfig { pre_shared_key: Some(psk), early_data: true, ..*client };
        for (server, guard, outcome) in [
            (&refusing, Some(&guard), false),
            (&taking, None, false),
            (&taking, Some(&guard), true),
            // The same ticket again is what a replay looks like.
            (&taking, Some(&guard), false),
        ] {
            with_guard(&early, server, LARGE, guard, |pair| {
                let _ = pair.client.poll(&mut pair.security, &NOW);
                let sent = pair.client.send(&mut pair.security, b"early").expect("early data");
                assert_eq!(sent, 5);
                let (_, ended) = pair.run();
                if outcome {
                    assert_eq!(ended, Ok(Event::Data));
                    assert!(!pair.server.is_connected());
                    assert_eq!(pair.server.data(), b"early");
                    pair.server.consume(5);
                }
                pair.connect();
                assert_eq!(pair.client.took_early_data(), Some(outcome));
                assert!(pair.server.is_resumed());
                pair.echo(b"late");
            });
        }
        // Too old by what the client says: a resumption, but no early data.
        let old = PreSharedKey { obfuscated_age: age_add.wrapping_add(60_000), ..psk };
        let early = ClientConfig { pre_shared_key: Some(old), ..early };
        with_guard(&early, &taking, LARGE, Some(&EarlyDataGuard::new()), |pair| {
            let _ = pair.client.poll(&mut pair.security, &NOW);
            pair.connect();
            assert_eq!(pair.client.took_early_data(), Some(false));
        });
    });
}

#[test]
fn keys_change_while_data_flows() {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            pair.connect();
            for asks in [false, true, true] {
                pair.client.update_keys(&mut pair.security, asks).expect("connected");
                pair.echo(b"after");
                pair.server.update_keys(&mut pair.security, asks).expect("connected");
                pair.echo(b"after");
            }
        });
    });
}

#[test]
fn new_keys_asked_for_before_a_full_buffer_follow_when_there_is_room() {
    in_world(|client, server, _| {
        let client = ClientConfig { groups: &[Group::X25519], ..*client };
        with_pair(&client, server, (20_000, 1_300), |pair| {
            pair.connect();
            pair.client.update_keys(&mut pair.security, true).expect("connected");
            let mut sent = 0;
            loop {
                match pair.client.send(&mut pair.security, &[5; 400]).expect("connected") {
                    0 => break,
                    length => sent += length,
                }
            }
            let mut received = 0;
            while received < sent {
                let fed = pair.server.feed(pair.client.output());
                pair.client.sent(fed);
                assert_eq!(pair.server.poll(&mut pair.security, &NOW), Ok(Event::Data));
                received += pair.server.data().len();
                pair.server.consume(usize::MAX);
            }
            assert_eq!(pair.server.poll(&mut pair.security, &NOW), Ok(Event::Idle));
            assert!(!pair.server.output().is_empty(), "no answer to the wish for new keys");
            pair.echo(b"after");
        });
    });
}

#[test]
fn a_peer_that_only_changes_keys_is_cut_off() {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            pair.connect();
            let mut outcome = Ok(Event::Idle);
            for _ in 0..40 {
                if pair.client.update_keys(&mut pair.security, true).is_ok() {
                    outcome = pair.run().1;
                }
            }
            assert_eq!(outcome, Err(Error::Peer(Misbehaviour::Flood)));
        });
    });
}

#[test]
fn exported_secrets_are_the_same_at_both_ends_and_differ_by_label_and_context() {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            assert!(pair.client.export(b"label", b"", &mut [0; 32]).is_err());
            pair.connect();
            let export = |label: &[u8], context: &[u8]| {
                let (mut one, mut other) = ([0; 40], [0; 40]);
                pair.client.export(label, context, &mut one).expect("connected");
                pair.server.export(label, context, &mut other).expect("connected");
                assert_eq!(one, other);
                one
            };
            assert_ne!(export(b"label", b""), export(b"other", b""));
            assert_ne!(export(b"label", b""), export(b"label", b"context"));
        });
    });
}

#[test]
fn each_end_closes_for_itself_and_a_cut_is_told_from_a_close() {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            pair.connect();
            pair.client.close(&mut pair.security);
            assert_eq!(pair.run().1, Ok(Event::PeerClosed));
            assert_eq!(pair.client.send(&mut pair.security, b"more"), Ok(0));
            assert_eq!(pair.server.end_of_input(&mut pair.security), Ok(()));
            // The other direction goes on (RFC 8446 §6.1).
            assert_eq!(pair.server.send(&mut pair.security, b"rest"), Ok(4));
            assert_eq!(pair.run().0, Ok(Event::Data));
            assert_eq!(pair.client.end_of_input(&mut pair.security), Err(Error::Truncated));
        });
    });
}

#[test]
fn a_peer_that_stops_costs_its_deadline() {
    in_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            let late = Now { uptime_ms: NOW.uptime_ms + 1_000, ..NOW };
            assert_eq!(pair.client.deadline_ms(), Some(late.uptime_ms));
            assert_eq!(pair.client.poll(&mut pair.security, &late), Err(Error::Deadline));
            pair.server.feed(&[22, 3, 1, 1]);
            assert_eq!(pair.server.poll(&mut pair.security, &NOW), Ok(Event::Idle));
            assert_eq!(pair.server.poll(&mut pair.security, &late), Err(Error::Deadline));
        });
    });
}

/// The server's answer to a client's first message, which is sent to nobody.
fn first_flight(pair: &mut Pair<'_>) -> Vec<u8> {
    let _ = pair.client.poll(&mut pair.security, &NOW);
    pair.server.feed(pair.client.output());
    pair.client.sent(usize::MAX);
    let _ = pair.server.poll(&mut pair.security, &NOW);
    pair.server.output().to_vec()
}

/// Where each record of `flight` begins, and where the last one ends.
fn boundaries(flight: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    while let Some([_, _, _, high, low]) = flight[starts[starts.len() - 1]..].first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        starts.push(starts[starts.len() - 1] + 5 + length);
    }
    starts
}

#[test]
fn no_byte_of_the_servers_flight_can_be_changed_and_no_record_left_out_or_moved() {
    in_world(|client, server, _| {
        let client = ClientConfig { groups: &[Group::X25519], ..*client };
        let change = |change: &dyn Fn(&mut Vec<u8>) -> bool| {
            with_pair(&client, server, LARGE, |pair| {
                let mut flight = first_flight(pair);
                let may_connect = change(&mut flight);
                pair.client.feed(&flight);
                let _ = skip(|| pair.client.poll(&mut pair.security, &NOW));
                assert!(may_connect || !pair.client.is_connected());
            });
        };
        // Each third byte; the minor version of a record in the open is to be ignored (§5.1).
        let mut at = 0;
        let mut length = usize::MAX;
        while at < length {
            change(&|flight| {
                let start = boundaries(flight).into_iter().rfind(|start| *start <= at);
                flight[at] ^= 0x10;
                start.is_some_and(|start| flight[start] != 23 && at == start + 2)
            });
            with_pair(&client, server, LARGE, |pair| length = first_flight(pair).len() - 3);
            at += 3;
        }
        // Each record left out, and each moved behind the next; a lone `change_cipher_spec` may go.
        for record in 0..6 {
            change(&|flight| {
                let starts = boundaries(flight);
                let is_optional = flight[starts[record]] == 20;
                flight.drain(starts[record]..starts[record + 1]);
                is_optional
            });
            change(&|flight| {
                let starts = boundaries(flight);
                let Some(end) = starts.get(record + 2) else { return true };
                let is_optional = flight[starts[record]] == 20 || flight[starts[record + 1]] == 20;
                let length = starts[record + 1] - starts[record];
                flight[starts[record]..*end].rotate_left(length);
                is_optional
            });
        }
    });
}

#[test]
fn after_the_end_the_buffer_holds_nothing_of_the_connection() {
    in_world(|client, server, _| {
        let (mut one, mut other) = (vec![0; 20_000], vec![0; 20_000]);
        let mut pair = Pair {
            client: Client::new(&mut one, client, &NOW).expect("a client"),
            server: Server::new(&mut other, server, None, &NOW).expect("a server"),
            security: security(),
            step: usize::MAX,
        };
        pair.connect();
        pair.client.send(&mut pair.security, b"a secret that is read").expect("connected");
        let _ = pair.run();
        drop(pair);
        assert!(one.iter().chain(&other).all(|byte| *byte == 0));
    });
}

#[test]
fn names_and_configurations_that_cannot_work_are_refused_at_once() {
    let nobody = server_config(&[]);
    let mut buffer = [0; 100];
    assert!(matches!(Server::new(&mut buffer, &nobody, None, &NOW), Err(Error::Configuration)));
    let config = ClientConfig { server_name: ServerName::Dns("a b"), ..client_config(&[]) };
    assert!(matches!(Client::new(&mut buffer, &config, &NOW), Err(Error::Configuration)));
}

#[test]
fn client_says_change_cipher_spec_once_before_its_second_flight() {
    const RECORD: [u8; 6] = [20, 3, 3, 0, 1, 1];
    in_world(|client, server, _| {
        let retrying = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        for (server, is_second_hello) in [(server, false), (&retrying, true)] {
            with_pair(client, server, LARGE, |pair| {
                let flight = first_flight(pair);
                pair.server.sent(flight.len());
                pair.client.feed(&flight);
                skip(|| pair.client.poll(&mut pair.security, &NOW)).expect("a flight");
                let (record, rest) = pair.client.output().split_at(RECORD.len());
                assert_eq!(record, RECORD);
                assert_eq!(rest[0], if is_second_hello { 22 } else { 23 });
                pair.connect();
            });
        }
    });
}
