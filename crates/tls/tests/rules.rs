//! Rules of RFC 8446, RFC 8449 and RFC 7301 that two of our own ends never put to the test: the other end's bytes are changed
//! or made by hand here.

mod common;

use common::hello::{Hello, records};
use common::pair::*;
use common::security;
use tenure_crypto::Group;
use tenure_tls::{
    Alert, Client, ClientConfig, EarlyDataGuard, Error, Event, Misbehaviour, PreSharedKey,
    ServerConfig, Suite, TicketKey,
};

/// The content of the extension `number` in a record with a `ClientHello`.
fn extension(hello: &[u8], number: u16) -> Option<Vec<u8>> {
    let length = |at: usize| usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    let session = 5 + 4 + 2 + 32;
    let suites = session + 1 + usize::from(hello[session]);
    let compressions = suites + 2 + length(suites);
    let mut at = compressions + 1 + usize::from(hello[compressions]) + 2;
    while at < hello.len() {
        let content = at + 4..at + 4 + length(at + 2);
        if length(at) == usize::from(number) {
            return Some(hello[content].to_vec());
        }
        at = content.end;
    }
    None
}

/// RFC 8446 §4.2.10: the protocol must be the one that is associated with the key.
#[test]
fn early_data_is_taken_under_the_protocol_of_its_ticket_alone() {
    in_world(|client, server, _| {
        let key = TicketKey::generate(&mut security()).expect("a key");
        let some: &[&[u8]] = &[b"aaa", b"bbb"];
        let server =
            ServerConfig { ticket_key: Some(&key), application_protocols: some, ..*server };
        let lists: [&[&[u8]]; 3] = [&[b"aaa"], &[b"bbb"], &[]];
        let allowing = ServerConfig { early_data_bytes_max: 100, ..server };
        for first in lists {
            for second in lists {
                for allows in [true, false] {
                    let guard = EarlyDataGuard::new();
                    let asking = ClientConfig { application_protocols: first, ..*client };
                    let giving = if allows { &allowing } else { &server };
                    let (identity, key, obfuscated_age) = ticket(&asking, giving, &guard);
                    let psk = PreSharedKey {
                        identity: &identity,
                        key: &key,
                        suite: Suite::ChaCha20Poly1305Sha256,
                        is_external: false,
                        obfuscated_age,
                        early_data_bytes_max: 100,
                    };
                    let early = ClientConfig {
                        pre_shared_key: Some(psk),
                        early_data: true,
                        application_protocols: second,
                        ..*client
                    };
                    with_guard(&early, &allowing, LARGE, Some(&guard), |pair| {
                        let _ = pair.client.poll(&mut pair.security, &NOW);
                        let sent = pair.client.send(&mut pair.security, b"early");
                        assert_eq!(sent, Ok(5));
                        let is_right = allows && first == second;
                        if pair.run().1 == Ok(Event::Data) {
                            assert!(is_right, "{first:?}, then {second:?}, {allows}");
                            pair.server.consume(5);
                        }
                        pair.connect();
                        assert!(pair.server.is_resumed());
                        assert_eq!(pair.client.took_early_data(), Some(is_right));
                        pair.echo(b"it goes on");
                    });
                }
            }
        }
    });
}

/// RFC 8446 §6: an alert is encrypted as the connection is. A server in another's code can't read it otherwise.
#[test]
fn clients_alerts_after_server_hello_are_encrypted_as_the_server_reads() {
    in_world(|client, server, _| {
        let distrusting = ClientConfig {
            trust: tenure_tls::Trust::Keys(&[b"no key that anybody has"]),
            ..*client
        };
        with_pair(&distrusting, server, LARGE, |pair| {
            let _ = pair.client.poll(&mut pair.security, &NOW);
            pair.server.feed(pair.client.output());
            pair.client.sent(usize::MAX);
            let _ = pair.server.poll(&mut pair.security, &NOW);
            pair.client.feed(pair.server.output());
            let end = skip(|| pair.client.poll(&mut pair.security, &NOW));
            assert!(matches!(end, Err(Error::Certificate(_))), "{end:?}");
            let output = pair.client.output().to_vec();
            let kinds: Vec<u8> = records(&output).iter().map(|record| record[0]).collect();
            assert_eq!(kinds, [20, 23], "an alert in the open says to all why");
            pair.server.feed(&output);
            let end = skip(|| pair.server.poll(&mut pair.security, &NOW));
            assert_eq!(end, Err(Error::Alerted(Alert::CERTIFICATE_UNKNOWN)));
        });
    });
}

/// The same while early data is refused: the server reads by the keys of the handshake.
#[test]
fn clients_alerts_after_refused_early_data_are_encrypted_as_the_server_reads() {
    in_world(|client, server, _| {
        let suite = Suite::ChaCha20Poly1305Sha256;
        let psk = PreSharedKey {
            identity: b"nobody knows it",
            key: &[1; 32],
            suite,
            is_external: false,
            obfuscated_age: 0,
            early_data_bytes_max: 100,
        };
        let trust = tenure_tls::Trust::Keys(&[b"no key that anybody has"]);
        let early = ClientConfig { pre_shared_key: Some(psk), early_data: true, trust, ..*client };
        with_pair(&early, server, LARGE, |pair| {
            let _ = pair.client.poll(&mut pair.security, &NOW);
            assert_eq!(pair.client.send(&mut pair.security, b"early"), Ok(5));
            let (client, server) = pair.run();
            assert!(matches!(client, Err(Error::Certificate(_))), "{client:?}");
            assert_eq!(server, Err(Error::Alerted(Alert::CERTIFICATE_UNKNOWN)));
        });
    });
}

/// RFC 8449 §4: no record under keys has more plaintext than the limit says, which is 64 at least.
#[test]
fn servers_flight_keeps_to_the_smallest_limit_of_records() {
    const TAG_BYTES: usize = 16;
    in_world(|client, server, _| {
        let client = ClientConfig { groups: &[Group::X25519], ..*client };
        let mut buffer = vec![0; 4_000];
        let mut client = Client::new(&mut buffer, &client, &NOW).expect("a client");
        let hello = hello_of(&mut client);
        let place = hello.windows(4).position(|it| it == [0, 28, 0, 2]).expect("a limit");
        for limit in [64_u16, 80, 100, 120, 500, 16_385] {
            let mut hello = hello.clone();
            hello[place + 4..place + 6].copy_from_slice(&limit.to_be_bytes());
            let (end, output) = serve(server, &hello);
            assert_eq!(end, Ok(Event::Idle), "a limit of {limit}");
            let protected: Vec<_> =
                records(&output).into_iter().filter(|record| record[0] == 23).collect();
            for record in &protected {
                let inner = record.len() - 5 - TAG_BYTES;
                assert!(inner <= usize::from(limit), "{inner} bytes with a limit of {limit}");
                // A type alone would be no message (RFC 8446 §5.1).
                assert!(inner > 1);
            }
            // Extensions, certificates, the proof of their key and the end.
            assert!(protected.len() >= if limit == 64 { 11 } else { 4 }, "{}", protected.len());
        }
    });
}

/// A `HelloRetryRequest` with a cookie alone, as an answer to `hello`, and `more` behind it in its record.
fn cookie_for(hello: &[u8], more: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend(RETRY_RANDOM);
    body.extend(&hello[43..43 + 33]);
    body.extend(Suite::ChaCha20Poly1305Sha256.number().to_be_bytes());
    body.extend([0, 0, 16, 0, 43, 0, 2, 3, 4, 0, 44, 0, 6]);
    body.extend(COOKIE);
    let length = 4 + body.len() + more.len();
    let mut retry = vec![22, 3, 3, 0, length as u8, 2, 0, 0, body.len() as u8];
    retry.extend(body);
    retry.extend(more);
    retry
}

/// The cookie in that, behind its length.
const COOKIE: [u8; 6] = [0, 4, 9, 9, 9, 9];

/// RFC 8446 §4.1.2: the second message differs from the first only where the answer asks for it.
#[test]
fn client_keeps_its_key_share_where_the_retry_has_a_cookie_alone() {
    const SHARE: u16 = 51;
    in_world(|client, _, _| {
        for group in common::GROUPS {
            let groups = [group];
            let client = ClientConfig { groups: &groups, ..*client };
            let mut buffer = vec![0; 20_000];
            let mut client = Client::new(&mut buffer, &client, &NOW).expect("a client");
            let hello = hello_of(&mut client);
            client.feed(&cookie_for(&hello, &[]));
            assert_eq!(client.poll(&mut security(), &NOW), Ok(Event::Idle), "{group:?}");
            let output = client.output().to_vec();
            let second = records(&output).into_iter().find(|it| it[0] == 22).expect("a message");
            assert_eq!(extension(second, 44).as_deref(), Some(&COOKIE[..]));
            assert_eq!(extension(second, SHARE), extension(&hello, SHARE), "{group:?}");
        }
    });
}

/// RFC 8446 §4.1.4: after a retry the client speaks, and before it has heard of one it doesn't answer it.
#[test]
fn nothing_stands_behind_a_retry_or_behind_the_message_that_leads_to_one() {
    in_world(|client, server, _| {
        let mut buffer = vec![0; 20_000];
        let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
        let hello = hello_of(&mut client);
        client.feed(&cookie_for(&hello, &[2, 0]));
        let unexpected = Err(Error::Peer(Misbehaviour::Unexpected));
        assert_eq!(client.poll(&mut security(), &NOW), unexpected);
        let server = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        assert_eq!(serve(&server, &hello).0, Ok(Event::Idle));
        let mut more = hello.clone();
        more.extend([1, 0]);
        let length = (more.len() - 5) as u16;
        more[3..5].copy_from_slice(&length.to_be_bytes());
        assert_eq!(serve(&server, &more).0, unexpected);
    });
}

/// The `random` of a `HelloRetryRequest` (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// RFC 8446 §4.1.2, §4.2.1, §D.5: the version of a first message means nothing where it has the extension, but that of SSL
/// is refused.
#[test]
fn version_in_its_old_place_is_ignored_unless_it_is_that_of_ssl() {
    in_world(|client, server, _| {
        let mut buffer = vec![0; 20_000];
        let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
        let hello = hello_of(&mut client);
        for (version, is_taken) in
            [(0x0300_u16, false), (0x0301, true), (0x0302, true), (0x0304, true), (0xffff, true)]
        {
            let mut hello = hello.clone();
            hello[9..11].copy_from_slice(&version.to_be_bytes());
            let end = serve(server, &hello).0;
            if is_taken {
                assert_eq!(end, Ok(Event::Idle), "{version:#x}");
            } else {
                assert_eq!(end, Err(Error::Peer(Misbehaviour::OldVersion)));
            }
        }
    });
}

/// RFC 7301 §3.1: names of protocols are not empty.
#[test]
fn empty_name_of_a_protocol_is_malformed_whether_or_not_protocols_matter() {
    in_world(|client, server, _| {
        let empty = ClientConfig { application_protocols: &[b"aaa", b""], ..*client };
        let refused = Client::new(&mut [0; 100], &empty, &NOW).err();
        assert_eq!(refused, Some(Error::Configuration), "it is not sent");
        let mut buffer = vec![0; 20_000];
        let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
        let mut hello = Hello::parse(&hello_of(&mut client));
        hello.extensions.push((16, vec![0, 5, 3, b'a', b'a', b'a', 0]));
        let caring = ServerConfig { application_protocols: &[b"aaa"], ..*server };
        for server in [server, &caring] {
            let end = serve(server, &hello.record()).0;
            assert_eq!(end, Err(Error::Peer(Misbehaviour::Malformed)));
        }
    });
}

/// RFC 8446 §4.6.3: an update that the peer asks for is sent before the next data.
#[test]
fn update_that_was_asked_for_goes_out_before_data_also_where_output_waits() {
    in_world(|client, server, _| {
        let key = TicketKey::generate(&mut security()).expect("a key");
        let server = ServerConfig { ticket_key: Some(&key), ..*server };
        with_pair(client, &server, LARGE, |pair| {
            pair.connect();
            pair.server.send_ticket(&mut pair.security, &NOW).expect("connected");
            let ticket = pair.server.output().len();
            pair.client.update_keys(&mut pair.security, true).expect("connected");
            pair.client.send(&mut pair.security, b"request").expect("connected");
            let length = pair.server.feed(pair.client.output());
            pair.client.sent(length);
            assert_eq!(pair.server.poll(&mut pair.security, &NOW), Ok(Event::Data));
            pair.server.consume(usize::MAX);
            let answer = |pair: &mut Pair<'_>| pair.server.send(&mut pair.security, b"answer");
            assert_eq!(answer(pair), Ok(0), "the ticket waits, and the update after it");
            assert_eq!(pair.client.feed(pair.server.output()), ticket);
            pair.server.sent(ticket);
            assert_eq!(answer(pair), Ok(6));
            assert_eq!(records(pair.server.output()).len(), 2, "the update, and the answer");
            assert_eq!(pair.run().0, Ok(Event::Data));
            assert_eq!(pair.client.data(), b"answer");
        });
    });
}

/// RFC 8446 §4.2.3, §4.2.7: lists of groups and of signature schemes are not empty. §4.2.8: that of key shares may be, and
/// asks for a retry.
#[test]
fn list_that_must_name_something_is_malformed_when_it_is_empty() {
    const GROUPS: u16 = 10;
    const SCHEMES: u16 = 13;
    const SHARES: u16 = 51;
    in_world(|client, server, _| {
        let mut buffer = vec![0; 20_000];
        let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
        let hello = hello_of(&mut client);
        for number in [GROUPS, SCHEMES] {
            let end = serve(server, &emptied(&hello, number)).0;
            assert_eq!(end, Err(Error::Peer(Misbehaviour::Malformed)), "{number}");
        }
        let (end, output) = serve(server, &emptied(&hello, SHARES));
        assert_eq!(end, Ok(Event::Idle));
        assert_eq!(output[11..43], RETRY_RANDOM);
    });
}

/// `hello` with an empty list in its extension `number`.
fn emptied(hello: &[u8], number: u16) -> Vec<u8> {
    let content = extension(hello, number).expect("the extension");
    let length = u16::try_from(content.len()).expect("a short one");
    let whole = [&number.to_be_bytes(), &length.to_be_bytes(), &content[..]].concat();
    let at = hello.windows(whole.len()).position(|window| window == whole).expect("its place");
    let mut changed = hello.to_vec();
    let empty = [number.to_be_bytes(), [0, 2], [0, 0]].concat();
    changed.splice(at..at + whole.len(), empty);
    let cut = content.len() - 2;
    // The lengths of the record, of the message and of all extensions.
    let session = 5 + 4 + 2 + 32;
    let suites = session + 1 + usize::from(hello[session]);
    let compressions =
        suites + 2 + usize::from(u16::from_be_bytes([hello[suites], hello[suites + 1]]));
    let extensions = compressions + 1 + usize::from(hello[compressions]);
    for at in [3, 7, extensions] {
        let length = usize::from(u16::from_be_bytes([hello[at], hello[at + 1]])) - cut;
        changed[at..at + 2].copy_from_slice(&u16::try_from(length).expect("shorter").to_be_bytes());
    }
    changed
}

/// RFC 8446 §5.4: records of alerts and of handshake messages are not empty. §6: a level is one of two.
#[test]
fn alerts_that_are_none_are_answered_by_what_is_wrong_with_them() {
    in_world(|_, server, _| {
        for (record, alert) in [
            (&[21, 3, 3, 0, 0][..], Alert::UNEXPECTED_MESSAGE),
            (&[22, 3, 3, 0, 0], Alert::UNEXPECTED_MESSAGE),
            (&[21, 3, 3, 0, 1, 2], Alert::DECODE_ERROR),
            (&[21, 3, 3, 0, 3, 2, 10, 0], Alert::DECODE_ERROR),
            (&[21, 3, 3, 0, 2, 0x42, 10], Alert::ILLEGAL_PARAMETER),
        ] {
            let (end, output) = serve(server, record);
            assert!(matches!(end, Err(Error::Peer(_))), "{end:?}");
            assert_eq!(output, [21, 3, 3, 0, 2, 2, alert.0], "{record:?}");
        }
    });
}

/// Other stacks send as many: `openssl s_server -num_tickets 20`, and extensions of which none means anything here.
#[test]
fn twenty_tickets_are_taken_in_a_row_and_a_hundred_unknown_extensions() {
    in_world(|client, server, _| {
        let key = TicketKey::generate(&mut security()).expect("a key");
        let server = ServerConfig { ticket_key: Some(&key), ..*server };
        with_pair(client, &server, LARGE, |pair| {
            pair.connect();
            for _ in 0..20 {
                pair.server.send_ticket(&mut pair.security, &NOW).expect("connected");
            }
            let mut tickets = 0;
            while pair.run().0 == Ok(Event::Ticket) {
                tickets += 1;
            }
            assert_eq!(tickets, 20);
            pair.echo(b"it goes on");
        });
        let mut buffer = vec![0; 20_000];
        let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
        let mut hello = hello_of(&mut client);
        let suites = 43 + 33 + 2 + usize::from(u16::from_be_bytes([hello[76], hello[77]]));
        let list = suites + 2;
        let before = hello.len();
        for number in 0..100_u16 {
            hello.extend((0xfa00 + number).to_be_bytes());
            hello.extend([0, 0]);
        }
        let more = hello.len() - before;
        for at in [3, 7, list] {
            let length = u16::from_be_bytes([hello[at], hello[at + 1]]) + more as u16;
            hello[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
        assert_eq!(serve(&server, &hello).0, Ok(Event::Idle));
    });
}
