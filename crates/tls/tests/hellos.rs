//! The hello messages of both ends (RFC 8446 §4.1, §4.2, §9.2): what ours say, and what is refused in a peer's, which are ours
//! put together otherwise.

mod common;

use common::hello::{Answer, Hello, records};
use common::pair::*;
use common::security;
use tenure_crypto::{
    AEAD_TAG_BYTES, AeadAlgorithm, AgreedSecret, EphemeralKey, Group, PrivateKey, PublicKeyRef,
    Security, SecurityError, SignatureAlgorithm, Signed,
};
use tenure_tls::x509::ServerName;
use tenure_tls::{
    Alert, Client, ClientConfig, Error, Event, Identity, PreSharedKey, Server, ServerConfig, Suite,
};

const SERVER_NAME: u16 = 0;
const GROUPS: u16 = 10;
const SCHEMES: u16 = 13;
const PROTOCOLS: u16 = 16;
const STATUS_REQUEST_V2: u16 = 17;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const VERSIONS: u16 = 43;
const COOKIE: u16 = 44;
const MODES: u16 = 45;
const SHARES: u16 = 51;
const UNKNOWN: u16 = 0xfafa;

const CHANGE_CIPHER_SPEC: [u8; 6] = [20, 3, 3, 0, 1, 1];
const RETRY_RANDOM_BEGINS: [u8; 4] = [0xcf, 0x21, 0xad, 0x74];

/// A key that both ends were given, as the client has it.
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

/// The first message of a client of `config`, in its parts.
fn first(config: &ClientConfig<'_>) -> Hello {
    let mut buffer = vec![0; 20_000];
    let mut client = Client::new(&mut buffer, config, &NOW).expect("a client");
    Hello::parse(&hello_of(&mut client))
}

/// The answer of a server of `config` to `hello`, in its parts.
fn answer(config: &ServerConfig<'_>, hello: &Hello) -> Answer {
    let (end, output) = serve(config, &hello.record());
    assert_eq!(end, Ok(Event::Idle));
    Answer::parse(&output)
}

/// Two bytes for each number.
fn wide(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_be_bytes()).collect()
}

/// The same, with the length of the list in two bytes before it.
fn list(numbers: &[u16]) -> Vec<u8> {
    [&wide(&[2 * numbers.len() as u16]), &wide(numbers)[..]].concat()
}

/// A list of key shares with one of `group`.
fn share(group: u16, key: &[u8]) -> Vec<u8> {
    let entry = [&wide(&[group, key.len() as u16]), key].concat();
    [&wide(&[entry.len() as u16]), &entry[..]].concat()
}

/// The alert by which an end of `end` refuses.
fn alert_of(end: &End) -> Option<Alert> {
    match end {
        Err(error) => error.alert(),
        Ok(_) => None,
    }
}

// ---- What ours say ----

#[test]
fn first_message_says_what_each_rule_asks_for_and_nothing_else() {
    in_world(|client, _, _| {
        let psk = ClientConfig { pre_shared_key: Some(external()), ..*client };
        let named = ClientConfig { server_name: ServerName::Dns("server.test"), ..*client };
        let protocols = ClientConfig { application_protocols: &[b"h2"], ..*client };
        for config in [client, &psk, &named, &protocols] {
            let mut buffer = vec![0; 20_000];
            let mut client = Client::new(&mut buffer, config, &NOW).expect("a client");
            let record = hello_of(&mut client);
            assert_eq!(records(&record).len(), 1, "it stands in a record of its own");
            assert_eq!(record[..3], [22, 3, 3], "a handshake record, its version that of TLS 1.2");
            let hello = Hello::parse(&record);
            assert_eq!(hello.head[..2], [3, 3]);
            assert_eq!(hello.session.len(), 32);
            assert_eq!(hello.compressions, [0]);
            assert_eq!(hello.suites, wide(&[0x1303, 0x1301, 0x1302]));
            assert_eq!(hello.get(VERSIONS), Some(&[2, 3, 4][..]));
            assert_eq!(hello.get(GROUPS), Some(&list(&[0x1d, 0x17, 0x18, 0x11ec])[..]));
            let schemes = [0x0403, 0x0807, 0x0503, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601];
            assert_eq!(hello.get(SCHEMES), Some(&list(&schemes)[..]));
            let shares = hello.get(SHARES).expect("a share");
            assert_eq!(shares[..6], [0, 36, 0, 0x1d, 0, 32], "one, of the first group");
            assert_eq!(hello.get(MODES), Some(&[1, 1][..]), "with a key agreement alone");
            assert_eq!(hello.get(PRE_SHARED_KEY).is_some(), config.pre_shared_key.is_some());
            if config.pre_shared_key.is_some() {
                assert_eq!(hello.extensions.last().map(|it| it.0), Some(PRE_SHARED_KEY));
            }
            assert_eq!(hello.get(PROTOCOLS).is_some(), !config.application_protocols.is_empty());
            let name = [&[0, 14, 0, 0, 11], &b"server.test"[..]].concat();
            assert_eq!(hello.get(SERVER_NAME), Some(&name[..]));
            let mut numbers: Vec<u16> = hello.extensions.iter().map(|it| it.0).collect();
            let known =
                [SERVER_NAME, GROUPS, SCHEMES, PROTOCOLS, PRE_SHARED_KEY, VERSIONS, MODES, SHARES];
            assert!(numbers.iter().all(|it| known.contains(it)), "{numbers:?}");
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), hello.extensions.len(), "none stands there twice");
        }
    });
}

#[test]
fn random_session_and_share_are_new_for_each_connection() {
    in_world(|client, server, _| {
        let (one, other) = (first(client), first(client));
        assert_ne!(one.head, other.head);
        assert_ne!(one.session, other.session);
        assert_ne!(one.get(SHARES), other.get(SHARES));
        let (first, second) = (answer(server, &one), answer(server, &one));
        assert_ne!(first.random, second.random);
        assert_ne!(first.get(SHARES), second.get(SHARES));
        assert_ne!(first.random, one.head[2..]);
    });
}

/// RFC 8446 §4.1.2: after a retry the share is another, early data is gone, and binders are made anew.
#[test]
fn second_message_differs_from_the_first_only_where_the_retry_asks_for_it() {
    in_world(|client, server, _| {
        let server = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        let known = PreSharedKey { early_data_bytes_max: 100, ..external() };
        let early = ClientConfig { pre_shared_key: Some(known), early_data: true, ..*client };
        for config in [client, &early] {
            let mut buffer = vec![0; 20_000];
            let mut client = Client::new(&mut buffer, config, &NOW).expect("a client");
            let output = hello_of(&mut client);
            let record = records(&output)[0].to_vec();
            let hello = Hello::parse(&record);
            assert_eq!(hello.get(EARLY_DATA).is_some(), config.early_data);
            let (_, retry) = serve(&server, &record);
            client.feed(&retry);
            assert_eq!(client.poll(&mut security(), &NOW), Ok(Event::Idle));
            let output = client.output().to_vec();
            let found = records(&output);
            let record = found.iter().find(|it| it[0] == 22).expect("a second message");
            assert_eq!(record[..3], [22, 3, 3]);
            let second = Hello::parse(record);
            assert_eq!(
                second.get(SHARES).map(|it| it[..6].to_vec()),
                Some(vec![0, 101, 0, 0x18, 0, 97])
            );
            assert_eq!(second.get(EARLY_DATA), None);
            assert_eq!(second.get(PRE_SHARED_KEY).is_some(), config.pre_shared_key.is_some());
            let rest = |hello: &Hello| {
                let mut hello = hello.clone();
                [SHARES, EARLY_DATA, PRE_SHARED_KEY].into_iter().for_each(|it| hello.remove(it));
                hello.record()
            };
            assert_eq!(rest(&second), rest(&hello));
        }
    });
}

#[test]
fn servers_hello_and_retry_say_what_each_rule_asks_for_and_nothing_else() {
    in_world(|client, server, _| {
        let keys = ServerConfig { pre_shared_keys: &[EXTERNAL], ..*server };
        let with_key = ClientConfig { pre_shared_key: Some(external()), ..*client };
        for (client, expected) in
            [(client, &[VERSIONS, SHARES][..]), (&with_key, &[VERSIONS, SHARES, PRE_SHARED_KEY])]
        {
            let mut hello = first(client);
            if client.pre_shared_key.is_none() {
                // It means nothing in TLS 1.3, and asks for nothing.
                hello.extensions.push((STATUS_REQUEST_V2, vec![0, 7, 2, 0, 4, 0, 0, 0, 0]));
            }
            let (end, output) = serve(&keys, &hello.record());
            assert_eq!(end, Ok(Event::Idle));
            let found = records(&output);
            assert!(found.iter().all(|record| record[1..3] == [3, 3]));
            let answer = Answer::parse(found[0]);
            assert_eq!(found[1], CHANGE_CIPHER_SPEC);
            assert!(found[2..].iter().all(|record| record[0] == 23), "all else is encrypted");
            assert_eq!((answer.version, answer.suite), (0x0303, 0x1303));
            assert_eq!((&answer.session, answer.compression), (&hello.session, 0));
            let numbers: Vec<u16> = answer.extensions.iter().map(|it| it.0).collect();
            assert_eq!(numbers, expected);
            assert_eq!(answer.get(VERSIONS), Some(&[3, 4][..]));
            let share = answer.get(SHARES).expect("a share");
            assert_eq!(share[..4], [0, 0x1d, 0, 32], "in the client's group");
            // A client without a session doesn't speak through middleboxes (§D.4).
            if client.pre_shared_key.is_none() {
                hello.session.clear();
                let (_, output) = serve(&keys, &hello.record());
                assert!(records(&output)[1..].iter().all(|record| record[0] == 23));
            }
        }
        let other = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        let hello = first(client);
        let (_, output) = serve(&other, &hello.record());
        let found = records(&output);
        let retry = Answer::parse(found[0]);
        assert_eq!(found[1..], [&CHANGE_CIPHER_SPEC[..]]);
        assert_eq!(retry.random[..4], RETRY_RANDOM_BEGINS);
        assert_eq!((retry.version, retry.suite, retry.compression), (0x0303, 0x1303, 0));
        assert_eq!(retry.session, hello.session);
        assert_eq!(retry.extensions, [(VERSIONS, vec![3, 4]), (SHARES, vec![0, 0x18])]);
    });
}

/// RFC 8446 §4.2: nothing is answered that wasn't asked for: our client refuses all else.
#[test]
fn server_with_everything_answers_a_client_that_asks_for_little() {
    in_world(|client, server, world| {
        let key = tenure_tls::TicketKey::generate(&mut security()).expect("a key");
        let server = ServerConfig {
            application_protocols: &[b"h2"],
            ticket_key: Some(&key),
            early_data_bytes_max: 100,
            pre_shared_keys: &[EXTERNAL],
            ..*server
        };
        let keys = [&world.key_info[..]];
        for trust in [client.trust, tenure_tls::Trust::Keys(&keys)] {
            // An address is no name that is indicated.
            let name = ServerName::Ipv4([192, 0, 2, 1]);
            let server_name =
                if let tenure_tls::Trust::Keys(_) = trust { name } else { client.server_name };
            let client = ClientConfig { server_name, trust, ..*client };
            with_pair(&client, &server, LARGE, |pair| {
                pair.connect();
                assert_eq!(pair.client.application_protocol(), None);
            });
        }
    });
}

// ---- What a client refuses ----

type Bend<'a> = (&'a str, &'a dyn Fn(&mut Answer), Option<Alert>);

/// Has clients of `config` take the answer of a server of `server`, bent in each way, and compares the alerts.
fn bend_answers(config: &ClientConfig<'_>, server: &ServerConfig<'_>, cases: &[Bend<'_>]) {
    for (name, bend, alert) in cases {
        let mut buffer = vec![0; 20_000];
        let mut client = Client::new(&mut buffer, config, &NOW).expect("a client");
        let hello = hello_of(&mut client);
        let mut answer = Answer::parse(&serve(server, records(&hello)[0]).1);
        bend(&mut answer);
        client.feed(&answer.record());
        let end = client.poll(&mut security(), &NOW);
        assert_eq!(alert_of(&end), *alert, "{name}: {end:?}");
        if let (Some(alert), false) = (alert, config.early_data) {
            assert_eq!(client.output(), [21, 3, 3, 0, 2, 2, alert.0], "{name}");
        }
    }
}

#[test]
fn servers_hello_that_breaks_a_rule_is_refused_with_its_alert() {
    let old = |answer: &mut Answer| answer.remove(VERSIONS);
    let downgrade = |mark: u8| {
        move |answer: &mut Answer| {
            answer.remove(VERSIONS);
            answer.random[24..].copy_from_slice(&[b'D', b'O', b'W', b'N', b'G', b'R', b'D', mark]);
        }
    };
    let illegal = Some(Alert::ILLEGAL_PARAMETER);
    let (old_version, unsupported) =
        (Some(Alert::PROTOCOL_VERSION), Some(Alert::UNSUPPORTED_EXTENSION));
    in_world(|client, server, _| {
        let cases: &[Bend<'_>] = &[
            ("as it is", &|_| (), None),
            ("an old version of any number", &|it| it.version = 0x0304, None),
            ("an old version of another number", &|it| it.version = 0x7f12, None),
            ("the version of SSL", &|it| it.version = 0x0300, old_version),
            ("TLS 1.2", &old, old_version),
            (
                "TLS 1.2, and all else wrong",
                &|it| {
                    it.remove(VERSIONS);
                    (it.session, it.suite, it.compression) = (vec![1], 0xfafa, 1);
                },
                old_version,
            ),
            ("TLS 1.2 that was talked into", &downgrade(1), illegal),
            ("TLS 1.1 that was talked into", &downgrade(0), illegal),
            ("TLS 1.2 in the extension", &|it| it.set(VERSIONS, &[3, 3]), illegal),
            ("SSL 3.0 in the extension", &|it| it.set(VERSIONS, &[3, 0]), illegal),
            ("a later version", &|it| it.set(VERSIONS, &[3, 5]), illegal),
            ("another session", &|it| it.session[31] ^= 1, illegal),
            ("no session", &|it| it.session.clear(), illegal),
            ("a suite that nobody offered", &|it| it.suite = 0x1304, illegal),
            ("a suite of TLS 1.2", &|it| it.suite = 0xc02b, illegal),
            ("compression", &|it| it.compression = 1, illegal),
            ("an unknown extension", &|it| it.extensions.push((UNKNOWN, vec![])), unsupported),
            (
                "protocols in the open",
                &|it| it.extensions.push((PROTOCOLS, vec![0, 3, 2, b'h', b'2'])),
                illegal,
            ),
            ("a cookie", &|it| it.extensions.push((COOKIE, vec![0, 1, 7])), illegal),
            (
                "a key that nobody offered",
                &|it| it.extensions.push((PRE_SHARED_KEY, vec![0, 0])),
                unsupported,
            ),
            ("an extension twice", &|it| it.extensions.push((VERSIONS, vec![3, 4])), illegal),
            ("no share", &|it| it.remove(SHARES), Some(Alert::MISSING_EXTENSION)),
            (
                "a share of another group",
                &|it| {
                    let mut share = it.get(SHARES).expect("a share").to_vec();
                    share[1] = 0x17;
                    it.set(SHARES, &share);
                },
                illegal,
            ),
            (
                "a share without a key",
                &|it| it.set(SHARES, &[0, 0x1d, 0, 0]),
                Some(Alert::DECODE_ERROR),
            ),
            (
                "a share that makes a secret of zeros",
                &|it| {
                    it.set(SHARES, &[&[0, 0x1d, 0, 32], &[0; 32][..]].concat());
                },
                illegal,
            ),
            ("a byte more", &|it| it.more.push(0), Some(Alert::DECODE_ERROR)),
        ];
        bend_answers(client, server, cases);
        let early = PreSharedKey { early_data_bytes_max: 100, ..external() };
        let early = ClientConfig { pre_shared_key: Some(early), early_data: true, ..*client };
        bend_answers(&early, server, &[("TLS 1.2 after early data", &old, old_version)]);
        for group in [Group::Secp256r1, Group::Secp384r1] {
            let client = ClientConfig { groups: &[group], ..*client };
            let no_point: &[Bend<'_>] = &[(
                "a share on no curve",
                &|it| {
                    let mut share = it.get(SHARES).expect("a share").to_vec();
                    share[60] ^= 1;
                    it.set(SHARES, &share);
                },
                illegal,
            )];
            bend_answers(&client, server, no_point);
        }
    });
}

/// RFC 8446 §4.2.11.
#[test]
fn choice_of_a_key_that_contradicts_the_offer_is_refused() {
    let illegal = Some(Alert::ILLEGAL_PARAMETER);
    in_world(|client, server, _| {
        let server = ServerConfig { pre_shared_keys: &[EXTERNAL], ..*server };
        let client = ClientConfig { pre_shared_key: Some(external()), ..*client };
        let cases: &[Bend<'_>] = &[
            ("as it is", &|_| (), None),
            ("a second key", &|it| it.set(PRE_SHARED_KEY, &[0, 1]), illegal),
            ("no share", &|it| it.remove(SHARES), illegal),
            ("a suite with another hash", &|it| it.suite = 0x1302, illegal),
        ];
        bend_answers(&client, &server, cases);
    });
}

#[test]
fn retry_that_breaks_a_rule_is_refused_with_its_alert() {
    let illegal = Some(Alert::ILLEGAL_PARAMETER);
    in_world(|client, server, _| {
        let server = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        let cases: &[Bend<'_>] = &[
            ("as it is", &|_| (), None),
            ("another version", &|it| it.version = 0x0304, illegal),
            ("TLS 1.2", &|it| it.remove(VERSIONS), Some(Alert::PROTOCOL_VERSION)),
            ("another session", &|it| it.session[0] ^= 1, illegal),
            ("a suite that nobody offered", &|it| it.suite = 0x1304, illegal),
            ("compression", &|it| it.compression = 1, illegal),
            ("the group of the share", &|it| it.set(SHARES, &[0, 0x1d]), illegal),
            ("a group that nobody offered", &|it| it.set(SHARES, &[0, 0x19]), illegal),
            ("nothing to change", &|it| it.remove(SHARES), illegal),
            (
                "an unknown extension",
                &|it| it.extensions.push((UNKNOWN, vec![])),
                Some(Alert::UNSUPPORTED_EXTENSION),
            ),
            ("a key", &|it| it.extensions.push((PRE_SHARED_KEY, vec![0, 0])), illegal),
            (
                "an empty cookie",
                &|it| it.extensions.push((COOKIE, vec![0, 0])),
                Some(Alert::DECODE_ERROR),
            ),
        ];
        bend_answers(client, &server, cases);
        // A group that is known and wasn't offered.
        let fewer = ClientConfig { groups: &[Group::X25519, Group::Secp384r1], ..*client };
        let known: &[Bend<'_>] = &[
            ("a known group", &|it| it.set(SHARES, &[0, 0x17]), illegal),
            ("as it is", &|_| (), None),
        ];
        bend_answers(&fewer, &server, known);
    });
}

/// RFC 8446 §4.1.4, §4.2.8.
#[test]
fn answer_after_a_retry_keeps_to_it_or_is_refused() {
    let illegal = Some(Alert::ILLEGAL_PARAMETER);
    in_world(|client, server, _| {
        let cases: &[Bend<'_>] = &[
            ("as it is", &|_| (), None),
            ("another suite", &|it| it.suite = 0x1301, illegal),
            ("another version", &|it| it.set(VERSIONS, &[3, 5]), illegal),
            (
                "another group",
                &|it| {
                    let mut share = it.get(SHARES).expect("a share").to_vec();
                    share[1] = 0x1d;
                    it.set(SHARES, &share);
                },
                illegal,
            ),
        ];
        let server = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        for (name, bend, alert) in cases {
            with_pair(client, &server, LARGE, |pair| {
                let _ = pair.client.poll(&mut pair.security, &NOW);
                for _ in 0..2 {
                    pair.server.feed(pair.client.output());
                    pair.client.sent(usize::MAX);
                    let _ = pair.server.poll(&mut pair.security, &NOW);
                    let flight = pair.server.output().to_vec();
                    pair.server.sent(flight.len());
                    let mut answer = Answer::parse(records(&flight)[0]);
                    let is_retry = answer.random[..4] == RETRY_RANDOM_BEGINS;
                    if !is_retry {
                        bend(&mut answer);
                    }
                    pair.client.feed(&answer.record());
                    let end = pair.client.poll(&mut pair.security, &NOW);
                    assert_eq!(alert_of(&end), if is_retry { None } else { *alert }, "{name}");
                }
            });
        }
    });
}

#[test]
fn second_retry_is_an_unexpected_message() {
    in_world(|client, server, _| {
        let server = ServerConfig { groups: &[Group::Secp384r1], ..*server };
        for suite in [0x1303, 0x1301] {
            let mut buffer = vec![0; 20_000];
            let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
            let hello = hello_of(&mut client);
            let mut retry = Answer::parse(&serve(&server, &hello).1);
            client.feed(&retry.record());
            assert_eq!(client.poll(&mut security(), &NOW), Ok(Event::Idle));
            retry.suite = suite;
            client.feed(&retry.record());
            let end = client.poll(&mut security(), &NOW);
            assert_eq!(alert_of(&end), Some(Alert::UNEXPECTED_MESSAGE), "{suite:#x}");
        }
    });
}

// ---- What a server refuses ----

type BendHello<'a> = (&'a str, &'a dyn Fn(&mut Hello), Option<Alert>);

/// Has servers of `config` take `hello`, bent in each way, and compares the alerts.
fn bend_hellos(config: &ServerConfig<'_>, hello: &Hello, cases: &[BendHello<'_>]) {
    for (name, bend, alert) in cases {
        let mut hello = hello.clone();
        bend(&mut hello);
        let (end, output) = serve(config, &hello.record());
        assert_eq!(alert_of(&end), *alert, "{name}: {end:?}");
        match alert {
            Some(alert) => assert_eq!(output, [21, 3, 3, 0, 2, 2, alert.0], "{name}"),
            None => assert_eq!(output[5], 2, "{name}"),
        }
    }
}

#[test]
fn first_message_that_breaks_a_rule_is_refused_with_its_alert() {
    let (illegal, malformed) = (Some(Alert::ILLEGAL_PARAMETER), Some(Alert::DECODE_ERROR));
    let (old, missing) = (Some(Alert::PROTOCOL_VERSION), Some(Alert::MISSING_EXTENSION));
    let nothing = Some(Alert::HANDSHAKE_FAILURE);
    in_world(|client, server, _| {
        let cases: &[BendHello<'_>] = &[
            ("as it is", &|_| (), None),
            ("no versions", &|it| it.remove(VERSIONS), old),
            ("TLS 1.2 and 1.1", &|it| it.set(VERSIONS, &[4, 3, 3, 3, 2]), old),
            ("SSL 3.0", &|it| it.set(VERSIONS, &[2, 3, 0]), old),
            ("SSL 3.0 by its old name", &|it| it.head[1] = 0, old),
            ("a choice of compressions", &|it| it.compressions = vec![0, 1], illegal),
            ("compression alone", &|it| it.compressions = vec![1], illegal),
            ("suites of RC4 and 3DES", &|it| it.suites = wide(&[0x0005, 0x0004, 0x000a]), nothing),
            (
                "groups that are reserved",
                &|it| {
                    it.set(GROUPS, &list(&[1, 9, 22, 0xff01]));
                    it.set(SHARES, &[0, 0]);
                },
                nothing,
            ),
            (
                "signatures over SHA-1 and by DSA",
                &|it| it.set(SCHEMES, &list(&[0x0201, 0x0203, 0x0202])),
                nothing,
            ),
            (
                "a signature that no identity makes",
                &|it| it.set(SCHEMES, &list(&[0x0503])),
                nothing,
            ),
            ("no signatures", &|it| it.remove(SCHEMES), missing),
            ("no groups", &|it| it.remove(GROUPS), missing),
            ("no shares", &|it| it.remove(SHARES), missing),
            ("an extension twice", &|it| it.extensions.push((VERSIONS, vec![2, 3, 4])), illegal),
            (
                "a share of a group that isn't listed",
                &|it| it.set(GROUPS, &list(&[0x17, 0x18])),
                illegal,
            ),
            (
                "a share that makes a secret of zeros",
                &|it| it.set(SHARES, &share(0x1d, &[0; 32])),
                illegal,
            ),
            ("a share on no curve", &|it| it.set(SHARES, &share(0x17, &[4; 65])), illegal),
            ("a share on no other curve", &|it| it.set(SHARES, &share(0x18, &[4; 97])), illegal),
            (
                "a cookie that nobody gave",
                &|it| it.extensions.push((COOKIE, vec![0, 1, 7])),
                illegal,
            ),
            (
                "two names of a server",
                &|it| {
                    it.set(SERVER_NAME, &[0, 8, 0, 0, 1, b'a', 0, 0, 1, b'b']);
                },
                malformed,
            ),
            ("a session that is too long", &|it| it.session.push(0), malformed),
            ("no suites", &|it| it.suites.clear(), malformed),
            ("half a suite", &|it| it.suites.push(0), malformed),
            ("an empty list of versions", &|it| it.set(VERSIONS, &[0]), malformed),
            ("an empty list of modes", &|it| it.set(MODES, &[0]), malformed),
            ("a share without a key", &|it| it.set(SHARES, &share(0x1d, &[])), malformed),
        ];
        bend_hellos(server, &first(client), cases);
    });
}

#[test]
fn offer_of_a_key_that_breaks_a_rule_is_refused_with_its_alert() {
    in_world(|client, server, _| {
        let server = ServerConfig { pre_shared_keys: &[EXTERNAL], ..*server };
        let client = ClientConfig { pre_shared_key: Some(external()), ..*client };
        let malformed = Some(Alert::DECODE_ERROR);
        let identity = 2 + 2 + EXTERNAL.identity.len() + 4;
        let cases: &[BendHello<'_>] = &[
            ("as it is", &|_| (), None),
            (
                "the key not at the end",
                &|it| it.extensions.push((UNKNOWN, vec![])),
                Some(Alert::ILLEGAL_PARAMETER),
            ),
            ("no modes", &|it| it.remove(MODES), Some(Alert::MISSING_EXTENSION)),
            (
                "a wrong binder",
                &|it| {
                    it.extensions.last_mut().expect("the key").1[identity + 10] ^= 1;
                },
                Some(Alert::DECRYPT_ERROR),
            ),
            (
                "no binder",
                &|it| {
                    let (_, content) = it.extensions.last_mut().expect("the key");
                    content.truncate(identity);
                    content.extend([0, 0]);
                },
                malformed,
            ),
            (
                "a short binder",
                &|it| {
                    let (_, content) = it.extensions.last_mut().expect("the key");
                    content.truncate(identity);
                    content.extend([0, 2, 1, 7]);
                },
                malformed,
            ),
            (
                "no identity",
                &|it| {
                    let (_, content) = it.extensions.last_mut().expect("the key");
                    content.splice(..identity, [0, 0]);
                },
                malformed,
            ),
        ];
        bend_hellos(&server, &first(&client), cases);
    });
}

/// RFC 8446 §4.2.9: a key isn't used in a way that the client doesn't name.
#[test]
fn key_without_an_agreement_is_passed_over() {
    in_world(|client, server, _| {
        let server = ServerConfig { pre_shared_keys: &[EXTERNAL], ..*server };
        let client = ClientConfig { pre_shared_key: Some(external()), ..*client };
        let mut hello = first(&client);
        hello.set(MODES, &[1, 0]);
        assert_eq!(answer(&server, &hello).get(PRE_SHARED_KEY), None);
    });
}

#[test]
fn unknown_suites_groups_versions_and_extensions_are_ignored_by_a_server() {
    in_world(|client, server, _| {
        let mut hello = first(client);
        hello.suites = [wide(&[0x0a0a, 0x00ff, 0xc02b, 0x1304]), hello.suites].concat();
        hello.set(VERSIONS, &[8, 0xfa, 0xfa, 0x7f, 0x1c, 3, 3, 3, 4]);
        hello.set(GROUPS, &list(&[0x0a0a, 0x0100, 0x1d]));
        let old = hello.get(SHARES).expect("a share")[2..].to_vec();
        let shares = [&[0x0a, 0x0a, 0, 1, 0], &old[..]].concat();
        hello.set(SHARES, &[&wide(&[shares.len() as u16]), &shares[..]].concat());
        hello.set(SCHEMES, &list(&[0x0a0a, 0x0403]));
        hello.set(MODES, &[2, 0x0b, 1]);
        hello.extensions.insert(0, (0x0a0a, vec![]));
        hello.extensions.push((STATUS_REQUEST_V2, vec![1, 2, 3]));
        hello.extensions.push((50, vec![0, 2, 4, 3]));
        let answer = answer(server, &hello);
        assert_eq!((answer.suite, answer.get(VERSIONS)), (0x1303, Some(&[3, 4][..])));
        assert_eq!(answer.get(SHARES).map(|it| it[..2].to_vec()), Some(vec![0, 0x1d]));
    });
}

/// RFC 6066 §4.
#[test]
fn length_of_fragments_is_one_of_four_and_kept_to() {
    const FRAGMENT: u16 = 1;
    const LIMIT: u16 = 28;
    in_world(|client, server, world| {
        // A server doesn't read what it shows.
        let chain = [&world.leaf[..], &[7; 5_000]];
        let identities = [Identity { chain: &chain, ..server.identities[0] }];
        let server = &ServerConfig { identities: &identities, ..*server };
        let short = ClientConfig { groups: &[Group::X25519], ..*client };
        let mut buffer = vec![0; 4096];
        let mut small = Client::new(&mut buffer, &short, &NOW).expect("a client");
        let mut hello = Hello::parse(&hello_of(&mut small));
        assert_eq!(hello.get(FRAGMENT), Some(&[3][..]), "2 KB");
        hello.remove(LIMIT);
        for code in [0, 5, 255] {
            hello.set(FRAGMENT, &[code]);
            let end = serve(server, &hello.record()).0;
            assert_eq!(alert_of(&end), Some(Alert::ILLEGAL_PARAMETER), "{code}");
        }
        for code in 1..=4 {
            hello.set(FRAGMENT, &[code]);
            let (end, output) = serve(server, &hello.record());
            assert_eq!(end, Ok(Event::Idle));
            let found = records(&output);
            // The content, its type and the tag.
            let protected = found.iter().filter(|record| record[0] == 23);
            let longest = protected.map(|record| record.len() - 5 - 1 - 16).max();
            assert_eq!(longest, Some(256 << code));
        }
    });
}

/// RFC 8446 §4.4.2.2, RFC 7250 §4.2.
#[test]
fn key_alone_is_shown_to_those_who_ask_for_it() {
    in_world(|client, server, world| {
        let chain = [&world.key_info[..]];
        let identities = [Identity { chain: &chain, key: PrivateKey::P256(&world.key) }];
        let server = ServerConfig { identities: &identities, ..*server };
        let hello = first(client);
        let cases: &[BendHello<'_>] = &[
            ("a client that doesn't ask", &|_| (), Some(Alert::HANDSHAKE_FAILURE)),
            (
                "one that asks for X.509",
                &|it| it.extensions.insert(0, (20, vec![1, 0])),
                Some(Alert::HANDSHAKE_FAILURE),
            ),
            ("one that asks", &|it| it.extensions.insert(0, (20, vec![2, 0, 2])), None),
        ];
        bend_hellos(&server, &hello, cases);
    });
}

#[test]
fn identity_that_can_not_be_shown_is_refused_at_once() {
    in_world(|client, server, world| {
        let mut buffer = [0; 100];
        let key = PrivateKey::P256(&world.key);
        let raw = [&world.key_info[..]];
        for chain in [&[][..], &raw] {
            let identity = Identity { chain, key };
            let client = ClientConfig { identity: Some(identity), ..*client };
            let refused = Client::new(&mut buffer, &client, &NOW).err();
            assert_eq!(refused, Some(Error::Configuration), "{chain:?}");
        }
        let identities = [server.identities[0], Identity { chain: &[], key }];
        let server = ServerConfig { identities: &identities, ..*server };
        let refused = Server::new(&mut buffer, &server, None, &NOW).err();
        assert_eq!(refused, Some(Error::Configuration));
    });
}

/// The software's operations but for AES-128-GCM, as a chip may lack it.
struct Lacking<S>(S);

impl<S: Security> Security for Lacking<S> {
    fn has_group(&self, group: Group) -> bool {
        self.0.has_group(group)
    }

    fn has_signature(&self, algorithm: SignatureAlgorithm) -> bool {
        self.0.has_signature(algorithm)
    }

    fn has_aead(&self, algorithm: AeadAlgorithm) -> bool {
        algorithm != AeadAlgorithm::Aes128Gcm && self.0.has_aead(algorithm)
    }

    fn random(&mut self, bytes: &mut [u8]) -> Result<(), SecurityError> {
        self.0.random(bytes)
    }

    fn begin_agreement(
        &mut self,
        group: Group,
        public: &mut [u8],
    ) -> Result<(EphemeralKey, usize), SecurityError> {
        self.0.begin_agreement(group, public)
    }

    fn finish_agreement(
        &mut self,
        key: &EphemeralKey,
        peer: &[u8],
    ) -> Result<AgreedSecret, SecurityError> {
        self.0.finish_agreement(key, peer)
    }

    fn sign(
        &mut self,
        key: &PrivateKey<'_>,
        message: &[u8],
        signature: &mut [u8],
    ) -> Result<usize, SecurityError> {
        self.0.sign(key, message, signature)
    }

    fn verify(
        &mut self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyRef<'_>,
        message: Signed<'_>,
        signature: &[u8],
    ) -> Result<(), SecurityError> {
        self.0.verify(algorithm, key, message, signature)
    }

    fn seal(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_BYTES], SecurityError> {
        self.0.seal(algorithm, key, nonce, associated, message)
    }

    fn open(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
        tag: &[u8; AEAD_TAG_BYTES],
    ) -> Result<(), SecurityError> {
        self.0.open(algorithm, key, nonce, associated, message, tag)
    }
}

/// RFC 8446 §4.1.3.
#[test]
fn suite_that_the_own_security_lacks_was_not_offered() {
    in_world(|client, server, _| {
        for (suite, alert) in [(0x1303, None), (0x1301, Some(Alert::ILLEGAL_PARAMETER))] {
            let mut security = Lacking(security());
            let mut buffer = vec![0; 20_000];
            let mut client = Client::new(&mut buffer, client, &NOW).expect("a client");
            assert_eq!(client.poll(&mut security, &NOW), Ok(Event::Idle));
            let output = client.output().to_vec();
            client.sent(output.len());
            assert_eq!(Hello::parse(&output).suites, wide(&[0x1303, 0x1302]));
            let mut answer = Answer::parse(&serve(server, &output).1);
            answer.suite = suite;
            client.feed(&answer.record());
            assert_eq!(alert_of(&client.poll(&mut security, &NOW)), alert, "{suite:#x}");
        }
    });
}
