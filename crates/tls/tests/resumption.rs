//! Pre-shared keys, tickets and early data (RFC 8446 §4.2.9 to §4.2.11, §4.6.1, §8) where more than our two ends agree on is
//! put to the test.

mod common;

use common::hello::{Answer, Hello, records};
use common::pair::*;
use common::security;
use tenure_crypto::Group;
use tenure_tls::x509::Anchor;
use tenure_tls::{
    Alert, Client, ClientConfig, EarlyDataGuard, Error, Event, Misbehaviour, PreSharedKey,
    ServerConfig, Suite, TicketKey, Trust,
};

const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;

fn external() -> PreSharedKey<'static> {
    PreSharedKey {
        identity: EXTERNAL.identity,
        key: EXTERNAL.key,
        suite: Suite::ChaCha20Poly1305Sha256,
        is_external: true,
        obfuscated_age: 0,
        early_data_bytes_max: 0,
    }
}

/// A ticket of `server` that allows early data, and `check` with a client that offers it.
fn with_ticket(
    client: &ClientConfig<'_>,
    server: &ServerConfig<'_>,
    guard: &EarlyDataGuard,
    check: impl FnOnce(&ClientConfig<'_>),
) {
    let (identity, key, obfuscated_age) = ticket(client, server, guard);
    let psk = PreSharedKey {
        identity: &identity,
        key: &key,
        suite: *client.suites.first().expect("a suite"),
        is_external: false,
        obfuscated_age,
        early_data_bytes_max: server.early_data_bytes_max,
    };
    check(&ClientConfig { pre_shared_key: Some(psk), early_data: true, ..*client });
}

/// A server of `server` that makes tickets for 1,000 bytes of early data.
fn in_taking_world(check: impl FnOnce(&ClientConfig<'_>, &ServerConfig<'_>, &EarlyDataGuard)) {
    in_world(|client, server, _| {
        let key = TicketKey::generate(&mut security()).expect("a key");
        let server =
            ServerConfig { ticket_key: Some(&key), early_data_bytes_max: 1_000, ..*server };
        check(client, &server, &EarlyDataGuard::new());
    });
}

#[test]
fn each_ticket_has_an_age_of_its_own_and_a_lifetime_of_days() {
    in_taking_world(|client, server, _| {
        with_pair(client, server, LARGE, |pair| {
            pair.connect();
            let mut seen = Vec::new();
            for _ in 0..3 {
                pair.server.send_ticket(&mut pair.security, &NOW).expect("connected");
                assert_eq!(pair.run().0, Ok(Event::Ticket));
                let ticket = pair.client.ticket().expect("a ticket");
                assert_eq!(ticket.lifetime_s, TicketKey::LIFETIME_S);
                assert!(ticket.lifetime_s <= 604_800, "seven days");
                seen.push((ticket.age_add, ticket.key.to_vec()));
            }
            seen.sort();
            seen.dedup_by_key(|it| it.0);
            assert_eq!(seen.len(), 3);
        });
    });
}

#[test]
fn early_data_is_offered_only_where_the_caller_asks_for_it() {
    in_taking_world(|client, server, guard| {
        with_ticket(client, server, guard, |early| {
            for (asks, bytes_max) in [(true, 1_000), (false, 1_000), (true, 0)] {
                let psk = early
                    .pre_shared_key
                    .map(|psk| PreSharedKey { early_data_bytes_max: bytes_max, ..psk });
                let config = ClientConfig { early_data: asks, pre_shared_key: psk, ..*early };
                let mut buffer = vec![0; 20_000];
                let mut client = Client::new(&mut buffer, &config, &NOW).expect("a client");
                let hello = Hello::parse(&hello_of(&mut client));
                let is_offered = asks && bytes_max > 0;
                assert_eq!(hello.get(EARLY_DATA), is_offered.then_some(&[][..]));
                assert!(hello.get(PRE_SHARED_KEY).is_some());
                let sent = client.send(&mut security(), b"early");
                assert_eq!(sent, Ok(if is_offered { 5 } else { 0 }));
            }
        });
    });
}

/// RFC 8446 §4.2.10: records of early data that is taken are records like all others.
#[test]
fn early_data_that_was_changed_is_a_bad_record_once_it_is_taken() {
    in_taking_world(|client, server, guard| {
        with_ticket(client, server, guard, |early| {
            with_guard(early, server, LARGE, Some(guard), |pair| {
                let _ = pair.client.poll(&mut pair.security, &NOW);
                assert_eq!(pair.client.send(&mut pair.security, b"early"), Ok(5));
                let mut output = pair.client.output().to_vec();
                pair.client.sent(output.len());
                let last = output.len() - 1;
                output[last] ^= 1;
                pair.server.feed(&output);
                let end = skip(|| pair.server.poll(&mut pair.security, &NOW));
                assert_eq!(end, Err(Error::Peer(Misbehaviour::Undecryptable)));
                assert_eq!(end.err().and_then(Error::alert), Some(Alert::BAD_RECORD_MAC));
            });
        });
    });
}

#[test]
fn early_data_before_a_retry_is_skipped_and_not_offered_again() {
    in_taking_world(|client, server, guard| {
        with_ticket(client, server, guard, |early| {
            let server = ServerConfig { groups: &[Group::Secp384r1], ..*server };
            with_guard(early, &server, LARGE, Some(guard), |pair| {
                let _ = pair.client.poll(&mut pair.security, &NOW);
                assert_eq!(pair.client.send(&mut pair.security, &[7; 900]), Ok(900));
                pair.connect();
                assert_eq!(pair.client.took_early_data(), Some(false));
                assert!(pair.server.is_resumed());
                assert_eq!(pair.client.group(), Some(Group::Secp384r1));
                pair.echo(b"this alone");
            });
        });
    });
}

/// RFC 8446 §4.2.10, §4.6.1: the suite for early data, and its hash for the key.
#[test]
fn ticket_of_another_suite_resumes_with_the_same_hash_alone_and_takes_no_early_data() {
    in_taking_world(|client, server, _| {
        for (first, second, is_resumed, is_taken) in [
            (Suite::Aes128GcmSha256, Suite::Aes128GcmSha256, true, true),
            (Suite::Aes128GcmSha256, Suite::ChaCha20Poly1305Sha256, true, false),
            (Suite::Aes128GcmSha256, Suite::Aes256GcmSha384, false, false),
            (Suite::Aes256GcmSha384, Suite::Aes256GcmSha384, true, true),
            (Suite::Aes256GcmSha384, Suite::Aes128GcmSha256, false, false),
        ] {
            let guard = EarlyDataGuard::new();
            let (firsts, seconds) = ([first], [second]);
            let client = ClientConfig { suites: &firsts, ..*client };
            with_ticket(&client, server, &guard, |early| {
                let early = ClientConfig { suites: Suite::ALL, ..*early };
                let server = ServerConfig { suites: &seconds, ..*server };
                with_guard(&early, &server, LARGE, Some(&guard), |pair| {
                    let _ = pair.client.poll(&mut pair.security, &NOW);
                    assert_eq!(pair.client.send(&mut pair.security, b"early"), Ok(5));
                    if pair.run().1 == Ok(Event::Data) {
                        pair.server.consume(5);
                    }
                    pair.connect();
                    assert_eq!(pair.server.is_resumed(), is_resumed, "{first:?} {second:?}");
                    assert_eq!(pair.client.is_resumed(), is_resumed);
                    assert_eq!(
                        pair.client.took_early_data(),
                        Some(is_taken),
                        "{first:?} {second:?}"
                    );
                    pair.echo(b"data");
                });
            });
        }
    });
}

/// RFC 8446 §4.2.11: the hash of an external key is SHA-256, and its age means nothing.
#[test]
fn external_key_is_used_with_its_hash_alone_and_at_any_age() {
    in_world(|client, server, _| {
        let server = ServerConfig { pre_shared_keys: &[EXTERNAL], ..*server };
        for (suite, is_used) in [
            (Suite::ChaCha20Poly1305Sha256, true),
            (Suite::Aes128GcmSha256, true),
            (Suite::Aes256GcmSha384, false),
        ] {
            for obfuscated_age in [0, 1, u32::MAX] {
                let suites = [suite];
                let psk = Some(PreSharedKey { obfuscated_age, ..external() });
                let client = ClientConfig { pre_shared_key: psk, suites: &suites, ..*client };
                with_pair(&client, &server, LARGE, |pair| {
                    pair.connect();
                    assert_eq!(pair.server.is_resumed(), is_used, "{suite:?}");
                    assert_eq!(pair.client.is_resumed(), is_used, "{suite:?}");
                    assert!(pair.client.group().is_some(), "with a key agreement");
                });
            }
        }
    });
}

/// RFC 8446 §4.3.2: no certificate is asked for beside a key.
#[test]
fn client_that_resumes_is_not_asked_for_a_certificate() {
    in_world(|client, server, world| {
        let key = TicketKey::generate(&mut security()).expect("a key");
        let anchors = [Anchor::from_certificate(&world.root).expect("an anchor")];
        let trust = Trust::Anchors { anchors: &anchors, without_date: &[] };
        let known = ClientConfig { identity: Some(server.identities[0]), ..*client };
        let server = ServerConfig {
            ticket_key: Some(&key),
            client_trust: Some(trust),
            client_must_prove: true,
            ..*server
        };
        let guard = EarlyDataGuard::new();
        with_ticket(&known, &server, &guard, |resuming| {
            with_pair(resuming, &server, LARGE, |pair| {
                pair.connect();
                assert!(pair.server.is_resumed());
                pair.echo(b"hello");
            });
        });
    });
}

/// RFC 8446 §8.2: what is remembered of early data comes from a message whose binder is right.
#[test]
fn message_with_a_wrong_binder_does_not_use_up_a_ticket() {
    in_taking_world(|client, server, guard| {
        with_ticket(client, server, guard, |early| {
            with_guard(early, server, LARGE, Some(guard), |pair| {
                let _ = pair.client.poll(&mut pair.security, &NOW);
                let hello = records(pair.client.output())[0].to_vec();
                let mut forged = hello.clone();
                *forged.last_mut().expect("a binder") ^= 1;
                with_guard(early, server, LARGE, Some(guard), |other| {
                    other.server.feed(&forged);
                    let end = other.server.poll(&mut other.security, &NOW);
                    assert_eq!(end, Err(Error::Peer(Misbehaviour::BadProof)));
                });
                pair.connect();
                assert_eq!(pair.client.took_early_data(), Some(true));
            });
        });
    });
}

/// RFC 8446 §4.2.10: early data is under the first key, and a server that knows another takes none.
#[test]
fn early_data_is_taken_with_the_first_key_alone() {
    in_taking_world(|client, server, guard| {
        with_ticket(client, server, guard, |early| {
            let mut buffer = vec![0; 20_000];
            let mut client = Client::new(&mut buffer, early, &NOW).expect("a client");
            let hello = Hello::parse(&hello_of(&mut client));
            let psk = early.pre_shared_key.expect("a ticket");
            for is_first in [false, true] {
                let hello = with_two_keys(&hello, &psk, is_first);
                let mut buffer = vec![0; 20_000];
                let server = tenure_tls::Server::new(&mut buffer, server, Some(guard), &NOW);
                let mut server = server.expect("a server");
                server.feed(&hello.record());
                assert_eq!(server.poll(&mut security(), &NOW), Ok(Event::Idle));
                let answer = Answer::parse(server.output());
                let index = u8::from(!is_first);
                assert_eq!(answer.get(PRE_SHARED_KEY), Some(&[0, index][..]));
                // The next record is data of the client that is taken, and refused if it can't be opened, or is skipped.
                server.sent(usize::MAX);
                server.feed(&[&[23, 3, 3, 0, 30][..], &[9; 30]].concat());
                let end = server.poll(&mut security(), &NOW);
                let refused = Err(Error::Peer(Misbehaviour::Undecryptable));
                assert_eq!(end, if is_first { refused } else { Ok(Event::Idle) });
            }
        });
    });
}

/// `hello` with a key that nobody knows behind or before its own, and new binders.
fn with_two_keys(hello: &Hello, psk: &PreSharedKey<'_>, is_first: bool) -> Hello {
    let mut hello = hello.clone();
    let identity = |name: &[u8], age: u32| {
        let mut identity = (name.len() as u16).to_be_bytes().to_vec();
        identity.extend(name);
        identity.extend(age.to_be_bytes());
        identity
    };
    let mut identities =
        [identity(psk.identity, psk.obfuscated_age), identity(b"nobody knows it", 0)];
    if !is_first {
        identities.reverse();
    }
    let identities = identities.concat();
    let mut content = (identities.len() as u16).to_be_bytes().to_vec();
    content.extend(identities);
    let bound = content.len();
    content.extend([0, 66]);
    content.extend([[32; 1].as_slice(), &[0; 32], &[32; 1], &[0; 32]].concat());
    hello.set(PRE_SHARED_KEY, &content);
    let record = hello.record();
    let message = &record[5..record.len() - 68];
    let binder = binder(psk.key, message);
    let place = bound + 2 + 1 + if is_first { 0 } else { 33 };
    content[place..place + 32].copy_from_slice(&binder);
    hello.set(PRE_SHARED_KEY, &content);
    hello
}

/// The binder of a ticket's key over `message` (RFC 8446 §4.2.11.2, §7.1).
fn binder(key: &[u8], message: &[u8]) -> Vec<u8> {
    use tenure_crypto::HashAlgorithm::Sha256;
    let expand = |secret: &[u8], label: &[u8], context: &[u8]| {
        let label = [b"tls13 ", label].concat();
        let head = [0, 32, label.len() as u8];
        let mut output = [0; 32];
        let info: [&[u8]; 4] = [&head, &label, &[context.len() as u8], context];
        Sha256.hkdf_expand(secret, &info, &mut output);
        output
    };
    let early = Sha256.hkdf_extract(&[0; 32], key);
    let secret = expand(&early, b"res binder", &Sha256.digest(&[]));
    let key = expand(&secret, b"finished", &[]);
    Sha256.hmac(&key, &[&Sha256.digest(&[message])]).to_vec()
}
